"""Down-conversion: record batches as message sets, for consumers of releases before 0.11 (BA-77)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import DecodeError
from kproto.records.batches import read_batches
from kproto.records.compression import Compression
from kproto.records.message_set import build_message_set
from kproto.records.record import NO_TIMESTAMP
from kproto.runtime import UNLIMITED
from kproto_server.deferred import at_once
from kproto_server.partition_log.decoding import BATCH_COST, DecodingBudget, decoded

if TYPE_CHECKING:
    from collections.abc import Generator

    from kproto.records.batches import Batch
    from kproto.records.record import Record


def down_converted(batches: bytes, offset: int, *, magic: int) -> bytes | None:
    """Return batches as message sets, as `conversion` does, without a limit."""
    return at_once(conversion(batches, offset, magic=magic, budget=DecodingBudget(UNLIMITED, UNLIMITED, UNLIMITED)))


def conversion(
    batches: bytes, offset: int, *, magic: int, budget: DecodingBudget
) -> Generator[None, None, bytes | None]:
    """Return batches as message sets: without headers, and in magic 0 without timestamps. Yields between slices.

    Message sets have no zstd, so the result ends before the first batch with it; None if that is the first of all.
    Uncompressed records below ``offset`` are left out; a compressed batch stays whole, as in real brokers, unless it
    has many records: then each piece has a wrapper of its own. The result ends where the budget does, but not before
    the first record from the offset on.

    Raises:
        DecodeError: a batch cannot be read, or converted.
        MissingPackage: the compression of a batch needs a package that is not installed.
    """
    converted: list[bytes] = []
    for batch in read_batches(batches, check_crc=False):
        if batch.compression is Compression.ZSTD:
            return b"".join(converted) if converted else None
        if batch.is_control:
            budget.take(BATCH_COST)
        elif converted and budget.is_used_up:
            break
        else:
            last_offset = -1
            for records in decoded(batch, budget):
                _check(records, last_offset)
                last_offset = records[-1].offset
                kept = [record for record in records if record.offset >= offset]
                if kept:
                    is_compressed = batch.compression is not Compression.NONE
                    converted.append(_message_set(records if is_compressed else kept, batch, magic))
                if converted and budget.is_used_up:
                    break
                if budget.ends_slice():
                    yield
        if budget.ends_slice():
            yield
    return b"".join(converted)


def _message_set(records: list[Record], batch: Batch, magic: int) -> bytes:
    return build_message_set(
        [record._replace(timestamp=record.timestamp if magic else NO_TIMESTAMP) for record in records],
        magic=magic,
        compression=batch.compression,
        append_time=records[0].timestamp if magic and batch.has_append_time else None,
    )


def _check(records: list[Record], last_offset: int) -> None:
    """Refuse records that message sets cannot have, as Kafka does: their offsets must rise."""
    for index, record in enumerate(records):
        if record.offset <= last_offset or record.timestamp < NO_TIMESTAMP:
            raise DecodeError(f"records[{index}]", 0, f"offset {record.offset}, timestamp {record.timestamp}")
        last_offset = record.offset
