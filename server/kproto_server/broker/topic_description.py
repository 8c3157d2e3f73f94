"""What a test sees of a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto_server.log_manager.log_manager import index_in_steps

if TYPE_CHECKING:
    from collections.abc import Generator

    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.network.server import Server

STEP_PARTITIONS = 1000
"""Partitions that one step describes: 3 ms."""


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    partition: int
    leader: int | None
    """Node id; None: no node leads it."""
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]
    start_offset: int
    """The first offset that can be read."""
    end_offset: int
    """The offset of the next record, the high watermark."""
    last_stable_offset: int
    """The offset up to which all transactions have ended."""
    size_bytes: int


class TopicDescription(NamedTuple):
    """A topic."""

    topic: str
    topic_id: str
    """In hexadecimal digits."""
    is_internal: bool
    configs: dict[str, str]
    """Those of the topic's own, by Kafka's names."""
    partitions: tuple[TopicPartition, ...]


def count_limit(server: Server, name: str, partition: int | None, offset: int) -> int:
    """Return a number of records that a topic has at most, from an offset on in each partition; -1: there is none."""
    topic = server.state.cluster.topic(name)
    if topic is None:
        return -1
    chosen = topic.partitions if partition is None else topic.partitions[partition : partition + 1]
    return sum(max(0, one.high_watermark - max(one.log_start_offset, offset)) for one in chosen)


def list_steps(server: Server, *, internal: bool) -> Generator[None, None, tuple[TopicDescription, ...]]:
    """Return the descriptions of all topics by name, made in steps: a topic that is deleted meanwhile is left out.

    ``internal``: with those of the broker.
    """
    topics = server.state.cluster.topics
    found: list[TopicDescription] = []
    count = 0
    for topic in list(topics.values()):
        if topic.internal and not internal:
            continue
        yield from index_in_steps(partition.data for partition in topic.partitions)
        if topics.get(topic.name) is topic:
            found.append(described(topic))
        count += len(topic.partitions)
        if count >= STEP_PARTITIONS:
            count = 0
            yield
    return tuple(sorted(found, key=lambda one: one.topic))


def described(topic: Topic) -> TopicDescription:
    """Return the description of a topic."""
    partitions = tuple(_partition(one) for one in topic.partitions)
    return TopicDescription(topic.name, topic.topic_id.hex(), topic.internal, dict(topic.configs), partitions)


def _partition(partition: Partition) -> TopicPartition:
    data = partition.data
    return TopicPartition(
        partition=partition.index,
        leader=partition.leader if partition.leader >= 0 else None,
        leader_epoch=partition.leader_epoch,
        replicas=tuple(partition.replicas),
        in_sync_replicas=tuple(partition.isr),
        start_offset=partition.log_start_offset,
        end_offset=partition.high_watermark,
        last_stable_offset=data.last_stable_offset,
        size_bytes=data.disk_size,
    )
