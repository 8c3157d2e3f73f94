"""StreamsGroupHeartbeat (API key 88): a member of a Kafka Streams application joins, stays or leaves, and gets its
tasks (KIP-1071)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k88_streams_group_heartbeat import Status, StreamsGroupHeartbeatResponse, TaskIds
from kproto_server.cluster.features import STREAMS_VERSION
from kproto_server.cluster.topics import Refusal
from kproto_server.coordinator.epoch_groups.requests import Client
from kproto_server.coordinator.streams_groups.heartbeat import HeartbeatResult, heartbeat
from kproto_server.coordinator.streams_groups.requests import request_refusal, topics_refusal
from kproto_server.coordinator.streams_groups.statuses import StatusCode
from kproto_server.coordinator.streams_groups.version_behavior import behavior_of
from kproto_server.coordinator.write_errors import group_write_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto.messages.k88_streams_group_heartbeat import StreamsGroupHeartbeatRequest
    from kproto_server.coordinator.streams_groups.data import Tasks
    from kproto_server.deferred import DeferredResponse
    from kproto_server.requests.context import RequestContext

NO_LAG = -1
SHOWN_MAX = 3
"""Topics that could not be created of which the status says why."""
PROBLEM_HEARTBEATS = 2
"""Heartbeat intervals for which a topic that could not be created is reported."""


def handle(
    request: StreamsGroupHeartbeatRequest, context: RequestContext
) -> StreamsGroupHeartbeatResponse | DeferredResponse:
    coordinator = context.coordinator
    refusal = _refusal(request, context)
    if refusal is not None:
        return _refused(refusal)
    client = Client(context.client_id, context.connection.client_host)
    result = heartbeat(coordinator, request, client, context.api_version, context.now_ms)
    if isinstance(result, Refusal):
        return _refused(result)
    problems = _create(result, context)

    def respond() -> StreamsGroupHeartbeatResponse:
        if result.write.error:
            write_error = group_write_error(result.write.error, coordinator.behavior)
            return _refused(Refusal(ErrorCode(write_error), ErrorCode(write_error).message))
        return _accepted(result, problems, has_offsets=behavior_of(coordinator).has_task_offsets)

    return coordinator.log.then(respond)


def _refusal(request: StreamsGroupHeartbeatRequest, context: RequestContext) -> Refusal | None:
    if not context.cluster.features.level(STREAMS_VERSION):
        return Refusal(ErrorCode.UNSUPPORTED_VERSION)
    if request.topology is not None:
        refusal = topics_refusal(request.topology, context.kafka_version)
        if refusal is not None:
            return refusal
    refusal = request_refusal(request, behavior_of(context.coordinator))
    if refusal is not None:
        return refusal
    error = context.coordinator.error_at(context.node, request.group_id)
    return Refusal(ErrorCode(error), ErrorCode(error).message) if error else None


def _create(result: HeartbeatResult, context: RequestContext) -> dict[str, str]:
    """Create internal topics of a topology; return what was wrong with those that could not be created before.

    A real broker creates them after it has responded.
    """
    group, limits, now_ms = result.group, result.limits, context.now_ms
    if group is None or limits is None or not result.missing_topics:
        return {}
    known = {name: problem for name, (problem, end_ms) in group.creation_problems.items() if now_ms < end_ms}
    end_ms = now_ms + PROBLEM_HEARTBEATS * limits.heartbeat_interval_ms
    for topic in result.missing_topics:
        made = context.cluster.create_topic(
            topic.name,
            partition_count=topic.partition_count,
            replication_factor=topic.replication_factor,
            configs=topic.configs,
            now_ms=now_ms,
        )
        group.creation_problems.pop(topic.name, None)
        if isinstance(made, Refusal):
            group.creation_problems[topic.name] = made.message or made.error.message, end_ms
    return known


def _accepted(result: HeartbeatResult, problems: dict[str, str], *, has_offsets: bool) -> StreamsGroupHeartbeatResponse:
    limits, tasks = result.limits, result.tasks
    response = StreamsGroupHeartbeatResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval_ms=0 if limits is None else limits.heartbeat_interval_ms,
        task_offset_interval_ms=limits.task_offset_interval_ms if has_offsets and limits is not None else 0,
        acceptable_recovery_lag=NO_LAG if limits is None else limits.acceptable_recovery_lag,
        status=tuple([Status(status_code=code, status_detail=detail) for code, detail in result.statuses]),
        endpoint_information_epoch=result.endpoint_epoch,
        partitions_by_user_endpoint=None if result.endpoints is None else tuple(result.endpoints),
    )
    if problems:
        response = response.replace(status=_with_problems(response.status or (), problems))
    if tasks is None:
        return response
    return response.replace(
        active_tasks=_ids(tasks.active), standby_tasks=_ids(tasks.standby), warmup_tasks=_ids(tasks.warmup)
    )


def _with_problems(statuses: Sequence[Status], problems: dict[str, str]) -> tuple[Status, ...]:
    shown = ", ".join([f"{name} ({problem})" for name, problem in list(problems.items())[:SHOWN_MAX]])
    more = f" and {len(problems) - SHOWN_MAX} more" if len(problems) > SHOWN_MAX else ""
    found = f"; Creation failed: {shown}{more}."
    return tuple(
        [
            one.replace(status_detail=one.status_detail + found)
            if one.status_code == StatusCode.MISSING_INTERNAL_TOPICS
            else one
            for one in statuses
        ]
    )


def _ids(tasks: Tasks) -> tuple[TaskIds, ...]:
    return tuple(
        [TaskIds(subtopology_id=one, partitions=tuple(sorted(indexes))) for one, indexes in sorted(tasks.items())]
    )


def _refused(refusal: Refusal) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(
        throttle_time_ms=0,
        error_code=refusal.error,
        error_message=refusal.message,
        member_id="",
        member_epoch=0,
        heartbeat_interval_ms=0,
        task_offset_interval_ms=0,
        status=(),
        endpoint_information_epoch=0,
    )
