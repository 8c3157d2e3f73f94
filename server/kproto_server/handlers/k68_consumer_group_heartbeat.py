"""ConsumerGroupHeartbeat (API key 68): a member of KIP-848 joins, stays or leaves, and gets its assignment (GP-50)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k68_consumer_group_heartbeat import Assignment, ConsumerGroupHeartbeatResponse, TopicPartitions
from kproto_server.cluster.topics import Refusal
from kproto_server.coordinator.consumer_groups.heartbeat import HeartbeatResult, heartbeat
from kproto_server.coordinator.consumer_groups.limits import consumer_limits_of
from kproto_server.coordinator.consumer_groups.requests import request_error
from kproto_server.coordinator.consumer_groups.targets import hashed_rack_of
from kproto_server.coordinator.epoch_groups.requests import TOPICS_OF_TURN, Client
from kproto_server.coordinator.subscribed_topics import hash_in_steps
from kproto_server.coordinator.write_errors import group_write_error
from kproto_server.deferred import at_turn, in_slices
from kproto_server.security.acls import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from kproto_server.deferred import DeferredResponse, DelayedOperation
    from kproto_server.requests.context import RequestContext


def handle(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupHeartbeatResponse | DeferredResponse | DelayedOperation:
    if len(request.subscribed_topic_names or ()) > TOPICS_OF_TURN:
        return in_slices(_in_steps(request, context), context.now_ms)
    return _heartbeat(request, context)


def _in_steps(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> Generator[None, None, ConsumerGroupHeartbeatResponse | DeferredResponse | DelayedOperation]:
    coordinator = context.coordinator
    yield
    yield from hash_in_steps(request.subscribed_topic_names or (), coordinator.topics, hashed_rack_of(coordinator))
    return _heartbeat(request, context)


def _heartbeat(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupHeartbeatResponse | DeferredResponse | DelayedOperation:
    coordinator = context.coordinator
    if not coordinator.behavior.has_consumer_groups:
        return _refused(ErrorCode.UNSUPPORTED_VERSION, None)
    refusal = request_error(request, context.api_version, consumer_limits_of(coordinator.settings.current).assignors)
    if refusal is not None:
        return _refused(refusal.error, refusal.message)
    error = coordinator.error_at(context.node, request.group_id)
    if error:
        return _refused(error, ErrorCode(error).message)
    client = Client(context.client_id, context.connection.client_host, _may_describe(context))
    result = heartbeat(coordinator, request, client, context.now_ms)
    if isinstance(result, Refusal):
        return _refused(result.error, result.message)

    def respond() -> ConsumerGroupHeartbeatResponse:
        if result.write.error:
            write_error = group_write_error(result.write.error, coordinator.behavior)
            return _refused(write_error, ErrorCode(write_error).message)
        return _accepted(result)

    if len(result.assignment or ()) > TOPICS_OF_TURN:
        return at_turn(lambda: coordinator.log.then(respond), context.now_ms)
    return coordinator.log.then(respond)


def _may_describe(context: RequestContext) -> Callable[[str], bool] | None:
    """Return what `Client.may_describe` has: topics that an expression matches are known to the coordinator only."""
    authorizer, connection = context.cluster.authorizer, context.connection
    if authorizer is None or not context.coordinator.behavior.regex_finds_visible_topics:
        return None
    principal, host = connection.principal, connection.client_host.lstrip("/")
    return lambda topic: authorizer.allows(principal, host, Operation.DESCRIBE, ResourceType.TOPIC, topic)


def _accepted(result: HeartbeatResult) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if result.assignment is not None:
        assignment = Assignment(
            topic_partitions=tuple(
                [
                    TopicPartitions(topic_id=topic_id, partitions=tuple(sorted(indexes)))
                    for topic_id, indexes in result.assignment.items()
                ]
            )
        )
    return ConsumerGroupHeartbeatResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval_ms=result.interval_ms,
        assignment=assignment,
    )


def _refused(error: int, message: str | None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        throttle_time_ms=0, error_code=error, error_message=message, member_epoch=0, heartbeat_interval_ms=0
    )
