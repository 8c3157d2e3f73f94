"""The types of configuration values."""

from __future__ import annotations

import enum


class ConfigType(enum.IntEnum):
    """The type of a configuration value; the number is the one in DescribeConfigs v3 and later."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


WHITE_SPACE = " \t\n\v\f\r"
"""As in Java's regular expressions."""


class Repeated(enum.Enum):
    """What a release does with an item that a list has already (KIP-1161)."""

    KEPT = enum.auto()
    DROPPED = enum.auto()
    """Empty items are refused."""
    REFUSED = enum.auto()
    """Empty items are refused, too."""


def split_list(text: str) -> list[str]:
    """Return the items of a list in a text without white space at its ends: between commas, as Java splits it.

    A regular expression for commas with white space around them takes quadratic time for white space without commas.
    """
    return [item.strip(WHITE_SPACE) for item in text.split(",")] if text else []
