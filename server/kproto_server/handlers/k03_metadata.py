"""Metadata (API key 3): the live brokers, and the requested topics (BA-30..36)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.declaration import ZERO_UUID
from kproto.messages.k03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kproto_server.cluster.auto_creation import missing_topic_error, save_if_possible
from kproto_server.cluster.topics import INTERNAL_TOPICS
from kproto_server.deferred import LargeResponse, lazily, sum_exceeds
from kproto_server.handlers import _operations
from kproto_server.handlers._operations import AuthorizedOperationsBehavior
from kproto_server.handlers._partitions import in_sync_replicas, offline_replicas, partition_error
from kproto_server.handlers._topic_quota import TopicQuota

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.cluster.cluster import Cluster, Node
    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.requests.context import RequestContext

BY_ID_SINCE = 12
SMALL_PARTITIONS = 5000
"""Partitions that are described at once: about 20 ms. A response with more is made in slices."""
OPERATIONS_ON_TOPICS = range(8, 14)
OPERATIONS_ON_CLUSTER = range(8, 11)
"""Versions whose responses have authorized operations."""


def handle(request: MetadataRequest, context: RequestContext) -> MetadataResponse | LargeResponse:
    asked = request.topics
    refusal = _refusal(asked, context.api_version)
    if refusal:
        return _refused(asked or (), refusal)
    cluster = context.cluster
    unrequested = context.behavior(AuthorizedOperationsBehavior).unrequested
    on_topics = on_cluster = _operations.NOT_REQUESTED
    if context.api_version in OPERATIONS_ON_TOPICS:
        on_topics = _operations.ON_TOPIC if request.include_topic_authorized_operations else unrequested
    if context.api_version in OPERATIONS_ON_CLUSTER:
        on_cluster = _operations.ON_CLUSTER if request.include_cluster_authorized_operations else unrequested
    found, missing = _topics(request, context, on_topics)
    save_if_possible(cluster)
    describe = Description(cluster, context.api_version, on_topics)
    is_large = sum_exceeds(SMALL_PARTITIONS, (len(topic.partitions) for topic in found))
    is_by_id = any(topic.name is None for topic in missing)
    if is_large:
        in_order: list[Topic | MetadataResponseTopic] = [*missing, *found] if is_by_id else [*found, *missing]
        topics = lazily(describe.topic_lazily, in_order)
    else:
        known = tuple(map(describe.topic, found))
        topics = missing + known if is_by_id else known + missing
    response = MetadataResponse(
        brokers=tuple(_broker(node, context.connection.listener) for node in cluster.alive_nodes()),
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        topics=topics,
        cluster_authorized_operations=on_cluster,
    )
    return LargeResponse(response, describe.error_codes) if is_large else response


def _refusal(asked: Sequence[MetadataRequestTopic] | None, api_version: int) -> ErrorCode:
    """Return the error of the whole request: an id before v12, or a topic without name and id (BA-30)."""
    for topic in asked or ():
        has_id = topic.topic_id != ZERO_UUID
        if api_version < BY_ID_SINCE and (has_id or topic.name is None):
            return ErrorCode.INVALID_REQUEST
        if not has_id and topic.name is None:
            return ErrorCode.UNKNOWN_SERVER_ERROR  # as a broker of 4.4.0 returns
    return ErrorCode.NONE


def _refused(asked: Sequence[MetadataRequestTopic], error: ErrorCode) -> MetadataResponse:
    return MetadataResponse(
        brokers=(),
        topics=tuple(
            MetadataResponseTopic(error_code=error, name=topic.name or "", topic_id=topic.topic_id, partitions=())
            for topic in asked
        ),
        error_code=error,
    )


def _topics(
    request: MetadataRequest, context: RequestContext, operations: int
) -> tuple[Sequence[Topic], tuple[MetadataResponseTopic, ...]]:
    """Return the existing topics, each once, and the description of those that do not exist or are just created."""
    cluster, asked = context.cluster, request.topics
    if asked is None or (not asked and context.api_version == 0):
        return list(cluster.topics.values()), ()
    ids = dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id != ZERO_UUID)
    if ids:  # names are ignored then
        known = {topic_id: cluster.topic_by_id(topic_id) for topic_id in ids}
        return [topic for topic in known.values() if topic is not None], tuple(
            MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id, partitions=())
            for topic_id, topic in known.items()
            if topic is None
        )
    names = dict.fromkeys(topic.name for topic in asked if topic.name is not None)
    found = {name: cluster.topics[name] for name in names if name in cluster.topics}
    quota = TopicQuota(context) if cluster.client_quotas and len(found) < len(names) else None
    take = quota.take if quota is not None and quota.is_limited else None
    return list(found.values()), tuple(
        MetadataResponseTopic(
            error_code=missing_topic_error(cluster, name, request.allow_auto_topic_creation, context.now_ms, take),
            name=name,
            is_internal=name in INTERNAL_TOPICS,
            partitions=(),
            topic_authorized_operations=operations,
        )
        for name in names
        if name not in found
    )


def _broker(node: Node, listener: str) -> MetadataResponseBroker:
    host, port = node.address(listener)
    return MetadataResponseBroker(node_id=node.node_id, host=host, port=port, rack=node.rack)


class Description:
    """Describes topics for one response."""

    def __init__(self, cluster: Cluster, api_version: int, operations: int) -> None:
        self._cluster = cluster
        self._api_version = api_version
        self._operations = operations
        self.error_codes: list[int] = []
        """Of all that was described lazily."""

    def topic(self, topic: Topic) -> MetadataResponseTopic:
        return self._topic(topic, tuple(map(self._partition, topic.partitions)))

    def topic_lazily(self, topic: Topic | MetadataResponseTopic) -> MetadataResponseTopic:
        """Return a topic whose partitions are described when they are encoded, or one that is described already."""
        if isinstance(topic, MetadataResponseTopic):
            self._note(topic.error_code)
            return topic
        # A copy: partitions may be added between two slices.
        return self._topic(topic, lazily(self._noted_partition, tuple(topic.partitions)))

    def _topic(self, topic: Topic, partitions: tuple[MetadataResponsePartition, ...]) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            error_code=ErrorCode.NONE,
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.internal,
            partitions=partitions,
            topic_authorized_operations=self._operations,
        )

    def _note(self, error_code: int) -> None:
        if error_code:
            self.error_codes.append(error_code)

    def _noted_partition(self, partition: Partition) -> MetadataResponsePartition:
        described = self._partition(partition)
        self._note(described.error_code)
        return described

    def _partition(self, partition: Partition) -> MetadataResponsePartition:
        cluster = self._cluster
        error = partition_error(partition)
        replicas, isr = tuple(partition.replicas), in_sync_replicas(cluster, partition)
        offline = offline_replicas(cluster, partition)
        if offline and self._api_version == 0:
            # Clients of v0 fail on a node id that is not in the list of brokers.
            replicas, isr = (tuple(r for r in nodes if r not in offline) for nodes in (replicas, isr))
            error = error or ErrorCode.REPLICA_NOT_AVAILABLE
        return MetadataResponsePartition(
            error_code=error,
            partition_index=partition.index,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=offline,
        )
