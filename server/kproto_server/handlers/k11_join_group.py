"""JoinGroup (API key 11): waits until all members have joined, then tells the generation (GP-10 to GP-24)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k11_join_group import JoinGroupResponse, JoinGroupResponseMember
from kproto_server.coordinator.membership.join import join
from kproto_server.coordinator.membership.limits import group_limits_of
from kproto_server.coordinator.membership.responses import JoinRequest, JoinResult, rejected_join
from kproto_server.handlers._coordination import coordination_error
from kproto_server.releases.release import VersionBehavior
from kproto_server.requests.deferred import DelayedOperation

if TYPE_CHECKING:
    from kproto.messages.k11_join_group import JoinGroupRequest
    from kproto_server.requests.context import RequestContext

KNOWN_IDS_SINCE = 4
"""From here on a new member is told its id first (KIP-394)."""
NULL_NAMES_SINCE = 7
SKIPS_SINCE = 9


class JoinGroupBehavior(VersionBehavior):
    """What Kafka releases do differently in JoinGroup responses."""

    @cached_property
    def refused_generation(self) -> int:
        """The generation in the response to a refused JoinGroup: 0 up to 2.1, then -1 (GP-3)."""
        return -1 if self.at_least(2, 2) else 0


def handle(request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse | DelayedOperation:
    refusal = _refusal(request, context)
    if refusal is not None:
        return _response(refusal, context)
    reply = join(context.coordinator, _asked(request, context), context.now_ms)

    def answer() -> JoinGroupResponse:
        # Without a result the broker is about to stop: the group's next coordinator is asked again.
        result = reply.result or rejected_join(ErrorCode.NOT_COORDINATOR, request.member_id)
        return _response(result, context)

    return DelayedOperation(None, answer, reply.completion) if reply.result is None else answer()


def _refusal(request: JoinGroupRequest, context: RequestContext) -> JoinResult | None:
    """Return why the request gets no further than here (GP-10 rows 3 to 6)."""
    limits = group_limits_of(context.settings.current)
    fits = limits.session_timeout_min_ms <= request.session_timeout_ms <= limits.session_timeout_max_ms
    error = coordination_error(request.group_id, context)
    if fits and not error:
        return None
    if context.coordinator.behavior.is_new_coordinator and error != ErrorCode.INVALID_GROUP_ID:
        if not fits:
            return rejected_join(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id)
        return rejected_join(ErrorCode(error), "") if error else None
    return rejected_join(ErrorCode(error or ErrorCode.INVALID_SESSION_TIMEOUT), request.member_id)


def _asked(request: JoinGroupRequest, context: RequestContext) -> JoinRequest:
    # By place, as the other values that each request makes: by name they take twice as long.
    return JoinRequest(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        context.client_id,
        context.connection.client_host,
        request.session_timeout_ms,
        # Version 0 has none (GP-2).
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
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    metadata=member.metadata,
                )
                for member in result.members
            ]
        ),
    )
