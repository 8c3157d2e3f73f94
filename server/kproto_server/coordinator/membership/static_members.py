"""A static member comes back under a new member id, and has its old place (KIP-345, KIP-814; GP-34)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.groups import Member
from kproto_server.coordinator.membership import members
from kproto_server.coordinator.membership.protocols import select_protocol
from kproto_server.coordinator.membership.rebalance import prepare_rebalance, try_complete_join
from kproto_server.coordinator.membership.records import write_error, write_group
from kproto_server.coordinator.membership.responses import SyncResult, rejected_join
from kproto_server.coordinator.membership.state_machine import COMPLETING, STABLE

if TYPE_CHECKING:
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.membership.responses import JoinRequest, JoinResult, PendingResponse


def rejoin(
    coordinator: GroupCoordinator,
    group: Group,
    request: JoinRequest,
    member_id: str,
    now_ms: int,
    response: PendingResponse[JoinResult],
) -> None:
    """Give an instance its place back under a new member id; who had it is fenced."""
    behavior, leader_id = coordinator.behavior, group.leader_id or ""
    assert request.group_instance_id is not None, "asked for before"
    old = group.members[group.static_members[request.group_instance_id]]
    member = replace(group, old, member_id)
    members.extend_session(group, member, now_ms)
    members.update(group, member, request)
    stores = behavior.writes_returning_static_members
    if group.state is STABLE and (not stores or select_protocol(group) == group.protocol_name):
        member.metadata = member.metadata_for(group.protocol_name)
        _answer_stable(coordinator, group, request, member, old, leader_id, now_ms, response)
        return
    if group.state is COMPLETING and not behavior.returning_static_member_restarts_rebalance:
        response.complete(_as_follower(group, member, leader_id))
        return
    members.delay_join(group, member, response)
    if group.state in (STABLE, COMPLETING):
        # In CompletingRebalance the leader is about to assign to the old id.
        prepare_rebalance(coordinator, group, now_ms)
    else:
        try_complete_join(coordinator, group, now_ms)


def replace(group: Group, old: Member, member_id: str) -> Member:
    """Put a member with another id in a member's place; what the old one waits for is answered 82."""
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


def _answer_stable(
    coordinator: GroupCoordinator,
    group: Group,
    request: JoinRequest,
    member: Member,
    old: Member,
    leader_id: str,
    now_ms: int,
    response: PendingResponse[JoinResult],
) -> None:
    """Nothing has to be assigned anew: write that the member has another id, and answer."""
    members.delay_join(group, member, response)

    def done(log_error: int) -> None:
        if member.pending_join is None:
            return  # the group has gone on meanwhile
        if log_error:
            error = _as_follower(group, member, leader_id)._replace(
                error=write_error(log_error, coordinator.behavior), member_id=""
            )
            members.complete_pending_join(group, member, error)
            _undo(group, member, old)
        elif request.supports_skipping_assignment:
            members.complete_pending_join(group, member, _may_skip(group, member))
        else:
            members.complete_pending_join(group, member, _as_follower(group, member, leader_id))

    if coordinator.behavior.writes_returning_static_members:
        write_group(coordinator, group, now_ms, done)
    else:
        done(0)


def _undo(group: Group, member: Member, old: Member) -> None:
    """Give the place back."""
    again = replace(group, member, old.member_id)
    group.set_protocols(again, old.protocols)
    again.session_timeout_ms, again.rebalance_timeout_ms = old.session_timeout_ms, old.rebalance_timeout_ms
    again.metadata = old.metadata


def _as_follower(group: Group, member: Member, leader_id: str) -> JoinResult:
    """What keeps a leader that came back from assigning: it is told its old id as the leader's, and has another."""
    return members.join_result(group, member)._replace(leader_id=leader_id, members=())


def _may_skip(group: Group, member: Member) -> JoinResult:
    """What a leader that came back is told if it understands that it leads, and has nothing to assign."""
    leads = member.member_id == group.leader_id
    return members.join_result(group, member)._replace(skip_assignment=leads)
