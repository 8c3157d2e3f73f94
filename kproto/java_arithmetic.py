"""Java's arithmetic of 64 bits, where what it makes of a sum is seen from outside."""

from __future__ import annotations

INT64_SIGN = 1 << 63


def wrapped(value: int) -> int:
    """A sum as Java has it: beyond the largest number the smallest follows."""
    return (value + INT64_SIGN) % (2 * INT64_SIGN) - INT64_SIGN
