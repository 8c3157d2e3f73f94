"""Signed varints: zigzag numbers in groups of seven bits, least significant first (LF-3).

Wire:
    varint is an int32 in at most 5 bytes, varlong an int64 in at most 10. 0, -1, 1, -2 ... are 0, 1, 2, 3 ...
"""

from __future__ import annotations

from kproto.errors import DecodeError, EncodeError
from kproto.runtime import FAILURES, UVARINTS, long_uvarint, malformed, more_uvarint


def more_varlong(data: bytes, position: int, first: int) -> tuple[int, int]:
    """Read the rest of an unsigned varint of at most 64 bits whose first byte, already read, has its high bit set.

    Raises one of `kproto.runtime.FAILURES` if the varint is truncated or too long; the caller maps it.
    """
    value = first & 0x7F
    for shift in range(7, 70, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                malformed()
            return value, position
    return malformed(), 0


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Read a signed varint of at most 32 bits; return ``(value, position after it)``.

    Raises:
        DecodeError: the varint is truncated or too long.
    """
    try:
        value, end = data[position], position + 1
        if value > 0x7F:
            value, end = more_uvarint(data, end, value)
    except FAILURES:
        raise DecodeError("varint", position, "truncated, or of more than 32 bits") from None
    return (value >> 1) ^ -(value & 1), end


def read_varlong(data: bytes, position: int) -> tuple[int, int]:
    """Read a signed varint of at most 64 bits; return ``(value, position after it)``.

    Raises:
        DecodeError: the varint is truncated or too long.
    """
    try:
        value, end = data[position], position + 1
        if value > 0x7F:
            value, end = more_varlong(data, end, value)
    except FAILURES:
        raise DecodeError("varlong", position, "truncated, or of more than 64 bits") from None
    return (value >> 1) ^ -(value & 1), end


def varint(value: int) -> bytes:
    """Return a signed varint as bytes.

    Raises:
        EncodeError: the value has more than 32 bits.
    """
    if -64 <= value < 64:
        return _ONE_BYTE[value]
    if not -0x80000000 <= value <= 0x7FFFFFFF:
        raise EncodeError("varint", f"{value} is not an int32")
    return _zigzag(value)


def varlong(value: int) -> bytes:
    """Return a signed varlong as bytes.

    Raises:
        EncodeError: the value has more than 64 bits.
    """
    if -64 <= value < 64:
        return _ONE_BYTE[value]
    if not -(1 << 63) <= value < 1 << 63:
        raise EncodeError("varlong", f"{value} is not an int64")
    return _zigzag(value)


def _zigzag(value: int) -> bytes:
    value = value << 1 if value >= 0 else ~(value << 1)
    return UVARINTS[value] if value < 0x80 else long_uvarint(value)


_ONE_BYTE = tuple(_zigzag(value) for value in (*range(64), *range(-64, 0)))
"""By value, negative ones counted from the end: most numbers of a record are in it."""
