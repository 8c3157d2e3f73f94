"""How much of a topic's records is kept: by time, by size, and in memory by a bound for all (pure).

Theory of operation. Records go by the segment, as in Kafka: a segment is dropped when the newest record in it is older
than `retention.ms`, and the oldest segments as long as there is more than `retention.bytes` without them. Where records
are on disk segments are files; in memory they are runs of batches, ended by `segment.bytes` and `segment.ms` as files
would be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kproto_server.partition_log.partition_data import PartitionData

UNLIMITED = -1
BOUND_SHARE = 16
"""The bound is looked after whenever this part of it was written."""
KEPT_SHARE = 0.9
"""What is left of the bound, or of a partition, when something has to go."""


class Run(NamedTuple):
    """A segment."""

    next_offset: int
    """The first offset behind it."""
    size: int
    max_timestamp: int


class Limits(NamedTuple):
    """What a topic's configs say; -1: no limit."""

    retention_ms: int = UNLIMITED
    retention_bytes: int = UNLIMITED
    segment_bytes: int = 1 << 30
    segment_ms: int = 1 << 62


def runs_of(batches: Iterable[tuple[int, int, int]], limits: Limits) -> list[Run]:
    """Return batches (last offset, size, greatest timestamp) as segments."""
    runs: list[Run] = []
    first_timestamp = 0
    for last_offset, size, timestamp in batches:
        newest = runs[-1] if runs else None
        if (
            newest is None
            or newest.size + size > limits.segment_bytes
            or timestamp - first_timestamp > limits.segment_ms
        ):
            runs.append(Run(last_offset + 1, size, timestamp))
            first_timestamp = timestamp
        else:
            runs[-1] = Run(last_offset + 1, newest.size + size, max(newest.max_timestamp, timestamp))
    return runs


def expired_count(runs: Sequence[Run], now_ms: int, start_offset: int, limits: Limits) -> int:
    """Return how many of the oldest segments go."""
    count = 0
    excess = sum(run.size for run in runs) - limits.retention_bytes
    for run in runs:
        is_old = 0 <= limits.retention_ms < now_ms - run.max_timestamp
        is_too_much = limits.retention_bytes >= 0 and excess >= run.size
        if not is_old and not is_too_much and run.next_offset > start_offset:
            break
        excess -= run.size
        count += 1
    return count


class MemoryBound:
    """What all partitions may have in memory; the oldest batches of the largest go first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._unseen_bytes = 0

    def wrote(self, size: int) -> bool:
        """Take note of a write; return whether it is time to `keep`."""
        self._unseen_bytes += size
        return self._unseen_bytes * BOUND_SHARE > self._max_bytes

    def keep(self, partitions: Iterable[PartitionData]) -> None:
        """Drop what is too much."""
        self._unseen_bytes = 0
        known = [data for data in partitions if data.size_bytes]
        total = sum(data.size_bytes for data in known)
        if total <= self._max_bytes:
            return
        wanted = int(self._max_bytes * KEPT_SHARE)
        while total > wanted:
            largest = max(known, key=lambda data: data.size_bytes)
            enough = int(largest.size_bytes * KEPT_SHARE)
            while total > wanted and largest.size_bytes > enough:
                total -= largest.drop_oldest()
