"""Retention: which records are deleted because of their age, the size of their partition, or the limit on memory.

Theory of operation. As in Kafka, records are deleted by the segment. A segment is deleted if its newest record is older
than `retention.ms`, or if the partition has at least `retention.bytes` without it. A partition on disk has segment
files. A partition in memory has none; its batches are divided at the same places as files, by `segment.bytes` and
`segment.ms`. A segment whose records have no timestamp is as old as the first check that has seen all of it; a real
broker takes the time at which its file was changed.
"""

from __future__ import annotations

from heapq import heapify, heapreplace
from typing import TYPE_CHECKING, NamedTuple

from kproto.records.record import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from kproto_server.partition_log.partition_data import PartitionData

UNLIMITED = -1
UNLIMITED_BYTES = 1 << 62
STEP_BATCHES = 5000
"""Batches that are looked at in one step: 3 to 5 ms."""
CHECK_FRACTION = 16
"""Memory is checked each time that one part in so many of the limit was written."""
RETAINED_SHARE = 0.9
"""The share of the limit, or of a partition, that a deletion leaves."""


class SegmentSummary(NamedTuple):
    """What retention needs to know of a segment."""

    next_offset: int
    """The offset after the last record."""
    size_bytes: int
    max_timestamp: int


class RetentionConfig(NamedTuple):
    """The topic configs of retention; -1 means unlimited."""

    retention_ms: int = UNLIMITED
    retention_bytes: int = UNLIMITED
    segment_bytes: int = 1 << 30
    segment_ms: int = 1 << 62


class SegmentBuilder:
    """Divides the batches of a partition into segments; `add` gets them in their order.

    A file that has batches of more than `segment.ms` is several segments: a real broker closes the file before a batch
    whose greatest timestamp is so much greater than that of the first batch.
    """

    def __init__(self, config: RetentionConfig) -> None:
        self._config = config
        self._first_timestamp = NO_TIMESTAMP
        self._file = 0
        self.newest: SegmentSummary | None = None

    def add(self, last_offset: int, size: int, timestamp: int, file: int = 0) -> SegmentSummary | None:
        """Add a batch by its last offset, size, greatest timestamp and segment file; return the segment that ends
        before it, if one does."""
        newest = self.newest
        if (
            newest is None
            or file != self._file
            or newest.size_bytes + size > self._config.segment_bytes
            or (0 <= self._first_timestamp < timestamp - self._config.segment_ms)
        ):
            self.newest = SegmentSummary(last_offset + 1, size, timestamp)
            self._first_timestamp, self._file = timestamp, file
            return newest
        size_bytes = newest.size_bytes + size
        self.newest = SegmentSummary(last_offset + 1, size_bytes, max(newest.max_timestamp, timestamp))
        return None


def expired_end(data: PartitionData, config: RetentionConfig, now_ms: int) -> Generator[int, None, int]:
    """Return the offset after the segments that are deleted; 0 if there are none. Yields the number of batches before
    it looks at them.

    Segments below the log start offset always are. A batch that shows that its segment is retained ends the search, so
    it takes the time of the expired batches only. Batches may be appended and deleted meanwhile.

    Raises:
        DecodeError, OSError: while iterating: a partition on disk cannot be read.
    """
    yield from data.index_steps()
    data.refresh_index()
    data.note_time(now_ms)
    segments = SegmentBuilder(config if data.is_in_memory else config._replace(segment_bytes=UNLIMITED_BYTES))
    excess = data.size_bytes - config.retention_bytes
    end_offset = next_offset = 0
    count = 1

    def is_expired(segment: SegmentSummary) -> bool:
        timestamp = segment.max_timestamp
        if timestamp < 0 <= config.retention_ms:
            timestamp = data.time_of_append(segment.next_offset, now_ms)
        is_too_old = 0 <= config.retention_ms < now_ms - timestamp
        is_too_much = config.retention_bytes >= 0 and excess >= segment.size_bytes
        return is_too_old or is_too_much or segment.next_offset <= data.start_offset

    while rows := data.rows_from(next_offset, count):
        yield len(rows)
        for row in rows:
            ended = segments.add(*row)
            if ended is not None:
                if not is_expired(ended):
                    return end_offset
                end_offset = ended.next_offset
                excess -= ended.size_bytes
            newest = segments.newest
            if newest is not None and newest.max_timestamp >= 0 and not is_expired(newest):
                return end_offset
        next_offset, count = rows[-1][0] + 1, min(count * 10, STEP_BATCHES)
    newest = segments.newest
    return newest.next_offset if newest is not None and is_expired(newest) else end_offset


class MemoryLimit:
    """The limit on the records of all partitions in memory. The largest partitions lose their oldest batches first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._unchecked_bytes = 0

    def add(self, size: int) -> bool:
        """Count an append of ``size`` bytes; return whether `drop_excess` is due."""
        self._unchecked_bytes += size
        return self._unchecked_bytes * CHECK_FRACTION > self._max_bytes

    def drop_excess(self, partitions: Iterable[PartitionData]) -> None:
        """Drop the oldest batches of the largest partitions, if all together exceed the limit."""
        self._unchecked_bytes = 0
        with_records = [data for data in partitions if data.size_bytes]
        total = sum(data.size_bytes for data in with_records)
        if total <= self._max_bytes:
            return
        target = int(self._max_bytes * RETAINED_SHARE)
        by_size = [(-data.size_bytes, index) for index, data in enumerate(with_records)]
        heapify(by_size)
        while total > target:
            # A tenth at a time, so that several partitions of about the same size all lose some.
            index = by_size[0][1]
            largest = with_records[index]
            target_of_largest = int(largest.size_bytes * RETAINED_SHARE)
            while total > target and largest.size_bytes > target_of_largest:
                total -= largest.drop_oldest()
            heapreplace(by_size, (-largest.size_bytes, index))
