"""The user's position in each partition, which may differ from librdkafka's, and the offsets that a commit commits."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from confluent_kafka import OFFSET_INVALID, Consumer, TopicPartition

from kproto.client.assignment import Assignment
from kproto.client.parallel_catch_up import ParallelCatchUp
from kproto.client.topic_partitions import PartitionKey, partition_of


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
        self._stored: dict[PartitionKey, int] = {}

    def position(self, topic_partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return the user's positions; librdkafka's, except for partitions that catch up or have just caught up."""
        results = self._consumer.position(topic_partitions)
        if self._parallel is not None:
            for result in results:
                partition = partition_of(result)
                catch_up = self._parallel.catch_ups.get(partition)
                if catch_up is not None:
                    result.offset = catch_up.position
                elif result.offset < 0:
                    result.offset = self._parallel.switched_at.get(partition, OFFSET_INVALID)
        return results

    def store(self, offsets: Iterable[TopicPartition]) -> None:
        """Note the offsets of the user's `store_offsets`, which librdkafka has accepted."""
        self._stored.update({partition_of(each): each.offset for each in offsets})

    def forget(self, partitions: Collection[PartitionKey]) -> None:
        for partition in partitions:
            self._stored.pop(partition, None)

    def to_commit(self, partitions: Collection[PartitionKey] | None) -> dict[PartitionKey, int]:
        """Return the offsets that a commit of these partitions (None: all) commits now."""
        wanted = [each for each in self._assignment.partitions if partitions is None or each in partitions]
        if not self._auto_store:
            return {each: self._stored[each] for each in wanted if each in self._stored}
        if self._parallel is None:
            return self._assignment.positions(wanted)
        catch_ups, switched_at = self._parallel.catch_ups, self._parallel.switched_at
        behind = {each: catch_ups[each].offset_to_commit() for each in wanted if each in catch_ups}
        caught_up = {each: switched_at[each] for each in wanted if each in switched_at}
        return {**caught_up, **self._assignment.positions(wanted), **behind}
