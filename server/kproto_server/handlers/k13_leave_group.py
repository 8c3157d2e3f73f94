"""LeaveGroup (API key 13): remove members by member id, or static members by group instance id (GP-36)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.messages.k13_leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from kproto_server.coordinator.membership.leave import leave
from kproto_server.coordinator.write_errors import group_write_error
from kproto_server.handlers._member_requests import member_request_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto.messages.k13_leave_group import LeaveGroupRequest
    from kproto_server.deferred import DeferredResponse
    from kproto_server.requests.context import RequestContext

SEVERAL_SINCE = 3
"""The version from which on a request names several members, each with an error of its own."""


def handle(request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse | DeferredResponse:
    several = context.api_version >= SEVERAL_SINCE
    leaving = request.members if several else (MemberIdentity(member_id=request.member_id),)
    error = member_request_error(request.group_id, context)
    if error:
        return LeaveGroupResponse(error_code=error)
    identities = [(member.member_id, member.group_instance_id) for member in leaving]
    coordinator = context.coordinator
    left = leave(coordinator, request.group_id, identities, context.now_ms)

    def respond() -> LeaveGroupResponse:
        log_error = left.write_error() if coordinator.behavior.is_new_coordinator else 0
        if log_error:
            return LeaveGroupResponse(error_code=group_write_error(log_error, coordinator.behavior))
        return _response(leaving, left.errors) if several else LeaveGroupResponse(error_code=left.errors[0])

    # The record of a group without members: a restarted broker must not have them again.
    return coordinator.log.then(respond)


def _response(leaving: Sequence[MemberIdentity], errors: Sequence[int]) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        error_code=0,
        members=tuple(
            [
                MemberResponse(
                    member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=member_error
                )
                for member, member_error in zip(leaving, errors, strict=True)
            ]
        ),
    )
