"""OffsetDelete (API key 47): single offsets go, unless a member of the group reads the topic (EX-62)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k47_offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kproto_server.coordinator.deletion import delete_offsets, offset_delete_error
from kproto_server.coordinator.partitioning import owned_partition

if TYPE_CHECKING:
    from kproto.messages.k47_offset_delete import OffsetDeleteRequest, OffsetDeleteRequestTopic
    from kproto_server.call import Call
    from kproto_server.coordinator.groups import Group


def handle(request: OffsetDeleteRequest, call: Call) -> OffsetDeleteResponse:
    state = call.state
    if not request.group_id:
        return _refused(ErrorCode.INVALID_GROUP_ID)
    if owned_partition(state.cluster, call.node, request.group_id) is None:
        return _refused(ErrorCode.NOT_COORDINATOR)
    group = state.groups.get(request.group_id)
    error = offset_delete_error(group)
    if group is None or error:
        return _refused(error)
    topics = tuple([_decide(group, topic, call) for topic in request.topics])
    doomed: dict[str, list[int]] = {}
    for topic in topics:
        accepted = [p.partition_index for p in topic.partitions if not p.error_code]
        doomed.setdefault(topic.name, []).extend(accepted)
    failure = delete_offsets(state, group, doomed)
    if failure:
        return _refused(failure)
    return OffsetDeleteResponse(error_code=0, throttle_time_ms=0, topics=topics)


def _refused(error: int) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error, throttle_time_ms=0, topics=())


def _error(group: Group, topic_name: str, partition_index: int, call: Call) -> int:
    topic = call.state.cluster.topics.get(topic_name)
    if topic is None or not 0 <= partition_index < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed_to(topic_name) else 0


def _decide(group: Group, topic: OffsetDeleteRequestTopic, call: Call) -> OffsetDeleteResponseTopic:
    indexes = [asked.partition_index for asked in topic.partitions]
    answers = [(index, _error(group, topic.name, index, call)) for index in indexes]
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=tuple(
            [OffsetDeleteResponsePartition(partition_index=index, error_code=error) for index, error in answers]
        ),
    )
