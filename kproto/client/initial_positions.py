"""The start positions of assigned partitions: the offset resets of KIP-842, then the catch-up ranges of KIP-333."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from confluent_kafka import KafkaException, TopicPartition

from kproto.client import broker_queries
from kproto.client.background import Steps
from kproto.client.broker_queries import THREAD_QUERY_LIMIT_S, BrokerQueries, now_ms
from kproto.client.configuration import Configuration
from kproto.client.decisions.events import position_reset
from kproto.client.decisions.group_start import UNKNOWN_START_MS, group_starts, known_start_ms, start_metadata
from kproto.client.decisions.resets import (
    LogBounds,
    ResetReason,
    UncommittedPartition,
    position_out_of_range,
    position_without_offset,
    reason_after_error,
    reason_without_offset,
)
from kproto.client.decisions.settings import OnNoInitialOffset
from kproto.client.events import Publish
from kproto.client.parallel_catch_up import ParallelCatchUp
from kproto.client.topic_partitions import PartitionKey

logger: logging.Logger = logging.getLogger("kproto.client")


@dataclass(slots=True)
class StartPositions:
    """Decisions about assigned partitions; each partition is in one of the first four fields."""

    at: dict[PartitionKey, TopicPartition] = field(default_factory=dict)
    """The start position: a committed offset with its leader epoch, by which librdkafka detects a truncated log
    (KIP-320), or a reset position."""
    no_offset: list[PartitionKey] = field(default_factory=list)
    """No committed offset, and no setting names a reset position."""
    out_of_range: list[PartitionKey] = field(default_factory=list)
    """The committed offset is out of range, and no setting names a reset position."""
    unsupported: list[PartitionKey] = field(default_factory=list)
    """The brokers cannot serve the setting."""
    to_commit: dict[PartitionKey, int] = field(default_factory=dict)
    """Reset positions to commit at once (CK-15), also of partitions that other members own; see `InitialPositions`."""


class InitialPositions:
    """Queries the data that the decisions of KIP-842 and KIP-333 need, and makes the decisions.

    At a group start, the first member that sees the start decides and commits for ALL partitions of the topic.
    Otherwise a member that joins at the same time would see committed offsets of the first member's partitions only,
    and would take its own partitions for partitions that were added later.
    """

    def __init__(
        self, queries: BrokerQueries, configuration: Configuration, parallel: ParallelCatchUp | None, publish: Publish
    ) -> None:
        self._queries = queries
        self._publish = publish
        self._settings = configuration.settings
        self._is_safe_latest = self._settings.on_no_initial_offset is OnNoInitialOffset.SAFE_LATEST
        self._is_supported = not self._is_safe_latest
        """Whether the brokers are known to serve the settings."""
        self._parallel = parallel
        self._own_start_ms = now_ms()
        self._group_start_ms: int | None = None

    @property
    def metadata(self) -> str | None:
        """The metadata of this group's commits if the user gives none."""
        return None if self._group_start_ms is None else start_metadata(self._group_start_ms)

    def decide(
        self, assigned: Callable[[], list[PartitionKey]], deliver: Callable[[StartPositions], None]
    ) -> Steps[None]:
        """Decide the start positions, and start the catch-up of partitions that are behind.

        A partition with a committed offset does not wait for the decisions about others, nor a topic for another one.

        Args:
            assigned: returns the partitions that still wait for a decision.
            deliver: takes the decisions as soon as they are made.

        Raises:
            KafkaException: a query failed or exceeded its limit; `assigned` has the partitions that are not decided.
        """
        failures: list[KafkaException] = []
        topics: dict[str, dict[PartitionKey, TopicPartition | None]] = {}
        for topic in dict.fromkeys(topic for topic, _ in assigned()):
            try:
                if not self._is_supported:
                    self._is_supported = yield self._queries.in_thread(
                        broker_queries.finds_offsets_by_time, topic, THREAD_QUERY_LIMIT_S
                    )
                    if not self._is_supported:
                        deliver(StartPositions(unsupported=assigned()))
                        return
                topics[topic] = yield from self._continue_at_commits(topic, assigned, deliver)
            except KafkaException as error:
                failures.append(error)
        for topic, committed in topics.items():
            try:
                yield from self._reset_others(topic, committed, assigned, deliver)
            except KafkaException as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _continue_at_commits(
        self, topic: str, assigned: Callable[[], list[PartitionKey]], deliver: Callable[[StartPositions], None]
    ) -> Steps[dict[PartitionKey, TopicPartition | None]]:
        """Deliver the committed positions of a topic's assigned partitions.

        Returns:
            The committed offsets of the topic; of all partitions if the resets depend on the group start.
        """
        of_topic = yield self._queries.in_thread(broker_queries.partitions_of_topic, topic, THREAD_QUERY_LIMIT_S)
        partitions = _of_topic(topic, assigned())
        if self._settings.on_no_initial_offset.depends_on_group_start:
            partitions = list(dict.fromkeys([*partitions, *of_topic]))
        committed = yield self._queries.in_thread(broker_queries.committed, partitions, THREAD_QUERY_LIMIT_S)
        if self._is_safe_latest:
            self._note_group_start(known_start_ms(each.metadata for each in committed.values()))
        bounds = {}
        if self._parallel is not None and committed:
            bounds = yield self._queries.in_thread(broker_queries.log_bounds, committed, THREAD_QUERY_LIMIT_S)
        starts = StartPositions(at={each: committed[each] for each in assigned() if each in committed})
        if self._parallel is not None and starts.at:
            self._start_catch_up(self._parallel, bounds, starts)
        deliver(starts)
        return {each: committed.get(each) for each in partitions}

    def _reset_others(
        self,
        topic: str,
        committed: dict[PartitionKey, TopicPartition | None],
        assigned: Callable[[], list[PartitionKey]],
        deliver: Callable[[StartPositions], None],
    ) -> Steps[None]:
        """Decide about a topic's assigned partitions without committed offset."""
        missing = _of_topic(topic, assigned())
        if not missing:
            return
        depends_on_group_start = self._settings.on_no_initial_offset.depends_on_group_start
        at_group_start = depends_on_group_start and group_starts(
            None if each is None else each.offset for each in committed.values()
        )
        resets = yield from self._reset(list(committed) if at_group_start else missing, at_group_start)
        starts = StartPositions()
        if depends_on_group_start and self._settings.commit_reset_position:
            # Another member may have committed its own partitions meanwhile: those commits stay.
            others = [each for each in resets if each not in missing]
            by_others = {}
            if others:
                by_others = yield self._queries.in_thread(broker_queries.committed, others, THREAD_QUERY_LIMIT_S)
            starts.to_commit = {
                each: at for each, (at, _) in resets.items() if at is not None and each not in by_others
            }
        for partition in _of_topic(topic, assigned()):
            offset, uncommitted = resets[partition]
            if offset is None:
                starts.no_offset.append(partition)
            else:
                starts.at[partition] = TopicPartition(*partition, offset)
                why = reason_without_offset(self._settings, uncommitted)
                reason, log_start = ResetReason.NO_COMMITTED_OFFSET, uncommitted.bounds.start
                self._publish(position_reset(partition, None, offset, reason, why, log_start=log_start))
        deliver(starts)

    def _reset(
        self, partitions: list[PartitionKey], at_group_start: bool
    ) -> Steps[dict[PartitionKey, tuple[int | None, UncommittedPartition]]]:
        """Return the position of each partition without a committed offset, and what decided."""
        bounds = yield self._queries.in_thread(broker_queries.log_bounds, partitions, THREAD_QUERY_LIMIT_S)
        is_older: dict[PartitionKey, bool] = {}
        if self._is_safe_latest and at_group_start:
            started_ms = yield from self._start_of_group()
            with_records = [each for each in partitions if bounds[each].start < bounds[each].end]
            if with_records:
                is_older = yield self._queries.in_thread(
                    broker_queries.first_record_is_older, with_records, started_ms, THREAD_QUERY_LIMIT_S
                )
        resets: dict[PartitionKey, tuple[int | None, UncommittedPartition]] = {}
        for each in partitions:
            uncommitted = UncommittedPartition(
                bounds=bounds[each], group_starts=at_group_start, is_older_than_group=is_older.get(each)
            )
            resets[each] = position_without_offset(self._settings, uncommitted), uncommitted
        return resets

    def _start_of_group(self) -> Steps[int]:
        """Return the start time of the group: this member's if the group has no committed offset at all."""
        if self._group_start_ms is None:
            metadata = yield self._queries.in_thread(broker_queries.group_metadata, THREAD_QUERY_LIMIT_S)
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
        self, parallel: ParallelCatchUp, bounds: dict[PartitionKey, LogBounds], starts: StartPositions
    ) -> None:
        """Move the start of consumer 1 to the log end; a committed offset before the log is reset before (CK-52).

        A committed offset from the end on is kept. The end may be the last stable offset, and an offset after it may be
        in range: Fetch decides (CK-12).
        """
        positions: dict[PartitionKey, TopicPartition] = {}
        for partition in sorted(each for each, start in starts.at.items() if start.offset < bounds[each].end):
            start = starts.at.pop(partition)
            offset = position_out_of_range(self._settings, bounds[partition], start.offset)
            if offset is None:
                starts.out_of_range.append(partition)
            elif offset == start.offset:
                positions[partition] = start
            else:
                positions[partition] = TopicPartition(*partition, offset)
                reason, why = reason_after_error(self._settings, bounds[partition], "")
                self._publish(position_reset(partition, start.offset, offset, reason, why))
        for partition, consumer1_start in parallel.start(positions, bounds).items():
            starts.at[partition] = TopicPartition(*partition, consumer1_start)


def _of_topic(topic: str, partitions: Iterable[PartitionKey]) -> list[PartitionKey]:
    return [each for each in partitions if each[0] == topic]
