"""A static member returns with a new member id, and replaces the member with its instance id (KIP-345, KIP-814; GP-34).

Theory of operation. The new member takes over what the group knows of the old one; requests that still use the old id
are fenced. What happens then depends on the state:

- Stable, and the group would select the same protocol: no rebalance. Since 2.6 the new id is first written to the log,
  and a failed write restores the old member.
- Stable otherwise: a rebalance, as for any member that changes its protocols.
- PreparingRebalance: the member has joined.
- CompletingRebalance: the leader is about to assign to the old id, so there is a new rebalance; before 2.5 the member
  gets the present generation, but no assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.groups import Member
from kproto_server.coordinator.membership import members
from kproto_server.coordinator.membership.protocols import select_protocol
from kproto_server.coordinator.membership.rebalance import prepare_rebalance, try_complete_join
from kproto_server.coordinator.membership.records import write_group
from kproto_server.coordinator.membership.responses import SyncResult, rejected_join
from kproto_server.coordinator.membership.state_machine import COMPLETING, STABLE
from kproto_server.coordinator.write_errors import group_write_error

if TYPE_CHECKING:
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.membership.requests import JoinRequest
    from kproto_server.coordinator.membership.responses import JoinResult, PendingResponse


def rejoin(
    coordinator: GroupCoordinator,
    group: Group,
    request: JoinRequest,
    member_id: str,
    now_ms: int,
    response: PendingResponse[JoinResult],
) -> None:
    """Replace the member with the request's instance id by one with a new member id."""
    behavior, leader_id = coordinator.behavior, group.leader_id or ""
    assert request.group_instance_id is not None, "checked by the caller"
    old = group.members[group.static_members[request.group_instance_id]]
    member = replace(group, old, member_id)
    members.extend_session(group, member, now_ms)
    members.update(group, member, request)
    stores = behavior.writes_returning_static_members
    if group.state is STABLE and (not stores or select_protocol(group) == group.protocol_name):
        member.metadata = member.metadata_for(group.protocol_name)
        _rejoin_stable(coordinator, group, request, member, old, leader_id, now_ms, response)
        return
    if group.state is COMPLETING and not behavior.returning_static_member_restarts_rebalance:
        response.complete(_result_without_members(group, member, leader_id))
        return
    members.delay_join(group, member, response)
    if group.state in (STABLE, COMPLETING):
        prepare_rebalance(coordinator, group, now_ms)
    else:
        try_complete_join(coordinator, group, now_ms)


def replace(group: Group, old: Member, member_id: str) -> Member:
    """Replace a member by one with another id; fail the old one's pending requests with FENCED_INSTANCE_ID."""
    leads = group.leader_id == old.member_id
    members.complete_pending_join(group, old, rejected_join(ErrorCode.FENCED_INSTANCE_ID, old.member_id))
    members.complete_pending_sync(old, SyncResult(ErrorCode.FENCED_INSTANCE_ID))
    group.remove_member(old.member_id)
    member = Member(
        member_id,
        group_instance_id=old.group_instance_id,
        client_id=old.client_id,
        client_host=old.client_host,
        session_timeout_ms=old.session_timeout_ms,
        rebalance_timeout_ms=old.rebalance_timeout_ms,
        protocols=old.protocols,
        metadata=old.metadata,
        assignment=old.assignment,
    )
    group.add_member(member)
    if leads:
        group.leader_id = member_id
    if old.member_id in group.pending_sync_members:
        group.pending_sync_members.remove(old.member_id)
        group.pending_sync_members.add(member_id)
    return member


def _rejoin_stable(
    coordinator: GroupCoordinator,
    group: Group,
    request: JoinRequest,
    member: Member,
    old: Member,
    leader_id: str,
    now_ms: int,
    response: PendingResponse[JoinResult],
) -> None:
    """Write the member's new id to the log, and respond with the present generation: there is no rebalance."""
    members.delay_join(group, member, response)

    def done(log_error: int) -> None:
        if member.pending_join is None:
            return  # an event between append and sync has completed the request
        if log_error:
            error = group_write_error(log_error, coordinator.behavior)
            result = _result_without_members(group, member, leader_id)._replace(error=error, member_id="")
            members.complete_pending_join(group, member, result)
            _restore(group, member, old)
        elif request.supports_skipping_assignment:
            members.complete_pending_join(group, member, _result_that_skips_assignment(group, member))
        else:
            members.complete_pending_join(group, member, _result_without_members(group, member, leader_id))

    if coordinator.behavior.writes_returning_static_members:
        write_group(coordinator, group, now_ms, done)
    else:
        done(0)


def _restore(group: Group, member: Member, old: Member) -> None:
    """Undo a replacement. In a rebalance that has begun meanwhile the member keeps its new protocols: others may have
    joined with protocols that have only those in common."""
    restored = replace(group, member, old.member_id)
    if group.state is not STABLE:
        return
    group.set_protocols(restored, old.protocols)
    restored.session_timeout_ms, restored.rebalance_timeout_ms = old.session_timeout_ms, old.rebalance_timeout_ms
    restored.metadata = old.metadata


def _result_without_members(group: Group, member: Member, leader_id: str) -> JoinResult:
    """Return a result that names the old leader id: a leader that returns takes itself for a follower, and does not
    assign."""
    return members.join_result(group, member)._replace(leader_id=leader_id, members=())


def _result_that_skips_assignment(group: Group, member: Member) -> JoinResult:
    """Return a result that names the new leader id, for a leader that understands that it need not assign."""
    leads = member.member_id == group.leader_id
    return members.join_result(group, member)._replace(skip_assignment=leads)
