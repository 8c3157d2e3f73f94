"""Reading many integers at many places of a buffer at once.

Views with a stride of one octet have the integer that begins at each place, aligned or not; indexing such a view with
an array of places gathers the integers in one call.
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
"""Octets that can be read beyond a place: places are kept so far from the buffer's end, which is padding."""
VARINT_BITS, VARLONG_BITS = 32, 64


class Suspect(KprotoError):
    """Something is wrong with a block, or so uncommon that only the plain decoder reads it."""


def expect(flags: Flags | bool | np.bool_) -> None:
    """Refuse a block unless all of these hold.

    Raises:
        Suspect: one does not.
    """
    if not np.all(flags):
        raise Suspect


class Octets:
    """A buffer whose last `WIDEST` octets are padding."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.octets: NDArray[np.uint8] = np.frombuffer(data, np.uint8)
        self.limit: int = len(data) - WIDEST

    def within(self, places: Ints) -> Ints:
        """Return the places, those beyond the content moved to its end: what is read there is refused later."""
        return np.minimum(places, self.limit)

    def uint8(self, places: Ints) -> Ints:
        return self.octets[places].astype(np.int64)

    def int16(self, places: Ints) -> Ints:
        return self._gather(">i2", places)

    def int32(self, places: Ints) -> Ints:
        return self._gather(">i4", places)

    def uint32(self, places: Ints) -> Ints:
        return self._gather(">u4", places)

    def int64(self, places: Ints) -> Ints:
        return self._gather(">i8", places)

    def _gather(self, code: str, places: Ints) -> Ints:
        width = int(code[2])
        view: NDArray[np.int64] = np.ndarray((len(self.data) - width + 1,), code, self.data, 0, (1,))
        return view[places].astype(np.int64)

    def varint(self, places: Ints, bits: int = VARINT_BITS) -> tuple[Ints, Ints]:
        """Read signed varints; return ``(values, places after them)``.

        Raises:
            Suspect: one is cut off or too long.
        """
        first = self.uint8(places)
        more = np.flatnonzero(first > 0x7F)
        if not len(more):
            return (first >> 1) ^ -(first & 1), places + 1
        value, end = self._long_uvarint(first, places + 1, more, bits)
        return ((value >> np.uint64(1)) ^ -(value & np.uint64(1))).view(np.int64), end

    def uvarint(self, places: Ints) -> tuple[Ints, Ints]:
        """Read unsigned varints of 32 bits; return ``(values, places after them)``.

        Raises:
            Suspect: one is cut off or too long.
        """
        first = self.uint8(places)
        more = np.flatnonzero(first > 0x7F)
        if not len(more):
            return first, places + 1
        value, end = self._long_uvarint(first, places + 1, more, VARINT_BITS)
        return value.view(np.int64), end

    def behind_sized(self, places: Ints) -> Ints:
        """Return the places behind records that begin with their size, a varint.

        Raises:
            Suspect: a size is negative, cut off or too long.
        """
        found = self._gather("<u2", places)
        expect(found & 1 == 0)
        is_long = found & 0x80
        if ((found & 0x8000) & (is_long << 8)).any():
            size, place = self.varint(places)
            return place + size
        size = ((found & 0x7F) | ((found & 0x7F00) >> 1) * (is_long != 0)) >> 1
        behind: Ints = places + size + 1 + (is_long >> 7)
        return behind

    def _long_uvarint(self, first: Ints, end: Ints, more: Ints, bits: int) -> tuple[NDArray[np.uint64], Ints]:
        """Finish varints of which those at ``more`` have a second octet."""
        value = (first & 0x7F).astype(np.uint64)
        shift = 7
        while len(more):
            expect(shift < bits)
            octet = self.uint8(self.within(end[more]))
            expect((octet & 0x7F) >> min(7, bits - shift) == 0)
            value[more] |= ((octet & 0x7F) << shift).view(np.uint64)
            end[more] += 1
            more = more[octet > 0x7F]
            shift += 7
        return value, end
