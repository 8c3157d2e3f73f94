"""The work of `Consumer` when a setting of KIP-842 or KIP-333 is used.

Theory of operation
-------------------
Each call of the user does what is pending and then calls librdkafka, whose own threads fetch and keep the membership in
between. Nothing waits for a broker longer than the timeout of the user's call: queries run in threads that share no
data with kproto, and the next call uses their results. `delivery` has the calls that return records; here are the
assignment, the positions and the end. An assigned partition is in one of three modes:

    normal        librdkafka's records and events pass straight to the user.
    undecided     `pending_resets` decides the position; librdkafka does not fetch the partition, or its fetches fail.
    catching up   `parallel_catch_up` delivers; librdkafka's records go to buffer 1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from time import monotonic
from typing import Any

from confluent_kafka import OFFSET_INVALID, OFFSET_STORED, Consumer, KafkaError, KafkaException, TopicPartition

from kproto.client.assignment import Assignment
from kproto.client.broker_queries import BrokerQueries
from kproto.client.commits import Commits
from kproto.client.configuration import Configuration
from kproto.client.delivery import Delivery
from kproto.client.events import Events
from kproto.client.initial_positions import InitialPositions
from kproto.client.parallel_catch_up import ParallelCatchUp
from kproto.client.pending_resets import PendingResets
from kproto.client.topic_partitions import PartitionKey, are_topic_partitions, copy_of, partition_of
from kproto.client.user_positions import UserPositions

Assign = Callable[[Collection[TopicPartition], Collection[PartitionKey]], None]
"""Assigns partitions, some of them blocked."""


class ConsumerDelegate:
    """The state of one consumer beside librdkafka's.

    Args:
        consumer: the user's consumer, as an object whose methods are confluent-kafka's own (`ConfluentMethods`). The
            caller owns it; `close` closes the other clients.
    """

    def __init__(self, consumer: Consumer, configuration: Configuration) -> None:
        self._consumer = consumer
        self.is_closing: bool = False
        """Whether `close` has begun."""
        self.is_closed: bool = False
        settings = configuration.settings
        self._clients = configuration.clients
        self._queries = queries = BrokerQueries(configuration)
        self._events = Events(configuration)
        publish = self._events.publish
        self._assignment = Assignment(consumer, lambda partitions: self.commits.drop_stored(partitions))
        self._parallel: ParallelCatchUp | None = None
        if settings.parallel:
            self._parallel = ParallelCatchUp(
                consumer,
                self._assignment,
                configuration,
                queries,
                lambda partitions: self.commits.store_positions(partitions),
                publish,
            )
        self.positions: UserPositions = UserPositions(
            consumer, self._assignment, self._parallel, auto_store=configuration.auto_store
        )
        initial_positions = InitialPositions(queries, configuration, self._parallel, publish)
        self.commits: Commits = Commits(
            consumer,
            configuration,
            self.positions.to_commit,
            metadata=lambda: initial_positions.metadata,
            on_request=lambda partitions: self._pending.committed(partitions),
            on_success=self._committed,
            limit=None if self._parallel is None else self._parallel.limit_commit,
        )
        self.stores_positions: bool = configuration.stores_positions
        self._pending = PendingResets(
            consumer, settings, queries, self._assignment, initial_positions, self._parallel, publish
        )
        self.delivery: Delivery = Delivery(
            consumer,
            self._assignment,
            self.commits,
            self.positions,
            self._pending,
            self._parallel,
            self._events,
            queries,
            self._clients,
            stores_positions=self.stores_positions,
        )

    # -- assignment

    def subscribed(self, *, is_cooperative: bool) -> None:
        """The user has subscribed: assignments come from the group, as differences if it is cooperative."""
        self._assignment.is_cooperative = is_cooperative

    def set_sasl_credentials(self, username: str, password: str) -> None:
        self._clients.set_sasl_credentials(username, password)

    def unsubscribed(self) -> None:
        """The user has unsubscribed: deliver nothing more until partitions are assigned again."""
        self.delivery.is_unsubscribed = True
        self.delivery.refresh()

    def can_add(self, topic_partitions: Any) -> bool:
        """Return whether librdkafka accepts these partitions in addition to the assigned ones."""
        partitions = self._distinct(topic_partitions)
        return partitions is not None and not any(each in self._assignment for each in partitions)

    def can_remove(self, topic_partitions: Any) -> bool:
        """Return whether librdkafka accepts the removal of these partitions."""
        partitions = self._distinct(topic_partitions)
        return partitions is not None and all(each in self._assignment for each in partitions)

    @staticmethod
    def _distinct(topic_partitions: Any) -> set[PartitionKey] | None:
        """Return the partitions of a list without duplicates, None for any other argument."""
        if not are_topic_partitions(topic_partitions):
            return None
        partitions = set(map(partition_of, topic_partitions))
        return partitions if len(partitions) == len(topic_partitions) else None

    def assign(self, topic_partitions: Collection[TopicPartition]) -> None:
        self.revoked(self._assignment.partitions)
        self._assign(topic_partitions, self._assignment.replace)

    def incremental_assign(self, topic_partitions: Collection[TopicPartition]) -> None:
        self._assign(topic_partitions, self._assignment.add)

    def _assign(self, topic_partitions: Collection[TopicPartition], assign: Assign) -> None:
        """Assign partitions, and begin to decide the position where the user names none."""
        given = [copy_of(each) for each in topic_partitions]
        undecided = [partition_of(each) for each in given if each.offset in (OFFSET_INVALID, OFFSET_STORED)]
        # An undecided partition needs some offset in librdkafka's assignment; nothing is fetched from there. It is not
        # OFFSET_END: if ListOffsets' response comes after `Assignment.move`, librdkafka continues at the end.
        blocked = {partition: TopicPartition(*partition, 0) for partition in undecided}
        targets = {**{partition_of(each): each for each in given}, **blocked}
        try:
            assign(targets.values(), undecided)
        except (KafkaException, RuntimeError):  # for example, the consumer is closed
            self._forget(targets)
            raise
        self.delivery.is_unsubscribed = False
        self._pending.begin(undecided)
        self._pending.wait(self.delivery.deadline - monotonic())
        self.delivery.refresh()

    def revoked(self, partitions: Collection[PartitionKey], *, lost: bool = False) -> None:
        """Partitions are revoked: store the user's positions, unless another member owns the partitions (`lost`).

        librdkafka commits them when it unassigns the partitions.
        """
        if self.stores_positions and not lost:
            self.commits.store_positions(partitions)
        self._forget(partitions)

    def unassign(self) -> None:
        """Store the positions and forget all partitions, before librdkafka's `unassign`."""
        self.revoked(self._assignment.partitions)

    def store_before_close(self) -> None:
        """Store the positions before librdkafka commits them and leaves the group; wait for queries that run.

        If an eager group rebalances and the revocation waits for a poll, librdkafka's `close` sends LeaveGroup before
        its commit (rd_kafka_cgrp_revoke_all_rejoin), which the broker refuses with UNKNOWN_MEMBER_ID. So kproto
        commits before.
        """
        self.is_closing = True
        self._queries.close()
        if self.stores_positions:
            self.commits.store_positions()
            if not self._assignment.is_cooperative:
                self.commits.commit_stored()

    def on_commit(self, error: KafkaError | None, topic_partitions: list[TopicPartition]) -> None:
        """librdkafka's callback after each commit."""
        if not self._pending.on_commit(error, topic_partitions):
            self.commits.on_commit(error, topic_partitions)

    def _committed(self, partition: PartitionKey, offset: int) -> None:
        self._pending.committed([partition])
        if self._parallel is not None:
            self._parallel.committed(partition, offset)
            if self._parallel.is_busy or self._events.are_waiting:  # checkpoints are deleted
                self.delivery.refresh()

    def close(self) -> None:
        """Close consumer 2 and the checkpoint producer, after librdkafka's consumer is closed."""
        self.is_closed = True
        self._forget(self._assignment.partitions)
        if self._parallel is not None:
            self._parallel.close()

    def _forget(self, partitions: Collection[PartitionKey]) -> None:
        self._pending.remove(partitions)
        self.delivery.forget(partitions)
        if self._parallel is not None:
            self._parallel.stop(partitions)
        self.positions.forget(partitions)
        self.commits.forget(partitions)
        self._assignment.remove(partitions)
        self.delivery.refresh()

    def seek(self, target: TopicPartition) -> None:
        """Seek, and cancel the reset or the catch-up of the partition (CK-36, CK-67)."""
        partition = partition_of(target)
        catches_up = self._parallel is not None and self._parallel.cancel(partition)
        is_undecided = self._pending.cancel(partition)
        self.delivery.forget([partition])
        self.positions.forget([partition])
        self.commits.drop_stored([partition])
        if is_undecided or catches_up or not self._seek_in_librdkafka(target):
            self._assignment.move([copy_of(target)])
        self.delivery.refresh()

    def _seek_in_librdkafka(self, target: TopicPartition) -> bool:
        """Seek; return False if the partition has no position, for which librdkafka's seek does not work."""
        try:
            self._consumer.seek(target)
        except KafkaException as error:
            # The partition has lost its position, and its error waits in librdkafka's queue.
            if error.args[0].code() == KafkaError._STATE and partition_of(target) in self._assignment:
                return False
            raise
        self._assignment.sought(copy_of(target))
        return True

    def pause(self, topic_partitions: Iterable[TopicPartition]) -> None:
        partitions = list(map(partition_of, topic_partitions))
        self.delivery.end_run()
        self._assignment.pause(partitions)
        if self._parallel is not None:
            self._parallel.pause([each for each in partitions if each in self._assignment])

    def resume(self, topic_partitions: Iterable[TopicPartition]) -> None:
        partitions = list(map(partition_of, topic_partitions))
        self._assignment.resume(partitions)
        if self._parallel is not None:
            self._parallel.resume(partitions)

    # -- positions

    def store_offsets(self, given: Mapping[str, Any]) -> None:
        """Store offsets for the user, with confluent-kafka's arguments; confluent-kafka refuses invalid ones."""
        offsets = self.commits.offsets_to_store(given)
        if offsets is None or self.is_closed or not (self.stores_positions and self.commits.is_automatic):
            self._consumer.store_offsets(**given)
        else:
            self.commits.store(offsets)
        if offsets is not None:
            self.positions.store(offsets)

    def position(self, topic_partitions: list[TopicPartition]) -> list[TopicPartition]:
        return self.positions.position(topic_partitions)
