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


BATCHES_OF_RECORD = 100
"""So many comparisons with the timestamps of batches take the time of a record."""


def record_at(
    data: PartitionData, timestamp: int | None, offsets: range, budget: DecodingBudget
) -> Generator[None, None, Record | None]:
    """Return the first record with this timestamp or a later one; None: with the greatest timestamp of the partition.

    A batch is read of which no record may be among these offsets, because those before them were deleted; then later
    batches are read. As in Kafka, markers of transactions are records, too. Yields between slices.

    Raises:
        DecodeError: a batch cannot be read, or is too large when decompressed.
        MissingPackage: its compression needs a package that is not installed.
        OSError: the file cannot be read.
    """
    greatest: Record | None = None
    next_offset = offsets.start
    while next_offset < offsets.stop and not budget.is_used_up:
        if timestamp is None:
            steps = data.batch_of_greatest_timestamp(next_offset)
        else:
            steps = data.batch_at_time(timestamp, next_offset)
        encoded = yield from _in_slices(steps, budget)
        batch = next(read_batches(encoded or b""), None)
        if batch is None:
            break
        next_offset, is_whole = batch.last_offset + 1, True
        greatest_of_batch = batch.header.max_timestamp if isinstance(batch, RecordBatch) else None
        for records in decoded(batch, budget):
            for record in records:
                if record.offset not in offsets:
                    is_whole = False
                    continue
                if timestamp is not None and record.timestamp >= timestamp:
                    return record
                if timestamp is None and (greatest is None or record.timestamp > greatest.timestamp):
                    greatest = record
                    if record.timestamp == greatest_of_batch:
                        return record
            if budget.ends_slice():
                yield
        if greatest is not None and is_whole:
            break
    return greatest


def _in_slices(
    steps: Generator[int, None, bytes | None], budget: DecodingBudget
) -> Generator[None, None, bytes | None]:
    """Return the batch that steps find, which yield how many batches they have compared; yields between slices."""
    while True:
        try:
            compared = next(steps)
        except StopIteration as end:
            batch: bytes | None = end.value
            return batch
        budget.take_time(compared // BATCHES_OF_RECORD)
        if budget.ends_slice():
            yield
