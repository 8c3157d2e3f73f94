"""Partitions as several APIs find and describe them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from kproto.codes import ErrorCode
from kproto.records.partitioning import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from kproto_server.cluster.topics import NO_LEADER
from kproto_server.deferred import in_slices
from kproto_server.log_manager.log_manager import index_in_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator

    from kproto.message import Response
    from kproto_server.cluster.cluster import Cluster
    from kproto_server.cluster.topics import Partition
    from kproto_server.deferred import DeferredResponse, DelayedOperation, LargeResponse
    from kproto_server.requests.context import RequestContext

EndpointT = TypeVar("EndpointT")
ResultT = TypeVar("ResultT", bound="Response | LargeResponse | DelayedOperation | DeferredResponse")


INTERNAL_TOPICS = frozenset((OFFSETS_TOPIC, TRANSACTION_TOPIC, SHARE_STATE_TOPIC))


def with_records(
    names: Iterable[str], context: RequestContext, respond: Callable[[], ResultT]
) -> ResultT | DelayedOperation:
    """Respond to a request that reads these topics, once the internal ones among them have their records, and those on
    disk an index."""
    if not INTERNAL_TOPICS.intersection(names):
        return indexed(names, context, respond)
    return _after(make_records(names, context), context, respond)


def indexed(
    names: Iterable[str], context: RequestContext, respond: Callable[[], ResultT]
) -> ResultT | DelayedOperation:
    """Respond to a request that needs what the index of these topics knows, once those on disk have one."""
    if not context.log_manager.unindexed:
        return respond()
    return _after(context.log_manager.index_steps(names), context, respond)


def _after(
    steps: Iterator[None], context: RequestContext, respond: Callable[[], ResultT]
) -> ResultT | DelayedOperation:
    def slices() -> Generator[None, None, ResultT]:
        yield from steps
        return respond()

    return in_slices(slices(), context.now_ms)


def make_records(names: Iterable[str], context: RequestContext) -> Iterator[None]:
    """Make the records of internal topics in memory, and the index of topics on disk, in steps. Their first reader has
    them made: few tests read them.

    Several readers share the steps, so that each sees all records.
    """
    yield from context.log_manager.index_steps(names)
    for name in sorted(INTERNAL_TOPICS.intersection(names)):
        # No `yield from`: a client that goes would end the steps for the others.
        for _ in _images(name, context):
            yield


def topic_names(topic_ids: Iterable[bytes], context: RequestContext) -> set[str]:
    """Return the names of the topics with these ids, as far as they are known."""
    topics = map(context.cluster.topic_by_id, set(topic_ids))
    return {topic.name for topic in topics if topic is not None}


def _images(name: str, context: RequestContext) -> Iterable[None]:
    topic = context.cluster.topic(name)
    if topic is None:
        return ()
    if name == TRANSACTION_TOPIC:
        return context.transactions.make_readable(context.now_ms)
    if name == SHARE_STATE_TOPIC:
        return context.share_groups.store.make_readable(context.now_ms)
    from kproto_server.coordinator.readable_log import ReadableChangeLog, make_offsets_topic_readable

    log = context.coordinator.log
    if not log.keeps:
        return make_offsets_topic_readable(context.coordinator, topic, context.log_manager).images
    if isinstance(log, ReadableChangeLog):
        return log.images
    return index_in_steps(partition.data for partition in topic.partitions)  # the coordinator needs no index to write


def partition_error(partition: Partition) -> ErrorCode:
    """Return the error that Metadata has for a partition (BA-35)."""
    return ErrorCode.LEADER_NOT_AVAILABLE if partition.leader == NO_LEADER else ErrorCode.NONE


def in_sync_replicas(cluster: Cluster, partition: Partition) -> tuple[int, ...]:
    """Return the replicas that responses list as in sync. With eligible leader replicas (KIP-966), the last in-sync
    replica of a partition without a leader is listed as eligible instead."""
    if partition.leader == NO_LEADER and cluster.behavior.has_eligible_leader_replicas:
        return ()
    return tuple(partition.isr)


def offline_replicas(cluster: Cluster, partition: Partition) -> tuple[int, ...]:
    """Return the replicas on stopped nodes."""
    return tuple(replica for replica in partition.replicas if not cluster.is_alive(replica))


def leader_error(
    partition: Partition | None, node_id: int, current_leader_epoch: int, *, any_replica: bool = False
) -> ErrorCode:
    """Return why a node cannot serve a partition as its leader, or as any of its replicas (BA-74, BA-83).

    ``current_leader_epoch``: the leader epoch that the client knows; -1: the client does not check it. Only replicas
    know the epoch.
    """
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if -1 < current_leader_epoch != partition.leader_epoch and node_id in partition.replicas:
        is_old = current_leader_epoch < partition.leader_epoch
        return ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
    if partition.leader == node_id or (any_replica and node_id in partition.replicas):
        return ErrorCode.NONE
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


def end_of_epoch(partition: Partition, leader_epoch: int) -> tuple[int, int] | None:
    """Return the greatest epoch with records up to this one, and the offset after its last record (BA-83).

    The current epoch counts even without records. None: the partition never had the epoch.
    """
    if not 0 <= leader_epoch <= partition.leader_epoch:
        return None
    end = partition.data.end_of_epoch(leader_epoch)
    if end is None or leader_epoch == partition.leader_epoch:
        return leader_epoch, partition.high_watermark
    return end


def leader_endpoints(
    endpoint: Callable[..., EndpointT], leaders: Collection[int], context: RequestContext
) -> tuple[EndpointT, ...]:
    """Return the addresses of the live leaders that a response names, in the order of their ids (KIP-951).

    ``endpoint``: the `NodeEndpoint` of the API. Each address is the one for clients of the connection's listener.
    """
    if not leaders:
        return ()
    listener = context.connection.listener
    return tuple(
        [
            endpoint(node_id=node.node_id, host=host, port=port, rack=node.rack)
            for node in context.cluster.alive_nodes()
            if node.node_id in leaders
            for host, port in (node.address(listener),)
        ]
    )
