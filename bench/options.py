"""Options that several benches share, and parsers of their values; argparse prints the error of a wrong value."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence

from bench.peers.durability import DURABILITIES, ON_DISK, Durability


def some_of(text: str, names: Sequence[str]) -> list[str]:
    """Parse names separated by commas; return them in the order of ``names``."""
    given = text.split(",")
    for name in given:
        if name not in names:
            raise ArgumentTypeError(f"{name!r} is none of {', '.join(names)}")
    return [name for name in names if name in given]


def count(text: str) -> int:
    """Parse a whole number above 0."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def counts(text: str) -> list[int]:
    """Parse whole numbers above 0, separated by commas."""
    return [count(part) for part in text.split(",")]


def seconds(text: str) -> float:
    """Parse a time in seconds, above 0 and below an hour."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 3600:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def durabilities(text: str) -> list[Durability]:
    """Parse some of ``memory,os,fsync``."""
    given = some_of(text, DURABILITIES)
    return [durability for durability in DURABILITIES if durability in given]


def on_disk(text: str) -> list[Durability]:
    """Parse some of ``os,fsync``."""
    given = some_of(text, ON_DISK)
    return [durability for durability in ON_DISK if durability in given]


def add_durability(parser: ArgumentParser, default: Sequence[Durability]) -> None:
    """Add ``--durability``."""
    values = f"{','.join(DURABILITIES)}; {','.join(default)} if not given"
    parser.add_argument("--durability", type=durabilities, default=default, metavar="D,...", help=values)


def add_rounds(parser: ArgumentParser, default: int, unit: str = "rounds") -> None:
    """Add ``--rounds``."""
    parser.add_argument(
        "--rounds", type=count, default=default, metavar="N", help=f"best of N {unit}; {default} if not given"
    )


def add_seconds(parser: ArgumentParser, default: float) -> None:
    """Add ``--seconds``."""
    parser.add_argument(
        "--seconds", type=seconds, default=default, metavar="S", help=f"of load each; {default:g} if not given"
    )
