"""Partitions as keys, and positions in them as confluent-kafka writes them."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Message, TopicPartition

Place = tuple[str, int]
"""Topic and partition."""


def place_of(partition: TopicPartition) -> Place:
    return partition.topic, partition.partition


def place_of_message(message: Message) -> Place:
    topic, partition = message.topic(), message.partition()
    assert topic is not None
    assert partition is not None
    return topic, partition


def partitions_at(offsets: Iterable[tuple[Place, int]], metadata: str | None = None) -> list[TopicPartition]:
    """Offsets in confluent-kafka's form."""
    if metadata is None:
        return [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets]
    return [TopicPartition(topic, partition, offset, metadata) for (topic, partition), offset in offsets]


def partitions_of(places: Iterable[Place]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition) for topic, partition in places]


def copy_of(partition: TopicPartition) -> TopicPartition:
    """One of our own: the user may go on to change hers."""
    copy = TopicPartition(partition.topic, partition.partition, partition.offset)
    if partition.leader_epoch is not None:
        copy.leader_epoch = partition.leader_epoch
    return copy


def names(places: Iterable[Place]) -> str:
    """For the log."""
    return ", ".join(f"{topic} [{partition}]" for topic, partition in sorted(places))
