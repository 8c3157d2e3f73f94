"""Which log is compacted next: the one with the most to gain, if that is enough (`min.cleanable.dirty.ratio`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.storage.partition_log import PartitionLog


def dirty_ratio(log: PartitionLog) -> float:
    """Return which part of a log's closed segments was written since it was compacted last; 0 if there are none."""
    closed = log.closed_segments()
    total = sum(segment.size for segment in closed)
    dirty = sum(segment.size for segment in closed if segment.base_offset >= log.first_dirty_offset)
    return dirty / total if total else 0.0


def dirtiest(logs: Iterable[PartitionLog], min_dirty_ratio: float) -> PartitionLog | None:
    """Return the log that is compacted next; None if none has to be."""
    ratio, log = max(((dirty_ratio(log), log) for log in logs), key=lambda pair: pair[0], default=(0.0, None))
    return log if ratio > 0 and ratio >= min_dirty_ratio else None
