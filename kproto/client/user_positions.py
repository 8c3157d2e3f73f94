"""The user's position in each partition, which may differ from librdkafka's, and the offsets that a commit commits."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from confluent_kafka import Consumer, Message, TopicPartition

from kproto.client.assignment import Assignment
from kproto.client.parallel_catch_up import ParallelCatchUp
from kproto.client.topic_partitions import PartitionKey, at_offset, offset_of, partition_of, partition_of_message


class UserPositions:
    """The user's positions in the assigned partitions of one consumer.

    Args:
        consumer: an object whose methods are confluent-kafka's own.
        parallel: the partitions that catch up; None without KIP-333.
        auto_store: whether delivered records count as processed. If not, the user calls `store_offsets`.
    """

    def __init__(
        self, consumer: Consumer, assignment: Assignment, parallel: ParallelCatchUp | None, *, auto_store: bool
    ) -> None:
        self._consumer = consumer
        self._assignment = assignment
        self._parallel = parallel
        self._auto_store = auto_store
        self._stored: dict[PartitionKey, TopicPartition] = {}
        self.in_hand: list[Message] = []
        """The messages of a `consume` that waits for further ones: the user does not have them yet."""

    def position(self, topic_partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return the user's positions; librdkafka's, except where librdkafka has read nothing yet."""
        return list(map(self._position, self._consumer.position(topic_partitions)))

    def _position(self, librdkafkas: TopicPartition) -> TopicPartition:
        partition = partition_of(librdkafkas)
        if self._parallel is not None and partition in self._parallel.catch_ups:
            catch_up = self._parallel.catch_ups[partition]
            return at_offset(partition, catch_up.position, leader_epoch=catch_up.leader_epoch)
        if librdkafkas.offset >= 0:
            return librdkafkas
        if self._parallel is not None and partition in self._parallel.switched_at:
            return self._parallel.switched_at[partition]
        return self._assignment.moved_at.get(partition, librdkafkas)

    def store(self, offsets: Iterable[TopicPartition]) -> None:
        """Note the offsets of the user's `store_offsets`, which librdkafka has accepted."""
        for each in offsets:
            if each.offset >= 0:
                self._stored[partition_of(each)] = each
            else:
                self._stored.pop(partition_of(each), None)

    def forget(self, partitions: Collection[PartitionKey]) -> None:
        for partition in partitions:
            self._stored.pop(partition, None)

    def to_commit(self, partitions: Collection[PartitionKey] | None) -> dict[PartitionKey, TopicPartition]:
        """Return the offsets that a commit of these partitions (None: all) commits now.

        A partition without an offset to commit has ``OFFSET_INVALID``, as in confluent-kafka's commits.
        """
        wanted = [each for each in self._assignment.partitions if partitions is None or each in partitions]
        without = {each: TopicPartition(*each) for each in wanted}
        if not self._auto_store:
            return {**without, **{each: self._stored[each] for each in wanted if each in self._stored}}
        read = self._assignment.positions(wanted)
        if self._parallel is None:
            return self._before_in_hand({**without, **read})
        switched_at = {each: at for each, at in self._parallel.switched_at.items() if each in without}
        behind = {
            each: at_offset(each, catch_up.offset_to_commit(), leader_epoch=catch_up.leader_epoch)
            for each, catch_up in self._parallel.catch_ups.items()
            if each in without
        }
        return self._before_in_hand({**without, **switched_at, **read, **behind})

    def _before_in_hand(self, offsets: dict[PartitionKey, TopicPartition]) -> dict[PartitionKey, TopicPartition]:
        """Return the offsets of a commit, at most those of the records in hand."""
        for record in self.in_hand:
            partition, offset = partition_of_message(record), offset_of(record)
            if record.error() is None and partition in offsets and offset < offsets[partition].offset:
                offsets[partition] = at_offset(partition, offset, leader_epoch=record.leader_epoch())
        return offsets
