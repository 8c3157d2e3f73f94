"""Where a consumer goes that has no offset, or an invalid one (KIP-842, tables A3 and A4).

An answer is an offset, or None: the user is to be told that there is none. `start` and `end` are a log's bounds at the
moment of the reset: the first offset that is there, and the one after the last that this consumer may read (the last
stable offset for read_committed).
"""

from __future__ import annotations

from dataclasses import dataclass

from kproto.client.core.settings import OnInvalidOffset, OnNoInitialOffset, Reset, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The bounds of a partition's log at one moment."""

    start: int
    end: int

    def __post_init__(self) -> None:
        assert 0 <= self.start <= self.end, self

    def holds(self, position: int) -> bool:
        """Whether a consumer can be at this position; at the end it waits for the next record."""
        return self.start <= position <= self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """What there is to know of a partition for which the group has no offset.

    Expired offsets and those of deleted groups can't be told from ones never committed.
    """

    log: Log
    group_starts: bool
    """`group_start.starts` of its topic; else the partition came later."""
    first_timestamp_ms: int | None = None
    """Of the first record that is there; None: it has no record, or its records have no timestamp."""
    group_start_ms: int | None = None
    """`group_start.earliest`; only safe_latest looks at it."""


def without_offset(settings: Settings, facts: Missing) -> int | None:
    """Table A3: no committed offset, and no position set by the user."""
    match settings.on_no_initial_offset:
        case OnNoInitialOffset.LATEST:
            return facts.log.end
        case OnNoInitialOffset.EARLIEST:
            return facts.log.start
        case OnNoInitialOffset.LATEST_ON_START if facts.group_starts:
            return facts.log.end
        case OnNoInitialOffset.EARLIEST_ON_START if facts.group_starts:
            return facts.log.start
        case OnNoInitialOffset.SAFE_LATEST:
            return facts.log.end if _is_older_than_group(facts) else facts.log.start
        case _:
            return _fall_back(settings.reset, facts.log)


def out_of_range(settings: Settings, log: Log, position: int) -> int | None:
    """Table A4: the broker refused this position; `log` was asked for afterwards.

    A log that holds the position by then is simply tried again. That a log's start has moved past the answer before
    the next fetch starts this again with the new bounds, so it comes to an end when the log stops to move.
    """
    if log.holds(position):
        return position
    if settings.on_invalid_offset is OnInvalidOffset.NEAREST:
        return log.start if position < log.start else log.end
    return _fall_back(settings.reset, log)


def truncated(settings: Settings, log: Log, position: int, diverged_at: int | None) -> int | None:
    """The log was found to be another one than was read (KIP-320), from `diverged_at` on.

    None as `diverged_at`: the broker knows of no common part, and only the bounds are left to go by.
    """
    if diverged_at is None or not log.holds(diverged_at):
        return out_of_range(settings, log, position)
    return diverged_at


def _is_older_than_group(facts: Missing) -> bool:
    """A record of the very millisecond counts as new: that can repeat records, but not lose them."""
    if facts.first_timestamp_ms is None or facts.group_start_ms is None:
        return facts.group_starts
    return facts.first_timestamp_ms < facts.group_start_ms


def _fall_back(reset: Reset, log: Log) -> int | None:
    match reset:
        case Reset.LATEST:
            return log.end
        case Reset.EARLIEST:
            return log.start
        case Reset.NONE:
            return None
