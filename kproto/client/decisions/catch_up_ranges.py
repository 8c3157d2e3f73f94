"""The catch-up ranges of a partition (KIP-333).

A consumer that is assigned a partition with committed offset C below the log end E starts consumer 1 at E, and lets
consumer 2 read the catch-up range ``[C, E)``. After a crash, two ranges are left: the rest of ``[C, E)``, and the
offsets that consumer 1 read but the user did not get. N crashes leave up to N + 1 adjacent ranges. They differ only in
where they meet, so a plan needs nothing but the boundaries: ``[C, E)`` is one range (``merge``), or is divided at the
boundaries that earlier checkpoints recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kproto.client.decisions.resets import LogBounds

OPEN_END = -1
"""The end of consumer 1's range."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets from `start` up to, but not including, `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUpPlan:
    """The ranges of a partition at its assignment."""

    ranges: tuple[OffsetRange, ...]
    """The catch-up ranges in order; empty if the partition is in normal mode at once."""
    consumer1_start: int

    @property
    def checkpointed(self) -> tuple[OffsetRange, ...]:
        """The ranges to checkpoint: range number N at index N, consumer 1's open range last."""
        return (*self.ranges, OffsetRange(self.consumer1_start, OPEN_END)) if self.ranges else ()


def plan_catch_up(
    *, position: int, bounds: LogBounds, checkpointed: Mapping[int, OffsetRange], merge: bool
) -> CatchUpPlan:
    """Return the catch-up plan of a partition.

    Args:
        position: the committed offset, or the offset after its reset; within `bounds`.
        bounds: the log bounds now.
        checkpointed: the ranges that earlier owners checkpointed, by number. They may be stale: boundaries at or below
            `position` and at or above the log end are ignored, gaps between ranges are closed.
        merge: make one range of adjacent ranges (`parallel.rebalance.merge`).
    """
    assert bounds.contains(position), (position, bounds)
    if position == bounds.end:
        return CatchUpPlan(ranges=(), consumer1_start=position)
    offsets = {offset for each in checkpointed.values() for offset in (each.start, each.end)}
    inner = [] if merge else sorted(offset for offset in offsets if position < offset < bounds.end)
    ranges = tuple(OffsetRange(start, end) for start, end in pairwise([position, *inner, bounds.end]))
    assert_contiguous(ranges, bounds.end)
    return CatchUpPlan(ranges=ranges, consumer1_start=bounds.end)


def assert_contiguous(ranges: Sequence[OffsetRange], consumer1_start: int) -> None:
    """Assert invariant I2: the ranges are sorted, disjoint and contiguous, and end where consumer 1 starts."""
    assert all(each.start < each.end for each in ranges), ranges
    next_starts = [*(each.start for each in ranges[1:]), consumer1_start]
    assert not ranges or [each.end for each in ranges] == next_starts, (ranges, consumer1_start)


def clip(ranges: Iterable[OffsetRange], start: int) -> tuple[OffsetRange, ...]:
    """Return the parts of the ranges from `start` on."""
    return tuple(OffsetRange(max(each.start, start), each.end) for each in ranges if each.end > start)
