"""Which log is compacted next: the one with the most to gain, if that is enough (`min.cleanable.dirty.ratio`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.storage.partition_log import PartitionLog


def dirty_size(log: PartitionLog) -> tuple[int, float]:
    """Return how much of a log's closed segments was written since it was compacted last: in bytes, and which part."""
    closed = log.closed_segments()
    total = sum(segment.size for segment in closed)
    dirty = sum(segment.size for segment in closed if segment.base_offset >= log.first_dirty_offset)
    return dirty, dirty / total if total else 0.0


def dirtiest(logs: Iterable[PartitionLog], min_dirty_ratio: float) -> PartitionLog | None:
    """Return the log that is compacted next; None if none has to be.

    Of those above the ratio, the one with the most dirty bytes; Kafka takes the one with the highest ratio, and would
    go from one small log to the next while a large one grows.
    """
    sizes = [(*dirty_size(log), log) for log in logs]
    worth = [(dirty, log) for dirty, ratio, log in sizes if dirty and ratio >= min_dirty_ratio]
    return max(worth, key=lambda pair: pair[0])[1] if worth else None
