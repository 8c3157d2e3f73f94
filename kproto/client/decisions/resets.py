"""The offset resets of KIP-842: the position without a committed offset, and after an invalid offset.

Each function returns an offset, or None: the settings name no position and the user gets an exception.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from kproto.client.decisions.settings import AutoOffsetReset, OnInvalidOffset, OnNoInitialOffset, Settings

TRUNCATED_AT = re.compile(r"log truncation detected at .*broker end offset is (\d+)")
"""librdkafka's error text after a truncation (KIP-320): the divergence offset stands nowhere else."""


class ResetReason(Enum):
    """Why a partition has no position, or an invalid one."""

    NO_COMMITTED_OFFSET = "no_committed_offset"
    """Also after the offset has expired, or the group was deleted."""
    OUT_OF_RANGE = "out_of_range"
    """The position is outside the log."""
    TRUNCATION = "truncation"
    """The log was truncated before the position (KIP-320)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBounds:
    """The bounds of a partition's log at one moment."""

    start: int
    """Log start offset."""
    end: int
    """High watermark; the last stable offset for ``isolation.level=read_committed``."""

    def __post_init__(self) -> None:
        assert 0 <= self.start <= self.end, self

    def contains(self, position: int) -> bool:
        """Return whether a consumer can fetch from this position. `end` counts: the next record gets that offset."""
        return self.start <= position <= self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class UncommittedPartition:
    """A partition without a committed offset.

    An expired offset and an offset of a deleted group look the same as an offset that was never committed.
    """

    bounds: LogBounds
    group_starts: bool
    """Whether the group starts with the topic; if not, the partition was added later."""
    is_older_than_group: bool | None = None
    """Whether the first available record is older than the group; None: no record, or records without timestamps. Only
    ``safe_latest`` uses it, and only if the group starts with the topic."""


def position_without_offset(settings: Settings, partition: UncommittedPartition) -> int | None:
    """Return the position in a partition without a committed offset, not set by the user."""
    bounds = partition.bounds
    match settings.on_no_initial_offset:
        case OnNoInitialOffset.LATEST:
            return bounds.end
        case OnNoInitialOffset.EARLIEST:
            return bounds.start
        case OnNoInitialOffset.LATEST_ON_START if partition.group_starts:
            return bounds.end
        case OnNoInitialOffset.EARLIEST_ON_START if partition.group_starts:
            return bounds.start
        case OnNoInitialOffset.SAFE_LATEST:
            return bounds.end if _is_known_to_be_old(partition) else bounds.start
        case _:
            return _auto_offset_reset(settings, bounds)


def position_out_of_range(settings: Settings, bounds: LogBounds, position: int) -> int | None:
    """Return the position after a Fetch failed with OFFSET_OUT_OF_RANGE.

    The bounds are queried after the error. A position that is in range by then is fetched again. If retention passes
    the returned position before the next Fetch, that Fetch fails too and the caller repeats with new bounds; this ends
    when the log start stops moving.
    """
    if bounds.contains(position):
        return position
    if settings.on_invalid_offset is OnInvalidOffset.NEAREST:
        return bounds.start if position < bounds.start else bounds.end
    return _auto_offset_reset(settings, bounds)


def position_after_error(settings: Settings, bounds: LogBounds, position: int, error_text: str) -> int | None:
    """Return the position after librdkafka's ``_AUTO_OFFSET_RESET`` error.

    The error may be about an earlier position: librdkafka drops it neither at a seek nor at an assignment if it waits
    behind records of another partition (its version is 0, and rd_kafka_q_purge_toppar_version stops at the first op of
    another partition). So the position decides, not the error's offset.

    Truncation detection comes first (CK-35): the consumer continues at the offset where the log diverged. The rule for
    invalid offsets applies only if librdkafka reports no such offset, or if the log does not contain that offset.

    Args:
        position: the partition's current position.
    """
    truncated = TRUNCATED_AT.search(error_text)
    if truncated is None:
        return position_out_of_range(settings, bounds, position)
    diverged_at = int(truncated[1])
    if bounds.contains(diverged_at):
        return min(position, diverged_at) if bounds.contains(position) else diverged_at
    return position_out_of_range(settings, bounds, max(position, diverged_at + 1))


def reason_without_offset(settings: Settings, partition: UncommittedPartition) -> str:
    """Return why `position_without_offset` chooses its position, for people."""
    strategy = settings.on_no_initial_offset
    if not strategy.depends_on_group_start:
        decides = settings.auto_offset_reset if strategy is OnNoInitialOffset.NONE else strategy
        return f"the setting is {decides.value}"
    if not partition.group_starts:
        return "the group has committed offsets of other partitions of the topic, so the partition was added later"
    if strategy is not OnNoInitialOffset.SAFE_LATEST or partition.is_older_than_group is None:
        return "the group starts with the topic"
    if partition.is_older_than_group:
        return "the group starts with the topic, and the first record is older than the group"
    return "the group starts with the topic, and no record is known to be older than the group"


def reason_after_error(settings: Settings, bounds: LogBounds, error_text: str) -> tuple[ResetReason, str]:
    """Return why `position_after_error` chooses its position; the text is for people."""
    truncated = TRUNCATED_AT.search(error_text)
    if truncated is not None and bounds.contains(int(truncated[1])):
        return ResetReason.TRUNCATION, f"the log was truncated at {truncated[1]}"
    nearest = settings.on_invalid_offset is OnInvalidOffset.NEAREST
    decides = OnInvalidOffset.NEAREST.value if nearest else settings.auto_offset_reset.value
    text = f"the log starts at {bounds.start} and ends at {bounds.end}, the setting is {decides}"
    return ResetReason.OUT_OF_RANGE if truncated is None else ResetReason.TRUNCATION, text


def _is_known_to_be_old(partition: UncommittedPartition) -> bool:
    # A producer chooses the timestamps of its records, so an old one does not show that an added partition existed
    # before the group.
    return partition.group_starts and partition.is_older_than_group is not False


def _auto_offset_reset(settings: Settings, bounds: LogBounds) -> int | None:
    match settings.auto_offset_reset:
        case AutoOffsetReset.LATEST:
            return bounds.end
        case AutoOffsetReset.EARLIEST:
            return bounds.start
        case AutoOffsetReset.NONE:
            return None
