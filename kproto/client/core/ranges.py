"""The ranges of a partition that are to be caught up with, and how they come about (KIP-333).

A consumer that comes (back) to a partition whose committed offset C is behind the log's end E makes E the start of its
head, and catches up with ``[C, E)``. If it dies meanwhile, what was left of that range and what its head had read but
not handed on are both to be caught up with; and so on. All that such a past leaves behind is where the ranges meet:
``[C, E)`` is one range, or is divided at those places.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kproto.client.core.reset import Log

OPEN = -1
"""The end of the head's range, which has none."""


@dataclass(frozen=True, slots=True)
class Range:
    """The offsets from `start` up to, not including, `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do with a partition when it is assigned."""

    ranges: tuple[Range, ...]
    """To catch up with, in this order; none: the partition is read as always."""
    head: int
    """Where the head starts."""
    keep: tuple[Range, ...]
    """What the checkpoints are to say: the range of number N is at index N, and the head's is the last."""
    drop: tuple[int, ...]
    """The numbers of checkpoints that are to go."""


def plan(*, position: int, log: Log, known: dict[int, Range], merge: bool) -> Plan:
    """Decide what to catch up with.

    Args:
        position: the group's committed offset, or what it was reset to; it is within the log.
        log: the partition's bounds now.
        known: the checkpoints of earlier owners, by number, of whatever state: what is before `position` or after the
            log's end has no meaning any more, and a gap between them is closed.
        merge: whether adjacent ranges become one.
    """
    assert log.holds(position), (position, log)
    if position == log.end:
        return Plan(ranges=(), head=position, keep=(), drop=tuple(known))
    places = {place for each in known.values() for place in (each.start, each.end) if position < place < log.end}
    edges = [position, *([] if merge else sorted(places)), log.end]
    ranges = tuple(Range(start, end) for start, end in pairwise(edges))
    check(ranges, log.end)
    keep = (*ranges, Range(log.end, OPEN))
    return Plan(ranges=ranges, head=log.end, keep=keep, drop=tuple(n for n in known if n >= len(keep)))


def check(ranges: Sequence[Range], head: int) -> None:
    """Invariant I2: sorted, disjoint, contiguous, and ending where the head starts."""
    assert all(each.start < each.end for each in ranges), ranges
    nexts = [each.start for each in ranges[1:]] + [head]
    assert not ranges or [each.end for each in ranges] == nexts, (ranges, head)


def clip(ranges: Iterable[Range], start: int) -> tuple[Range, ...]:
    """What is left of these ranges from an offset on."""
    return tuple(Range(max(each.start, start), each.end) for each in ranges if each.end > start)
