"""Regular expressions of clients, in RE2's syntax: the time of a match is bounded for each of them.

Consumers subscribe by them (KIP-848), and ListTransactions filters by one. The library is RE2 itself; real brokers have
its port to Java, re2j. What differs between the two is here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2

from kproto.errors import KprotoError

MEMORY_MAX_BYTES = 1 << 20
"""Of one compiled expression. DEVIATION: re2j has no such bound, and none for repetitions of repetitions, which RE2
limits to 1,000 together."""
BAD_NAME = "invalid named capture"
TOO_LARGE = "expression too large"
DESCRIPTIONS = {
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": BAD_NAME,
    "trailing \\": "trailing backslash at end of expression",
    "pattern too large - compile failed": TOO_LARGE,
}
"""re2j's words for RE2's, where they differ."""
COMPLEXITY_MAX = 40_000
"""DEVIATION: re2j has no such bound. Expressions with more take more than 50 ms to compile, or to be refused."""
COSTLY, COSTLY_COMPLEXITY = ("\\p", "\\P", "{"), 100
"""What stands for hundreds of states: classes of Unicode, and repetitions. Any other character counts 1."""
GROUP_NAMES = re.compile(r"\(\?P?<([^>(]*)>")
GROUP_NAME = re.compile(r"\w+", re.ASCII)
LOOKBEHIND = re.compile(r"\(\?<[=!]")
ANY_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")
"""RE2 has it, re2j has not."""


class InvalidRegex(KprotoError, ValueError):
    """The expression is not re2j's; the text is re2j's description."""


class Regex:
    """A compiled expression."""

    def __init__(self, text: str) -> None:
        """Compile an expression.

        Raises:
            InvalidRegex: the expression is not re2j's, or more complex than `COMPLEXITY_MAX`.
        """
        if complexity(text) > COMPLEXITY_MAX:
            raise InvalidRegex(TOO_LARGE)
        options = re2.Options()
        options.max_mem = MEMORY_MAX_BYTES
        options.log_errors = False
        try:
            self._pattern: Any = re2.compile(text, options)
        except re2.error as error:
            # re2j takes the beginning of a lookbehind for that of a name.
            raise InvalidRegex(BAD_NAME if LOOKBEHIND.search(text) else _description(error)) from None
        names = GROUP_NAMES.findall(text)
        if not all(map(GROUP_NAME.fullmatch, names)):
            raise InvalidRegex(BAD_NAME)
        if len(names) != len(set(names)):
            raise InvalidRegex("duplicate capture group name")
        if ANY_BYTE.search(text):
            raise InvalidRegex("invalid escape sequence")

    def matches(self, name: str) -> bool:
        """Return whether the expression matches the whole name."""
        return self._pattern.fullmatch(name) is not None


def complexity(text: str) -> int:
    """Return a measure of the time that it takes to compile an expression."""
    return len(text) + COSTLY_COMPLEXITY * sum(map(text.count, COSTLY))


def _description(error: re2.error) -> str:
    said = str(error.args[0], "utf-8", "replace").partition(": ")[0]
    return DESCRIPTIONS.get(said, said)


@lru_cache(maxsize=256)
def regex_of(text: str) -> Regex:
    """Return a compiled expression.

    Raises:
        InvalidRegex: the expression is not re2j's.
    """
    return Regex(text)
