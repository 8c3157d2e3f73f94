"""Read integers at many positions of a buffer with one numpy call.

A big-endian integer of the log may begin at any byte. `Buffer` lays an array over the same bytes whose elements have
the width of the integer but are one byte apart (a stride of 1): element ``p`` of it is the integer that begins at
position ``p``. Indexing that array with an array of positions gathers the integers of all records in one call, without
a loop in Python and without a copy of the buffer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kproto.errors import KprotoError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

WIDEST = 16
"""Bytes that may be read from any position: positions are clamped to this distance from the end of the padding."""
VARINT_BITS, VARLONG_BITS = 32, 64


class UnusualBlock(KprotoError):
    """A block is damaged, or has content so rare that only the reference decoder reads it."""


def require(flags: Flags | bool | np.bool_) -> None:
    """Check that a condition holds for every element.

    Raises:
        UnusualBlock: it does not hold for one.
    """
    if not np.all(flags):
        raise UnusualBlock


class Buffer:
    """Bytes that end in at least `WIDEST` bytes of padding."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.bytes: NDArray[np.uint8] = np.frombuffer(data, np.uint8)
        self.limit: int = len(data) - WIDEST

    def clamp(self, positions: Ints) -> Ints:
        """Return the positions, with those after the content moved to the padding.

        Sizes come from the log and may be wrong, so a position computed from them may be anywhere. A clamped position
        can be read safely; the value read there is wrong, and a later `require` on the end of the record refuses it.
        """
        return np.minimum(positions, self.limit)

    def uint8(self, positions: Ints) -> Ints:
        return self.bytes[positions].astype(np.int64)

    def int16(self, positions: Ints) -> Ints:
        return self._gather(">i2", positions)

    def int32(self, positions: Ints) -> Ints:
        return self._gather(">i4", positions)

    def uint32(self, positions: Ints) -> Ints:
        return self._gather(">u4", positions)

    def int64(self, positions: Ints) -> Ints:
        return self._gather(">i8", positions)

    def _gather(self, code: str, positions: Ints) -> Ints:
        width = int(code[2])
        # ndarray(shape, dtype, buffer, offset, strides): the stride of 1 byte makes the elements overlap.
        view: NDArray[np.int64] = np.ndarray((len(self.data) - width + 1,), code, self.data, 0, (1,))
        return view[positions].astype(np.int64)

    def varint(self, positions: Ints, bits: int = VARINT_BITS) -> tuple[Ints, Ints]:
        """Read signed varints; return ``(values, positions after them)``.

        Raises:
            UnusualBlock: one is truncated or too long.
        """
        first = self.uint8(positions)
        longer = np.flatnonzero(first > 0x7F)
        if not len(longer):  # the usual case: sizes and deltas below 64 take one byte
            return (first >> 1) ^ -(first & 1), positions + 1
        value, end = self._long_uvarint(first, positions + 1, longer, bits)
        # Zigzag is undone in uint64: a 64-bit value has no room for a sign before it is shifted.
        return ((value >> np.uint64(1)) ^ -(value & np.uint64(1))).view(np.int64), end

    def uvarint(self, positions: Ints) -> tuple[Ints, Ints]:
        """Read unsigned varints of 32 bits; return ``(values, positions after them)``.

        Raises:
            UnusualBlock: one is truncated or too long.
        """
        first = self.uint8(positions)
        longer = np.flatnonzero(first > 0x7F)
        if not len(longer):
            return first, positions + 1
        value, end = self._long_uvarint(first, positions + 1, longer, VARINT_BITS)
        return value.view(np.int64), end

    def record_ends(self, positions: Ints) -> Ints:
        """Return the end of each record, which begins with its size as a varint.

        Raises:
            UnusualBlock: a size is negative, truncated or too long.
        """
        # Nearly all records are shorter than 8 KiB, so their size takes one or two bytes. Both are read as one
        # little-endian uint16: bits 0-6 are the low bits of the size, bit 7 says that a second byte follows, bits 8-14
        # are its high bits, bit 15 would announce a third byte.
        found = self._gather("<u2", positions)
        require(found & 1 == 0)  # zigzag: an odd number is negative
        is_long = found & 0x80
        if ((found & 0x8000) & (is_long << 8)).any():  # a third byte, in a size that has a second one
            size, start = self.varint(positions)
            return start + size
        # The high bits move down by one to close the gap that bit 7 leaves; the last shift undoes zigzag.
        size = ((found & 0x7F) | ((found & 0x7F00) >> 1) * (is_long != 0)) >> 1
        ends: Ints = positions + size + 1 + (is_long >> 7)
        return ends

    def _long_uvarint(self, first: Ints, end: Ints, longer: Ints, bits: int) -> tuple[NDArray[np.uint64], Ints]:
        """Finish varints. ``longer`` indexes those with a second byte; ``end`` is the position after the first byte.

        Each iteration adds one byte to the varints that are not complete, so their number only falls.
        """
        value = (first & 0x7F).astype(np.uint64)
        shift = 7
        while len(longer):
            require(shift < bits)
            byte = self.uint8(self.clamp(end[longer]))
            # The last byte of a varint may not have bits above the width: 4 of 7 are left at shift 28 of 32.
            require((byte & 0x7F) >> min(7, bits - shift) == 0)
            value[longer] |= ((byte & 0x7F) << shift).view(np.uint64)
            end[longer] += 1
            longer = longer[byte > 0x7F]
            shift += 7
        return value, end
