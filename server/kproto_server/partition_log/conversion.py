"""Down-conversion: record batches as message sets, for consumers of releases before 0.11 (BA-77)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import DecodeError
from kproto.records.batches import read_batches
from kproto.records.compression import Compression
from kproto.records.message_set import build_message_set
from kproto.records.record import NO_TIMESTAMP

if TYPE_CHECKING:
    from kproto.records.record import Record


def down_converted(batches: bytes, offset: int, *, magic: int) -> bytes | None:
    """Return batches as message sets: without headers, and in magic 0 without timestamps.

    Message sets have no zstd, so the result ends before the first batch with it; None if that is the first of all.
    Uncompressed records below ``offset`` are left out; a compressed batch stays whole, as in real brokers.

    Raises:
        DecodeError: a batch cannot be read, or converted.
        MissingPackage: the compression of a batch needs a package that is not installed.
    """
    converted: list[bytes] = []
    for batch in read_batches(batches, check_crc=False):
        if batch.compression is Compression.ZSTD:
            return b"".join(converted) if converted else None
        if batch.is_control:
            continue
        all_records = batch.records()
        _check(all_records)
        records = [
            record._replace(headers=(), timestamp=record.timestamp if magic else NO_TIMESTAMP)
            for record in all_records
            if batch.compression is not Compression.NONE or record.offset >= offset
        ]
        append_time = all_records[0].timestamp if magic and batch.has_append_time else None
        converted.append(
            build_message_set(records, magic=magic, compression=batch.compression, append_time=append_time)
        )
    return b"".join(converted)


def _check(records: list[Record]) -> None:
    """Refuse records that message sets cannot have, as Kafka does: their offsets must rise."""
    offset = -1
    for index, record in enumerate(records):
        if record.offset <= offset or record.timestamp < NO_TIMESTAMP:
            raise DecodeError(f"records[{index}]", 0, f"offset {record.offset}, timestamp {record.timestamp}")
        offset = record.offset
