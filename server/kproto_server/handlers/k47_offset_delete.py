"""OffsetDelete (API key 47): delete single offsets of topics to which no member subscribes (EX-62)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k47_offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kproto_server.coordinator.deletion import delete_offsets, offset_delete_error
from kproto_server.handlers._offsets import OffsetsBehavior

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto.messages.k47_offset_delete import OffsetDeleteRequest, OffsetDeleteRequestTopic
    from kproto_server.deferred import DeferredResponse
    from kproto_server.requests.context import RequestContext


def handle(request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse | DeferredResponse:
    if not request.group_id:
        return _refused(ErrorCode.INVALID_GROUP_ID)
    error = context.coordinator.error_at(context.node, request.group_id)
    if error:
        return _refused(error)
    group = context.coordinator.group(request.group_id)
    error = offset_delete_error(group)
    if group is None or error:
        return _refused(error)
    unknown, existing = _by_existence(request, context)
    kept = [topic for topic in existing if group.is_subscribed_to(topic)]
    deleted = {topic: indexes for topic, indexes in existing.items() if topic not in kept}
    failure = 0

    def done(error: int) -> None:
        nonlocal failure
        failure = error

    if existing:
        delete_offsets(context.coordinator, request.group_id, deleted, context.now_ms, done)

    def decided(topic: str, indexes: Iterable[int]) -> list[tuple[int, int]]:
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if topic in kept else ErrorCode.NONE
        return [(index, error) for index in indexes]

    def response() -> OffsetDeleteResponse:
        if failure:
            return _refused(failure)
        if not unknown and not context.behavior(OffsetsBehavior).merges_duplicate_partitions:
            return _response([(t.name, decided(t.name, _indexes(t))) for t in request.topics if t.partitions], context)
        errors = unknown
        for topic, indexes in existing.items():
            errors.setdefault(topic, []).extend(decided(topic, indexes))
        return _response(list(errors.items()), context)

    return context.coordinator.log.then(response)


def _refused(error: int) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error, throttle_time_ms=0, topics=())


TopicErrors = dict[str, list[tuple[int, int]]]
"""Topic -> partitions with their errors."""


def _by_existence(request: OffsetDeleteRequest, context: RequestContext) -> tuple[TopicErrors, dict[str, list[int]]]:
    """Return the errors of missing partitions, and the partitions that exist, by topic in the order of the request."""
    behavior, topics = context.behavior(OffsetsBehavior), context.cluster.topics
    unknown: TopicErrors = {}
    existing: dict[str, list[int]] = {}
    for topic in request.topics:
        known = topics.get(topic.name)
        if known is None and behavior.returns_unknown_topics_without_partitions:
            unknown.setdefault(topic.name, [])
        for index in _indexes(topic):
            if known is None or not 0 <= index < len(known.partitions):
                refusal = (index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                if not (behavior.merges_unknown_partitions and refusal in unknown.get(topic.name, ())):
                    unknown.setdefault(topic.name, []).append(refusal)
            elif not (behavior.merges_duplicate_partitions and index in existing.get(topic.name, ())):
                existing.setdefault(topic.name, []).append(index)
    return unknown, existing


def _indexes(topic: OffsetDeleteRequestTopic) -> list[int]:
    return [partition.partition_index for partition in topic.partitions]


def _response(errors: list[tuple[str, list[tuple[int, int]]]], context: RequestContext) -> OffsetDeleteResponse:
    """Return the response for topics with the errors of their partitions."""
    topics = [_topic(name, partitions) for name, partitions in errors]
    if context.behavior(OffsetsBehavior).delete_repeats_topics:
        topics = [topic for topic in topics for _ in topic.partitions]
    return OffsetDeleteResponse(error_code=0, throttle_time_ms=0, topics=tuple(topics))


def _topic(name: str, partitions: list[tuple[int, int]]) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=name,
        partitions=tuple(
            [OffsetDeleteResponsePartition(partition_index=index, error_code=error) for index, error in partitions]
        ),
    )
