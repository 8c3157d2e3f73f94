"""The records of one partition in memory: appended and read by the batch, deleted from the front.

Theory of operation. Batches are stored as producers sent them, compressed or not. The broker sets only base offset and
leader epoch, which no checksum covers. An index in parallel arrays has last offset, size and greatest timestamp of each
batch. Last offsets rise, so a read is a binary search and a join of slices. Batches are appended at the end and dropped
at the front, where dropped entries stay in the arrays until enough of them can be deleted together. Only compaction and
truncation change other batches.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from copy import deepcopy
from typing import TYPE_CHECKING, NamedTuple

from kproto.records.batch_header import CONTROL, LOG_OVERHEAD, NO_PRODUCER_ID, TRANSACTIONAL, header_struct
from kproto.records.batches import first_offset
from kproto.records.record_batch import read_header
from kproto_server.partition_log.precheck import ATTRIBUTES_POSITION
from kproto_server.partition_log.producers import BatchMetadata, ProducerStates, sequence_after
from kproto_server.partition_log.transactions import TransactionIndex, read_marker

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

PRODUCER_HEADER = header_struct(
    "attributes", "last_offset_delta", "max_timestamp", "producer_id", "producer_epoch", "base_sequence"
)
_PLACE = header_struct("base_offset", "batch_length", "partition_leader_epoch")
"""What a batch begins with; its offset and its epoch are the log's."""
INDEX_INTERVAL_BYTES = 4096
"""`index.interval.bytes`."""
COMPARED_BATCHES = 10_000
"""Batches whose timestamps are compared in one step: 0.2 ms."""
TIMES_MAX = 64
"""Times that are noted of a partition; of more, every second one is dropped, and the batches before it expire later."""
DROPPED_MAX = 1024
"""Dropped batches that stay at the front of the arrays before they are deleted together."""


class EpochStart(NamedTuple):
    """The first offset of a leader epoch."""

    epoch: int
    offset: int


class Append:
    """A batch that was handed to a log."""

    __slots__ = ("base_offset", "error")

    def __init__(self, base_offset: int) -> None:
        self.base_offset: int = base_offset
        self.error: int = 0
        """The error of the write, if it failed. In memory, writes do not fail."""


class PartitionData:
    """The records of one partition, in memory."""

    __slots__ = (
        "_batches", "_first", "_last_offsets", "_max_timestamps", "_sizes", "compacted_offset", "epochs",
        "known_producers", "known_transactions", "next_offset", "searched_offset", "size_bytes", "start_offset",
        "times", "waiters",
    )  # fmt: skip

    is_in_memory = True

    def __init__(self, start_offset: int = 0) -> None:
        self.start_offset: int = start_offset
        """The log start offset: the first offset that can be read."""
        self.next_offset: int = start_offset
        """The offset of the next record: the log end offset, and the high watermark, as this is the only replica."""
        self.size_bytes: int = 0
        """Bytes of all batches."""
        self.compacted_offset: int = start_offset
        """The offset after the records that the cleaner has compacted."""
        self.searched_offset: int = start_offset
        """The log end offset when the cleaner looked for closed segments."""
        self.epochs: list[EpochStart] = []
        self.known_producers: ProducerStates = ProducerStates()
        """The producers of the indexed batches; `producers` completes the index before."""
        self.known_transactions: TransactionIndex = TransactionIndex()
        """The transactions of the indexed batches; `transactions` completes the index before."""
        self.waiters: dict[Callable[[], object], None] = {}
        """Called after each append: fetches that wait for records. A dict, for its order and fast removal."""
        self.times: list[tuple[int, int]] = []
        """Log end offsets, each with the broker time at which it was noted, while batches without timestamp come."""
        self._batches: list[bytes] = []
        self._last_offsets = array("q")
        self._sizes = array("q")
        self._max_timestamps = array("q")
        self._first = 0
        """Index of the first batch that is not dropped."""

    def append(
        self, batch: bytes, last_offset_delta: int, max_timestamp: int, epoch: int, producer_id: int = NO_PRODUCER_ID
    ) -> Append:
        """Append a whole batch of magic 2 with the next offset and this leader epoch."""
        base_offset, size = self.next_offset, len(batch)
        place = _PLACE.pack(base_offset, size - LOG_OVERHEAD, epoch)
        self._batches.append(b"".join((place, memoryview(batch)[_PLACE.size :])))
        self._index_batch(base_offset, base_offset + last_offset_delta, size, max_timestamp, epoch)
        self.next_offset = base_offset + last_offset_delta + 1
        if producer_id != NO_PRODUCER_ID and batch[ATTRIBUTES_POSITION] & TRANSACTIONAL:
            self._index_producer(batch, base_offset)
        if self.waiters:
            self.notify_waiters()
        return Append(base_offset)

    def add_stored(self, batch: bytes) -> None:
        """Append a batch of a log, with its own offset and epoch, and what it says of its producer."""
        header = read_header(batch)
        last_offset = header.base_offset + header.last_offset_delta
        self._batches.append(batch)
        epoch = header.partition_leader_epoch
        self._index_batch(header.base_offset, last_offset, len(batch), header.max_timestamp, epoch)
        self.next_offset = last_offset + 1
        self._index_producer(batch, header.base_offset, restores_producers=True)

    def copy(self) -> PartitionData:
        """Return a copy of records in memory, without waiters."""
        copy = PartitionData(self.start_offset)
        copy.next_offset, copy.size_bytes = self.next_offset, self.size_bytes
        copy.compacted_offset, copy.searched_offset = self.compacted_offset, self.searched_offset
        copy.epochs = self.epochs.copy()
        copy.known_producers = deepcopy(self.known_producers)
        copy.known_transactions = deepcopy(self.known_transactions)
        for own, other in zip(copy._columns(), self._columns(), strict=True):
            own += other[self._first :]  # type: ignore[operator]  # columns of the same type
        return copy

    def append_in_flight(self, base_offset: int) -> Append | None:
        """Return an append that the log has not settled; None if it has. In memory, it settles each at once."""
        return None

    def _index_batch(self, base_offset: int, last_offset: int, size: int, max_timestamp: int, epoch: int) -> None:
        """Add the newest batch to the index."""
        self._last_offsets.append(last_offset)
        self._sizes.append(size)
        self._max_timestamps.append(max_timestamp)
        self.size_bytes += size
        if not self.epochs or self.epochs[-1].epoch < epoch:
            self.epochs.append(EpochStart(epoch, base_offset))

    def _index_producer(self, batch: bytes, base_offset: int, *, restores_producers: bool = False) -> None:
        """Add a batch with a producer id to the transactions; ``restores_producers``: and to the producers."""
        attributes, delta, timestamp_ms, producer_id, epoch, sequence = PRODUCER_HEADER.unpack_from(batch)
        if producer_id == NO_PRODUCER_ID:
            return
        is_transactional = bool(attributes & TRANSACTIONAL)
        if attributes & CONTROL:
            marker = read_marker(batch)
            if marker is not None:
                self.known_transactions.add_marker(producer_id, base_offset, marker.outcome)
                if restores_producers:
                    self.known_producers.add_marker(
                        producer_id, epoch, marker.coordinator_epoch, timestamp_ms, base_offset
                    )
            return
        if is_transactional:
            self.known_transactions.add_batch(producer_id, epoch, base_offset)
        if restores_producers:
            # Compaction removes records, and leaves the sequences of the batch.
            one = BatchMetadata(sequence, sequence_after(sequence, delta), base_offset, timestamp_ms)
            self.known_producers.add(producer_id, epoch, one, timestamp_ms, is_transactional=is_transactional)

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which all transactions have ended."""
        self.refresh_index()
        first_open = self.known_transactions.first_open_offset if self.known_transactions.open else None
        return self.next_offset if first_open is None else max(first_open, self.start_offset)

    @property
    def disk_size(self) -> int:
        """Bytes of the log on disk, or of all batches in memory."""
        return self.size_bytes

    @property
    def producers(self) -> ProducerStates:
        """The idempotent producers that have appended batches."""
        self.refresh_index()
        return self.known_producers

    @property
    def transactions(self) -> TransactionIndex:
        """The open and the aborted transactions."""
        self.refresh_index()
        return self.known_transactions

    def refresh_index(self) -> None:
        """Complete the index before it is used; in memory it always is complete."""

    def index_steps(self) -> Iterator[int]:
        """Complete the index in steps; yield the number of batches of each."""
        return iter(())

    def _read_batches(self, index: int, end: int) -> bytes:
        """Return batches by their indexes."""
        return b"".join(self._batches[index:end])

    def begin_epoch(self, epoch: int) -> None:
        """Note a newer leader epoch before a batch of it is appended. In memory, there is nothing to keep.

        Raises:
            OSError: the log cannot keep the epoch.
        """

    def notify_waiters(self) -> None:
        """Call all waiters. A waiter may remove itself."""
        for waiter in list(self.waiters):
            waiter()

    def read(self, offset: int, max_bytes: int, *, min_one_batch: bool, end_offset: int | None = None) -> bytes:
        """Return whole batches of at most ``max_bytes``, from the batch with an offset on (BA-72, BA-73).

        ``min_one_batch``: return the first batch even if it is larger; ``end_offset``: return no batch with this offset
        or a later one.
        """
        index, end = self._span(offset, max_bytes, min_one_batch=min_one_batch, end_offset=end_offset)
        return self._read_batches(index, end) if end > index else b""

    def readable_bytes(self, offset: int, max_bytes: int, end_offset: int | None = None) -> int:
        """Return the size of the batches from the batch with an offset on, at most ``max_bytes``; nothing is read.

        ``end_offset``: as in `read`.
        """
        index, end = self._span(offset, max_bytes, min_one_batch=True, end_offset=end_offset)
        size = sum(self._sizes[index:end])
        has_more = end < len(self._sizes) and (end_offset is None or self._last_offsets[end] < end_offset)
        return max_bytes if has_more else min(size, max_bytes)

    def _span(
        self, offset: int, max_bytes: int, *, min_one_batch: bool, end_offset: int | None = None
    ) -> tuple[int, int]:
        """Return the indexes of the first batch that `read` returns, and of the one after the last."""
        self.refresh_index()
        sizes = self._sizes
        index = max(self._first, bisect_left(self._last_offsets, offset))
        last = len(sizes) if end_offset is None else bisect_left(self._last_offsets, end_offset)
        end = index
        remaining = max_bytes
        while end < last and (sizes[end] <= remaining or (min_one_batch and end == index)):
            remaining -= sizes[end]
            end += 1
        return index, end

    def end_of_batch(self, offset: int) -> int:
        """Return the offset after the batch that has an offset, or after the next one; the log end offset if none."""
        self.refresh_index()
        index = bisect_left(self._last_offsets, offset)
        return self._last_offsets[index] + 1 if index < len(self._last_offsets) else self.next_offset

    def end_of_read(self, offset: int, size: int) -> int:
        """Return an offset behind the batches that a read of this offset and size has returned.

        As in Kafka, it is behind them by the distance of two entries in an offset index, or it is the log end offset.
        """
        left = size + INDEX_INTERVAL_BYTES
        for index in range(max(self._first, bisect_left(self._last_offsets, offset)), len(self._sizes)):
            left -= self._sizes[index]
            if left < 0:
                return self._last_offsets[index] + 1
        return self.next_offset

    def batch_at_time(self, timestamp: int, offset: int = 0) -> Generator[int, None, bytes | None]:
        """Return the first batch with a record of this timestamp or a later one, from the batch with an offset on.

        Yields the number of batches after so many that have none.
        """
        while True:
            index = self._first_readable(offset)
            timestamps = self._max_timestamps[index : index + COMPARED_BATCHES]
            if not timestamps:
                return None
            if max(timestamps) >= timestamp:
                index += next(number for number, one in enumerate(timestamps) if one >= timestamp)
                return self._read_batches(index, index + 1)
            offset = self._last_offsets[index + len(timestamps) - 1] + 1
            yield len(timestamps)

    def batch_of_greatest_timestamp(self, offset: int = 0) -> Generator[int, None, bytes | None]:
        """Return the first batch with the greatest timestamp of the partition, from the batch with an offset on.

        Yields the number of batches after so many. If the batch is deleted meanwhile, the next one is returned.
        """
        greatest, found = None, offset
        while True:
            index = self._first_readable(offset)
            timestamps = self._max_timestamps[index : index + COMPARED_BATCHES]
            if not timestamps:
                break
            newest = max(timestamps)
            if greatest is None or newest > greatest:
                greatest, found = newest, self._last_offsets[index + timestamps.index(newest)]
            offset = self._last_offsets[index + len(timestamps) - 1] + 1
            yield len(timestamps)
        index = self._first_readable(found)
        return self._read_batches(index, index + 1) if index < len(self._sizes) else None

    def _first_readable(self, offset: int) -> int:
        """Return the index of the batch that has an offset, or of the next one; on disk, batches below the log start
        offset are in the index after a restart."""
        self.refresh_index()
        return max(self._first, bisect_left(self._last_offsets, max(offset, self.start_offset)))

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch of the record at an offset; -1 if there is none."""
        self.refresh_index()
        index = bisect_right(self.epochs, offset, key=lambda start: start.offset)
        return self.epochs[index - 1].epoch if index else -1

    def end_of_epoch(self, epoch: int) -> EpochStart | None:
        """Return the greatest epoch up to this one, with the first offset after it; None if there are no epochs.

        Epochs of which all records were deleted do not count. Up to an epoch before all others, the log is empty: that
        epoch ends at the log start offset.
        """
        self.refresh_index()
        if not self.epochs:
            return None
        first = max(0, bisect_right(self.epochs, self.start_offset, key=lambda start: start.offset) - 1)
        index = bisect_right(self.epochs, epoch, key=lambda start: start.epoch)
        if index <= first:
            return EpochStart(epoch, max(self.epochs[first].offset, self.start_offset))
        end = self.epochs[index].offset if index < len(self.epochs) else self.next_offset
        return EpochStart(self.epochs[index - 1].epoch, end)

    def delete_before(self, offset: int) -> None:
        """Raise the log start offset, and drop the batches that are wholly below it."""
        self.refresh_index()
        self.start_offset = max(self.start_offset, min(offset, self.next_offset))
        self._drop_until(bisect_left(self._last_offsets, self.start_offset, lo=self._first))
        self.known_transactions.drop_before(self.start_offset)

    def truncate(self, offset: int) -> None:
        """Remove all batches from an offset on, where a batch begins. Producers and transactions are as they were
        before these batches."""
        kept = max(self._first, bisect_left(self._last_offsets, offset))
        self.size_bytes -= sum(self._sizes[kept:])
        for column in self._columns():
            del column[kept:]
        self.next_offset = offset
        self.compacted_offset, self.searched_offset = min(self.compacted_offset, offset), self.start_offset
        while self.epochs and self.epochs[-1].offset >= offset:
            self.epochs.pop()
        self.known_transactions.clear()
        self.known_producers.clear()
        for batch in self._batches[self._first :]:
            self._index_producer(batch, first_offset(batch), restores_producers=True)
        self.notify_waiters()

    def drop_oldest(self) -> int:
        """Drop the oldest batch; return its size, or 0 if there was none."""
        if self._first == len(self._sizes):
            return 0
        self.start_offset = max(self.start_offset, self._last_offsets[self._first] + 1)
        self.known_transactions.drop_before(self.start_offset)
        size = self._sizes[self._first]
        self._drop_until(self._first + 1)
        return size

    def batches(self) -> Iterator[tuple[int, int, int]]:
        """Yield last offset, size and greatest timestamp of each batch."""
        return zip(*(column[self._first :] for column in PartitionData._row_columns(self)), strict=True)

    def rows_from(self, offset: int, count: int) -> list[tuple[int, ...]]:
        """Return last offset, size and greatest timestamp of batches, from the batch with an offset on; on disk, the
        base offset of the segment file, too."""
        self.refresh_index()
        index = max(self._first, bisect_left(self._last_offsets, offset))
        return list(zip(*(column[index : index + count] for column in self._row_columns()), strict=True))

    def _row_columns(self) -> tuple[array[int], ...]:
        return self._last_offsets, self._sizes, self._max_timestamps

    def note_time(self, now_ms: int) -> None:
        """Note the end of the log for `time_of_append`, if the newest batch has no timestamp."""
        times = self.times = [one for one in self.times if one[0] > self.start_offset]
        is_undated = len(self._sizes) > self._first and self._max_timestamps[-1] < 0
        if is_undated and (not times or times[-1][0] < self.next_offset):
            if len(times) == TIMES_MAX:
                del times[:-1:2]
            times.append((self.next_offset, now_ms))

    def time_of_append(self, end_offset: int, now_ms: int) -> int:
        """Return a time at which the batches below an offset were in the log: the earliest noted one, or now."""
        index = bisect_left(self.times, (end_offset, 0))
        return self.times[index][1] if index < len(self.times) else now_ms

    def columns_below(self, end_offset: int) -> tuple[array[int], list[bytes]]:
        """Return the last offsets and the bytes of the batches below an offset."""
        span = slice(self._first, bisect_left(self._last_offsets, end_offset, lo=self._first))
        return self._last_offsets[span], self._batches[span]

    def replace(self, changed: Mapping[int, tuple[bytes, bytes]]) -> None:
        """Replace batches, given by last offset, with what is retained of them, or with nothing if that is empty.

        A batch that is not the one given any more stays. Only the batches among those given are looked at.
        """
        first = max(self._first, bisect_left(self._last_offsets, min(changed)))
        span = slice(first, max(first, bisect_right(self._last_offsets, max(changed))))
        kept = []
        for row in zip(*(column[span] for column in self._columns()), strict=True):
            batch, last_offset, _, _ = row
            before, after = changed.get(last_offset, (None, b""))
            if batch is not before:
                kept.append(row)
            elif after:
                kept.append((after, last_offset, len(after), read_header(after).max_timestamp))
        self.size_bytes += sum(row[2] for row in kept) - sum(self._sizes[span])
        self._batches[span] = [row[0] for row in kept]
        for number, column in enumerate((self._last_offsets, self._sizes, self._max_timestamps), 1):
            column[span] = array("q", [row[number] for row in kept])
        self.known_transactions.drop_markers(last_offset for last_offset, (_, after) in changed.items() if not after)

    def _drop_until(self, index: int) -> None:
        dropped = slice(self._first, index)
        self.size_bytes -= sum(self._sizes[dropped])
        if self._batches:
            self._batches[dropped] = [b""] * (index - self._first)
        self._first = index
        if self._first > DROPPED_MAX and 2 * self._first > len(self._sizes):
            for column in self._columns():
                del column[: self._first]
            self._first = 0

    def _columns(self) -> list[list[bytes] | array[int]]:
        return [self._batches, self._last_offsets, self._sizes, self._max_timestamps]


NO_DATA = PartitionData()
"""The data of all partitions without any records; nothing is ever appended to it."""
