"""The assignment of librdkafka's consumer: where each partition started, and why it is paused.

librdkafka forgets the position of a partition when it reports the position out of range, and `seek` does not restore
it; only a new assignment does. `move` makes such an assignment: of the one partition if the group is cooperative, else
of all partitions, each at its position.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from confluent_kafka import Consumer, TopicPartition

from kproto.client.topic_partitions import PartitionKey, partition_of, to_topic_partitions


class Assignment:
    """The assigned partitions of one consumer.

    Args:
        consumer: an object whose methods are confluent-kafka's own.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.is_cooperative = False
        """Whether the assignment comes from a group with incremental rebalances."""
        self._started: dict[PartitionKey, TopicPartition] = {}
        """The position at which each partition was assigned or sought."""
        self.moved_at: dict[PartitionKey, TopicPartition] = {}
        """The positions that librdkafka forgot at a `move`: valid until it reads a record of the partition."""
        self._paused_by_user: set[PartitionKey] = set()
        self._blocked: set[PartitionKey] = set()
        """Paused by kproto, as the partition has no position; the user's `resume` does not resume them."""
        self._left_blocked: set[PartitionKey] = set()
        """Unassigned while blocked: librdkafka keeps them paused until they are assigned and resumed."""

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
        self._paused_by_user.clear()
        self._blocked.clear()
        self._pause_before(blocked)
        self._consumer.assign(list(targets))
        self._note_start(targets, blocked)

    def add(self, targets: Collection[TopicPartition], blocked: Collection[PartitionKey]) -> None:
        """Assign these partitions in addition to the current ones."""
        self._pause_before(blocked)
        self._consumer.incremental_assign(list(targets))
        self._note_start(targets, blocked)

    def remove(self, partitions: Collection[PartitionKey]) -> None:
        """Forget partitions that librdkafka unassigns."""
        self._left_blocked |= self._blocked.intersection(partitions)
        for partition in partitions:
            self._started.pop(partition, None)
            self.moved_at.pop(partition, None)
        self._paused_by_user.difference_update(partitions)
        self._blocked.difference_update(partitions)

    def move(self, targets: Collection[TopicPartition]) -> None:
        """Continue in these partitions at these offsets; the partitions are no longer blocked."""
        moved = {partition_of(target) for target in targets}
        self._blocked -= moved
        if self.is_cooperative:
            self._consumer.incremental_unassign(to_topic_partitions(moved))
            self._consumer.incremental_assign(list(targets))
        else:
            self.moved_at = self.positions(self._started)
            self._started.update(self.moved_at)
            others = [started for partition, started in self._started.items() if partition not in moved]
            self._consumer.assign([*targets, *others])
        for target in targets:
            self.sought(target)
        # librdkafka keeps a partition paused across assignments.
        self._consumer.pause(to_topic_partitions(self._paused_by_user | self._blocked))
        self._consumer.resume(to_topic_partitions(moved - self._paused_by_user))

    def sought(self, target: TopicPartition) -> None:
        """Note the user's seek: librdkafka has no position for the partition until a record is read."""
        self._started[partition_of(target)] = target
        self.moved_at.pop(partition_of(target), None)

    def positions(self, partitions: Iterable[PartitionKey]) -> dict[PartitionKey, TopicPartition]:
        """Return the positions of the assigned partitions from which a record was read."""
        assigned = [partition for partition in partitions if partition in self._started]
        results = self._consumer.position(to_topic_partitions(assigned))
        moved = {partition: self.moved_at[partition] for partition in assigned if partition in self.moved_at}
        return {**moved, **{partition_of(result): result for result in results if result.offset >= 0}}

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
        self._consumer.resume(to_topic_partitions(set(partitions) - self._blocked))

    def _pause_before(self, blocked: Collection[PartitionKey]) -> None:
        """Pause partitions that are not assigned yet, so that librdkafka fetches nothing of them."""
        if blocked:
            self._consumer.position(to_topic_partitions(blocked))  # before that, librdkafka cannot pause them
            self._consumer.pause(to_topic_partitions(blocked))

    def _note_start(self, targets: Collection[TopicPartition], blocked: Collection[PartitionKey]) -> None:
        self._started.update({partition_of(target): target for target in targets})
        resumed = self._left_blocked.intersection(map(partition_of, targets)).difference(blocked)
        self._left_blocked -= resumed
        if resumed:
            self._consumer.resume(to_topic_partitions(resumed))
        if blocked:
            self.block(blocked)
