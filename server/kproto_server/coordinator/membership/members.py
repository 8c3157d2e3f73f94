"""Operations on one member: identity checks, its session, its pending requests, and its removal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.membership.responses import JoinedMember, JoinResult, SyncResult, rejected_join

if TYPE_CHECKING:
    from kproto_server.coordinator.groups import Group, Member
    from kproto_server.coordinator.membership.requests import JoinRequest
    from kproto_server.coordinator.membership.responses import PendingResponse
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior


def member_error(group: Group, member_id: str, group_instance_id: str | None, behavior: CoordinatorBehavior) -> int:
    """Return why an id and an instance id name no member of the group; 0 if they do (GP-30, GP-35)."""
    if group_instance_id is not None:
        owner = group.static_members.get(group_instance_id)
        if owner is not None and owner != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
        if owner is None and behavior.requires_known_instance_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
    return 0 if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def extend_session(group: Group, member: Member, now_ms: int, timeout_ms: int | None = None) -> None:
    """Move a member's deadline to a timeout from now, by default its session timeout."""
    member.session_deadline_ms = now_ms + (member.session_timeout_ms if timeout_ms is None else timeout_ms)
    check_members_by(group, member.session_deadline_ms)


def check_members_by(group: Group, deadline_ms: int) -> None:
    """Have the sessions of the group's members checked at a deadline, or before."""
    if group.next_member_check_ms is None or deadline_ms < group.next_member_check_ms:
        group.next_member_check_ms = deadline_ms


def update(group: Group, member: Member, request: JoinRequest) -> None:
    """Take the protocols and timeouts of a member that rejoins."""
    group.set_protocols(member, request.protocols)
    member.session_timeout_ms = request.session_timeout_ms
    member.rebalance_timeout_ms = request.rebalance_timeout_ms


def delay_join(group: Group, member: Member, response: PendingResponse[JoinResult]) -> None:
    """Keep a member's JoinGroup pending."""
    if member.pending_join is None:
        group.pending_join_count += 1
    else:
        response.supersede(member.pending_join)
    member.pending_join = response


def complete_pending_join(group: Group, member: Member, result: JoinResult) -> None:
    """Complete a member's JoinGroup, if one is pending."""
    if member.pending_join is not None:
        member.pending_join.complete(result)
        member.pending_join = None
        group.pending_join_count -= 1


def delay_sync(member: Member, response: PendingResponse[SyncResult]) -> None:
    """Keep a member's SyncGroup pending."""
    if member.pending_sync is not None:
        response.supersede(member.pending_sync)
    member.pending_sync = response


def complete_pending_sync(member: Member, result: SyncResult) -> bool:
    """Complete a member's SyncGroup; return whether one was pending."""
    if member.pending_sync is None:
        return False
    member.pending_sync.complete(result)
    member.pending_sync = None
    return True


def remove(group: Group, member: Member) -> None:
    """Remove a member, and fail its pending requests with UNKNOWN_MEMBER_ID (GP-18)."""
    complete_pending_join(group, member, rejected_join(ErrorCode.UNKNOWN_MEMBER_ID, ""))
    complete_pending_sync(member, SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
    group.pending_sync_members.discard(member.member_id)
    group.remove_member(member.member_id)


def join_result(group: Group, member: Member) -> JoinResult:
    """Return the present generation; the leader's result has all members, the others' only the leader's id."""
    leads = member.member_id == group.leader_id
    return JoinResult(
        0,
        member.member_id,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.leader_id or "",
        _joined_members(group) if leads else (),
    )


def _joined_members(group: Group) -> tuple[JoinedMember, ...]:
    return tuple(
        [JoinedMember(member.member_id, member.group_instance_id, member.metadata) for member in group.members.values()]
    )
