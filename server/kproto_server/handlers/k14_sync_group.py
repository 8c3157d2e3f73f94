"""SyncGroup (API key 14): return a member's assignment, once the leader has sent it and the log has it (GP-30)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k14_sync_group import SyncGroupResponse
from kproto_server.coordinator.membership.requests import SyncRequest
from kproto_server.coordinator.membership.responses import SyncResult
from kproto_server.coordinator.membership.sync import sync
from kproto_server.deferred import DelayedOperation
from kproto_server.handlers._member_requests import member_request_error

if TYPE_CHECKING:
    from kproto.messages.k14_sync_group import SyncGroupRequest
    from kproto_server.requests.context import RequestContext

NAMES_SINCE = 5
"""The version from which on a member sends the protocol that it takes for the selected one (KIP-559)."""


def handle(request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse | DelayedOperation:
    error = 0
    if context.api_version >= NAMES_SINCE and None in (request.protocol_type, request.protocol_name):
        error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    error = error or member_request_error(request.group_id, context)
    if error:
        if error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and not context.coordinator.behavior.is_new_coordinator:
            # The rebalance is lost, and old clients do not handle COORDINATOR_LOAD_IN_PROGRESS here.
            error = ErrorCode.REBALANCE_IN_PROGRESS
        return _response(SyncResult(error))
    sync_request = SyncRequest(
        request.group_id,
        request.generation_id,
        request.member_id,
        request.group_instance_id,
        request.protocol_type,
        request.protocol_name,
        {one.member_id: one.assignment for one in request.assignments},
    )
    pending = sync(context.coordinator, sync_request, context.now_ms)

    def response() -> SyncGroupResponse:
        # There is no result if the broker stops. The client then looks for the group's next coordinator.
        return _response(pending.result or SyncResult(ErrorCode.NOT_COORDINATOR))

    return DelayedOperation(None, response, pending.completion) if pending.result is None else response()


def _response(result: SyncResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=result.error,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )
