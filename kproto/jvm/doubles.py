"""Java's ``double`` in text, as configs have it: ``Double.parseDouble`` and ``Double.toString``."""

from __future__ import annotations

import re
from math import inf, isfinite

NUMBER = (
    r"[-+]?(?:NaN|Infinity|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?[fFdD]?"
    r"|0[xX](?P<hex>[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)[pP][-+]?[0-9]+[fFdD]?)"
)
"""There is one way to match each text: what can be matched in many ways takes quadratic time if the end is wrong."""
DECIMAL_MIN, DECIMAL_MAX = 1e-3, 1e7
"""Java writes numbers below and from these on with an exponent."""


def parse_double(text: str) -> float | None:
    """Return the number in a text without blanks around it; None: Java reads no number in it."""
    found = re.fullmatch(NUMBER, text)  # compiled at the first use: brokers start without it
    if found is None:
        return None
    if found["hex"] is None:
        return float(text.rstrip("fFdD"))
    try:
        return float.fromhex(text.rstrip("fFdD"))
    except OverflowError:
        return -inf if text.startswith("-") else inf


def double_text(number: float) -> str:
    """Return a number as Java writes it."""
    if not isfinite(number):
        return {inf: "Infinity", -inf: "-Infinity"}.get(number, "NaN")
    if number == 0 or DECIMAL_MIN <= abs(number) < DECIMAL_MAX:
        return repr(number)
    from decimal import Decimal  # takes a millisecond, and most brokers need none

    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    first, *rest = map(str, digits)
    assert isinstance(exponent, int), "the number is finite"
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{exponent + len(rest)}"
