"""SyncGroup: the leader hands in who reads what, and each member gets its part (GP-30 to GP-33)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.membership import members, timers
from kproto_server.coordinator.membership.machine import COMPLETING, STABLE, SYNC, Sync, move
from kproto_server.coordinator.membership.phases import Syncing
from kproto_server.coordinator.membership.rebalance import begin, drop_assignments
from kproto_server.coordinator.membership.records import persist, write_error
from kproto_server.coordinator.membership.replies import Reply, SyncResult

if TYPE_CHECKING:
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group, Member
    from kproto_server.coordinator.membership.replies import SyncRequest


def sync(coordinator: GroupCoordinator, request: SyncRequest, now_ms: int) -> Reply[SyncResult]:
    """Give a member its assignment; the reply may know it already."""
    reply: Reply[SyncResult] = Reply()
    group = coordinator.groups.get(request.group_id)
    if group is None or group.kind == "consumer":
        reply.answer(SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
        return reply
    error = _error(coordinator, group, request)
    if error:
        reply.answer(SyncResult(error))
        return reply
    member = group.members[request.member_id]
    match SYNC[group.state]:
        case Sync.REJOIN:
            reply.answer(SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
        case Sync.ANSWER:
            _note(group, member)
            reply.answer(_assignment_of(group, member))
            if not coordinator.kafka_version.new_group_coordinator:
                members.expect(group, member, now_ms)
        case Sync.WAIT:
            _note(group, member)
            members.wait_to_sync(member, reply)
            if member.member_id == group.leader_id:
                _store(coordinator, group, request.assignments, now_ms)
    timers.arm(coordinator, group)
    return reply


def _error(coordinator: GroupCoordinator, group: Group, request: SyncRequest) -> int:
    """Return why somebody has no assignment to get (GP-30)."""
    error = members.member_error(group, request.member_id, request.group_instance_id, coordinator.kafka_version)
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
    group.pending_syncs.discard(member.member_id)
    if not group.pending_syncs and isinstance(group.phase, Syncing):
        group.enter(None)


def _store(coordinator: GroupCoordinator, group: Group, told: dict[str, bytes], now_ms: int) -> None:
    """Write what the leader assigns, then hand it out; of ids that it made up nobody hears (GP-31, GP-32)."""
    assignments = {member_id: told.get(member_id, b"") for member_id in group.members}
    generation = group.generation

    def done(log_error: int) -> None:
        if group.state is not COMPLETING or group.generation != generation:
            return  # somebody has come or gone meanwhile, and all were told to join again
        if log_error:
            drop_assignments(group, write_error(log_error, coordinator.kafka_version), now_ms)
            begin(coordinator, group, now_ms)
        else:
            _hand_out(group, assignments, now_ms)
        timers.arm(coordinator, group)

    persist(coordinator, group, now_ms, done, assignments)


def _hand_out(group: Group, assignments: dict[str, bytes], now_ms: int) -> None:
    for member in group.members.values():
        member.assignment = assignments[member.member_id]
        if members.answer_sync(member, _assignment_of(group, member)):
            members.expect(group, member, now_ms)
    group.transition_to(move(group.state, STABLE), now_ms)


def _assignment_of(group: Group, member: Member) -> SyncResult:
    return SyncResult(0, member.assignment, group.protocol_type, group.protocol_name)
