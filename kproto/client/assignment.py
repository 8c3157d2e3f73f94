"""The assignment of librdkafka's consumer: where each partition started, and why it is paused.

librdkafka forgets the position of a partition when it reports the position out of range, and `seek` does not restore
it; only a new assignment does. `move` makes such an assignment: of the one partition if the group is cooperative, else
of all partitions, each at its position.

After an assignment, librdkafka reports the position of the earlier one until it has stopped the partition, mostly at
once. If that takes longer than `STOP_LIMIT_S`, the partition counts as not read until another position is reported: a
move or a commit would skip records otherwise.

Partitions are resumed before they are assigned, never right after it. librdkafka starts an assigned partition in a
thread of its own. A `resume` at the same moment may get the higher version and be served first; then librdkafka drops
all records that it fetches of the partition as outdated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable

from confluent_kafka import Consumer, TopicPartition

from kproto.client.topic_partitions import PartitionKey, partition_of, to_topic_partitions

STOP_LIMIT_S, STOP_INTERVAL_S = 0.01, 0.0002


class Assignment:
    """The assigned partitions of one consumer.

    Args:
        consumer: an object whose methods are confluent-kafka's own.
        drop_stored: removes the stored offsets of partitions, which librdkafka would commit when it unassigns them.
    """

    def __init__(self, consumer: Consumer, drop_stored: Callable[[Iterable[PartitionKey]], None]) -> None:
        self._consumer = consumer
        self._drop_stored = drop_stored
        self.is_cooperative = False
        """Whether the assignment comes from a group with incremental rebalances."""
        self._started: dict[PartitionKey, TopicPartition] = {}
        """The position at which each partition was assigned or sought."""
        self.moved_at: dict[PartitionKey, TopicPartition] = {}
        """The positions that librdkafka forgot at a `move`: valid until it reads a record of the partition."""
        self._outdated: dict[PartitionKey, int] = {}
        """The positions of earlier assignments that librdkafka may still report."""
        self._paused_by_user: set[PartitionKey] = set()
        """A revoked partition stays paused for its next assignment, as in librdkafka, until the user's `resume`."""
        self._blocked: set[PartitionKey] = set()
        """Paused by kproto, as the partition has no position; the user's `resume` does not resume them."""
        self._full: set[PartitionKey] = set()
        """Paused by kproto, as buffer 1 is full; the user's `resume` does not resume them either."""
        self._left_paused: set[PartitionKey] = set()
        """Unassigned while kproto paused them: librdkafka keeps them paused until they are assigned and resumed."""

    def __contains__(self, partition: PartitionKey) -> bool:
        return partition in self._started

    def is_blocked(self, partition: PartitionKey) -> bool:
        """Return whether the partition has no position. What librdkafka reads of it until it is paused is dropped."""
        return partition in self._blocked

    @property
    def partitions(self) -> list[PartitionKey]:
        return list(self._started)

    def replace(self, targets: Collection[TopicPartition], blocked: Collection[PartitionKey]) -> None:
        """Assign these partitions instead of the current ones."""
        self._started.clear()
        self.moved_at.clear()
        self._blocked.clear()
        self._full.clear()
        if self._to_resume(targets, blocked):
            self._consumer.assign([])
        self._prepare(targets, blocked)
        self._note_outdated(map(partition_of, targets))
        self._consumer.assign(list(targets))
        self._await_stop()
        self._note_start(targets, blocked)

    def add(self, targets: Collection[TopicPartition], blocked: Collection[PartitionKey]) -> None:
        """Assign these partitions in addition to the current ones."""
        self._prepare(targets, blocked)
        self._note_outdated(map(partition_of, targets))
        self._consumer.incremental_assign(list(targets))
        self._await_stop()
        self._note_start(targets, blocked)

    def remove(self, partitions: Collection[PartitionKey]) -> None:
        """Forget partitions that librdkafka unassigns."""
        self._left_paused |= (self._blocked | self._full).intersection(partitions)
        for partition in partitions:
            self._started.pop(partition, None)
            self.moved_at.pop(partition, None)
        self._blocked.difference_update(partitions)
        self._full.difference_update(partitions)

    def move(self, targets: Collection[TopicPartition]) -> None:
        """Continue in these partitions at these offsets; the partitions are no longer blocked."""
        moved = {partition_of(target) for target in targets}
        is_paused = not self._blocked.isdisjoint(moved)
        self._blocked -= moved
        # In a rebalance that is no revocation, a commit might cost the member its partitions.
        self._drop_stored(moved if self.is_cooperative else self._started)
        if self.is_cooperative:
            self._note_outdated(moved)
            self._consumer.incremental_unassign(to_topic_partitions(moved))
            self._resume(moved)
            self._consumer.incremental_assign(list(targets))
        else:
            self.moved_at = self.positions(self._started)
            self._started.update(self.moved_at)
            self._note_outdated(self._started)
            others = [started for partition, started in self._started.items() if partition not in moved]
            if is_paused:
                self._consumer.assign(others)
                self._resume(moved)
            self._consumer.assign([*targets, *others])
        self._await_stop()
        for target in targets:
            self.sought(target)
        # librdkafka keeps a partition paused across assignments.
        self._consumer.pause(to_topic_partitions(self._paused_by_user | self._blocked | self._full))

    def sought(self, target: TopicPartition) -> None:
        """Note the user's seek: librdkafka has no position for the partition until a record is read."""
        self._started[partition_of(target)] = target
        self.moved_at.pop(partition_of(target), None)

    def positions(self, partitions: Iterable[PartitionKey]) -> dict[PartitionKey, TopicPartition]:
        """Return the positions of the assigned partitions from which a record was read."""
        assigned = [partition for partition in partitions if partition in self._started]
        results = self._consumer.position(to_topic_partitions(assigned))
        self._forget_outdated(results)
        read = {partition_of(each): each for each in results if each.offset >= 0}
        moved = {partition: self.moved_at[partition] for partition in assigned if partition in self.moved_at}
        return {**moved, **{partition: each for partition, each in read.items() if partition not in self._outdated}}

    def position(self, partition: PartitionKey) -> int:
        """Return the offset from which an assigned partition is read; negative if only librdkafka knows it."""
        return self.positions([partition]).get(partition, self._started[partition]).offset

    def block(self, partitions: Collection[PartitionKey]) -> None:
        """Stop reading these partitions until `move`."""
        self._blocked.update(partitions)
        self._consumer.pause(to_topic_partitions(partitions))

    def pause(self, partitions: Collection[PartitionKey]) -> None:
        """Pause for the user."""
        self._consumer.pause(to_topic_partitions(partitions))
        self._paused_by_user.update(partition for partition in partitions if partition in self._started)

    def resume(self, partitions: Collection[PartitionKey]) -> None:
        """Resume for the user."""
        self._paused_by_user.difference_update(partitions)
        self._resume(partitions)

    def hold(self, partition: PartitionKey) -> None:
        """Pause until `release`, as buffer 1 is full."""
        self._full.add(partition)
        self._consumer.pause(to_topic_partitions([partition]))

    def release(self, partition: PartitionKey) -> None:
        """Resume, as buffer 1 has room again or is dropped."""
        if partition in self._full:
            self._full.discard(partition)
            self._resume([partition])

    def _resume(self, partitions: Iterable[PartitionKey]) -> None:
        self._consumer.resume(to_topic_partitions(set(partitions) - self._paused_by_user - self._blocked - self._full))

    def _note_outdated(self, partitions: Iterable[PartitionKey]) -> None:
        for each in self._consumer.position(to_topic_partitions(partitions)):
            if each.offset >= 0:
                self._outdated[partition_of(each)] = each.offset

    def _forget_outdated(self, positions: Iterable[TopicPartition]) -> None:
        for each in positions:
            if self._outdated.get(partition_of(each)) != each.offset:
                self._outdated.pop(partition_of(each), None)

    def _await_stop(self) -> None:
        deadline = time.monotonic() + STOP_LIMIT_S
        while self._outdated and time.monotonic() < deadline:
            self._forget_outdated(self._consumer.position(to_topic_partitions(self._outdated)))
            time.sleep(STOP_INTERVAL_S if self._outdated else 0)

    def _prepare(self, targets: Collection[TopicPartition], blocked: Collection[PartitionKey]) -> None:
        """Pause the blocked ones of partitions that are assigned next, and resume others that were left paused."""
        resumed = self._to_resume(targets, blocked)
        self._left_paused -= resumed
        if resumed:
            self._resume(resumed)
        if blocked:
            self._consumer.position(to_topic_partitions(blocked))  # before that, librdkafka cannot pause them
            self._consumer.pause(to_topic_partitions(blocked))

    def _to_resume(self, targets: Collection[TopicPartition], blocked: Collection[PartitionKey]) -> set[PartitionKey]:
        return self._left_paused.intersection(map(partition_of, targets)).difference(blocked)

    def _note_start(self, targets: Collection[TopicPartition], blocked: Collection[PartitionKey]) -> None:
        self._started.update({partition_of(target): target for target in targets})
        if blocked:
            self.block(blocked)
