"""What is in a partition whose log is on disk: batches by their places in its segments.

Theory of operation. What look-ups need of a batch stands in its header. The headers are read when somebody asks for the
first time, not when the broker starts, and from then on as far as the log has grown; a large batch costs no more than a
small one, as its records are skipped. A read is one read of a file. What compaction rewrites is looked at anew.

An append is answered when the log says that it has it: then the offset behind it is the end for consumers.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Protocol

from kproto.records.batch_header import HEADER_SIZE, LOG_OVERHEAD, MAGIC, NO_PRODUCER_ID, header_struct
from kproto.records.batches import read_batch
from kproto_server.partition_log.partition_data import Append, PartitionData
from kproto_server.partition_log.producers import Written, sequence_after
from kproto_server.partition_log.retention import Run

if TYPE_CHECKING:
    from kproto_server.storage.disk import Disk, File
    from kproto_server.storage.partition_log import PartitionLog, Segment

HEADER = header_struct(
    "base_offset",
    "batch_length",
    "partition_leader_epoch",
    "magic",
    "last_offset_delta",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)

SLICE_SIZE = 1 << 16


class TopicAppend:
    """A batch on its way to the log of a topic."""

    __slots__ = ("_append", "_data", "_next_offset", "_producer_id")

    def __init__(self, data: StoredData, append: Append, next_offset: int, producer_id: int) -> None:
        self._data = data
        self._append = append
        self._next_offset = next_offset
        self._producer_id = producer_id

    def settle(self, error: int) -> None:
        """Called once, with 0 or the error of the write."""
        self._append.error = error
        data = self._data
        if error:
            data.known_producers.forget(self._producer_id)
        else:
            data.next_offset = self._next_offset
            data.wake()


class TopicWriter(Protocol):
    """The log of changes, as far as topics need it."""

    def append_to(self, log: PartitionLog, item: TopicAppend, batch: bytes, record_count: int) -> None:
        """Add a batch to a log; the item is settled when that has it."""
        ...


class StoredData(PartitionData):
    """The records of one partition, on disk."""

    __slots__ = ("_disk", "_indexed", "_log", "_log_version", "_notes_producers", "_positions", "_segments", "_writer")

    is_in_memory = False

    def __init__(self, log: PartitionLog, disk: Disk, writer: TopicWriter, start_offset: int) -> None:
        super().__init__(max(start_offset, log.start_offset))
        self.next_offset = log.next_offset
        self._log = log
        self._disk = disk
        self._writer = writer
        self._positions = array("q")
        self._segments = array("q")
        """Of each batch, where in which segment (by base offset) it stands."""
        self._indexed = (-1, 0)
        """Base offset of the newest segment that was looked at, and up to where."""
        self._log_version = log.version
        self._notes_producers = True

    @property
    def log(self) -> PartitionLog:
        return self._log

    @property
    def disk_size(self) -> int:
        return self._log.size

    def append(
        self, batch: bytes, last_offset_delta: int, max_timestamp: int, epoch: int, producer_id: int = NO_PRODUCER_ID
    ) -> Append:
        """Hand a whole batch of magic 2 to the log, which settles the append when the batch is written."""
        log = self._log
        if epoch > log.epoch:
            log.begin_epoch(epoch)
        made = Append(log.next_offset)

        item = TopicAppend(self, made, made.base_offset + last_offset_delta + 1, producer_id)
        self._writer.append_to(log, item, batch, last_offset_delta + 1)
        return made

    def look(self) -> None:
        log = self._log
        if self._log_version != log.version:
            self._begin_anew()
        end = log.end
        if self._indexed != (end.base_offset, end.position):
            for segment in log.segments():
                if segment.base_offset >= self._indexed[0]:
                    self._index(segment)
        self._notes_producers = False

    def _begin_anew(self) -> None:
        self._log_version = self._log.version
        self._first = 0
        self.size_bytes = 0
        self.epochs.clear()
        for column in self._columns():
            del column[:]
        self._indexed = (-1, 0)

    def _index(self, segment: Segment) -> None:
        """Take down the batches of a segment that were not there before."""
        position = self._indexed[1] if segment.base_offset == self._indexed[0] else 0
        if position < segment.size:
            file = self._disk.open(segment.path)
            try:
                position = self._index_file(file, segment, position)
            finally:
                file.close()
        self._indexed = (segment.base_offset, position)

    def _index_file(self, file: File, segment: Segment, position: int) -> int:
        held, start = b"", position
        while position + HEADER_SIZE <= segment.size:
            if not start <= position <= start + len(held) - HEADER_SIZE:
                held, start = file.read_at(position, min(SLICE_SIZE, segment.size - position)), position
            fields = HEADER.unpack_from(held, position - start)
            base_offset, length, epoch, magic, delta, max_timestamp, producer_id, its_epoch, sequence, count = fields
            size, last_offset = LOG_OVERHEAD + length, base_offset + delta
            if position + size > segment.size:
                break
            if magic != MAGIC:
                base_offset, last_offset, max_timestamp, epoch = _of_message(file.read_at(position, size))
            if last_offset >= self.next_offset:
                break  # not settled yet
            self._positions.append(position)
            self._segments.append(segment.base_offset)
            self._note(base_offset, last_offset, size, max_timestamp, epoch)
            if self._notes_producers and magic == MAGIC and producer_id != NO_PRODUCER_ID:
                self._note_producer(producer_id, its_epoch, sequence, count, base_offset, max_timestamp)
            position += size
        return position

    def _note_producer(
        self, producer_id: int, epoch: int, sequence: int, count: int, base_offset: int, timestamp_ms: int
    ) -> None:
        written = Written(sequence, sequence_after(sequence, count - 1), base_offset, timestamp_ms)
        self.known_producers.written(producer_id, epoch, written, timestamp_ms)

    def _octets(self, index: int, end: int) -> bytes:
        parts = []
        while index < end:
            base_offset, first = self._segments[index], index
            while index < end and self._segments[index] == base_offset:
                index += 1
            size = self._positions[index - 1] + self._sizes[index - 1] - self._positions[first]
            file = self._disk.open(self._log.path_of(base_offset))
            try:
                parts.append(file.read_at(self._positions[first], size))
            finally:
                file.close()
        return b"".join(parts)

    def runs(self) -> list[Run]:
        """Return the segments, the oldest first, without one that is empty."""
        self.look()
        found: list[Run] = []
        segment = -1
        for index in range(self._first, len(self._sizes)):
            one = Run(self._last_offsets[index] + 1, self._sizes[index], self._max_timestamps[index])
            if self._segments[index] == segment:
                before = found.pop()
                one = Run(one.next_offset, before.size + one.size, max(before.max_timestamp, one.max_timestamp))
            segment = self._segments[index]
            found.append(one)
        return found

    def first_timestamp_of_newest(self) -> int:
        """Return the greatest timestamp of the first batch in the newest segment."""
        return self._max_timestamps[bisect_left(self._segments, self._segments[-1], lo=self._first)]

    def begins_behind(self, segment: Segment) -> bool:
        """Whether a segment has nothing that can be read any more."""
        return self._first >= len(self._segments) or self._segments[self._first] > segment.base_offset

    def keep_index(self) -> None:
        """The log has lost what was dropped before: the rest stands where it did."""
        self._log_version = self._log.version

    def _columns(self) -> list[list[bytes] | array[int]]:
        return [*super()._columns(), self._positions, self._segments]


class OffsetsTopicData(StoredData):
    """A partition of ``__consumer_offsets``: written by the coordinator, read as any topic (BA-77)."""

    __slots__ = ()

    @property
    def next_offset(self) -> int:
        return self._log.end.offset

    @next_offset.setter
    def next_offset(self, offset: int) -> None:
        """What settles is the log's matter."""


def _of_message(encoded: bytes) -> tuple[int, int, int, int]:
    """Return the same of a message of before 0.11, or of a compressed set of them."""
    found = read_batch(encoded, check_crc=False)
    assert found is not None, "it was whole"
    batch = found[0]
    records = batch.records()
    greatest = max((record.timestamp for record in records), default=-1)
    return (records[0].offset if records else batch.last_offset), batch.last_offset, greatest, 0


__all__ = ["OffsetsTopicData", "StoredData", "TopicAppend", "TopicWriter"]
