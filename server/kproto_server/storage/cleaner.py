"""Choice of the next log to compact: the log with the most dirty bytes above `min.cleanable.dirty.ratio`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.storage.partition_log import PartitionLog


def dirty_size(log: PartitionLog) -> tuple[int, float]:
    """Return the dirty bytes in the closed segments of a log, and their share of all bytes there.

    Dirty bytes are those written since the last compaction of the log.
    """
    closed = log.closed_segments()
    total = sum(segment.size for segment in closed)
    dirty = sum(segment.size for segment in closed if segment.base_offset >= log.first_dirty_offset)
    return dirty, dirty / total if total else 0.0


def dirtiest(logs: Iterable[tuple[PartitionLog, float]]) -> PartitionLog | None:
    """Return the next log to compact, of logs with their `min.cleanable.dirty.ratio`; None if all are below it.

    Kafka takes the log with the highest ratio. kproto takes the one with the most dirty bytes, so that a series of
    small logs cannot delay the compaction of a large one that grows meanwhile.
    """
    sizes = [(*dirty_size(log), min_ratio, log) for log, min_ratio in logs]
    candidates = [(dirty, log) for dirty, ratio, min_ratio, log in sizes if dirty and ratio >= min_ratio]
    return max(candidates, key=lambda pair: pair[0])[1] if candidates else None
