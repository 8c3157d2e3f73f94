"""Heartbeat (API key 12): extend a member's session; the response says whether it has to rejoin (GP-35)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k12_heartbeat import HeartbeatResponse
from kproto_server.coordinator.membership.heartbeat import heartbeat
from kproto_server.handlers._member_requests import member_request_error

if TYPE_CHECKING:
    from kproto.messages.k12_heartbeat import HeartbeatRequest
    from kproto_server.requests.context import RequestContext


def handle(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    error = member_request_error(request.group_id, context)
    if error:
        # While the group is loaded, heartbeats succeed, so that no member rejoins (LF-30).
        return HeartbeatResponse(error_code=0 if error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error)
    group = context.coordinator.groups.get(request.group_id)
    if group is not None and group.kind == "consumer":
        from kproto_server.coordinator.consumer_groups import classic_members

        error = classic_members.heartbeat(
            context.coordinator,
            group,
            request.generation_id,
            request.member_id,
            request.group_instance_id,
            context.now_ms,
        )
        return HeartbeatResponse(error_code=error)
    error = heartbeat(
        group,
        request.generation_id,
        request.member_id,
        request.group_instance_id,
        context.now_ms,
        context.coordinator.behavior,
    )
    return HeartbeatResponse(error_code=error)
