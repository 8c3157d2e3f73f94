"""SyncGroup (API key 14): waits for what the leader assigns; the leader's waits until that is written (GP-30)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k14_sync_group import SyncGroupResponse
from kproto_server.coordinator.membership.responses import SyncRequest, SyncResult
from kproto_server.coordinator.membership.sync import sync
from kproto_server.handlers._coordination import coordination_error
from kproto_server.requests.deferred import DelayedOperation

if TYPE_CHECKING:
    from kproto.messages.k14_sync_group import SyncGroupRequest
    from kproto_server.requests.context import RequestContext

NAMES_SINCE = 5
"""From here on a member says which protocol it takes for the chosen one (KIP-559)."""


def handle(request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse | DelayedOperation:
    error = 0
    if context.api_version >= NAMES_SINCE and None in (request.protocol_type, request.protocol_name):
        error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    error = error or coordination_error(request.group_id, context)
    if error:
        if error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and not context.coordinator.behavior.is_new_coordinator:
            error = ErrorCode.REBALANCE_IN_PROGRESS  # what was begun is lost, and old clients don't know 14 here
        return _response(SyncResult(error))
    asked = SyncRequest(
        request.group_id,
        request.generation_id,
        request.member_id,
        request.group_instance_id,
        request.protocol_type,
        request.protocol_name,
        {told.member_id: told.assignment for told in request.assignments},
    )
    reply = sync(context.coordinator, asked, context.now_ms)

    def answer() -> SyncGroupResponse:
        # Without a result the broker is about to stop: the group's next coordinator is asked again.
        return _response(reply.result or SyncResult(ErrorCode.NOT_COORDINATOR))

    return DelayedOperation(None, answer, reply.completion) if reply.result is None else answer()


def _response(result: SyncResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=result.error,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )
