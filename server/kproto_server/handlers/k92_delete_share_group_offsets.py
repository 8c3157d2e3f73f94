"""DeleteShareGroupOffsets (API key 92): an administrator removes a share group's offsets of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k92_delete_share_group_offsets import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from kproto_server.handlers._share_requests import offsets_problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto.messages.k92_delete_share_group_offsets import DeleteShareGroupOffsetsRequest
    from kproto_server.cluster.topics import Topic
    from kproto_server.deferred import DeferredResponse
    from kproto_server.requests.context import RequestContext
    from kproto_server.share_groups.share_states import SharePartitionKey

NO_TOPIC_ID = bytes(16)
NOTHING_TO_DELETE = "There is no offset information to delete."


def handle(
    request: DeleteShareGroupOffsetsRequest, context: RequestContext
) -> DeleteShareGroupOffsetsResponse | DeferredResponse:
    groups = context.share_groups
    problem = offsets_problem(request.group_id, context, creates=False)
    if problem is not None:
        return _response(problem.error, problem.message)
    group = groups.members.known(request.group_id)
    assert group is not None, "there is no problem"
    topics = {topic.topic_name: context.cluster.topics.get(topic.topic_name) for topic in request.topics}
    deleted = [topic.topic_id for topic in topics.values() if topic and topic.topic_id in group.data.initialized]
    errors = groups.members.delete_states(group, deleted, context.now_ms)
    return context.coordinator.log.then(
        lambda: _response(0, None, tuple([_result(name, topic, deleted, errors) for name, topic in topics.items()]))
    )


def _result(
    name: str, topic: Topic | None, deleted: list[bytes], errors: Mapping[SharePartitionKey, int]
) -> DeleteShareGroupOffsetsResponseTopic:
    if topic is None or topic.topic_id not in deleted:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        message = NOTHING_TO_DELETE if topic else error.message
        return DeleteShareGroupOffsetsResponseTopic(
            topic_name=name, topic_id=NO_TOPIC_ID, error_code=error, error_message=message
        )
    code = next((error for key, error in errors.items() if key.topic_id == topic.topic_id and error), 0)
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=topic.topic_id,
        error_code=code,
        error_message=ErrorCode(code).message if code else None,
    )


def _response(
    error: int, message: str | None, responses: tuple[DeleteShareGroupOffsetsResponseTopic, ...] = ()
) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(
        throttle_time_ms=0, error_code=error, error_message=message, responses=responses
    )
