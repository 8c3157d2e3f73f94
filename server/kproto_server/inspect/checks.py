"""The invariants of batches and records that `kproto log verify` checks; pure (LF-80 and the sections it refers to).

No check requires that all records of a commit are present: compaction removes them one by one (LF-73).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import CorruptLog, DecodeError
from kproto.logs.errors import BadOffset
from kproto.records.batch_header import NO_PRODUCER_ID
from kproto.records.coordinator import UnknownRecord
from kproto.records.partitioning import partition_for
from kproto.records.record_batch import RecordBatch
from kproto_server.inspect.content import owner_of, reader_of, value_fields

if TYPE_CHECKING:
    from kproto.logs.batches import PlacedBatch
    from kproto.logs.files import SegmentFile
    from kproto.records.record import Record
    from kproto.records.segment_files import LeaderEpochs


class BatchExtent(NamedTuple):
    """The bytes and offsets of a batch, for the checks of index entries."""

    position: int
    end: int
    base_offset: int
    last_offset: int
    max_timestamp: int


class PartitionCheck:
    """Checks the segments and batches of one partition, in order."""

    def __init__(
        self, topic: str, partition: int | None, partition_count: int | None, epochs: LeaderEpochs | None
    ) -> None:
        self._read = reader_of(topic)
        self._partition = partition
        self._partition_count = partition_count
        self._epochs = epochs
        self._next_offset = 0
        self.batch_count: int = 0
        self.record_count: int = 0
        self.unknown_types: set[int] = set()

    def begin_segment(self, segment: SegmentFile) -> None:
        """Continue with the next segment.

        Raises:
            BadOffset: its base offset is not above the offsets before it.
        """
        base_offset = segment.base_offset
        if base_offset < self._next_offset:
            reason = f"the segment before it ends with offset {self._next_offset - 1}"
            raise BadOffset(segment.label, 0, base_offset, reason)
        self._next_offset = base_offset

    def batch(self, placed: PlacedBatch) -> BatchExtent:
        """Check the next batch and its records.

        Raises:
            CorruptLog: an invariant does not hold.
            MissingPackage: the compression needs a package that is not installed.
        """
        records = placed.records()
        placed.check_offsets(records, self._next_offset)
        batch = placed.batch
        max_timestamp = batch.message.timestamp if not isinstance(batch, RecordBatch) else batch.header.max_timestamp
        if isinstance(batch, RecordBatch):
            self._check_header(placed, batch, len(records))
        for record in records:
            if batch.is_control:
                placed.end_marker(record)
            else:
                self._check_content(placed, record)
        self._next_offset = batch.last_offset + 1
        self.batch_count += 1
        self.record_count += len(records)
        return BatchExtent(placed.position, placed.end, placed.first_offset(records), batch.last_offset, max_timestamp)

    def _check_header(self, placed: PlacedBatch, batch: RecordBatch, record_count: int) -> None:
        header = batch.header
        if self._epochs is not None:
            problem = self._epochs.problem(header.partition_leader_epoch, batch.base_offset, batch.last_offset)
            if problem is not None:
                raise placed.damage(CorruptLog, problem)
        if batch.is_transactional and header.producer_id == NO_PRODUCER_ID:
            raise placed.damage(CorruptLog, "a transactional batch without a producer id")
        if batch.is_control and (record_count > 1 or not batch.is_transactional):
            raise placed.damage(CorruptLog, "a control batch that is not one end marker of a transaction")

    def _check_content(self, placed: PlacedBatch, record: Record) -> None:
        try:
            found = self._read(record.key, record.value)
            if isinstance(found, UnknownRecord):
                self.unknown_types.add(found.record_type)
                return
            if found.value is not None:
                value_fields(found)  # decodes fields that are decoded on demand only
        except DecodeError as error:
            raise placed.damage(CorruptLog, str(error), record.offset) from None
        count = self._partition_count
        if count is None or self._partition is None:
            return
        owner = owner_of(found.key)
        partition = partition_for(owner, count)
        if partition != self._partition:
            reason = f"{owner!r} belongs to partition {partition} of {count} (--partitions N sets another count)"
            raise placed.damage(CorruptLog, reason, record.offset)
