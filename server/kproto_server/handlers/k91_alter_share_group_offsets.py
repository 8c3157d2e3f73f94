"""AlterShareGroupOffsets (API key 91): an administrator sets the start offsets of a share group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k91_alter_share_group_offsets import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from kproto_server.cluster.topics import Refusal
from kproto_server.handlers._share_requests import offsets_problem
from kproto_server.share_groups.share_states import SharePartitionKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto.messages.k91_alter_share_group_offsets import AlterShareGroupOffsetsRequest
    from kproto_server.deferred import DeferredResponse
    from kproto_server.requests.context import RequestContext

NO_TOPIC_ID = bytes(16)


def handle(
    request: AlterShareGroupOffsetsRequest, context: RequestContext
) -> AlterShareGroupOffsetsResponse | DeferredResponse:
    problem = offsets_problem(request.group_id, context, creates=True)
    if problem is not None:
        return _response(problem.error, problem.message)
    offsets: dict[bytes, dict[int, int]] = {}
    for asked in request.topics:
        topic = context.cluster.topics.get(asked.topic_name)
        if topic is not None:
            offsets[topic.topic_id] = {
                part.partition_index: part.start_offset
                for part in asked.partitions
                if topic.partition(part.partition_index) is not None
            }
    errors: Mapping[SharePartitionKey, int] = {}
    if offsets:
        members = context.share_groups.members
        group = members.group_for(request.group_id, creates=True, now_ms=context.now_ms)
        if not isinstance(group, Refusal):
            errors = members.begin_states(group, offsets, context.now_ms)

    return context.coordinator.log.then(lambda: _response(0, None, _results(request, errors, context)))


def _results(
    request: AlterShareGroupOffsetsRequest, errors: Mapping[SharePartitionKey, int], context: RequestContext
) -> tuple[AlterShareGroupOffsetsResponseTopic, ...]:
    found = []
    for asked in request.topics:
        topic = context.cluster.topics.get(asked.topic_name)
        topic_id = topic.topic_id if topic else NO_TOPIC_ID
        partitions = []
        for part in asked.partitions:
            key = SharePartitionKey(request.group_id, topic_id, part.partition_index)
            error = errors.get(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            message = ErrorCode(error).message if error else None
            partitions.append(
                AlterShareGroupOffsetsResponsePartition(
                    partition_index=part.partition_index, error_code=error, error_message=message
                )
            )
        found.append(
            AlterShareGroupOffsetsResponseTopic(
                topic_name=asked.topic_name, topic_id=topic_id, partitions=tuple(partitions)
            )
        )
    return tuple(found)


def _response(
    error: int, message: str | None, responses: tuple[AlterShareGroupOffsetsResponseTopic, ...] = ()
) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(
        throttle_time_ms=0, error_code=error, error_message=message, responses=responses
    )
