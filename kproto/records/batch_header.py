"""The header of a batch: positions, sizes and struct formats, declared once for all readers and writers (LF-1).

Wire:
    Every batch begins with an int64 offset, an int32 size of what follows, four bytes that depend on the message format
    version, and an int8 message format version (magic). A batch of magic 2 continues as `RecordBatchHeader` says, then
    its records follow. Magic 0 and 1 are message sets (`kproto.records.message_set`).

`RecordBatchHeader` is the declaration. Code that handles millions of batches reads the few fields that it needs with
one struct call: `header_struct` makes the struct, `position_of` finds a single field.
"""

from __future__ import annotations

from struct import Struct, calcsize
from typing import TYPE_CHECKING

from kproto.declaration import Int8, Int16, Int32, Int64, UInt32, fields_of
from kproto.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = 2
"""The message format version of record batches; brokers since 0.11 write it."""

APPEND_TIME = 1 << 3
"""Attribute: all records have the timestamp of the broker, which is the batch's greatest one."""
TRANSACTIONAL = 1 << 4
CONTROL = 1 << 5
"""Attribute: the batch has one marker of the broker (`kproto.records.control`) and no records of clients."""
DELETE_HORIZON = 1 << 6
"""Attribute: the base timestamp is the time when compaction may drop the batch's tombstones."""

NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_EPOCH = -1, -1, -1, -1


class RecordBatchHeader(Message, versions=(MAGIC, MAGIC)):
    """What precedes the records of a batch; the version is the magic."""

    base_offset: Int64
    batch_length: Int32
    partition_leader_epoch: Int32
    magic: Int8 = MAGIC
    crc: UInt32
    attributes: Int16
    last_offset_delta: Int32
    base_timestamp: Int64
    max_timestamp: Int64
    producer_id: Int64
    producer_epoch: Int16
    base_sequence: Int32
    record_count: Int32


_CODES = {"int8": "b", "int16": "h", "int32": "i", "uint32": "I", "int64": "q"}
_FIELD_CODES = {field.name: _CODES[field.type.kind] for field in fields_of(RecordBatchHeader)}


def _positions() -> Iterator[tuple[str, int]]:
    position = 0
    for name, code in _FIELD_CODES.items():
        yield name, position
        position += calcsize(">" + code)


_POSITIONS = dict(_positions())


def position_of(field: str) -> int:
    """Return the position of a header field in the batch, in bytes."""
    return _POSITIONS[field]


def header_struct(*fields: str) -> Struct:
    """Return a struct that reads these header fields, in wire order, from the beginning of a batch."""
    return _fields_struct(0, fields)


def _fields_struct(start: int, fields: tuple[str, ...]) -> Struct:
    """Return a struct of these fields, of which ``start`` is the beginning; fields between them are padding."""
    codes, position = ">", start
    for name in fields:
        code = _FIELD_CODES[name]
        gap = _POSITIONS[name] - position
        codes += f"{gap}x{code}" if gap else code
        position = _POSITIONS[name] + calcsize(">" + code)
    return Struct(codes)


HEADER = header_struct(*_POSITIONS)
"""All fields."""
HEADER_SIZE = HEADER.size
SIZE_POSITION = position_of("batch_length")
LOG_OVERHEAD = position_of("partition_leader_epoch")
"""Bytes up to and with the size of a batch, which counts what follows it; the same for every magic."""
LENGTH_MIN = HEADER_SIZE - LOG_OVERHEAD
"""The least size that a batch of magic 2 can announce."""
MAGIC_POSITION = position_of("magic")
"""The same for every magic."""
CRC_POSITION = position_of("crc")
CHECKED_FROM = position_of("attributes")
"""Where the bytes begin that the checksum covers, up to the end of the batch."""
UNCHECKED = _fields_struct(0, tuple(name for name in _POSITIONS if _POSITIONS[name] < CHECKED_FROM))
"""The fields before them, which a broker may change in a stored batch; the last one is the checksum."""
CHECKED = _fields_struct(CHECKED_FROM, tuple(name for name in _POSITIONS if _POSITIONS[name] >= CHECKED_FROM))
"""The other fields of the header."""
