"""The events of a consumer, for the user's callback, the logger and the metrics.

``str`` of an event is a line for people. Offsets are those of the partition; numbers of records are numbers of offsets,
so they also count offsets without a record: of compacted or deleted records and of transaction markers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from kproto.client.decisions.catch_up_ranges import OPEN_END, OffsetRange
from kproto.client.decisions.resets import ResetReason


class StopReason(Enum):
    """Why a catch-up ended before its last record."""

    REVOKED = "revoked"
    """The partition is revoked, or the consumer is closed. The next owner continues."""
    CANCELLED = "cancelled"
    """The user seeks in the partition, or its position is reset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionReset:
    """The consumer continues at an offset that neither a commit nor the user names (KIP-842)."""

    topic: str
    partition: int
    from_offset: int | None
    """The user's position before, None if there is none: mostly as the group has no committed offset."""
    to_offset: int
    """The user's position from now on."""
    reason: ResetReason
    why: str
    """What decided: the setting and the log, for people."""
    records_skipped: int
    """From the position before, without one from the log start, up to `to_offset`; deleted records count too."""
    records_read_again: int
    """From `to_offset` up to the position before; a truncated log may have other records there by now."""

    def __str__(self) -> str:
        position = "the position" if self.from_offset is None else f"position {self.from_offset}"
        before = {
            ResetReason.NO_COMMITTED_OFFSET: "no committed offset",
            ResetReason.OUT_OF_RANGE: f"{position} is out of range",
            ResetReason.TRUNCATION: f"{position} is after a truncation",
        }[self.reason]
        skipped = f", {_records(self.records_skipped)} skipped" if self.records_skipped else ""
        again = f", {_records(self.records_read_again)} read again" if self.records_read_again else ""
        return f"{self.topic} [{self.partition}]: {before}, reset to {self.to_offset}{skipped}{again} ({self.why})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUpStarted:
    """A partition is assigned before its log end, and its older records are read in parallel (KIP-333)."""

    topic: str
    partition: int
    ranges: tuple[OffsetRange, ...]
    consumer1_start: int
    """The log end, where consumer 1 continues meanwhile."""
    records_left: int

    def __str__(self) -> str:
        return (
            f"{self.topic} [{self.partition}]: catches up with {_ranges(self.ranges)}, {_records(self.records_left)}; "
            f"consumer 1 at {self.consumer1_start}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUpProgress:
    """The state of a catch-up, about once a second."""

    topic: str
    partition: int
    ranges: tuple[OffsetRange, ...]
    """From the user's position on."""
    records_left: int
    records_per_s: float
    """Records delivered per second, in the last ten seconds."""
    seconds_left: float | None
    """At this rate; None if no record was delivered."""

    def __str__(self) -> str:
        time_left = "" if self.seconds_left is None else f", {self.seconds_left:.0f} s left"
        return (
            f"{self.topic} [{self.partition}]: {_records(self.records_left)} left in {_ranges(self.ranges)}, "
            f"{self.records_per_s:.0f} records/s{time_left}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUpDone:
    """All records of the catch-up ranges are delivered."""

    topic: str
    partition: int
    offset: int
    """The user's position: the end of the ranges."""
    records: int
    """The size of the ranges."""
    duration_s: float
    """Seconds since `CatchUpStarted`."""

    def __str__(self) -> str:
        return (
            f"{self.topic} [{self.partition}]: has caught up with {_records(self.records)} in {self.duration_s:.1f} s, "
            f"continues at {self.offset}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUpStopped:
    """A catch-up ended before its last record."""

    topic: str
    partition: int
    offset: int
    """The user's position."""
    records_left: int
    reason: StopReason

    def __str__(self) -> str:
        return (
            f"{self.topic} [{self.partition}]: the catch-up ends at {self.offset}, {_records(self.records_left)} left "
            f"({self.reason.value})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointWritten:
    """A broker has acknowledged the checkpoint of a range."""

    topic: str
    """Of the range, not of the checkpoint."""
    partition: int
    number: int
    range: OffsetRange
    """Its end is -1 for the range of consumer 1, which is open."""
    position: int
    """The position of the consumer that reads the range."""

    def __str__(self) -> str:
        return (
            f"{self.topic} [{self.partition}]: checkpoint {self.number} is written, "
            f"{_ranges([self.range])} at {self.position}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointDeleted:
    """A broker has acknowledged the tombstone of a checkpoint."""

    topic: str
    """Of the range, not of the checkpoint."""
    partition: int
    number: int

    def __str__(self) -> str:
        return f"{self.topic} [{self.partition}]: checkpoint {self.number} is deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointsRead:
    """A catch-up is divided where earlier owners divided it (``parallel.rebalance.merge=false``)."""

    topic: str
    partition: int
    ranges: tuple[OffsetRange, ...]
    """The divided catch-up, from the user's position on."""

    def __str__(self) -> str:
        return f"{self.topic} [{self.partition}]: the catch-up is divided into {_ranges(self.ranges)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointsFailed:
    """Checkpoints cannot be written. Records are neither lost nor skipped."""

    error: str
    retry_after_s: float | None
    """Seconds until the next attempt; None: checkpoints are given up."""

    def __str__(self) -> str:
        attempt = "given up" if self.retry_after_s is None else f"the next attempt is in {self.retry_after_s:.0f} s"
        return (
            f"cannot write checkpoints, {attempt}: the ranges of this consumer are not checkpointed; "
            f"records are neither lost nor skipped: {self.error}"
        )


Event: TypeAlias = (
    PositionReset
    | CatchUpStarted
    | CatchUpProgress
    | CatchUpDone
    | CatchUpStopped
    | CheckpointWritten
    | CheckpointDeleted
    | CheckpointsRead
    | CheckpointsFailed
)
"""What the callback ``event_cb`` gets."""


def position_reset(
    partition: tuple[str, int], before: int | None, after: int, reason: ResetReason, why: str, *, log_start: int = 0
) -> PositionReset:
    """Return the event of a reset.

    Args:
        before: the user's position, None if there is none.
        log_start: where the skipped records begin without a position.
    """
    counted_from = log_start if before is None else before
    return PositionReset(
        topic=partition[0],
        partition=partition[1],
        from_offset=before,
        to_offset=after,
        reason=reason,
        why=why,
        records_skipped=max(0, after - counted_from),
        records_read_again=max(0, counted_from - after),
    )


def size_of(ranges: Iterable[OffsetRange]) -> int:
    """Return the number of offsets in ranges that have an end."""
    return sum(each.end - each.start for each in ranges)


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count} records"


def _ranges(ranges: Iterable[OffsetRange]) -> str:
    return ", ".join(f"[{each.start}, {'' if each.end == OPEN_END else each.end})" for each in ranges) or "no range"
