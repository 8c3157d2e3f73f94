"""Readers of command line values; each refuses nonsense with a line that argparse prints."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Sequence

from bench.peers.durability import DURABILITIES, ON_DISK, Durability


def some_of(text: str, names: Sequence[str]) -> list[str]:
    """Names separated by commas, in the order of ``names``."""
    asked = text.split(",")
    for name in asked:
        if name not in names:
            raise ArgumentTypeError(f"{name!r} is none of {', '.join(names)}")
    return [name for name in names if name in asked]


def count(text: str) -> int:
    """A whole number, 1 or more."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def counts(text: str) -> list[int]:
    """Whole numbers separated by commas."""
    return [count(part) for part in text.split(",")]


def seconds(text: str) -> float:
    """A time above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 3600:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def durabilities(text: str) -> list[Durability]:
    """Some of ``memory,os,fsync``."""
    asked = some_of(text, DURABILITIES)
    return [durability for durability in DURABILITIES if durability in asked]


def on_disk(text: str) -> list[Durability]:
    """Some of ``os,fsync``."""
    asked = some_of(text, ON_DISK)
    return [durability for durability in ON_DISK if durability in asked]
