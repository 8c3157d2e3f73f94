"""What must hold for a log's batches and records; pure (LF-80, and what other sections say of a log's form).

Nothing asks that all records of a commit are there: compaction takes them one by one (LF-73).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import DecodeError, KprotoError
from kproto.records.control import read_end_marker
from kproto.records.coordinator import UnknownRecord
from kproto.records.partitioning import partition_for
from kproto.records.record_batch import NO_PRODUCER_ID, RecordBatch
from kproto.records.segment import RELATIVE_OFFSET_MAX
from kproto_server.inspect.content import owner_of, reader_of, value_fields

if TYPE_CHECKING:
    from kproto.records.batches import Batch
    from kproto.records.record import Record
    from kproto.records.segment import PlacedBatch
    from kproto.records.segment_files import LeaderEpochs

NEVER = -1


class Broken(KprotoError):
    """An invariant does not hold, at this offset of the log."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason


class Extent(NamedTuple):
    """What a batch covers, for those who check what points at it."""

    position: int
    end: int
    base_offset: int
    last_offset: int
    max_timestamp: int


class PartitionCheck:
    """Checks the batches of one partition, in order."""

    def __init__(
        self, topic: str, partition: int | None, partition_count: int | None, epochs: LeaderEpochs | None
    ) -> None:
        self._read = reader_of(topic)
        self._partition = partition
        self._partition_count = partition_count
        self._epochs = epochs
        self._last_offset = NEVER
        self._segment_base = 0
        self.batch_count = self.record_count = 0
        self.unknown_types: set[int] = set()

    def begin_segment(self, base_offset: int) -> None:
        """Go on with the next segment.

        Raises:
            Broken: its name is not above what came before.
        """
        if base_offset <= self._last_offset:
            raise Broken(base_offset, f"the segment before it ends with offset {self._last_offset}")
        self._segment_base = base_offset

    def batch(self, placed: PlacedBatch) -> Extent:
        """Check the next batch and its records.

        Raises:
            Broken: something does not hold.
            MissingPackage: its compression needs a package that is not installed.
        """
        batch = placed.batch
        try:
            records = batch.records()
        except DecodeError as error:
            raise Broken(batch.last_offset, str(error)) from None
        extent = _extent(placed, records)
        self._check_offsets(extent, records)
        if isinstance(batch, RecordBatch):
            self._check_header(batch, records)
        for record in records:
            self._check_record(batch, record)
        self._last_offset = extent.last_offset
        self.batch_count += 1
        self.record_count += len(records)
        return extent

    def _check_offsets(self, extent: Extent, records: list[Record]) -> None:
        base, last = extent.base_offset, extent.last_offset
        if base < self._segment_base:
            raise Broken(base, f"its segment's name says that it begins with offset {self._segment_base}")
        if base <= self._last_offset:
            raise Broken(base, f"offset {self._last_offset} comes before it: offsets must rise")
        if last - self._segment_base > RELATIVE_OFFSET_MAX:
            raise Broken(last, f"more than {RELATIVE_OFFSET_MAX} above its segment's first offset")
        before = base - 1
        for record in records:
            if not before < record.offset <= last:
                reason = f"a record of a batch of offsets {base} to {last} follows offset {before}"
                raise Broken(record.offset, reason)
            before = record.offset

    def _check_header(self, batch: RecordBatch, records: list[Record]) -> None:
        header = batch.header
        if self._epochs is not None:
            problem = self._epochs.problem(header.partition_leader_epoch, batch.base_offset, batch.last_offset)
            if problem is not None:
                raise Broken(batch.base_offset, problem)
        if batch.is_transactional and header.producer_id == NO_PRODUCER_ID:
            raise Broken(batch.base_offset, "transactional, but without a producer id")
        if batch.is_control and (len(records) > 1 or not batch.is_transactional):
            raise Broken(batch.base_offset, "a control batch that is not one marker of a transaction")

    def _check_record(self, batch: Batch, record: Record) -> None:
        try:
            if batch.is_control:
                read_end_marker(record)
            else:
                self._check_content(record)
        except DecodeError as error:
            raise Broken(record.offset, str(error)) from None

    def _check_content(self, record: Record) -> None:
        found = self._read(record.key, record.value)
        if isinstance(found, UnknownRecord):
            self.unknown_types.add(found.record_type)
            return
        if found.value is not None:
            value_fields(found)  # reads what is only read on demand
        count = self._partition_count
        if count is None or self._partition is None:
            return
        owner = owner_of(found.key)
        partition = partition_for(owner, count)
        if partition != self._partition:
            reason = f"{owner!r} belongs to partition {partition} of {count} (--partitions N if there are others)"
            raise Broken(record.offset, reason)


def _extent(placed: PlacedBatch, records: list[Record]) -> Extent:
    batch = placed.batch
    if isinstance(batch, RecordBatch):
        base, greatest = batch.base_offset, batch.header.max_timestamp
    else:
        base, greatest = records[0].offset, batch.message.timestamp
    return Extent(placed.position, placed.end, base, batch.last_offset, greatest)
