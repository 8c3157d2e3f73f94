"""Where the records of a batch begin and end, with as much of each as compaction asks for.

Compaction leaves out records and changes nothing in those that stay, so it puts their octets together again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kproto.errors import DecodeError
from kproto.records.varint import more_varlong, varint, varlong
from kproto.runtime import FAILURES, malformed, more_uvarint


class RecordPosition(NamedTuple):
    """One record in the uncompressed records of a batch."""

    start: int
    behind_timestamp: int
    """Where its offset begins."""
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    is_tombstone: bool


_new: Any = tuple.__new__


def record_positions(data: bytes, position: int, count: int) -> tuple[list[RecordPosition], int]:
    """Return the places of the next records, and where they end.

    Raises:
        DecodeError: they are cut off, or their sizes do not fit.
    """
    places: list[RecordPosition] = []
    try:
        for _ in range(count):
            place = _place(data, position)
            places.append(place)
            position = place[2]
    except FAILURES:
        raise DecodeError("record", position, "its sizes do not fit") from None
    return places, position


def _place(data: bytes, p: int) -> RecordPosition:
    start = p
    size = data[p]
    p += 1
    if size > 0x7F:
        size, p = more_uvarint(data, p, size)
    end = p + (size >> 1)
    timestamp = data[p + 1]  # the octet before it has the record's attributes
    p += 2
    if timestamp > 0x7F:
        timestamp, p = more_varlong(data, p, timestamp)
    behind_timestamp = p
    offset = data[p]
    p += 1
    if offset > 0x7F:
        offset, p = more_uvarint(data, p, offset)
    size_of_key = data[p]
    p += 1
    if size_of_key > 0x7F:
        size_of_key, p = more_uvarint(data, p, size_of_key)
    key = None
    if not size_of_key & 1:
        key = data[p : p + (size_of_key >> 1)]
        p += size_of_key >> 1
    is_tombstone = bool(data[p] & 1)  # the low bit of a zigzag number tells that it is negative
    if size & 1 or p >= end or end > len(data):
        malformed()
    delta = (timestamp >> 1) ^ -(timestamp & 1)
    offset_delta = (offset >> 1) ^ -(offset & 1)
    place: RecordPosition = _new(RecordPosition, (start, behind_timestamp, end, delta, offset_delta, key, is_tombstone))
    return place


def with_timestamp_delta(data: bytes, place: RecordPosition, delta: int) -> bytes:
    """Return a record with another timestamp delta."""
    moment = varlong(delta)
    rest = data[place.behind_timestamp : place.end]
    return b"".join((varint(1 + len(moment) + len(rest)), b"\0", moment, rest))
