"""The records of one partition: appended by the batch, read by offset, found by time, dropped from the front.

Theory of operation. Batches are kept as they came, compressed or not; only base offset and leader epoch are the
broker's, and no checksum covers those. Beside each batch stands what a look-up needs of it, in arrays that rise with
the batches: a read is a bisection and a join of slices. Nothing is ever changed but at the two ends.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

from kproto.records.record_batch import read_record_batch
from kproto_server.partition_log.producers import NO_PRODUCER_ID, Producers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NO_TIMESTAMP = -1
SLACK = 1024
"""Batches dropped from the front before the arrays are moved together."""


class EpochStart(NamedTuple):
    """The first offset that was written under a leader epoch."""

    epoch: int
    offset: int


class Append:
    """A batch that was given to a log."""

    __slots__ = ("base_offset", "error")

    def __init__(self, base_offset: int) -> None:
        self.base_offset: int = base_offset
        self.error: int = 0
        """Why the log does not have it, once that is known."""


class PartitionData:
    """What is in a partition, in memory."""

    __slots__ = (
        "_batches", "_first", "_last_offsets", "_max_timestamps", "_sizes", "epochs", "known_producers", "next_offset",
        "size_bytes", "start_offset", "waiters",
    )  # fmt: skip

    is_in_memory = True

    def __init__(self, start_offset: int = 0) -> None:
        self.start_offset: int = start_offset
        """The first offset that may be read."""
        self.next_offset: int = start_offset
        """The one that the next record gets: log end and, as one node's replicas are all there is, high watermark."""
        self.size_bytes: int = 0
        """Octets of all batches."""
        self.epochs: list[EpochStart] = []
        self.known_producers: Producers = Producers()
        self.waiters: dict[Callable[[], object], None] = {}
        """What is called when something was appended: fetches that wait for it."""
        self._batches: list[bytes] = []
        self._last_offsets = array("q")
        self._sizes = array("q")
        self._max_timestamps = array("q")
        self._first = 0
        """Index of the first batch that was not dropped."""

    def append(
        self,
        batch: bytes,
        last_offset_delta: int,
        max_timestamp: int,
        epoch: int,
        producer_id: int = NO_PRODUCER_ID,
    ) -> Append:
        """Append a whole batch of magic 2 with the next offset and this leader epoch."""
        base_offset = self.next_offset
        stored = base_offset.to_bytes(8, "big") + batch[8:12] + epoch.to_bytes(4, "big") + batch[16:]
        self._batches.append(stored)
        self._note(base_offset, base_offset + last_offset_delta, len(stored), max_timestamp, epoch)
        self.next_offset = base_offset + last_offset_delta + 1
        self.wake()
        return Append(base_offset)

    def _note(self, base_offset: int, last_offset: int, size: int, max_timestamp: int, epoch: int) -> None:
        """Take down what look-ups need of the newest batch."""
        self._last_offsets.append(last_offset)
        self._sizes.append(size)
        self._max_timestamps.append(max_timestamp)
        self.size_bytes += size
        if not self.epochs or self.epochs[-1].epoch < epoch:
            self.epochs.append(EpochStart(epoch, base_offset))

    @property
    def disk_size(self) -> int:
        """Octets that the log takes."""
        return self.size_bytes

    @property
    def producers(self) -> Producers:
        """The idempotent producers that have written here."""
        self.look()
        return self.known_producers

    def look(self) -> None:
        """Make sure that what look-ups need is there."""

    def _octets(self, index: int, end: int) -> bytes:
        """Return batches by their numbers."""
        return b"".join(self._batches[index:end])

    def wake(self) -> None:
        """Tell those who wait for this partition to change."""
        for waiter in list(self.waiters):
            waiter()

    def available(self, offset: int) -> bool:
        """Whether there is something to read at an offset."""
        return offset < self.next_offset

    def read(self, offset: int, max_bytes: int, *, whole: bool) -> bytes:
        """Return whole batches from the one that has an offset, up to a size; the first one whatever its size if
        ``whole`` (BA-72, BA-73)."""
        self.look()
        sizes = self._sizes
        index = max(self._first, bisect_left(self._last_offsets, offset))
        end = index
        left = max_bytes
        while end < len(sizes) and (sizes[end] <= left or (whole and end == index)):
            left -= sizes[end]
            end += 1
        return self._octets(index, end) if end > index else b""

    def batch_at_time(self, timestamp: int) -> bytes | None:
        """Return the first batch that has a record of a time or later."""
        self.look()
        for index in range(self._first, len(self._sizes)):
            if self._max_timestamps[index] >= timestamp:
                return self._octets(index, index + 1)
        return None

    def batch_of_greatest_timestamp(self) -> bytes | None:
        """Return the first batch that has the greatest timestamp of all."""
        self.look()
        timestamps = self._max_timestamps[self._first :]
        if not timestamps:
            return None
        index = self._first + timestamps.index(max(timestamps))
        return self._octets(index, index + 1)

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch that an offset was written under; -1 if nothing was."""
        self.look()
        index = bisect_right(self.epochs, offset, key=lambda start: start.offset)
        return self.epochs[index - 1].epoch if index else -1

    def end_of_epoch(self, epoch: int) -> EpochStart | None:
        """Return the largest epoch up to this one, and where the next one began; None if there is none."""
        self.look()
        index = bisect_right(self.epochs, epoch, key=lambda start: start.epoch)
        if index == 0:
            return None
        end = self.epochs[index].offset if index < len(self.epochs) else self.next_offset
        return EpochStart(self.epochs[index - 1].epoch, end)

    def delete_before(self, offset: int) -> None:
        """Move the start of the log up to an offset; batches that are wholly before it go."""
        self.look()
        self.start_offset = max(self.start_offset, min(offset, self.next_offset))
        while self._first < len(self._sizes) and self._last_offsets[self._first] < self.start_offset:
            self._drop_first()

    def truncate(self, offset: int) -> None:
        """Have the log end at an offset where a batch begins, as if what is behind had never been written."""
        kept = max(self._first, bisect_left(self._last_offsets, offset))
        self.size_bytes -= sum(self._sizes[kept:])
        for column in self._columns():
            del column[kept:]
        self.next_offset = offset
        while self.epochs and self.epochs[-1].offset >= offset:
            self.epochs.pop()
        self.wake()

    def drop_oldest(self) -> int:
        """Drop the oldest batch; return its size, 0 if there was none."""
        if self._first == len(self._sizes):
            return 0
        self.start_offset = max(self.start_offset, self._last_offsets[self._first] + 1)
        return self._drop_first()

    def oldest(self) -> tuple[int, int] | None:
        """Return size and greatest timestamp of the oldest batch."""
        if self._first == len(self._sizes):
            return None
        return self._sizes[self._first], self._max_timestamps[self._first]

    def batches(self) -> Iterator[tuple[int, int, int]]:
        """Yield last offset, size and greatest timestamp of each batch."""
        columns = (self._last_offsets, self._sizes, self._max_timestamps)
        return zip(*(column[self._first :] for column in columns), strict=True)

    def rewrite(self, clean: Callable[[list[bytes]], list[bytes]], end_offset: int) -> None:
        """Have the batches below an offset replaced by what is left of them."""
        end = bisect_left(self._last_offsets, end_offset, lo=self._first)
        left = clean(self._batches[self._first : end])
        headers = [read_record_batch(encoded, check_crc=False)[0] for encoded in left]
        span = slice(self._first, end)
        self.size_bytes += sum(map(len, left)) - sum(self._sizes[span])
        self._batches[span] = left
        self._last_offsets[span] = array("q", [batch.last_offset for batch in headers])
        self._sizes[span] = array("q", map(len, left))
        self._max_timestamps[span] = array("q", [batch.header.max_timestamp for batch in headers])

    def _drop_first(self) -> int:
        size = self._sizes[self._first]
        if self._batches:
            self._batches[self._first] = b""
        self._first += 1
        self.size_bytes -= size
        if self._first > SLACK and 2 * self._first > len(self._sizes):
            for column in self._columns():
                del column[: self._first]
            self._first = 0
        return size

    def _columns(self) -> list[list[bytes] | array[int]]:
        return [self._batches, self._last_offsets, self._sizes, self._max_timestamps]


NO_DATA = PartitionData()
"""Of all partitions that nothing was ever written to: never written to itself."""
