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
