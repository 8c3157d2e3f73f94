"""Control records, which brokers write between the records of clients (LF-21).

A control batch has one record. Its key is two int16: a version and a type; its value depends on the type.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING

from kproto.declaration import Int16, Int32
from kproto.errors import DecodeError
from kproto.message import Message
from kproto.records.batch_header import (
    APPEND_TIME,
    CHECKED,
    CONTROL,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_SEQUENCE,
    TRANSACTIONAL,
    UNCHECKED,
)
from kproto.records.checksum import crc32c

if TYPE_CHECKING:
    from kproto.records.record import Record

KEY_VERSION = 0
MARKER_VERSION = 0
_MARKER_RECORD = Struct(">5BhhBhiB")
"""The record of a marker: size, attributes, both deltas, key with its size, value with its size, number of headers."""
_SIZES = 2 * 16, 2 * 4, 2 * 6
"""The varints of the sizes of record, key and value."""
MARKER_SIZE_BYTES = HEADER_SIZE + _MARKER_RECORD.size
"""The size of the batch of a marker."""


class ControlType(IntEnum):
    """The type of a control record; 2 and above occur only in the log of a KRaft quorum."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class ControlRecordTypeSchema(Message, versions=(0, 0)):
    """The key, after its version."""

    type: Int16


class EndTxnMarker(Message, versions=(0, 0)):
    """The value of a COMMIT or ABORT, after its version."""

    coordinator_epoch: Int32


def control_type(key: bytes | None) -> int:
    """Return the type of a control record: a `ControlType`, or the number of a newer broker's type.

    As in Kafka, a newer version of the key is read as the known version, because its first fields are the same.

    Raises:
        DecodeError: the key is null or too short, or has a negative version.
    """
    if key is None or len(key) < 4:
        raise DecodeError("control record key", 0, "null" if key is None else f"{len(key)} bytes, the least is 4")
    version, number = (int.from_bytes(key[start : start + 2], "big", signed=True) for start in (0, 2))
    if version < KEY_VERSION:
        raise DecodeError("control record key", 0, f"version {version}")
    return number


def read_end_marker(record: Record) -> tuple[ControlType, int]:
    """Return ``(COMMIT or ABORT, coordinator epoch)``.

    Raises:
        DecodeError: the record is another control record, or does not have this layout.
    """
    number = control_type(record.key)
    if number not in (ControlType.ABORT, ControlType.COMMIT):
        raise DecodeError("control record key", 2, f"type {number} does not end a transaction")
    value = record.value
    if value is None or len(value) < 6:
        raise DecodeError("EndTxnMarker", 0, "null" if value is None else f"{len(value)} bytes, the least is 6")
    if int.from_bytes(value[:2], "big", signed=True) < MARKER_VERSION:
        raise DecodeError("EndTxnMarker", 0, "negative version")
    return ControlType(number), EndTxnMarker.decode(value[2:6], MARKER_VERSION).coordinator_epoch


def build_end_marker(
    outcome: ControlType,
    *,
    offset: int,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    partition_leader_epoch: int,
    has_append_time: bool = False,
) -> bytes:
    """Return the batch with which a broker ends a producer's transaction in a partition."""
    assert outcome in (ControlType.ABORT, ControlType.COMMIT), f"{outcome!r} does not end a transaction"
    attributes = TRANSACTIONAL | CONTROL | (APPEND_TIME if has_append_time else 0)
    size, key_size, value_size = _SIZES
    checked = CHECKED.pack(
        attributes, 0, timestamp, timestamp, producer_id, producer_epoch, NO_SEQUENCE, 1
    ) + _MARKER_RECORD.pack(
        size, 0, 0, 0, key_size, KEY_VERSION, outcome, value_size, MARKER_VERSION, coordinator_epoch, 0
    )
    length = MARKER_SIZE_BYTES - LOG_OVERHEAD
    return UNCHECKED.pack(offset, length, partition_leader_epoch, MAGIC, crc32c(checked)) + checked
