"""The start positions of assigned partitions: the offset resets of KIP-842, then the catch-up ranges of KIP-333."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, field

from confluent_kafka import TopicPartition

from kproto.client.broker_queries import BrokerQueries, now_ms
from kproto.client.configuration import Configuration
from kproto.client.decisions.group_start import UNKNOWN_START_MS, group_starts, known_start_ms, start_metadata
from kproto.client.decisions.resets import (
    UncommittedPartition,
    position_out_of_range,
    position_without_offset,
    reason_without_offset,
)
from kproto.client.decisions.settings import OnNoInitialOffset
from kproto.client.parallel_catch_up import ParallelCatchUp
from kproto.client.topic_partitions import PartitionKey

logger: logging.Logger = logging.getLogger("kproto.client")


@dataclass(slots=True)
class StartPositions:
    """The decision about assigned partitions; each partition is in one of the first four fields."""

    at: dict[PartitionKey, TopicPartition] = field(default_factory=dict)
    """The start position: a committed offset with its leader epoch, by which librdkafka detects a truncated log
    (KIP-320), or a reset position."""
    no_offset: list[PartitionKey] = field(default_factory=list)
    """No committed offset, and no setting names a reset position."""
    out_of_range: list[PartitionKey] = field(default_factory=list)
    """The committed offset is out of range, and no setting names a reset position."""
    undecided: list[PartitionKey] = field(default_factory=list)
    """A query failed; the decision is repeated."""
    to_commit: dict[PartitionKey, int] = field(default_factory=dict)
    """Reset positions to commit at once (CK-15), also of partitions that other members own; see `InitialPositions`."""

    @property
    def blocked(self) -> list[PartitionKey]:
        """The partitions without a start position."""
        return [*self.undecided, *self.no_offset, *self.out_of_range]


class InitialPositions:
    """Queries the data that the decisions of KIP-842 and KIP-333 need, and makes the decisions.

    At a group start, the first member that sees the start decides and commits for ALL partitions of the topic.
    Otherwise a member that joins at the same time would see committed offsets of the first member's partitions only,
    and would take its own partitions for partitions that were added later.
    """

    def __init__(self, queries: BrokerQueries, configuration: Configuration, parallel: ParallelCatchUp | None) -> None:
        self._queries = queries
        self._settings = configuration.settings
        self._is_safe_latest = self._settings.on_no_initial_offset is OnNoInitialOffset.SAFE_LATEST
        self._parallel = parallel
        self._own_start_ms = now_ms()
        self._group_start_ms: int | None = None

    @property
    def metadata(self) -> str | None:
        """The metadata of this group's commits if the user gives none."""
        return None if self._group_start_ms is None else start_metadata(self._group_start_ms)

    def decide(self, partitions: Collection[PartitionKey], limit_s: float) -> StartPositions:
        """Decide the start positions, and start the catch-up of partitions that are behind.

        Raises:
            KafkaException: a query failed or exceeded its limit; no catch-up is started.
        """
        starts = StartPositions()
        topics: dict[str, list[PartitionKey]] = {}
        for partition in partitions:
            topics.setdefault(partition[0], []).append(partition)
        committed: set[PartitionKey] = set()
        for topic, assigned in topics.items():
            committed |= self._decide_topic(topic, assigned, limit_s, starts)
        if self._parallel is not None and committed:
            self._start_catch_up(self._parallel, committed, limit_s, starts)
        return starts

    def _decide_topic(
        self, topic: str, assigned: list[PartitionKey], limit_s: float, starts: StartPositions
    ) -> set[PartitionKey]:
        """Decide for one topic; return the assigned partitions that have a committed offset."""
        depends_on_group_start = self._settings.on_no_initial_offset.depends_on_group_start
        of_topic = self._queries.partitions_of_topic(topic, limit_s) if depends_on_group_start else []
        partitions = list(dict.fromkeys([*assigned, *of_topic]))
        committed = self._queries.committed(partitions, limit_s)
        starts.at.update({each: committed[each] for each in assigned if each in committed})
        if self._is_safe_latest:
            self._note_group_start(known_start_ms(each.metadata for each in committed.values()))
        missing = [each for each in assigned if each not in committed]
        if missing:
            at_group_start = depends_on_group_start and group_starts(
                committed[each].offset if each in committed else None for each in partitions
            )
            resets = self._reset(partitions if at_group_start else missing, at_group_start, limit_s)
            for partition in missing:
                offset, reason = resets[partition]
                result = "no reset policy" if offset is None else f"reset to {offset}"
                logger.info("%s [%d] has no committed offset: %s (%s)", *partition, result, reason)
                if offset is None:
                    starts.no_offset.append(partition)
                else:
                    starts.at[partition] = TopicPartition(*partition, offset)
            if depends_on_group_start and self._settings.commit_reset_position:
                # Another member may have committed its own partitions meanwhile: those commits stay.
                not_assigned = [each for each in resets if each not in assigned]
                by_others = self._queries.committed(not_assigned, limit_s) if not_assigned else {}
                starts.to_commit.update(
                    {each: at for each, (at, _) in resets.items() if at is not None and each not in by_others}
                )
        return committed.keys() & set(assigned)

    def _reset(
        self, partitions: list[PartitionKey], at_group_start: bool, limit_s: float
    ) -> dict[PartitionKey, tuple[int | None, str]]:
        """Return the position of each partition without a committed offset, and the reason."""
        bounds = self._queries.log_bounds(partitions, limit_s)
        is_older: dict[PartitionKey, bool] = {}
        if self._is_safe_latest and at_group_start:
            started_ms = self._start_of_group(limit_s)
            with_records = [each for each in partitions if bounds[each].start < bounds[each].end]
            is_older = self._queries.first_record_is_older(with_records, started_ms, limit_s) if with_records else {}
        resets: dict[PartitionKey, tuple[int | None, str]] = {}
        for each in partitions:
            uncommitted = UncommittedPartition(
                bounds=bounds[each], group_starts=at_group_start, is_older_than_group=is_older.get(each)
            )
            position = position_without_offset(self._settings, uncommitted)
            resets[each] = position, reason_without_offset(self._settings, uncommitted)
        return resets

    def _start_of_group(self, limit_s: float) -> int:
        """Return the start time of the group: this member's if the group has no committed offset at all."""
        if self._group_start_ms is None:
            metadata = self._queries.group_metadata(limit_s)
            known_ms = known_start_ms(metadata)
            if metadata and known_ms is None:
                logger.warning(
                    "the start time of the group is lost, as others have committed its offsets: topics without a "
                    "committed offset are read from their first record"
                )
                known_ms = UNKNOWN_START_MS
            self._note_group_start(self._own_start_ms if known_ms is None else known_ms)
        assert self._group_start_ms is not None
        return self._group_start_ms

    def _note_group_start(self, time_ms: int | None) -> None:
        known = [each for each in (self._group_start_ms, time_ms) if each is not None]
        self._group_start_ms = min(known, default=None)

    def _start_catch_up(
        self, parallel: ParallelCatchUp, committed: set[PartitionKey], limit_s: float, starts: StartPositions
    ) -> None:
        """Move the start of consumer 1 to the log end; a committed offset out of range is reset before (CK-52)."""
        bounds = self._queries.log_bounds(committed, limit_s)
        positions: dict[PartitionKey, TopicPartition] = {}
        for partition in sorted(committed):
            start = starts.at.pop(partition)
            offset = position_out_of_range(self._settings, bounds[partition], start.offset)
            if offset is None:
                starts.out_of_range.append(partition)
            else:
                positions[partition] = start if offset == start.offset else TopicPartition(*partition, offset)
        for partition, consumer1_start in parallel.start(positions, bounds).items():
            # Without a catch-up, the committed offset keeps its leader epoch.
            is_same = positions[partition].offset == consumer1_start
            starts.at[partition] = positions[partition] if is_same else TopicPartition(*partition, consumer1_start)
