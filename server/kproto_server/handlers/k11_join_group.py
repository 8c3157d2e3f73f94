"""JoinGroup (API key 11): join a group; the response is due when the rebalance completes (GP-10 to GP-24)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k11_join_group import JoinGroupResponse, JoinGroupResponseMember
from kproto_server.coordinator.membership.join import join
from kproto_server.coordinator.membership.limits import group_limits_of
from kproto_server.coordinator.membership.requests import JoinRequest
from kproto_server.coordinator.membership.responses import JoinResult, rejected_join
from kproto_server.deferred import SMALL_BYTES, DelayedOperation, LargeResponse, sum_exceeds
from kproto_server.handlers._member_requests import member_request_error
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from kproto.messages.k11_join_group import JoinGroupRequest
    from kproto_server.requests.context import RequestContext

KNOWN_IDS_SINCE = 4
"""The version from which on a new member first receives a member id, and joins again with it (KIP-394)."""
NULL_NAMES_SINCE = 7
SKIPS_SINCE = 9


class JoinGroupBehavior(VersionBehavior):
    """What Kafka releases do differently in JoinGroup responses."""

    @cached_property
    def refused_generation(self) -> int:
        """The generation in the response to a refused JoinGroup: 0 up to 2.1, then -1 (GP-3)."""
        return -1 if self.at_least(2, 2) else 0


def handle(request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse | LargeResponse | DelayedOperation:
    refusal = _refusal(request, context)
    if refusal is not None:
        return _response(refusal, context)
    pending = join(context.coordinator, _join_request(request, context), context.now_ms)

    def response() -> JoinGroupResponse | LargeResponse:
        # There is no result if the broker stops. The client then looks for the group's next coordinator.
        result = pending.result or rejected_join(ErrorCode.NOT_COORDINATOR, request.member_id)
        made = _response(result, context)
        sizes = (len(one.member_id) + len(one.group_instance_id or "") + len(one.metadata) for one in result.members)
        is_large = sum_exceeds(SMALL_BYTES, sizes)
        return LargeResponse(made) if is_large else made

    return DelayedOperation(None, response, pending.completion) if pending.result is None else response()


def _refusal(request: JoinGroupRequest, context: RequestContext) -> JoinResult | None:
    """Return the error of a request that does not reach the group (GP-10 rows 3 to 6)."""
    limits = group_limits_of(context.settings.current)
    fits = limits.session_timeout_min_ms <= request.session_timeout_ms <= limits.session_timeout_max_ms
    error = member_request_error(request.group_id, context)
    if fits and not error:
        return None
    if context.coordinator.behavior.is_new_coordinator and error != ErrorCode.INVALID_GROUP_ID:
        if not fits:
            return rejected_join(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id)
        return rejected_join(ErrorCode(error), "") if error else None
    return rejected_join(ErrorCode(error or ErrorCode.INVALID_SESSION_TIMEOUT), request.member_id)


def _join_request(request: JoinGroupRequest, context: RequestContext) -> JoinRequest:
    # Positional: keyword arguments take twice as long, and each request makes this tuple.
    return JoinRequest(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        context.client_id,
        context.connection.client_host,
        request.session_timeout_ms,
        # v0 has no rebalance timeout (GP-2).
        request.session_timeout_ms if context.api_version == 0 else request.rebalance_timeout_ms,
        request.protocol_type,
        tuple([(protocol.name, protocol.metadata) for protocol in request.protocols]),
        context.api_version >= KNOWN_IDS_SINCE,
        context.api_version >= SKIPS_SINCE,
    )


def _response(result: JoinResult, context: RequestContext) -> JoinGroupResponse:
    name = result.protocol_name or (None if context.api_version >= NULL_NAMES_SINCE else "")
    return JoinGroupResponse(
        error_code=result.error,
        generation_id=context.behavior(JoinGroupBehavior).refused_generation if result.error else result.generation,
        protocol_type=result.protocol_type,
        protocol_name=name,
        leader=result.leader_id,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=tuple(
            [
                JoinGroupResponseMember(
                    member_id=member.member_id, group_instance_id=member.group_instance_id, metadata=member.metadata
                )
                for member in result.members
            ]
        ),
    )
