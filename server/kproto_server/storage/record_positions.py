"""Positions of the records of a batch, with the fields that compaction needs.

Compaction drops records and does not change the others, so it copies their bytes instead of decoding and encoding them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kproto.errors import DecodeError
from kproto.records.varint import more_varlong, varint, varlong
from kproto.runtime import FAILURES, malformed, more_uvarint


class RecordPosition(NamedTuple):
    """One record in the uncompressed records of a batch."""

    start: int
    timestamp_end: int
    """Where the timestamp delta ends and the offset delta begins."""
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    is_tombstone: bool


_new: Any = tuple.__new__


def record_positions(data: bytes, position: int, count: int) -> tuple[list[RecordPosition], int]:
    """Return the positions of the next ``count`` records, and the end of the last one.

    Raises:
        DecodeError: the records end early, or their sizes do not match.
    """
    positions: list[RecordPosition] = []
    try:
        for _ in range(count):
            record = _record_position(data, position)
            positions.append(record)
            position = record[2]
    except FAILURES:
        raise DecodeError("record", position, "its sizes do not match") from None
    return positions, position


def _record_position(data: bytes, p: int) -> RecordPosition:
    start = p
    size = data[p]
    p += 1
    if size > 0x7F:
        size, p = more_uvarint(data, p, size)
    end = p + (size >> 1)
    timestamp = data[p + 1]  # after the attributes of the record
    p += 2
    if timestamp > 0x7F:
        timestamp, p = more_varlong(data, p, timestamp)
    timestamp_end = p
    offset = data[p]
    p += 1
    if offset > 0x7F:
        offset, p = more_uvarint(data, p, offset)
    key_size = data[p]
    p += 1
    if key_size > 0x7F:
        key_size, p = more_uvarint(data, p, key_size)
    key = None
    if not key_size & 1:
        key = data[p : p + (key_size >> 1)]
        p += key_size >> 1
    is_tombstone = bool(data[p] & 1)  # the sign bit of the zigzag size of the value: -1 is null
    if size & 1 or p >= end or end > len(data):
        malformed()
    delta = (timestamp >> 1) ^ -(timestamp & 1)
    offset_delta = (offset >> 1) ^ -(offset & 1)
    record: RecordPosition = _new(RecordPosition, (start, timestamp_end, end, delta, offset_delta, key, is_tombstone))
    return record


def with_timestamp_delta(data: bytes, record: RecordPosition, delta: int) -> bytes:
    """Return the bytes of a record with another timestamp delta."""
    encoded_delta = varlong(delta)
    rest = data[record.timestamp_end : record.end]
    return b"".join((varint(1 + len(encoded_delta) + len(rest)), b"\0", encoded_delta, rest))
