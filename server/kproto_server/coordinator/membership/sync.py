"""SyncGroup: the leader brings the assignments of all members, and each member gets its own (GP-30 to GP-33).

Theory of operation. In CompletingRebalance each SyncGroup is pending. The leader's writes the group with the
assignments to the log; once the log has it, all pending requests are completed and the group is Stable. A SyncGroup to
a Stable group gets the present assignment. Events between append and sync may have begun another rebalance: then the
assignments that were written are obsolete, and the members have got REBALANCE_IN_PROGRESS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.membership import members, timers
from kproto_server.coordinator.membership.phases import DelayedSync
from kproto_server.coordinator.membership.rebalance import fail_assignments, prepare_rebalance
from kproto_server.coordinator.membership.records import write_group
from kproto_server.coordinator.membership.responses import PendingResponse, SyncResult
from kproto_server.coordinator.membership.state_machine import COMPLETING, STABLE, SYNC, Sync, transition
from kproto_server.coordinator.write_errors import group_write_error

if TYPE_CHECKING:
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group, Member
    from kproto_server.coordinator.membership.requests import SyncRequest


def sync(coordinator: GroupCoordinator, request: SyncRequest, now_ms: int) -> PendingResponse[SyncResult]:
    """Handle a SyncGroup to a node that coordinates the group; return its response, pending or complete."""
    response: PendingResponse[SyncResult] = PendingResponse()
    group = coordinator.groups.get(request.group_id)
    if group is not None and group.kind == "consumer":
        from kproto_server.coordinator.consumer_groups import classic_members

        classic_members.sync(coordinator, group, request, now_ms, response)
        return response
    if group is None or group.kind != "classic":
        response.complete(SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
        return response
    error = _sync_error(coordinator, group, request)
    if error:
        response.complete(SyncResult(error))
        return response
    member = group.members[request.member_id]
    match SYNC[group.state]:
        case Sync.REJOIN:
            response.complete(SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
        case Sync.RESPOND:
            _note_sync(group, member)
            response.complete(_assignment_of(group, member))
            if not coordinator.behavior.is_new_coordinator:
                members.extend_session(group, member, now_ms)
        case Sync.WAIT:
            _note_sync(group, member)
            members.delay_sync(member, response)
            hold = coordinator.holds.get(group.group_id)
            if hold is not None and hold.phase == "sync":
                if member.member_id == group.leader_id:
                    hold.note(group.generation, request.assignments)
            elif member.member_id == group.leader_id:
                write_assignments(coordinator, group, request.assignments, now_ms)
    timers.schedule(coordinator, group)
    return response


def _sync_error(coordinator: GroupCoordinator, group: Group, request: SyncRequest) -> int:
    """Return why the request is rejected; 0 if it is not (GP-30)."""
    error = members.member_error(group, request.member_id, request.group_instance_id, coordinator.behavior)
    if error:
        return error
    if request.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    for given, of_group in ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol_name)):
        # Before its first generation the group has none: the new coordinator accepts any (measured on 4.4.0).
        if given not in (None, of_group) and not (of_group is None and coordinator.behavior.is_new_coordinator):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return 0


def _note_sync(group: Group, member: Member) -> None:
    """Note that a member has sent SyncGroup; the last one ends the phase."""
    group.pending_sync_members.discard(member.member_id)
    if not group.pending_sync_members and isinstance(group.phase, DelayedSync):
        group.enter_phase(None)


def write_assignments(coordinator: GroupCoordinator, group: Group, received: dict[str, bytes], now_ms: int) -> None:
    """Write the leader's assignments, then distribute them; unknown member ids are ignored (GP-31, GP-32)."""
    assignments = {member_id: received.get(member_id, b"") for member_id in group.members}
    generation = group.generation

    def done(log_error: int) -> None:
        if group.state is not COMPLETING or group.generation != generation:
            return  # another rebalance has begun
        if log_error:
            fail_assignments(group, group_write_error(log_error, coordinator.behavior), now_ms)
            prepare_rebalance(coordinator, group, now_ms)
        else:
            _distribute(group, assignments, now_ms)
        timers.schedule(coordinator, group)

    write_group(coordinator, group, now_ms, done, assignments)


def _distribute(group: Group, assignments: dict[str, bytes], now_ms: int) -> None:
    """Set the assignments, complete the pending SyncGroups, and enter Stable."""
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
        if members.complete_pending_sync(member, _assignment_of(group, member)):
            members.extend_session(group, member, now_ms)
    group.transition_to(transition(group.state, STABLE), now_ms)


def _assignment_of(group: Group, member: Member) -> SyncResult:
    return SyncResult(0, member.assignment, group.protocol_type, group.protocol_name)
