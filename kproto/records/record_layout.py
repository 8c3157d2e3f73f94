"""Checks that bytes are the records of a batch of magic 2, without building the records (LF-3).

Theory of operation. A broker checks every batch that a producer sends, and most of the time that is all it does with
the records. A loop reads the sizes of one record after the other. Producers often send many records of equal size, so
after each record the loop tries to skip a *run*: records of the same size whose size fields are equal, too. One slice
has the same byte of all records of the run, and one call of `bytes.count` or a comparison checks it for all of them. A
run ends where a size changes, or where offset or timestamp delta need one more byte.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from kproto.records.record import RECORD_SIZE_MIN
from kproto.records.varint import more_varlong
from kproto.runtime import Malformed, more_uvarint

RUN_MIN, RUN_MAX = 32, 1024
"""Records for which a run is worth its checks, and the records that one attempt checks."""
ATTEMPTS_MAX = 4
"""Attempts in succession that find no run, before no more are made: the records have different sizes."""

HIGH_BIT = bytes(byte >> 7 for byte in range(256))
"""Translates a byte of a varint: 1: another byte follows."""
ONE_BYTE_DELTAS = 64
"""Records whose offset deltas have one byte, if they count from 0."""
TWO_BYTE_DELTAS = 8192
DELTA_BYTES = (
    bytes(2 * index for index in range(ONE_BYTE_DELTAS))
    + bytes(2 * index & 0x7F | 0x80 for index in range(ONE_BYTE_DELTAS, TWO_BYTE_DELTAS)),
    bytes(2 * index >> 7 for index in range(TWO_BYTE_DELTAS)),
)
"""First and second byte of the offset delta of each record, if they count from 0."""


class RecordLayout(Enum):
    """What bytes are that should be the records of a batch."""

    NUMBERED = "records whose offset deltas count from 0"
    UNNUMBERED = "records with other offset deltas"
    INVALID = "no such records"
    LONG_VARINT = "a varint that is too long"


class _Fields(NamedTuple):
    """The positions of a record's fields, from its start."""

    attributes: int
    timestamp: int
    offset: int
    key: int
    key_bytes: int
    """Position of the key, after its size."""
    value: int
    value_bytes: int
    headers: int


def record_layout(data: bytes, count: int, start: int = 0) -> RecordLayout:
    """Return whether the bytes from ``start`` on are this number of records, and no more."""
    if not 0 <= count * RECORD_SIZE_MIN <= len(data) - start:
        return RecordLayout.INVALID
    try:
        return _layout(data, count, start)
    except IndexError:
        return RecordLayout.INVALID
    except Malformed:
        return RecordLayout.LONG_VARINT


def _layout(data: bytes, count: int, position: int) -> RecordLayout:
    size_bytes = len(data)
    index = attempts = 0
    is_numbered = True
    while index < count:
        # Every varint is read in place if it has one byte: a call would cost more than the read.
        start = p = position
        size = data[p]
        p += 1
        if size > 0x7F:
            size, p = more_uvarint(data, p, size)
        attributes = p
        position = p + (size >> 1)
        if size & 1 or position > size_bytes:
            return RecordLayout.INVALID
        p += 1
        byte = data[p]
        p += 1
        if byte > 0x7F:
            _, p = more_varlong(data, p, byte)
        offset = p
        delta = data[p]
        p += 1
        if delta > 0x7F:
            delta, p = more_uvarint(data, p, delta)
        key = p
        byte = data[p]
        p += 1
        if byte > 0x7F:
            byte, p = more_uvarint(data, p, byte)
        key_bytes = p
        if not byte & 1:  # a negative size means null
            p += byte >> 1
        value = p
        byte = data[p]
        p += 1
        if byte > 0x7F:
            byte, p = more_uvarint(data, p, byte)
        value_bytes = p
        if not byte & 1:
            p += byte >> 1
        headers = p
        byte = data[p]
        p = p + 1 if not byte else _after_headers(data, p)
        if p != position or p < 0:
            return RecordLayout.INVALID
        is_numbered = is_numbered and delta == 2 * index
        index += 1
        if not byte and attempts < ATTEMPTS_MAX and index + RUN_MIN <= count and data[position] == data[start]:
            fields = _Fields(*(at - start for at in (
                attributes, attributes + 1, offset, key, key_bytes, value, value_bytes, headers
            )))  # fmt: skip
            run = _run_length(data, start, position - start, fields, min(count - index, RUN_MAX))
            if run < RUN_MIN:
                attempts += 1
                continue
            attempts = 0
            is_numbered = is_numbered and _is_numbered(data, position, position - start, run, index, fields)
            position += run * (position - start)
            index += run
    return (
        RecordLayout.INVALID
        if position != size_bytes
        else (RecordLayout.NUMBERED if is_numbered else RecordLayout.UNNUMBERED)
    )


def _after_headers(data: bytes, p: int) -> int:
    """Return the position after the headers of a record; -1 if they are invalid."""
    count = data[p]
    p += 1
    if count > 0x7F:
        count, p = more_uvarint(data, p, count)
    if count & 1 or count > len(data) - p:  # odd is negative; each header has at least two bytes
        return -1
    for _ in range(count >> 1):
        size = data[p]
        p += 1
        if size > 0x7F:
            size, p = more_uvarint(data, p, size)
        if size & 1:
            return -1
        p += size >> 1
        size = data[p]
        p += 1
        if size > 0x7F:
            size, p = more_uvarint(data, p, size)
        if not size & 1:
            p += size >> 1
    return p


def _run_length(data: bytes, start: int, stride: int, fields: _Fields, count_max: int) -> int:
    """Return how many records behind the one at ``start`` have its sizes, and varints of the same size."""
    first = start + stride
    count = min(count_max, (len(data) - first) // stride)
    varints = range(fields.timestamp, fields.key)
    equal = (
        *range(fields.attributes),
        *range(fields.key, fields.key_bytes),
        *range(fields.value, fields.value_bytes),
        fields.headers,
    )
    for position in (*equal, *varints):
        column = data[first + position : first + count * stride : stride]
        wanted = data[start + position]
        if position in varints:
            column, wanted = column.translate(HIGH_BIT), HIGH_BIT[wanted]
        if column.count(wanted) != count:
            count -= len(column.lstrip(bytes((wanted,))))
            if count < RUN_MIN:
                return count
    return count


def _is_numbered(data: bytes, position: int, stride: int, count: int, index: int, fields: _Fields) -> bool:
    """Return whether the offset deltas of a run, which begins at a position with a record's index, count on."""
    delta_bytes = fields.key - fields.offset
    if delta_bytes > len(DELTA_BYTES) or index + count > TWO_BYTE_DELTAS:
        return all(
            _delta(data, position + number * stride + fields.offset) == 2 * (index + number) for number in range(count)
        )
    end = position + count * stride
    return all(
        data[position + fields.offset + number : end : stride] == DELTA_BYTES[number][index : index + count]
        for number in range(delta_bytes)
    )


def _delta(data: bytes, position: int) -> int:
    first = data[position]
    return first if first < 0x80 else more_uvarint(data, position + 1, first)[0]
