"""Retention: which records are deleted because of their age, the size of their partition, or the limit on memory.

Theory of operation. As in Kafka, records are deleted by the segment. A segment is deleted if its newest record is older
than `retention.ms`, or if the partition has at least `retention.bytes` without it. A partition on disk has segment
files. A partition in memory has none; its batches are divided at the same places as files, by `segment.bytes` and
`segment.ms`.
"""

from __future__ import annotations

from heapq import heapify, heapreplace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kproto_server.partition_log.partition_data import PartitionData

UNLIMITED = -1
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


class MemorySegments:
    """The segments of a partition in memory, of which `add` gets the batches in their order."""

    def __init__(self, config: RetentionConfig) -> None:
        self._config = config
        self._first_timestamp = 0
        self.segments: list[SegmentSummary] = []

    def add(self, last_offset: int, size: int, timestamp: int) -> None:
        """Add a batch by its last offset, size and greatest timestamp."""
        newest = self.segments[-1] if self.segments else None
        if (
            newest is None
            or newest.size_bytes + size > self._config.segment_bytes
            or timestamp - self._first_timestamp > self._config.segment_ms
        ):
            self.segments.append(SegmentSummary(last_offset + 1, size, timestamp))
            self._first_timestamp = timestamp
        else:
            self.segments[-1] = SegmentSummary(
                last_offset + 1, newest.size_bytes + size, max(newest.max_timestamp, timestamp)
            )


def memory_segments(batches: Iterable[tuple[int, int, int]], config: RetentionConfig) -> list[SegmentSummary]:
    """Return the segments of a partition in memory, from last offset, size and greatest timestamp of each batch."""
    found = MemorySegments(config)
    for batch in batches:
        found.add(*batch)
    return found.segments


def expired_count(segments: Sequence[SegmentSummary], now_ms: int, start_offset: int, config: RetentionConfig) -> int:
    """Return how many of the oldest segments are deleted; segments below the log start offset always are."""
    count = 0
    excess = sum(segment.size_bytes for segment in segments) - config.retention_bytes
    for segment in segments:
        is_too_old = 0 <= config.retention_ms < now_ms - segment.max_timestamp
        is_too_much = config.retention_bytes >= 0 and excess >= segment.size_bytes
        if not is_too_old and not is_too_much and segment.next_offset > start_offset:
            break
        excess -= segment.size_bytes
        count += 1
    return count


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
