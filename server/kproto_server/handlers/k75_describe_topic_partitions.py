"""DescribeTopicPartitions (API key 75): topics by name, page by page, for Admin clients (KIP-966)."""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.declaration import ZERO_UUID
from kproto.messages.k75_describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kproto_server.cluster.topics import INTERNAL_TOPICS, name_problem
from kproto_server.handlers import _operations
from kproto_server.handlers._partitions import in_sync_replicas, offline_replicas

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kproto_server.cluster.cluster import Cluster
    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.releases.kafka_version import KafkaVersion
    from kproto_server.requests.context import RequestContext

PAGE_PARTITIONS_MAX = 2000
"""The default of Kafka's max.request.partition.size.limit, which bounds the limit of the request."""


def handle(request: DescribeTopicPartitionsRequest, context: RequestContext) -> DescribeTopicPartitionsResponse:
    cluster, cursor = context.cluster, request.cursor
    requested = [topic.name for topic in request.topics]
    if cursor is not None and (cursor.partition_index < 0 or (requested and cursor.topic_name not in requested)):
        return _refused(requested, ErrorCode.INVALID_REQUEST)
    if "" in requested:
        return _refused(requested, ErrorCode.UNKNOWN_SERVER_ERROR)  # as real brokers return for all topics
    first_partition = 0
    limit = max(1, min(request.response_partition_limit, PAGE_PARTITIONS_MAX))
    left: Iterable[str] = set(requested) or cluster.topics
    if cursor is not None:
        left = [name for name in left if name >= cursor.topic_name]
    # Each existing topic has a partition, so a page of all topics has no more topics, and the next one.
    names = sorted(left) if requested else nsmallest(limit + 1, left)
    if cursor is not None:
        first_partition = cursor.partition_index if names[:1] == [cursor.topic_name] else 0
    return _page(cluster, names, first_partition, limit)


def _page(cluster: Cluster, names: Sequence[str], first_partition: int, limit: int) -> DescribeTopicPartitionsResponse:
    """Return a page: topics from a partition of the first one on, with at most ``limit`` partitions."""
    topics, cursor, room = [], None, limit
    for name in names:
        topic = cluster.topic(name)
        if topic is None:
            topics.append(_unknown(name, cluster.kafka_version))
            first_partition = 0
            continue
        left = topic.partitions[first_partition:]
        if not room:
            cursor = Cursor(topic_name=name, partition_index=0)
            break
        topics.append(_topic(cluster, topic, left[:room]))
        if len(left) > room:
            cursor = Cursor(topic_name=name, partition_index=first_partition + room)
            break
        room -= len(left)
        first_partition = 0
    return DescribeTopicPartitionsResponse(throttle_time_ms=0, topics=tuple(topics), next_cursor=cursor)


def _topic(cluster: Cluster, topic: Topic, partitions: Sequence[Partition]) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.internal,
        partitions=tuple(_partition(cluster, partition) for partition in partitions),
        topic_authorized_operations=_operations.ON_TOPIC,
    )


def _partition(cluster: Cluster, partition: Partition) -> DescribeTopicPartitionsResponsePartition:
    in_sync = in_sync_replicas(cluster, partition)
    eligible = () if in_sync else tuple(partition.isr)
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE,  # also without a leader
        partition_index=partition.index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=tuple(partition.replicas),
        isr_nodes=in_sync,
        eligible_leader_replicas=eligible,
        last_known_elr=eligible,
        offline_replicas=offline_replicas(cluster, partition),
    )


def _unknown(name: str, kafka_version: KafkaVersion) -> DescribeTopicPartitionsResponseTopic:
    is_bad = name_problem(name, kafka_version) is not None
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if is_bad else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        name=name,
        topic_id=ZERO_UUID,
        is_internal=name in INTERNAL_TOPICS,
        partitions=(),
        topic_authorized_operations=_operations.ON_TOPIC,
    )


def _refused(names: Sequence[str], error: ErrorCode) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        throttle_time_ms=0,
        topics=tuple(
            DescribeTopicPartitionsResponseTopic(error_code=error, name=name, topic_id=ZERO_UUID, partitions=())
            for name in names
        ),
    )
