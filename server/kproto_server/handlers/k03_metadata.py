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
from kproto_server.cluster.auto_creation import missing_topic_error
from kproto_server.cluster.topics import INTERNAL_TOPICS
from kproto_server.handlers import _operations
from kproto_server.handlers._operations import AuthorizedOperationsBehavior
from kproto_server.handlers._partitions import in_sync_replicas, offline_replicas, partition_error
from kproto_server.requests.deferred import in_slices

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from kproto_server.cluster.cluster import Cluster, Node
    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.requests.context import RequestContext
    from kproto_server.requests.deferred import DelayedOperation

    Topics = Generator[None, None, tuple[MetadataResponseTopic, ...]]

BY_ID_SINCE = 12
SLICE_PARTITIONS = 5000
"""Partitions that are described before other connections are served: about 10 ms."""
OPERATIONS_ON_TOPICS = range(8, 14)
OPERATIONS_ON_CLUSTER = range(8, 11)
"""Versions whose responses have authorized operations."""


def handle(request: MetadataRequest, context: RequestContext) -> MetadataResponse | DelayedOperation:
    return in_slices(_slices(request, context), context.now_ms)


def _slices(request: MetadataRequest, context: RequestContext) -> Generator[None, None, MetadataResponse]:
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
    topics = yield from _topics(request, context, on_topics)
    return MetadataResponse(
        brokers=tuple(map(_broker, cluster.alive_nodes())),
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        topics=topics,
        cluster_authorized_operations=on_cluster,
    )


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


def _topics(request: MetadataRequest, context: RequestContext, operations: int) -> Topics:
    cluster, asked = context.cluster, request.topics
    if asked is None or (not asked and context.api_version == 0):
        return (yield from _all_found(context, list(cluster.topics.values()), operations))
    ids = [topic.topic_id for topic in asked if topic.topic_id != ZERO_UUID]
    if ids:  # names are ignored then
        return (yield from _by_id(context, dict.fromkeys(ids), operations))
    return (yield from _by_name(request, context, operations))


def _all_found(context: RequestContext, topics: Iterable[Topic], operations: int) -> Topics:
    """Describe topics in slices of about `SLICE_PARTITIONS`."""
    found, partition_count = [], 0
    for topic in topics:
        partition_count += len(topic.partitions)
        if partition_count > SLICE_PARTITIONS:
            partition_count = len(topic.partitions)
            yield
        found.append(_found(context.cluster, topic, context.api_version, operations))
    return tuple(found)


def _by_id(context: RequestContext, ids: dict[bytes, None], operations: int) -> Topics:
    cluster = context.cluster
    unknown, known = [], []
    for topic_id in ids:
        topic = cluster.topic_by_id(topic_id)
        if topic is not None:
            known.append(topic)
        else:
            error = ErrorCode.UNKNOWN_TOPIC_ID
            unknown.append(MetadataResponseTopic(error_code=error, name=None, topic_id=topic_id, partitions=()))
    return (*unknown, *(yield from _all_found(context, known, operations)))


def _by_name(request: MetadataRequest, context: RequestContext, operations: int) -> Topics:
    """Return each name once, existing topics first. Missing topics may be created after those are described."""
    cluster = context.cluster
    names = dict.fromkeys(topic.name for topic in request.topics or () if topic.name is not None)
    found = [cluster.topics[name] for name in names if name in cluster.topics]
    known = yield from _all_found(context, found, operations)
    existing = {topic.name for topic in found}
    unknown = tuple(
        MetadataResponseTopic(
            error_code=missing_topic_error(cluster, name, request.allow_auto_topic_creation, context.now_ms),
            name=name,
            is_internal=name in INTERNAL_TOPICS,
            partitions=(),
            topic_authorized_operations=operations,
        )
        for name in names
        if name not in existing
    )
    return known + unknown


def _broker(node: Node) -> MetadataResponseBroker:
    return MetadataResponseBroker(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)


def _found(cluster: Cluster, topic: Topic, api_version: int, operations: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.internal,
        partitions=tuple(_partition(cluster, partition, api_version) for partition in topic.partitions),
        topic_authorized_operations=operations,
    )


def _partition(cluster: Cluster, partition: Partition, api_version: int) -> MetadataResponsePartition:
    error = partition_error(partition)
    replicas, isr = tuple(partition.replicas), in_sync_replicas(cluster, partition)
    offline = offline_replicas(cluster, partition)
    if offline and api_version == 0:
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
