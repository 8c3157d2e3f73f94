"""The partitions of a consumer whose position is not decided, and the decisions about them.

The names are those of Kafka's `SubscriptionState`:

    initializing       The start position is unknown, since a query failed. Blocked; each poll repeats the query.
    awaiting reset     librdkafka rejected the position as out of range; the log bounds are not queried yet.
    without position   No setting names a position, and the user got an exception. Blocked until the user seeks.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from confluent_kafka import Consumer, KafkaException, Message

from kproto.client.assignment import Assignment
from kproto.client.broker_queries import POLL_QUERY_LIMIT_S, QUERY_LIMIT_S, BrokerQueries
from kproto.client.decisions.resets import position_after_error
from kproto.client.decisions.settings import Settings
from kproto.client.errors import NoOffsetForPartition, OffsetOutOfRange
from kproto.client.initial_positions import InitialPositions, StartPositions
from kproto.client.parallel_catch_up import ParallelCatchUp
from kproto.client.topic_partitions import (
    PartitionKey,
    format_partitions,
    offset_of,
    partition_of_message,
    to_topic_partitions,
    topic_partitions_at,
)

logger: logging.Logger = logging.getLogger("kproto.client")


class PendingResets:
    """The undecided partitions of one consumer.

    Args:
        consumer: an object whose methods are confluent-kafka's own.
    """

    def __init__(
        self,
        consumer: Consumer,
        settings: Settings,
        queries: BrokerQueries,
        assignment: Assignment,
        initial_positions: InitialPositions,
        parallel: ParallelCatchUp | None,
    ) -> None:
        self._consumer = consumer
        self._settings = settings
        self._queries = queries
        self._assignment = assignment
        self._initial_positions = initial_positions
        self._parallel = parallel
        self._initializing: set[PartitionKey] = set()
        self._awaiting_reset: dict[PartitionKey, Message] = {}
        self._without_position: set[PartitionKey] = set()
        self._to_commit: dict[PartitionKey, int] = {}
        """Resets to commit at once (CK-15)."""
        self._errors: list[KafkaException] = []
        """Exceptions for the user, oldest first."""

    @property
    def exist(self) -> bool:
        """Whether the next poll has something to decide, to commit or to raise."""
        return bool(self._initializing or self._awaiting_reset or self._to_commit or self._errors)

    def decide_start(self, partitions: Collection[PartitionKey]) -> StartPositions:
        """Return the start positions of assigned partitions; all are undecided if a query fails."""
        if not partitions:
            return StartPositions()
        try:
            return self._initial_positions.decide(partitions, QUERY_LIMIT_S)
        except KafkaException as error:
            logger.warning(
                "%s: start position not decided, the next poll repeats: %s", format_partitions(partitions), error
            )
            return StartPositions(undecided=list(partitions))

    def add(self, starts: StartPositions) -> None:
        """Add the partitions that have no start position, and the resets to commit."""
        self._initializing.update(starts.undecided)
        self._add_without_position(starts.no_offset, NoOffsetForPartition)
        self._add_without_position(starts.out_of_range, OffsetOutOfRange)
        self._to_commit.update(starts.to_commit)

    def add_rejected(self, message: Message) -> None:
        """Add a partition whose position librdkafka rejected as out of range."""
        self._awaiting_reset[partition_of_message(message)] = message

    def decide(self) -> None:
        """Decide and commit all that is pending; the next call repeats what fails."""
        try:
            if self._awaiting_reset:
                self._reset_rejected()
            if self._initializing:
                starts = self._initial_positions.decide(sorted(self._initializing), POLL_QUERY_LIMIT_S)
                self._initializing.clear()
                self._assignment.move(list(starts.at.values()))
                self.add(starts)
            if self._to_commit:
                self._commit_resets()
        except KafkaException as error:
            logger.warning("offset reset failed, the next poll repeats: %s", error)

    def end_failed_catch_ups(self) -> None:
        """Cancel the catch-ups in which consumer 2 cannot continue; see `parallel_catch_up`."""
        assert self._parallel is not None
        self._end_out_of_range(self._parallel.out_of_range)
        self._parallel.out_of_range.clear()
        for partition, target in self._parallel.diverged.items():
            self._parallel.cancel(partition)
            self._assignment.move(topic_partitions_at([(partition, target)]))
        self._parallel.diverged.clear()

    def take_error(self) -> KafkaException | None:
        """Return the oldest exception for the user, once."""
        return self._errors.pop(0) if self._errors else None

    def cancel(self, partition: PartitionKey) -> bool:
        """Cancel the decision about a partition in which the user seeks (CK-36); return whether it was undecided."""
        is_undecided = (
            partition in self._initializing or partition in self._without_position or partition in self._awaiting_reset
        )
        self._initializing.discard(partition)
        self._without_position.discard(partition)
        self._awaiting_reset.pop(partition, None)
        return is_undecided

    def remove(self, partitions: Iterable[PartitionKey]) -> None:
        """Remove revoked partitions."""
        for partition in partitions:
            self.cancel(partition)
            self._to_commit.pop(partition, None)

    def _reset_rejected(self) -> None:
        rejected = {each: message for each, message in self._awaiting_reset.items() if each in self._assignment}
        bounds = self._queries.log_bounds(rejected, POLL_QUERY_LIMIT_S) if rejected else {}
        self._awaiting_reset.clear()
        targets: dict[PartitionKey, int] = {}
        for partition, message in rejected.items():
            position = offset_of(message)
            target = position_after_error(self._settings, bounds[partition], position, str(message.error()))
            if target is None:
                self._end_out_of_range([partition])
                continue
            logger.warning("%s [%d]: %s is out of range, reset to %d", *partition, position, target)
            targets[partition] = (
                target if self._parallel is None else self._parallel.consumer1_target(partition, target)
            )
        if targets:
            self._assignment.move(topic_partitions_at(targets.items()))

    def _end_out_of_range(self, partitions: Iterable[PartitionKey]) -> None:
        """Stop reading partitions that are out of range while no setting names a position."""
        for partition in partitions:
            if self._parallel is not None:
                self._parallel.cancel(partition)
            self._assignment.block([partition])
            self._add_without_position([partition], OffsetOutOfRange)

    def _commit_resets(self) -> None:
        offsets = topic_partitions_at(self._to_commit.items(), self._initial_positions.metadata)
        for result in self._consumer.commit(offsets=offsets, asynchronous=False):
            if result.error is not None:
                raise KafkaException(result.error)
        self._to_commit.clear()

    def _add_without_position(
        self, partitions: Collection[PartitionKey], error: type[NoOffsetForPartition | OffsetOutOfRange]
    ) -> None:
        if partitions:
            self._without_position.update(partitions)
            self._errors.append(error(to_topic_partitions(partitions)))
