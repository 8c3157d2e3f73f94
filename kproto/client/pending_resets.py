"""The partitions of a consumer whose position is not decided, and the decisions about them.

The names are those of Kafka's `SubscriptionState`:

    initializing       The start position is not decided. Blocked; the queries for it run in threads.
    awaiting reset     librdkafka rejected the position as out of range; the log bounds are not known yet.
    without position   No setting names a position, or the brokers are too old for it, and the user got an exception.
                       Blocked until the user seeks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from kproto.client import broker_queries
from kproto.client.assignment import Assignment
from kproto.client.background import Background, Steps
from kproto.client.broker_queries import THREAD_QUERY_LIMIT_S, BrokerQueries
from kproto.client.decisions.events import position_reset
from kproto.client.decisions.resets import position_after_error, reason_after_error
from kproto.client.decisions.settings import Settings
from kproto.client.errors import NoOffsetForPartition, NoPosition, OffsetOutOfRange, UnsupportedBroker
from kproto.client.events import Publish
from kproto.client.initial_positions import InitialPositions, StartPositions
from kproto.client.parallel_catch_up import ParallelCatchUp
from kproto.client.topic_partitions import (
    PartitionKey,
    format_partitions,
    offset_of,
    partition_of,
    partition_of_message,
    to_topic_partitions,
    topic_partitions_at,
)

logger: logging.Logger = logging.getLogger("kproto.client")

WORK_LIMIT_S = 60.0
COMMIT_LIMIT_S = 5.0
RETRY_INTERVAL_S = 0.1
"""From a failure to the next attempt."""
REPEATED_COMMIT = object()
"""The mark of the work that repeats the commit of resets."""


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
        publish: Publish,
    ) -> None:
        self._consumer = consumer
        self._settings = settings
        self._queries = queries
        self._assignment = assignment
        self._initial_positions = initial_positions
        self._parallel = parallel
        self._publish = publish
        self._initializing: dict[PartitionKey, object | None] = {}
        """Each with the mark of the work that decides about it."""
        self._awaiting_reset: dict[PartitionKey, Message] = {}
        self._without_position: set[PartitionKey] = set()
        self._to_commit: dict[PartitionKey, int] = {}
        """Resets to commit at once (CK-15)."""
        self._committing: dict[PartitionKey, int] = {}
        """Resets in a commit that is not responded to yet."""
        self._committing_until = 0.0
        """When that commit is repeated, on the monotonic clock: librdkafka drops its result in a rebalance."""
        self._requested: set[PartitionKey] = set()
        """The partitions of the last commit of resets, and those that were revoked since."""
        self._work: dict[Background[None], object] = {}
        """The work that waits for brokers, each with the mark of its partitions."""
        self._reset_queried: set[PartitionKey] = set()
        """Partitions awaiting reset whose log bounds are being queried."""
        self._next_attempt_at = 0.0
        """When failed work is repeated, on the monotonic clock."""
        self._failure = ""
        """The last failure, which is logged once."""
        self._errors: list[NoPosition] = []
        """Exceptions for the user, oldest first."""

    @property
    def exist(self) -> bool:
        """Whether the next poll has something to decide, to commit or to raise."""
        return bool(self._initializing or self._awaiting_reset or self._to_commit or self._errors)

    @property
    def are_queried(self) -> bool:
        """Whether queries about the partitions run."""
        return bool(self._work)

    def begin(self, partitions: Collection[PartitionKey]) -> None:
        """Add assigned partitions whose start position is to be decided."""
        self._initializing.update(dict.fromkeys(partitions))

    def wait(self, limit_s: float) -> None:
        """Decide what is decided within this time."""
        deadline = time.monotonic() + limit_s
        self.decide()
        while self._work and (left_s := deadline - time.monotonic()) > 0:
            self._queries.wait(left_s)
            self.decide()

    def _add(self, starts: StartPositions) -> None:
        """Continue at the start positions; add the partitions that have none, and the resets to commit."""
        for partition in (*starts.at, *starts.no_offset, *starts.out_of_range, *starts.unsupported):
            self._initializing.pop(partition, None)
        if starts.at:
            self._assignment.move(list(starts.at.values()))
        self._add_without_position(starts.no_offset, NoOffsetForPartition)
        self._add_without_position(starts.out_of_range, OffsetOutOfRange)
        self._add_without_position(starts.unsupported, UnsupportedBroker)
        self._to_commit.update(starts.to_commit)

    def add_rejected(self, message: Message) -> None:
        """Add a partition whose position librdkafka rejected as out of range."""
        self._awaiting_reset[partition_of_message(message)] = message

    def decide(self) -> None:
        """Continue what is pending as far as no broker has to be waited for; repeat what failed."""
        now = time.monotonic()
        if now >= self._next_attempt_at:
            self._begin_work()
        for work in list(self._work):
            try:
                if work.advance():
                    self._end(work)
            except KafkaException as error:
                if self._end(work):
                    self._failed(error)
        if self._to_commit and now >= max(self._next_attempt_at, self._committing_until):
            self._begin_commit()
        if not self.exist:
            self._failure = ""

    def _begin_work(self) -> None:
        """Start the queries about the partitions that no query is about."""
        if any(mark is None for mark in self._initializing.values()):
            mark = object()
            self._initializing = {each: old or mark for each, old in self._initializing.items()}
            decisions = self._initial_positions.decide(
                lambda: [each for each, current in self._initializing.items() if current is mark], self._add
            )
            self._work[Background(decisions, WORK_LIMIT_S)] = mark
        rejected = {each: message for each, message in self._awaiting_reset.items() if each not in self._reset_queried}
        if rejected:
            self._reset_queried.update(rejected)
            self._work[Background(self._reset_rejected(rejected), WORK_LIMIT_S)] = rejected

    def _end(self, work: Background[None]) -> bool:
        """Remove work; return whether some of its partitions are still undecided."""
        mark = self._work.pop(work)
        if isinstance(mark, dict):
            self._reset_queried.difference_update(mark)
            return not self._awaiting_reset.keys().isdisjoint(mark)
        if mark is REPEATED_COMMIT:
            return bool(self._to_commit)
        undecided = [each for each, current in self._initializing.items() if current is mark]
        self._initializing.update(dict.fromkeys(undecided))
        return bool(undecided)

    def _failed(self, error: KafkaException | KafkaError) -> None:
        self._next_attempt_at = time.monotonic() + RETRY_INTERVAL_S
        if str(error) != self._failure:
            self._failure = str(error)
            partitions = {*self._initializing, *self._awaiting_reset, *self._to_commit}
            logger.warning("%s: offset reset failed, is repeated: %s", format_partitions(partitions), error)

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
        self._initializing.pop(partition, None)
        self._without_position.discard(partition)
        self._awaiting_reset.pop(partition, None)
        self._errors = [left for error in self._errors if (left := _without(error, partition)).partitions]
        return is_undecided

    def remove(self, partitions: Iterable[PartitionKey]) -> None:
        """Remove revoked partitions, except that their resets are committed unless the next owner commits before.

        Without them, committed resets of other partitions would make them partitions that were added later (CK-14).
        """
        for partition in partitions:
            self.cancel(partition)
            if partition in self._to_commit:
                self._requested.add(partition)

    def committed(self, partitions: Iterable[PartitionKey]) -> None:
        """Note commits of later positions: a reset that is committed again would move the committed offset back."""
        for partition in partitions:
            self._to_commit.pop(partition, None)

    def _reset_rejected(self, queried: dict[PartitionKey, Message]) -> Steps[None]:
        found = yield self._queries.in_thread(broker_queries.log_bounds_of_any, queried, THREAD_QUERY_LIMIT_S)
        targets: dict[PartitionKey, int] = {}
        for partition, message in queried.items():
            if self._awaiting_reset.get(partition) is not message:
                continue  # revoked or sought meanwhile
            del self._awaiting_reset[partition]
            if partition not in self._assignment:
                continue
            current = self._assignment.position(partition)
            position = current if current >= 0 else offset_of(message)
            error_text = str(message.error())
            target = position_after_error(self._settings, found[partition], position, error_text)
            if target is None:
                self._end_out_of_range([partition])
                continue
            before, after = position if position >= 0 else None, target
            if self._parallel is not None:
                before, after = self._parallel.reset_consumer1(partition, before, target)
            if before != after:  # otherwise the position is in range by now
                bounds = found[partition]
                reason, why = reason_after_error(self._settings, bounds, error_text)
                self._publish(position_reset(partition, before, after, reason, why, log_start=bounds.start))
            targets[partition] = after
        if targets:
            self._assignment.move(topic_partitions_at(targets.items()))

    def _end_out_of_range(self, partitions: Iterable[PartitionKey]) -> None:
        """Stop reading partitions that are out of range while no setting names a position."""
        for partition in partitions:
            if self._parallel is not None:
                self._parallel.cancel(partition)
            self._assignment.block([partition])
            self._add_without_position([partition], OffsetOutOfRange)

    def _begin_commit(self) -> None:
        repeated = [each for each in self._to_commit if each in self._requested and each not in self._assignment]
        if not repeated:
            self._commit_resets()
        elif REPEATED_COMMIT not in self._work.values():
            self._work[Background(self._repeat_commit(repeated), WORK_LIMIT_S)] = REPEATED_COMMIT

    def _repeat_commit(self, of_others: Collection[PartitionKey]) -> Steps[None]:
        """Commit again, except where the member that owns a partition has committed since: its commit stays."""
        self.committed((yield self._queries.in_thread(broker_queries.committed, of_others, THREAD_QUERY_LIMIT_S)))
        if self._to_commit:
            self._commit_resets()

    def _commit_resets(self) -> None:
        self._committing, self._committing_until = dict(self._to_commit), time.monotonic() + COMMIT_LIMIT_S
        self._requested = set(self._to_commit)
        offsets = topic_partitions_at(self._committing.items(), self._initial_positions.metadata)
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            self._failed(error)

    def on_commit(self, error: KafkaError | None, topic_partitions: list[TopicPartition]) -> bool:
        """Return whether librdkafka's result of a commit is that of the resets."""
        if not self._committing or {partition_of(each): each.offset for each in topic_partitions} != self._committing:
            return False
        for each in topic_partitions:
            error = error or each.error
            if error is None and self._to_commit.get(partition_of(each)) == each.offset:
                del self._to_commit[partition_of(each)]
        self._committing, self._committing_until = {}, 0.0
        if error is not None:
            self._failed(error)
        return True

    def _add_without_position(self, partitions: Collection[PartitionKey], error: type[NoPosition]) -> None:
        if partitions:
            self._without_position.update(partitions)
            self._errors.append(error(to_topic_partitions(partitions)))


def _without(error: NoPosition, partition: PartitionKey) -> NoPosition:
    left = [each for each in error.partitions if partition_of(each) != partition]
    return error if len(left) == len(error.partitions) else type(error)(left)
