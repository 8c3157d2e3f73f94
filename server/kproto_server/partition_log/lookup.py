"""The record of a partition that a timestamp stands for: its batch is decoded in pieces, within a request's budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.batches import read_batches
from kproto.records.record_batch import RecordBatch
from kproto_server.partition_log.decoding import DecodingBudget, decoded

if TYPE_CHECKING:
    from collections.abc import Generator

    from kproto.records.record import Record
    from kproto_server.partition_log.partition_data import PartitionData

SLICE_RECORDS = 10_000
"""Records that are decoded before other connections are served: 10 to 20 ms."""
DECODED_RECORDS_MAX = 1_000_000
DECODED_CONTENT_MAX_BYTES = 128 << 20
"""What a request may have decoded at most, to look up timestamps."""


def lookup_budget() -> DecodingBudget:
    """Return what one request may have decoded to look up timestamps. Its user looks up none once it is used up."""
    return DecodingBudget(DECODED_RECORDS_MAX, DECODED_CONTENT_MAX_BYTES, SLICE_RECORDS)


def record_at(
    data: PartitionData, timestamp: int | None, offsets: range, budget: DecodingBudget
) -> Generator[None, None, Record | None]:
    """Return the first record with this timestamp or a later one; None: with the greatest timestamp of the partition.

    Only one batch is read, which may have no such record among these offsets. As in Kafka, markers of transactions are
    records, too. Yields between slices.

    Raises:
        DecodeError: the batch cannot be read, or is too large when decompressed.
        MissingPackage: its compression needs a package that is not installed.
        OSError: the file cannot be read.
    """
    encoded = data.batch_of_greatest_timestamp() if timestamp is None else data.batch_at_time(timestamp)
    greatest: Record | None = None
    for batch in read_batches(encoded or b""):
        greatest_of_batch = batch.header.max_timestamp if isinstance(batch, RecordBatch) else None
        for records in decoded(batch, budget):
            for record in records:
                if record.offset not in offsets:
                    continue
                if timestamp is not None and record.timestamp >= timestamp:
                    return record
                if timestamp is None and (greatest is None or record.timestamp > greatest.timestamp):
                    greatest = record
                    if record.timestamp == greatest_of_batch:
                        return record
            if budget.ends_slice():
                yield
    return greatest
