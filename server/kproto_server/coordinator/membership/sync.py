"""SyncGroup: the leader hands in who reads what, and each member gets its part (GP-30 to GP-33)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.membership import members, timers
from kproto_server.coordinator.membership.phases import DelayedSync
from kproto_server.coordinator.membership.rebalance import fail_assignments, prepare_rebalance
from kproto_server.coordinator.membership.records import write_error, write_group
from kproto_server.coordinator.membership.responses import PendingResponse, SyncResult
from kproto_server.coordinator.membership.state_machine import COMPLETING, STABLE, SYNC, Sync, transition

if TYPE_CHECKING:
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group, Member
    from kproto_server.coordinator.membership.responses import SyncRequest


def sync(coordinator: GroupCoordinator, request: SyncRequest, now_ms: int) -> PendingResponse[SyncResult]:
    """Give a member its assignment; the reply may know it already."""
    response: PendingResponse[SyncResult] = PendingResponse()
    group = coordinator.groups.get(request.group_id)
    if group is None or group.kind == "consumer":
        response.complete(SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
        return response
    error = _error(coordinator, group, request)
    if error:
        response.complete(SyncResult(error))
        return response
    member = group.members[request.member_id]
    match SYNC[group.state]:
        case Sync.REJOIN:
            response.complete(SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
        case Sync.RESPOND:
            _note(group, member)
            response.complete(_assignment_of(group, member))
            if not coordinator.behavior.is_new_coordinator:
                members.extend_session(group, member, now_ms)
        case Sync.WAIT:
            _note(group, member)
            members.delay_sync(member, response)
            if member.member_id == group.leader_id:
                _store(coordinator, group, request.assignments, now_ms)
    timers.schedule(coordinator, group)
    return response


def _error(coordinator: GroupCoordinator, group: Group, request: SyncRequest) -> int:
    """Return why somebody has no assignment to get (GP-30)."""
    error = members.member_error(group, request.member_id, request.group_instance_id, coordinator.behavior)
    if error:
        return error
    if request.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if request.protocol_type not in (None, group.protocol_type) or request.protocol_name not in (
        None,
        group.protocol_name,
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return 0


def _note(group: Group, member: Member) -> None:
    """One more has asked for its assignment."""
    group.pending_sync_members.discard(member.member_id)
    if not group.pending_sync_members and isinstance(group.phase, DelayedSync):
        group.enter_phase(None)


def _store(coordinator: GroupCoordinator, group: Group, told: dict[str, bytes], now_ms: int) -> None:
    """Write what the leader assigns, then hand it out; of ids that it made up nobody hears (GP-31, GP-32)."""
    assignments = {member_id: told.get(member_id, b"") for member_id in group.members}
    generation = group.generation

    def done(log_error: int) -> None:
        if group.state is not COMPLETING or group.generation != generation:
            return  # somebody has come or gone meanwhile, and all were told to join again
        if log_error:
            fail_assignments(group, write_error(log_error, coordinator.behavior), now_ms)
            prepare_rebalance(coordinator, group, now_ms)
        else:
            _assign(group, assignments, now_ms)
        timers.schedule(coordinator, group)

    write_group(coordinator, group, now_ms, done, assignments)


def _assign(group: Group, assignments: dict[str, bytes], now_ms: int) -> None:
    for member in group.members.values():
        member.assignment = assignments[member.member_id]
        if members.complete_pending_sync(member, _assignment_of(group, member)):
            members.extend_session(group, member, now_ms)
    group.transition_to(transition(group.state, STABLE), now_ms)


def _assignment_of(group: Group, member: Member) -> SyncResult:
    return SyncResult(0, member.assignment, group.protocol_type, group.protocol_name)
