"""The batches of a share partition that are in flight, by first offset, and the offsets around them.

Theory of operation. The start offset is that of the first record that is not done with, the end offset that of the last
record that was fetched; with nothing in flight both are the offset to be fetched next. A batch leaves when all records
up to its end are done with.

After a restart, records that were acquired and not acknowledged are gaps between the stored batches: nothing is known
of them, so they are fetched again. `_gap_start_offset` is the first one, and `_gap_end_offset` the end offset that the
share partition had then: gaps count until the end offset has moved (KIP-932 stores only what was acknowledged or
released).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING

from kproto_server.share_groups.in_flight import TERMINAL, Delivery, InFlightBatch, RecordState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kproto_server.share_groups.in_flight import StateBatch

NO_OFFSET = -1


class InFlightRecords:
    """The batches in flight, and the offsets around them."""

    def __init__(self, start_offset: int) -> None:
        self.start_offset: int = start_offset
        self.end_offset: int = start_offset
        self.done_count: int = 0
        """Records in flight that are done with; Kafka calls it the delivery complete count."""
        self.is_released: bool = False
        """Whether records in flight may be available."""
        self.has_dead: bool = False
        """Whether some may be Archiving."""
        self._firsts: list[int] = []
        self._batches: dict[int, InFlightBatch] = {}
        self._gap_start_offset = NO_OFFSET
        self._gap_end_offset = NO_OFFSET

    def note_done(self, count: int) -> None:
        """Note that so many more records in flight are done with; less than 0: so many fewer."""
        self.done_count += count

    def note_released(self) -> None:
        """Note that records in flight may be available."""
        self.is_released = True

    def note_dead(self, *, has_dead: bool = True) -> None:
        """Note that some records in flight may be Archiving, or that none is."""
        self.has_dead = has_dead

    def restore(self, batches: Iterable[StateBatch]) -> None:
        """Add the batches that the share coordinator has stored."""
        expected = self.start_offset
        for batch in batches:
            if self._gap_start_offset == NO_OFFSET and batch.first_offset > expected:
                self._gap_start_offset = expected
            expected = batch.last_offset + 1
            state = RecordState(batch.delivery_state)
            self.put(InFlightBatch(batch.first_offset, batch.last_offset, Delivery(state, batch.delivery_count)))
            self.has_dead |= state is RecordState.ARCHIVING
            if state in TERMINAL:
                self.done_count += batch.last_offset - batch.first_offset + 1
        if self._firsts:
            self.is_released = True
            self.end_offset = expected - 1
            if self._gap_start_offset != NO_OFFSET:
                self._gap_end_offset = self.end_offset
            self.move_start()

    # The batches in flight.

    def __len__(self) -> int:
        """Return the number of batches in flight."""
        return len(self._firsts)

    def in_flight(self) -> Iterator[InFlightBatch]:
        return map(self._batches.__getitem__, self._firsts)

    def put(self, batch: InFlightBatch) -> None:
        """Add a batch, which overlaps no other."""
        insort(self._firsts, batch.first_offset)
        self._batches[batch.first_offset] = batch

    @property
    def first(self) -> InFlightBatch:
        return self._batches[self._firsts[0]]

    def floor(self, offset: int) -> InFlightBatch | None:
        """Return the last batch that begins at an offset or before it."""
        index = bisect_right(self._firsts, offset)
        return self._batches[self._firsts[index - 1]] if index else None

    def beginning_in(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        """Return the batches that begin in a range."""
        start = bisect_left(self._firsts, first_offset)
        return [self._batches[first] for first in self._firsts[start : bisect_right(self._firsts, last_offset)]]

    @property
    def record_count(self) -> int:
        """The number of records in flight."""
        return self.end_offset - self.start_offset + 1 if self._firsts else 0

    def begins_before_start(self, batch: InFlightBatch) -> bool:
        return batch.first_offset < self.start_offset <= batch.last_offset

    def counted(self, first_offset: int, last_offset: int) -> int:
        """Return how many records of a range are not before the start offset."""
        return max(0, last_offset - max(first_offset, self.start_offset) + 1)

    # Gaps.

    @property
    def has_gaps(self) -> bool:
        return self._gap_end_offset != NO_OFFSET and self._gap_end_offset == self.end_offset

    def gaps_begin_at(self, offset: int) -> None:
        """Note that the records before an offset are in flight again."""
        if self._gap_end_offset == NO_OFFSET:
            return
        if self.has_gaps and offset <= self._gap_end_offset:
            self._gap_start_offset = offset
        else:
            self._gap_start_offset = self._gap_end_offset = NO_OFFSET

    # Fetching.

    def next_fetch_offset(self) -> int:
        """Return the offset of the first record that may be acquired."""
        if not self._firsts or self.start_offset > self._batches[self._firsts[-1]].last_offset:
            self.is_released = False
            return self.end_offset
        if self.is_released:
            found = self._first_available()
            if found is not None:
                return found
            self.is_released = False
        return self.end_offset + 1

    def _first_available(self) -> int | None:
        gap = self._gap_start_offset
        for batch in self.in_flight():
            if self.has_gaps:
                if batch.first_offset > gap:
                    return gap
                gap = max(batch.last_offset + 1, gap)
            for first, _, delivery in batch.deliveries():
                if delivery.is_available:
                    return first
        return None

    # The start offset.

    def move_start(self) -> bool:
        """Move the start offset past the records that are done with; return whether it has moved."""
        floor = self.floor(self.start_offset)
        if floor is None:
            return False
        delivery = floor.delivery if floor.offsets is None else floor.offsets.get(self.start_offset)
        if delivery is None or not delivery.is_done:
            return False
        last_done, count = self._last_done()
        if last_done == NO_OFFSET:
            return False
        last = self._batches[self._firsts[-1]]
        if last_done == last.last_offset:
            self.start_offset = self.end_offset = last.last_offset + 1
            self.done_count = 0
            self._firsts.clear()
            self._batches.clear()
            return True
        index = bisect_right(self._firsts, last_done)
        if self._batches[self._firsts[index - 1]].last_offset == last_done:
            self.start_offset = max(self.start_offset, self._firsts[index])
            if self.has_gaps:
                self.start_offset = min(self.start_offset, self._gap_start_offset)
        else:
            self.start_offset = max(self.start_offset, last_done + 1)
            index -= 1
        self.done_count -= count
        for first in self._firsts[:index]:
            del self._batches[first]
        del self._firsts[:index]
        return True

    def _last_done(self) -> tuple[int, int]:
        """Return the last record before which all are done with, and how many of them count."""
        last, count = NO_OFFSET, 0
        for batch in self.in_flight():
            if self.has_gaps and batch.last_offset >= self._gap_start_offset:
                break
            for first_offset, last_offset, delivery in batch.deliveries():
                if not delivery.is_done:
                    return last, count
                last = last_offset
                count += self.counted(first_offset, last_offset)
        return last, count

    def log_starts_at(self, offset: int) -> None:
        """Move the start offset to the log start offset, as the records before it were deleted."""
        if offset <= self.start_offset:
            return
        if not self._firsts:
            self.start_offset = self.end_offset = offset
            self.done_count = 0
            return
        removed = sum(
            self.counted(first, min(last, offset - 1))
            for batch in self.in_flight()
            if batch.first_offset < offset
            for first, last, delivery in batch.deliveries()
            if delivery.state in TERMINAL and first < offset
        )
        self.archive(self.start_offset, offset, list(self.in_flight()), RecordState.AVAILABLE, counts=False)
        self.start_offset = offset
        self.done_count -= removed
        self.end_offset = max(self.end_offset, offset)

    def archive(
        self,
        first_offset: int,
        end_offset: int,
        batches: Iterable[InFlightBatch],
        state: RecordState,
        *,
        counts: bool = True,
    ) -> None:
        """Archive the records of a range that are in a state; ``counts``: they stay in flight, and are done with."""
        for batch in batches:
            if batch.first_offset >= end_offset:
                break
            if batch.offsets is None:
                if batch.delivery.state is not state:
                    continue
                if not batch.is_within(first_offset, end_offset - 1):
                    batch.split()
            for first, last, delivery in batch.deliveries():
                if delivery.state is state and first >= first_offset and last < end_offset:
                    delivery.archive()
                    self.is_released = True
                    if counts:
                        self.done_count += last - first + 1
