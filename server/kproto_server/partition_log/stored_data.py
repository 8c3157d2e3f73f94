"""The records of one partition on disk: an index of the batches in its log's segments.

Theory of operation. The index of `PartitionData` comes from the batch headers in the segment files. It is not read at
the start of the broker but at the first access, which handlers do in steps (`index_steps`). It is continued at each
access, and behind each `SETTLED_MAX` batches. Only headers are read, so a large batch costs no more than a small one;
message sets of old releases have to be decoded. A producer with an id needs the index for each batch: its batches are
indexed when they are settled, without reading them. If compaction has rewritten segments, the index is built again. A
read of records is one read per segment file.

The index ends before the first batch that is not settled: consumers see a batch when the log has reported that it is
written, and synced if the durability requires that. Then the offset after the batch becomes the log end offset.
"""

from __future__ import annotations

import errno
import sys
from array import array
from bisect import bisect_left
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from kproto.errors import DecodeError
from kproto.records.batch_header import (
    CONTROL,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_PRODUCER_ID,
    TRANSACTIONAL,
    header_struct,
)
from kproto.records.batches import SIZE_MIN, read_batch
from kproto.records.record import NO_TIMESTAMP
from kproto_server.partition_log.partition_data import PRODUCER_HEADER, Append, PartitionData
from kproto_server.storage.errors import UNREADABLE, DamagedBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.storage.disk import File
    from kproto_server.storage.partition_log import PartitionLog, Segment

HEADER = header_struct(
    "base_offset",
    "batch_length",
    "partition_leader_epoch",
    "magic",
    "attributes",
    "last_offset_delta",
    "max_timestamp",
    "producer_id",
)

READ_SIZE = 1 << 16
"""Bytes of a segment that one read gets for the index: the headers of many small batches."""

SETTLED_MAX = 10_000
"""Batches that are settled before the index continues, and batches that it gets in a step: 11 ms. A reader that had to
index a million of them would hold up all clients for a second."""

LARGE_BATCH_BYTES = READ_SIZE // 8
"""The size of a batch after which only the header of the next one is read, which takes a tenth of the time."""


class PendingAppend:
    """A batch that the log has not settled yet."""

    __slots__ = ("_append", "_batch", "_data", "_epoch", "_next_offset", "_producer_id")

    def __init__(
        self, data: StoredData, append: Append, batch: bytes, epoch: int, next_offset: int, producer_id: int
    ) -> None:
        self._data = data
        self._append = append
        self._batch = batch
        self._epoch = epoch
        self._next_offset = next_offset
        self._producer_id = producer_id

    def settle(self, error: int) -> None:
        """Called once by the log, with 0 or the error of the write."""
        self._append.error = error
        data = self._data
        if data.in_flight.get(self._append.base_offset) is self._append:
            del data.in_flight[self._append.base_offset]
        if error:
            data.restore_producer(self._producer_id, self._batch)
        else:
            data.next_offset = self._next_offset
            if self._producer_id != NO_PRODUCER_ID:
                data.index_settled(self._batch, self._append.base_offset, self._epoch)
            else:
                data.note_settled()
            data.notify_waiters()


class BatchWriter(Protocol):
    """The part of the change log that writes the batches of topics."""

    def append_to(self, log: PartitionLog, item: PendingAppend, batch: bytes, record_count: int) -> None:
        """Append a batch to a log, and settle ``item`` when the batch is written, or could not be."""
        ...


class StoredData(PartitionData):
    """The records of one partition, on disk."""

    __slots__ = (
        "_indexed", "_log", "_log_version", "_lost_producers", "_positions", "_restores_producers",
        "_segments", "_settled", "_writer", "in_flight",
    )  # fmt: skip

    is_in_memory = False

    def __init__(self, log: PartitionLog, writer: BatchWriter, start_offset: int) -> None:
        super().__init__(max(start_offset, log.start_offset))
        self.next_offset: int = log.next_offset
        self._log = log
        self._writer = writer
        self._positions = array("q")
        self._segments = array("q")
        """The position of each batch in its segment, and the base offset of the segment."""
        self._indexed = (-1, 0)
        """Where the index ends: base offset of a segment, and position in it."""
        self._log_version = log.version
        self._restores_producers = True
        """Whether the first index is not complete yet. Later batches come through `append`, whose caller adds them."""
        self._settled = 0
        """Batches since `note_settled` has continued the index."""

        self.in_flight: dict[int, Append] = {}
        """The appends that the log has not settled, by base offset."""
        self._lost_producers: set[int] = set()
        """Producers that the next index restores."""

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
        self.begin_epoch(epoch)
        append = Append(log.next_offset)
        self.in_flight[append.base_offset] = append
        item = PendingAppend(self, append, batch, log.epoch, append.base_offset + last_offset_delta + 1, producer_id)
        self._writer.append_to(log, item, batch, last_offset_delta + 1)
        return append

    def append_in_flight(self, base_offset: int) -> Append | None:
        return self.in_flight.get(base_offset)

    def begin_epoch(self, epoch: int) -> None:
        """Keep a newer leader epoch across restarts."""
        if epoch > self._log.epoch:
            self._log.begin_epoch(epoch)

    def refresh_index(self) -> None:
        """Index the batches that were appended since the last call.

        Raises:
            OSError: a segment cannot be read, or a batch in it is damaged.
        """
        self._continue_index(sys.maxsize)

    def index_steps(self) -> Iterator[int]:
        """Do the work of `refresh_index` in steps; yield the number of batches of each.

        A call of `refresh_index` in between does the rest at once.

        Raises:
            OSError: while iterating: as `refresh_index`.
        """
        is_complete = self._is_indexed
        while not is_complete:
            count = len(self._last_offsets)
            is_complete = self._continue_index(SETTLED_MAX)
            yield max(0, len(self._last_offsets) - count)

    @property
    def _is_indexed(self) -> bool:
        """Whether the index has all batches of the log."""
        end = self._log.end
        return self._log_version == self._log.version and self._indexed == (end.base_offset, end.position)

    def _continue_index(self, count_max: int) -> bool:
        """Index further batches, up to a number; return whether these are all that there are."""
        is_complete = self._is_indexed or self._index_batches(count_max)
        if is_complete:
            self._restores_producers = False
            self._lost_producers.clear()
        return is_complete

    def _index_batches(self, count_max: int) -> bool:
        log = self._log
        if self._log_version != log.version:
            self._clear_index()
        count_end = len(self._last_offsets) + count_max
        for segment in log.segments():
            if segment.base_offset > self.next_offset:
                break  # the batches before are not settled yet
            if segment.base_offset >= self._indexed[0]:
                try:
                    self._index(segment, count_end)
                except (DecodeError, OSError) as error:
                    self._clear_index()  # else the batches before the failure would be indexed twice
                    if isinstance(error, DecodeError):
                        raise DamagedBatch(errno.EIO, str(error), segment.path) from error
                    raise
            if len(self._last_offsets) >= count_end:
                return False
        return True

    def index_settled(self, batch: bytes, base_offset: int, epoch: int) -> None:
        """Index a batch that the log has just settled, unless `refresh_index` has to read others before it."""
        log = self._log
        segment, position = self._indexed
        end_position = position + len(batch)
        end = log.end
        is_next = bool(self._last_offsets) and self._last_offsets[-1] + 1 == base_offset
        is_written = end.base_offset == segment and end.position >= end_position
        is_complete = self._log_version == log.version and not self._restores_producers and not self._lost_producers
        if not (is_next and is_written and is_complete):
            return
        _, _, _, _, attributes, delta, max_timestamp, _ = HEADER.unpack_from(batch)
        self._positions.append(position)
        self._segments.append(segment)
        self._index_batch(base_offset, base_offset + delta, len(batch), max_timestamp, epoch)
        if attributes & TRANSACTIONAL:
            self._index_producer(batch, base_offset)
        self._indexed = segment, end_position

    def note_settled(self) -> None:
        """Continue the index after many batches that `index_settled` has not got; it catches up if it is behind."""
        self._settled += 1
        if self._settled == SETTLED_MAX:
            self._settled = 0
            with suppress(*UNREADABLE):  # the next reader gets the error
                self._continue_index(2 * SETTLED_MAX)

    def restore_producer(self, producer_id: int, batch: bytes) -> None:
        """Make a producer what the log says: a batch or marker of it was not written."""
        if producer_id != NO_PRODUCER_ID:
            _, _, _, _, epoch, first_sequence = PRODUCER_HEADER.unpack_from(batch)
            self.known_producers.lose(producer_id, epoch, first_sequence)
            self._lost_producers.add(producer_id)
            self._clear_index()

    def _clear_index(self) -> None:
        self._log_version = self._log.version
        self._first = 0
        self.size_bytes = 0
        self.epochs.clear()
        self.known_transactions.clear()
        for column in self._columns():
            del column[:]
        self._indexed = (-1, 0)

    def _index(self, segment: Segment, count_end: int) -> None:
        """Index the new batches of a segment, until the index has a number of batches."""
        position = self._indexed[1] if segment.base_offset == self._indexed[0] else 0
        if position < segment.size:
            file = self._log.open_segment(segment.path)
            try:
                position = self._index_file(file, segment, position, count_end)
            finally:
                file.close()
        self._indexed = (segment.base_offset, position)

    def _index_file(self, file: File, segment: Segment, position: int, count_end: int) -> int:
        """Index the batches from a position on; return the position after the last one that is settled, or wanted."""
        data, start = b"", position
        size = self._sizes[-1] if self._sizes else 0
        last_offsets = self._last_offsets
        while position + LOG_OVERHEAD + SIZE_MIN <= segment.size and len(last_offsets) < count_end:
            if not start <= position <= start + len(data) - HEADER_SIZE:
                wanted = HEADER_SIZE if size >= LARGE_BATCH_BYTES else READ_SIZE
                data, start = file.read_at(position, min(wanted, segment.size - position)), position
                data = data.ljust(HEADER_SIZE, b"\0")  # a last message from before 0.11 may be shorter than a header
            base_offset, length, epoch, magic, attributes, delta, max_timestamp, producer_id = HEADER.unpack_from(
                data, position - start
            )
            size, last_offset = LOG_OVERHEAD + length, base_offset + delta
            if length < (SIZE_MIN if magic != MAGIC else HEADER_SIZE - LOG_OVERHEAD):
                # The segment was damaged: no position would follow.
                raise DecodeError("batch.length", position, f"{length} bytes")
            if position + size > segment.size:
                break
            if magic != MAGIC:
                base_offset, last_offset, max_timestamp, epoch = _message_set_fields(file.read_at(position, size))
            if last_offset >= self.next_offset:
                break  # not settled yet
            self._positions.append(position)
            self._segments.append(segment.base_offset)
            self._index_batch(base_offset, last_offset, size, max_timestamp, epoch)
            if magic == MAGIC and producer_id != NO_PRODUCER_ID:
                restores = self._restores_producers or producer_id in self._lost_producers
                if restores or attributes & TRANSACTIONAL:
                    # Of a batch without a marker, the header is enough.
                    needed = size if attributes & CONTROL else HEADER_SIZE
                    batch = data[position - start : position - start + needed]
                    if len(batch) < needed:
                        batch = file.read_at(position, needed)
                    self._index_producer(batch, base_offset, restores_producers=restores)
            position += size
        return position

    def _read_batches(self, index: int, end: int) -> bytes:
        parts = []
        while index < end:
            base_offset, first = self._segments[index], index
            while index < end and self._segments[index] == base_offset:
                index += 1
            size = self._positions[index - 1] + self._sizes[index - 1] - self._positions[first]
            file = self._log.open_segment(self._log.path_of(base_offset))
            try:
                parts.append(file.read_at(self._positions[first], size))
            finally:
                file.close()
        return b"".join(parts)

    def _row_columns(self) -> tuple[array[int], ...]:
        return *super()._row_columns(), self._segments

    def first_timestamp_of_newest(self) -> int:
        """Return the greatest timestamp of the first batch in the newest segment; -1 if there is none."""
        if self._first == len(self._segments):
            return NO_TIMESTAMP
        return self._max_timestamps[bisect_left(self._segments, self._segments[-1], lo=self._first)]

    def begins_after(self, segment: Segment) -> bool:
        """Return whether all batches of a segment are below the log start offset."""
        if self._first < len(self._segments):
            return self._segments[self._first] > segment.base_offset
        return self._indexed >= (segment.base_offset, segment.size)  # otherwise it has batches that are not settled

    def keep_index(self) -> None:
        """Keep the index although the log has changed: only segments without indexed batches were removed."""
        self._log_version = self._log.version

    def _columns(self) -> list[list[bytes] | array[int]]:
        return [*super()._columns(), self._positions, self._segments]


class OffsetsTopicData(StoredData):
    """A partition of ``__consumer_offsets``: the coordinator writes it, consumers read it as any topic (BA-77)."""

    __slots__ = ()

    @property
    def next_offset(self) -> int:
        return self._log.end.offset

    @next_offset.setter
    def next_offset(self, offset: int) -> None:
        """Ignored: the coordinator's log knows its own end."""


def _message_set_fields(encoded: bytes) -> tuple[int, int, int, int]:
    """Return base offset, last offset, greatest timestamp and leader epoch of a message set of releases before 0.11."""
    found = read_batch(encoded, check_crc=False)
    if found is None:
        raise DecodeError("batch.length", 0, f"{len(encoded)} bytes are no whole batch")
    batch = found[0]
    records = batch.records()
    greatest = max((record.timestamp for record in records), default=-1)
    return (records[0].offset if records else batch.last_offset), batch.last_offset, greatest, 0


__all__ = ["BatchWriter", "OffsetsTopicData", "PendingAppend", "StoredData"]
