"""Records, and their layout in a batch of magic 2 (LF-3).

Wire:
    varint size of what follows, int8 attributes (0), varlong timestamp delta, varint offset delta, varint key size (-1
    is null), key, varint value size, value, varint count of headers; per header: varint size, key, varint size, value.

As in Kafka, a record must fill its announced size, and the records must fill the payload. Written by hand for speed;
`kproto.records.record_construct` declares the same with construct, and tests compare the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.errors import DecodeError, EncodeError, TooManyElements
from kproto.jvm.arithmetic import wrapped
from kproto.jvm.text import text_of
from kproto.records.varint import more_varlong, varint, varlong
from kproto.runtime import FAILURES, UNLIMITED, malformed, more_uvarint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
RECORD_SIZE_MIN = 7
"""Bytes of the smallest record: each of its seven parts has at least one."""
NO_TIMESTAMP = -1


class RecordHeader(NamedTuple):
    """A header of a record."""

    key: str
    value: bytes | None


class Record(NamedTuple):
    """One record, whatever the magic of its batch."""

    key: bytes | None
    value: bytes | None
    headers: tuple[RecordHeader, ...] = ()
    timestamp: int = NO_TIMESTAMP
    """Milliseconds since the epoch; -1 in a message set of magic 0, which has none."""
    offset: int = 0


_new: Any = tuple.__new__


def decode_records(
    data: bytes,
    count: int,
    *,
    base_offset: int = 0,
    base_timestamp: int = 0,
    append_time: int | None = None,
    headers_max: int = UNLIMITED,
) -> list[Record]:
    """Return the records of a batch, which fill ``data``.

    ``append_time`` is the timestamp of every record if the batch has append time (LF-2, bit 3).

    Raises:
        DecodeError: a record is truncated, or a size or count does not fit; ``position`` counts from the first record.
        TooManyElements: all records together have more than ``headers_max`` headers.
    """
    pieces = decode_in_pieces(
        data, count, UNLIMITED, UNLIMITED, base_offset, base_timestamp, append_time, headers_max=headers_max
    )
    return next(pieces, [])


def decode_in_pieces(
    data: bytes,
    count: int,
    piece_records: int,
    piece_bytes: int,
    base_offset: int = 0,
    base_timestamp: int = 0,
    append_time: int | None = None,
    *,
    headers_max: int | None = UNLIMITED,
) -> Iterator[list[Record]]:
    """Yield the records of a batch some at a time, as for `decode_records`.

    Each piece has ``piece_records``, or less once its encoded records have ``piece_bytes``; none is empty.
    ``headers_max`` None: headers are neither decoded nor checked.
    """
    if not 0 <= count * RECORD_SIZE_MIN <= len(data):
        raise DecodeError("records", 0, f"{count} records announced, {len(data)} bytes left")
    position, done, headers_left = 0, 0, None if headers_max is None else [headers_max]
    while True:
        records: list[Record] = []
        end = position + piece_bytes
        try:
            for _ in range(min(piece_records, count - done)):
                position = _decode_record(
                    data, position, base_offset, base_timestamp, append_time, headers_left, records
                )
                if position >= end:
                    break
        except FAILURES:
            raise DecodeError(f"records[{done + len(records)}]", position, "its sizes do not fit") from None
        done += len(records)
        if done == count and position != len(data):
            raise DecodeError("records", position, f"{len(data) - position} bytes after the last of {count} records")
        if records:
            yield records
        if done == count:
            return


def _decode_record(
    data: bytes,
    p: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None,
    headers_left: list[int] | None,
    records: list[Record],
) -> int:
    """Read one record into ``records``; return the position after it.

    Every varint is read in place if it has one byte, as most have: a call would cost more than the read.
    """
    size = data[p]
    p += 1
    if size > 0x7F:
        size, p = more_uvarint(data, p, size)
    end = p + (size >> 1)
    if size & 1 or end > len(data):
        malformed()
    p += 1  # attributes: no bit has a meaning
    timestamp = data[p]
    p += 1
    if timestamp > 0x7F:
        timestamp, p = more_varlong(data, p, timestamp)
    offset = data[p]
    p += 1
    if offset > 0x7F:
        offset, p = more_uvarint(data, p, offset)
    key, p = _nullable_bytes(data, p)
    value, p = _nullable_bytes(data, p)
    count = data[p]
    p += 1
    headers: tuple[RecordHeader, ...] = ()
    if count:
        headers, p = ((), end) if headers_left is None else _headers(data, p, count, headers_left)
    if p != end:
        malformed()
    record_timestamp = base_timestamp + ((timestamp >> 1) ^ -(timestamp & 1)) if append_time is None else append_time
    if not INT64_MIN <= record_timestamp <= INT64_MAX:
        record_timestamp = wrapped(record_timestamp)
    record_offset = base_offset + ((offset >> 1) ^ -(offset & 1))
    records.append(_new(Record, (key, value, headers, record_timestamp, record_offset)))
    return p


def _nullable_bytes(data: bytes, p: int) -> tuple[bytes | None, int]:
    """Read a key or value; as in Kafka, any negative size means null."""
    size = data[p]
    p += 1
    if size > 0x7F:
        size, p = more_uvarint(data, p, size)
    if size & 1:
        return None, p
    end = p + (size >> 1)
    if end > len(data):
        malformed()
    return data[p:end], end


def _headers(data: bytes, p: int, count: int, headers_left: list[int]) -> tuple[tuple[RecordHeader, ...], int]:
    if count > 0x7F:
        count, p = more_uvarint(data, p, count)
    if count & 1 or count > len(data) - p:  # odd is negative; each header has at least two bytes
        malformed()
    headers_left[0] -= count >> 1
    if headers_left[0] < 0:
        raise TooManyElements
    headers = []
    for _ in range(count >> 1):
        key, p = _nullable_bytes(data, p)
        if key is None:
            malformed()
        else:
            name = text_of(key)
            value, p = _nullable_bytes(data, p)
            headers.append(RecordHeader(name, value))
    return tuple(headers), p


def encode_records(records: Iterable[Record], *, base_offset: int = 0, base_timestamp: int = 0) -> bytes:
    """Return the encoded records, which are the payload of an uncompressed batch of magic 2.

    Raises:
        EncodeError: an offset or timestamp is too far from the batch's, or a value has the wrong type.
    """
    parts: list[bytes] = []
    for index, record in enumerate(records):
        try:
            body = _encode_record(record, base_offset, base_timestamp)
        except (EncodeError, AttributeError, TypeError, ValueError) as error:
            raise EncodeError(f"records[{index}]", str(error)) from None
        parts += varint(len(body)), body
    return b"".join(parts)


def _encode_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    key, value, headers, timestamp, offset = record
    delta = timestamp - base_timestamp
    if not INT64_MIN <= delta <= INT64_MAX:
        delta = wrapped(delta)
    parts = [b"\0", varlong(delta), varint(offset - base_offset)]
    _put_bytes(parts, key)
    _put_bytes(parts, value)
    parts.append(varint(len(headers)))
    for name, content in headers:
        _put_bytes(parts, name.encode())
        _put_bytes(parts, content)
    return b"".join(parts)


def _put_bytes(parts: list[bytes], content: bytes | None) -> None:
    if content is None:
        parts.append(b"\1")
    else:
        parts += varint(len(content)), content


def last_record_offset(records: list[Record], base_offset: int) -> int:
    """Return the offset of the last record of a batch; without records, the offset before the base offset."""
    return records[-1].offset if records else base_offset - 1
