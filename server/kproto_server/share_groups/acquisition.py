"""How a member acquires the records of a share partition that it has fetched.

Theory of operation. A member acquires whole batches of the log, so it may get more records than it wants, except in the
mode `record_limit`. New records become batches in flight, cut where the log's batches begin, each with at least the
batch size of the request. Records in flight that are available again keep their batches.

A record that its client cannot process would make the client release all records of its batch, until all of them were
delivered too often. So when a batch has been delivered half as often as allowed, it is split: each delivery has fewer
of its records, and the last one has a single record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto_server.share_groups.in_flight import Delivery, InFlightBatch, RecordState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.share_groups.in_flight import Span
    from kproto_server.share_groups.share_partition import SharePartition


class Acquired(NamedTuple):
    """Records that a member has acquired."""

    first_offset: int
    last_offset: int
    delivery_count: int


class Wanted(NamedTuple):
    """What a member wants to acquire."""

    member_id: str
    record_count_max: int
    batch_size: int
    lock_end_ms: int
    is_record_limit: bool = False
    """Whether it never acquires more than ``record_count_max`` (KIP-1206)."""


def acquire(of: SharePartition, fetch_offset: int, spans: Sequence[Span], wanted: Wanted) -> list[Acquired]:
    """Acquire records that were fetched from an offset on."""
    if not spans or wanted.record_count_max <= 0 or spans[-1].last_offset < of.start_offset:
        return []
    last_offset, count_max = _limits(of, fetch_offset, spans[-1].last_offset, wanted.record_count_max)
    if count_max <= 0:
        return []
    _archive_missing(of, fetch_offset, spans[0].base_offset)
    return _Acquisition(of, spans, last_offset, count_max, wanted).run()


def throttled_count(delivery_count_max: int) -> int:
    """Return the delivery count from which on records are delivered in smaller numbers."""
    return max(2, -(-delivery_count_max // 2))


def _limits(of: SharePartition, fetch_offset: int, last_offset: int, count_max: int) -> tuple[int, int]:
    """Return the last offset that may be acquired, and how many records may be."""
    room = min(count_max, of.in_flight_max - of.record_count)
    if room <= 0 and fetch_offset <= of.end_offset:
        # No new records; those in flight that are available again.
        return min(last_offset, of.end_offset), min(count_max, of.end_offset - fetch_offset + 1)
    return last_offset, room


def _archive_missing(of: SharePartition, fetch_offset: int, base_offset: int) -> None:
    """Archive available records that are not in the log any more: they were compacted away."""
    if not len(of) or fetch_offset >= base_offset:
        return
    floor = of.floor(fetch_offset)
    first = floor.first_offset if floor is not None and floor.last_offset >= fetch_offset else fetch_offset
    of.archive(fetch_offset, base_offset, of.beginning_in(first, base_offset - 1), RecordState.AVAILABLE)


class _Acquisition:
    """One member's acquisition of the records that it has fetched."""

    def __init__(
        self, of: SharePartition, spans: Sequence[Span], last_offset: int, count_max: int, wanted: Wanted
    ) -> None:
        self._of = of
        self._spans = spans
        self._last_offset = last_offset
        self._left = count_max
        self._wanted = wanted
        self._found: list[Acquired] = []
        self._throttled_count = throttled_count(of.delivery_count_max)

    def run(self) -> list[Acquired]:
        of, first_offset = self._of, self._spans[0].base_offset
        expected = self._first_known(first_offset)
        known = of.beginning_in(min(first_offset, expected), self._last_offset)
        if not known:
            self._acquire_new(expected, self._last_offset)
            return self._found
        for batch in known:
            if self._left <= 0:
                break
            if of.has_gaps:
                if expected < batch.first_offset:
                    self._acquire_new(expected, batch.first_offset - 1)
                expected = batch.last_offset + 1
                if self._left <= 0:
                    break
            if not self._acquire_known(batch):
                self._left = 0
        if self._left > 0 and known[-1].last_offset < self._last_offset:
            self._acquire_new(known[-1].last_offset + 1, self._last_offset)
        if self._found:
            of.gaps_begin_at(self._found[-1].last_offset + 1)
        return self._found

    def _first_known(self, base_offset: int) -> int:
        """Return the first offset of the batch in flight that has an offset, or the offset itself."""
        floor = self._of.floor(base_offset)
        if floor is None:
            return max(base_offset, self._of.start_offset)
        return floor.first_offset if floor.last_offset >= base_offset else base_offset

    # Records in flight.

    def _acquire_known(self, batch: InFlightBatch) -> bool:
        """Acquire the available records of a batch in flight; return whether later ones may be acquired, too."""
        first_offset = self._spans[0].base_offset
        is_throttled = self._is_throttled(batch)
        if is_throttled and self._found:
            return False
        is_too_much = self._wanted.is_record_limit and len(batch) > self._left
        is_whole = batch.is_within(first_offset, self._last_offset) and not is_too_much and not is_throttled
        if batch.offsets is None:
            if not batch.delivery.is_available:
                return True
            if is_whole:
                self._take(batch.first_offset, batch.last_offset, batch.delivery)
                return True
        taken = self._acquire_offsets(batch)
        return not (is_throttled and taken)

    def _acquire_offsets(self, batch: InFlightBatch) -> int:
        """Acquire available records of a batch one by one; return how many."""
        count, count_max, limit, first = 0, self._of.delivery_count_max, self._left, len(self._found)
        offsets = batch.split()
        throttled_limit: int | None = None
        for offset, delivery in offsets.items():
            if offset < self._spans[0].base_offset or not delivery.is_available:
                continue
            if offset > self._last_offset or (count_max > 2 and delivery.count == count_max - 1 and count):
                break
            if delivery.count >= self._throttled_count and throttled_limit is None:
                throttled_limit = max(1, len(offsets) >> (delivery.count - self._throttled_count + 1))
            self._take(offset, offset, delivery)
            self._join(first)
            count += 1
            is_last_time = count_max > 2 and delivery.count == count_max
            if is_last_time or count == throttled_limit or (self._wanted.is_record_limit and count == limit):
                break
        return count

    def _join(self, first: int) -> None:
        """Join the last range to the one before it, if they follow each other; ``first``: leave earlier ones alone."""
        if len(self._found) > first + 1:
            before, last = self._found[-2:]
            if (before.last_offset + 1, before.delivery_count) == (last.first_offset, last.delivery_count):
                self._found[-2:] = [before._replace(last_offset=last.last_offset)]

    def _is_throttled(self, batch: InFlightBatch) -> bool:
        if batch.offsets is None:
            return batch.delivery.is_available and batch.delivery.count >= self._throttled_count
        first_offset = self._spans[0].base_offset
        counts = (
            delivery.count
            for offset, delivery in batch.offsets.items()
            if first_offset <= offset <= self._last_offset and delivery.is_available
        )
        return max(counts, default=0) >= self._throttled_count

    def _take(self, first_offset: int, last_offset: int, delivery: Delivery) -> None:
        delivery.acquire(self._wanted.member_id, self._wanted.lock_end_ms)
        self._of.note_lock(self._wanted.lock_end_ms)
        self._note(Acquired(first_offset, last_offset, delivery.count))

    def _note(self, acquired: Acquired) -> None:
        self._found.append(acquired)
        self._left -= acquired.last_offset - acquired.first_offset + 1

    # New records.

    def _acquire_new(self, first_offset: int, last_offset: int) -> None:
        of = self._of
        if not len(of) and of.end_offset > first_offset:
            first_offset = of.end_offset
        if self._left < last_offset - first_offset + 1:
            end = self._end_of_batch(first_offset + self._left - 1)
            last_offset = min(end, last_offset) if of.has_gaps else end
        if self._wanted.is_record_limit:
            acquired_to = self._put_limited(first_offset, last_offset)
        else:
            acquired_to = last_offset
            for first, last in self._cut(first_offset, last_offset):
                self._put(first, last)
        if of.first.first_offset == first_offset:
            of.start_offset = first_offset
        of.end_offset = max(of.end_offset, last_offset)
        of.gaps_begin_at(acquired_to + 1)

    def _end_of_batch(self, offset: int) -> int:
        """Return the last offset of the log's batch that has an offset."""
        found = [span for span in self._spans if span.base_offset <= offset]
        return max(offset, found[-1].last_offset) if found else offset

    def _cut(self, first_offset: int, last_offset: int) -> list[tuple[int, int]]:
        """Cut a range where batches of the log begin, so that each part has at least the batch size."""
        parts = []
        if last_offset - first_offset + 1 > self._wanted.batch_size:
            for span in self._spans:
                if span.base_offset > last_offset:
                    break
                if span.base_offset - first_offset >= self._wanted.batch_size:
                    parts.append((first_offset, span.base_offset - 1))
                    first_offset = span.base_offset
        return [*parts, (first_offset, last_offset)]

    def _put(self, first_offset: int, last_offset: int) -> None:
        batch = InFlightBatch(first_offset, last_offset, Delivery(RecordState.AVAILABLE, 0))
        self._of.put(batch)
        self._take(first_offset, last_offset, batch.delivery)

    def _put_limited(self, first_offset: int, last_offset: int) -> int:
        """Put a batch in flight, of which no more records are acquired than wanted; return the last one that is."""
        acquired_to = min(last_offset, first_offset + self._left - 1)
        if acquired_to == last_offset:
            self._put(first_offset, last_offset)
            return acquired_to
        batch = InFlightBatch(first_offset, last_offset, Delivery(RecordState.AVAILABLE, 0))
        for offset, delivery in batch.split().items():
            if offset <= acquired_to:
                delivery.acquire(self._wanted.member_id, self._wanted.lock_end_ms)
        self._of.put(batch)
        self._of.note_lock(self._wanted.lock_end_ms)
        self._of.is_released = True
        self._note(Acquired(first_offset, acquired_to, 1))
        return acquired_to


def without(acquired: Sequence[Acquired], spans: Sequence[Span]) -> list[Acquired]:
    """Return what is acquired without the records of batches that belong to aborted transactions."""
    for span in spans:
        acquired = [
            part
            for one in acquired
            for part in (
                one._replace(last_offset=min(one.last_offset, span.base_offset - 1)),
                one._replace(first_offset=max(one.first_offset, span.last_offset + 1)),
            )
            if part.first_offset <= part.last_offset
        ]
    return list(acquired)
