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
from kproto_server.coordinator.partitioning import coordinator_error

if TYPE_CHECKING:
    from kproto.messages.k47_offset_delete import OffsetDeleteRequest
    from kproto_server.call import AfterSync, Call


def handle(request: OffsetDeleteRequest, call: Call) -> OffsetDeleteResponse | AfterSync:
    state = call.state
    if not request.group_id:
        return _refused(ErrorCode.INVALID_GROUP_ID)
    error = coordinator_error(state, call.node, request.group_id)
    if error:
        return _refused(error)
    group = state.group(request.group_id)
    error = offset_delete_error(group)
    if group is None or error:
        return _refused(error)
    answers, existing = _by_existence(request, call)
    kept = [topic for topic in existing if group.is_subscribed_to(topic)]
    doomed = {topic: indexes for topic, indexes in existing.items() if topic not in kept}
    failure = 0

    def done(error: int) -> None:
        nonlocal failure
        failure = error

    delete_offsets(state, request.group_id, doomed, call.now_ms, done)

    def reply() -> OffsetDeleteResponse:
        if failure:
            return _refused(failure)
        for topic, indexes in existing.items():
            error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if topic in kept else ErrorCode.NONE
            answers.setdefault(topic, []).extend((index, error) for index in indexes)
        return _response(answers, call)

    return state.log.then(reply)


def _refused(error: int) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error, throttle_time_ms=0, topics=())


Answers = dict[str, list[tuple[int, int]]]
"""Topic: partitions with their errors."""


def _by_existence(request: OffsetDeleteRequest, call: Call) -> tuple[Answers, dict[str, list[int]]]:
    """The answers for partitions that do not exist, and the partitions that do: each topic once, in the order asked."""
    profile, topics = call.state.profile, call.state.cluster.topics
    unknown: Answers = {}
    existing: dict[str, list[int]] = {}
    for topic in request.topics:
        known = topics.get(topic.name)
        if known is None and profile.answers_unknown_topics_without_partitions:
            unknown.setdefault(topic.name, [])
        for partition in topic.partitions:
            index = partition.partition_index
            if known is None or not 0 <= index < len(known.partitions):
                unknown.setdefault(topic.name, []).append((index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            elif not (profile.merges_duplicate_partitions and index in existing.get(topic.name, ())):
                existing.setdefault(topic.name, []).append(index)
    return unknown, existing


def _response(answers: Answers, call: Call) -> OffsetDeleteResponse:
    topics = [_topic(name, partitions) for name, partitions in answers.items()]
    if call.state.profile.repeats_topics_of_offset_delete:
        topics = [topic for topic in topics for _ in topic.partitions]
    return OffsetDeleteResponse(error_code=0, throttle_time_ms=0, topics=tuple(topics))


def _topic(name: str, partitions: list[tuple[int, int]]) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=name,
        partitions=tuple(
            [OffsetDeleteResponsePartition(partition_index=index, error_code=error) for index, error in partitions]
        ),
    )
