"""DescribeShareGroupOffsets (API key 90): the start offsets of share groups in their partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k90_describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kproto_server.deferred import lazily
from kproto_server.handlers._described_groups import respond
from kproto_server.share_groups.share_states import NO_LAG, SharePartitionKey, ShareState, lag_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto.messages.k90_describe_share_group_offsets import (
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsRequestGroup,
    )
    from kproto_server.cluster.topics import Partition
    from kproto_server.deferred import LargeResponse
    from kproto_server.requests.context import RequestContext

NO_TOPIC_ID = bytes(16)


def handle(request: DescribeShareGroupOffsetsRequest, context: RequestContext) -> LargeResponse:
    return respond(DescribeShareGroupOffsetsResponse, lambda group: _described(group, context), request.groups)


def _described(
    group: DescribeShareGroupOffsetsRequestGroup, context: RequestContext
) -> DescribeShareGroupOffsetsResponseGroup:
    group_id = group.group_id
    if not context.share_groups.is_enabled:
        return _refused(group_id, ErrorCode.UNSUPPORTED_VERSION, None)
    if group.topics is not None:
        topics = [_topic(group_id, topic.topic_name, topic.partitions, context) for topic in group.topics]
    else:
        error = context.coordinator.error_at(context.node, group_id)
        if error:
            return _refused(group_id, error, ErrorCode(error).message)
        known = context.share_groups.members.known(group_id)
        initialized = known.data.initialized.values() if known else ()
        topics = [_topic(group_id, topic.name, sorted(topic.partitions), context) for topic in initialized]
    return DescribeShareGroupOffsetsResponseGroup(group_id=group_id, topics=tuple(topics), error_code=ErrorCode.NONE)


def _topic(
    group_id: str, name: str, partitions: Sequence[int], context: RequestContext
) -> DescribeShareGroupOffsetsResponseTopic:
    """Describe partitions; those of topics that do not exist have no offset and no error, as in Kafka."""
    topic = context.cluster.topics.get(name)
    topic_id = topic.topic_id if topic else NO_TOPIC_ID

    def described(index: int) -> DescribeShareGroupOffsetsResponsePartition:
        key = SharePartitionKey(group_id, topic_id, index)
        return _partition(key, topic.partition(index) if topic else None, context)

    found = lazily(described, partitions)
    return DescribeShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id, partitions=found)


def _partition(
    key: SharePartitionKey, partition: Partition | None, context: RequestContext
) -> DescribeShareGroupOffsetsResponsePartition:
    state = context.share_groups.store.states.get(key, ShareState()) if partition else ShareState()
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=key.partition,
        start_offset=state.start_offset,
        leader_epoch=state.leader_epoch,
        lag=lag_of(state, partition.data.next_offset) if partition else NO_LAG,
        error_code=ErrorCode.NONE,
    )


def _refused(group_id: str, error: int, message: str | None) -> DescribeShareGroupOffsetsResponseGroup:
    return DescribeShareGroupOffsetsResponseGroup(group_id=group_id, topics=(), error_code=error, error_message=message)
