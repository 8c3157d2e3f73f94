"""The quick way through compaction for the most common batches: a microsecond each, where `Survivors` takes four.

These have magic 2, are not compressed, of no transaction and without a time for tombstones, and their numbers are
small. Whatever is not so, or not right, is left to `Survivors`, which comes to the same of all batches.
"""

from __future__ import annotations

from struct import Struct

from kproto.records.checksum import crc32c
from kproto.records.record_batch import CHECKED_FROM, HEADER_SIZE, LENGTH_MIN, LOG_OVERHEAD, MAGIC

HEAD = Struct(">qi4xbIh34xi")
"""Base offset, length, magic, checksum, attributes, record count."""
RECORDS_MAX = 100

Range = tuple[int, int]


def note_quickly(newest: dict[bytes, int], held: bytes, start: int, until: int, first_dirty: int) -> int:
    """Note the keys of batches from ``start`` on, of those that are dirty.

    Returns:
        where the first one begins that is not of this kind, or not whole, or not before ``until``.
    """
    unpack, size = HEAD.unpack_from, len(held)
    while start < until and start + HEADER_SIZE <= size:
        base, length, magic, crc, attributes, count = unpack(held, start)
        end = start + LOG_OVERHEAD + length
        if (
            end > size
            or magic != MAGIC
            or attributes
            or length < LENGTH_MIN
            or not 0 < count <= RECORDS_MAX
            or crc32c(held[start + CHECKED_FROM : end]) != crc
        ):
            return start
        if base >= first_dirty:
            found = _keys(held, start + HEADER_SIZE, end, base)
            if found is None:
                return start
            newest.update(found)
        start = end
    return start


def _keys(held: bytes, p: int, end: int, base: int) -> list[tuple[bytes, int]] | None:
    """Return keys and offsets of the records of a batch; None: one is not of the kind."""
    found = []
    try:
        while p < end:
            behind = held[p]
            if behind > 0x7F:
                p += 1
                if held[p] > 0x7F:
                    return None
                behind = behind & 0x7F | held[p] << 7
            behind = p + 1 + (behind >> 1)
            # Behind the size: attributes, timestamp delta, offset delta, size of the key, key, size of the value.
            offset, key_size = held[p + 3], held[p + 4]
            if held[p + 2] > 0x7F or offset > 0x7F or key_size > 0x7F or key_size & 1:
                return None
            behind_key = p + 5 + (key_size >> 1)
            if held[behind_key] & 1:
                return None
            found.append((held[p + 5 : behind_key], base + (offset >> 1)))
            p = behind
    except IndexError:
        return None
    return found if p == end else None


def keep_quickly(
    newest: dict[bytes, int], held: bytes, start: int, until: int, end_offset: int
) -> tuple[int, list[Range]]:
    """Go through batches like `note_quickly`, and up to ``end_offset``; return where it ends, and which ranges stay.

    It ends before a batch that has tombstones, or of which only some records stay.
    """
    unpack, size, get = HEAD.unpack_from, len(held), newest.get
    ranges: list[Range] = []
    begin = start
    while start < until and start + HEADER_SIZE <= size:
        base, length, magic, crc, attributes, count = unpack(held, start)
        end = start + LOG_OVERHEAD + length
        if (
            end > size
            or magic != MAGIC
            or attributes
            or length < LENGTH_MIN
            or not 0 < count <= RECORDS_MAX
            or base >= end_offset
            or crc32c(held[start + CHECKED_FROM : end]) != crc
        ):
            break
        found = _keys(held, start + HEADER_SIZE, end, base)
        if found is None:
            break
        stay = [True for key, offset in found if get(key, offset) <= offset]
        if not stay:
            if begin < start:
                ranges.append((begin, start))
            begin = end
        elif len(stay) < len(found):
            break
        start = end
    if begin < start:
        ranges.append((begin, start))
    return start, ranges
