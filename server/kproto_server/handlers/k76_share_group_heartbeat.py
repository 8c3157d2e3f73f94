"""ShareGroupHeartbeat (API key 76): a member of a share group joins, stays or leaves, and gets its assignment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k76_share_group_heartbeat import Assignment, ShareGroupHeartbeatResponse, TopicPartitions
from kproto_server.cluster.topics import Refusal
from kproto_server.coordinator.epoch_groups.requests import LEAVE_EPOCH, TOPICS_OF_TURN, Client
from kproto_server.coordinator.subscribed_topics import hash_in_steps
from kproto_server.coordinator.write_errors import group_write_error
from kproto_server.deferred import in_slices
from kproto_server.handlers._share_requests import is_valid
from kproto_server.share_groups.heartbeat import HeartbeatResult, heartbeat, request_problem

if TYPE_CHECKING:
    from collections.abc import Generator

    from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
    from kproto_server.deferred import DeferredResponse, DelayedOperation
    from kproto_server.requests.context import RequestContext


def handle(
    request: ShareGroupHeartbeatRequest, context: RequestContext
) -> ShareGroupHeartbeatResponse | DeferredResponse | DelayedOperation:
    return in_slices(_steps(request, context), context.now_ms)


def _steps(
    request: ShareGroupHeartbeatRequest, context: RequestContext
) -> Generator[None, None, ShareGroupHeartbeatResponse | DeferredResponse]:
    coordinator, groups = context.coordinator, context.share_groups
    names = request.subscribed_topic_names or ()
    if len(names) > TOPICS_OF_TURN:
        yield
        yield from hash_in_steps(names, coordinator.topics, coordinator.rack_of)
    if not groups.is_enabled:
        return _refused(ErrorCode.UNSUPPORTED_VERSION, None)
    if not is_valid(request.group_id, request.member_id):
        return _refused(ErrorCode.INVALID_REQUEST, None)
    problem = request_problem(request)
    if problem is not None:
        return _refused(ErrorCode.INVALID_REQUEST, problem)
    error = coordinator.error_at(context.node, request.group_id)
    if error:
        return _refused(error, None)
    client = Client(context.client_id, context.connection.client_host)
    result = heartbeat(groups.members, request, client, context.now_ms)
    if isinstance(result, Refusal):
        return _refused(result.error, result.message)
    group = groups.members.known(request.group_id)

    def respond() -> ShareGroupHeartbeatResponse:
        if result.write.error:
            write_error = group_write_error(result.write.error, coordinator.behavior)
            return _refused(write_error, ErrorCode(write_error).message)
        return _accepted(request.member_id, result)

    if len(result.assignment or ()) > TOPICS_OF_TURN:
        yield
    if group is not None and result.epoch != LEAVE_EPOCH:
        yield from groups.members.initialize(group)
    return coordinator.log.then(respond)


def _accepted(member_id: str, result: HeartbeatResult) -> ShareGroupHeartbeatResponse:
    assignment = None
    if result.assignment is not None:
        assignment = Assignment(
            topic_partitions=tuple(
                [
                    TopicPartitions(topic_id=topic_id, partitions=partitions)
                    for topic_id, partitions in result.assignment.items()
                ]
            )
        )
    return ShareGroupHeartbeatResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        member_id=member_id,
        member_epoch=result.epoch,
        heartbeat_interval_ms=result.interval_ms,
        assignment=assignment,
    )


def _refused(error: int, message: str | None) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        throttle_time_ms=0, error_code=error, error_message=message, member_epoch=0, heartbeat_interval_ms=0
    )
