"""Partitions as dictionary keys, and their conversion from and to confluent-kafka's `TopicPartition`.

`TopicPartition` carries an offset too and is mutable, and users keep and change their instances.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Message, TopicPartition

PartitionKey = tuple[str, int]
"""Topic name and partition index."""


def partition_of(topic_partition: TopicPartition) -> PartitionKey:
    return topic_partition.topic, topic_partition.partition


def partition_of_message(message: Message) -> PartitionKey:
    topic, partition = message.topic(), message.partition()
    assert topic is not None
    assert partition is not None
    return topic, partition


def offset_of(message: Message) -> int:
    """Return the offset of a message or of an error event, or -1 if the event has none."""
    offset = message.offset()
    return -1 if offset is None else offset


def next_offset(record: Message) -> int:
    """Return the offset to commit once the record is processed."""
    offset = record.offset()
    assert offset is not None
    return offset + 1


def position_after(record: Message) -> TopicPartition:
    """Return the position after a record, with the record's leader epoch as confluent-kafka commits it."""
    return at_offset(partition_of_message(record), next_offset(record), leader_epoch=record.leader_epoch())


def at_offset(
    partition: PartitionKey, offset: int, metadata: str | None = None, leader_epoch: int | None = None
) -> TopicPartition:
    """Return a partition with an offset and, for a commit, with metadata.

    By the leader epoch a client detects a truncated log (KIP-320).
    """
    arguments: dict[str, Any] = {"metadata": metadata, "leader_epoch": leader_epoch}
    return TopicPartition(*partition, offset, **{name: each for name, each in arguments.items() if each is not None})


def are_topic_partitions(value: Any) -> bool:
    """Return whether confluent-kafka accepts this argument as a list of partitions."""
    return isinstance(value, list) and all(isinstance(each, TopicPartition) for each in value)


def to_topic_partitions(partitions: Iterable[PartitionKey]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition) for topic, partition in partitions]


def topic_partitions_at(
    offsets: Iterable[tuple[PartitionKey, int]], metadata: str | None = None
) -> list[TopicPartition]:
    """Return partitions with offsets and, for a commit, with metadata."""
    if metadata is None:
        return [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets]
    return [TopicPartition(topic, partition, offset, metadata) for (topic, partition), offset in offsets]


def copy_of(topic_partition: TopicPartition) -> TopicPartition:
    """Return a copy that later changes by the user do not reach."""
    return at_offset(
        partition_of(topic_partition), topic_partition.offset, topic_partition.metadata, topic_partition.leader_epoch
    )


def format_partitions(partitions: Iterable[PartitionKey]) -> str:
    """Return the partitions for a log message."""
    return ", ".join(f"{topic} [{partition}]" for topic, partition in sorted(partitions))
