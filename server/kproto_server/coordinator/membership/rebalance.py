"""A rebalance from its beginning to the generation that it ends with (GP-20 to GP-26).

Theory of operation. `begin` has the group gather; each join, and each member or pending id that goes, asks whether all
are there now (`complete_if_all_joined`), and if they never are, the phase's time is over some time (`gathered`). Then
`_start_generation` answers all joins in one step. A first gathering is another thing: it waits for those who may come,
whom nobody knows yet, so it is never over early; it is made longer as long as somebody comes (`first_gathered`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.membership import members
from kproto_server.coordinator.membership.limits import group_limits_of
from kproto_server.coordinator.membership.phases import DelayedJoin, DelayedSync, InitialDelayedJoin
from kproto_server.coordinator.membership.protocols import select_protocol, subscribed_topics_of
from kproto_server.coordinator.membership.records import write_group
from kproto_server.coordinator.membership.responses import SyncResult
from kproto_server.coordinator.membership.state_machine import (
    COMPLETING,
    EMPTY,
    PREPARING,
    REBALANCES_WHEN_LEFT,
    transition,
)

if TYPE_CHECKING:
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group


def prepare_rebalance(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """Have all members join again (GP-20)."""
    if group.state is COMPLETING:
        fail_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS, now_ms)
    group.pending_sync_members.clear()
    is_first = group.state is EMPTY
    group.transition_to(transition(group.state, PREPARING), now_ms)
    if is_first and coordinator.behavior.has_initial_rebalance_delay:
        delay_ms = group_limits_of(coordinator.settings.current).initial_rebalance_delay_ms
        group.new_member_added = False
        remaining_ms = max(0, rebalance_timeout_ms(group) - delay_ms)
        group.enter_phase(InitialDelayedJoin(now_ms + delay_ms, delay_ms, remaining_ms))
    else:
        group.enter_phase(DelayedJoin(now_ms + rebalance_timeout_ms(group)))
        try_complete_join(coordinator, group, now_ms)


def prepare_rebalance_or_complete_join(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """Begin a rebalance; if one is under way, see whether all have joined."""
    if group.state is PREPARING:
        try_complete_join(coordinator, group, now_ms)
    else:
        prepare_rebalance(coordinator, group, now_ms)


def member_left(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """A member is out: the others join again, or, if they do so already, don't wait for it any more (GP-37)."""
    if group.state in REBALANCES_WHEN_LEFT:
        prepare_rebalance(coordinator, group, now_ms)
    else:
        pending_member_left(coordinator, group, now_ms)


def pending_member_left(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """Somebody is out who had only been given an id."""
    if group.state is PREPARING:
        try_complete_join(coordinator, group, now_ms)


def try_complete_join(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """End a gathering that waits for nobody any more; a first one may wait for somebody still."""
    is_over = group.pending_join_count == len(group.members) and not group.pending_members
    if is_over and isinstance(group.phase, DelayedJoin):
        complete_join(coordinator, group, now_ms)


def extend_initial_delay_or_complete_join(
    coordinator: GroupCoordinator, group: Group, phase: InitialDelayedJoin, now_ms: int
) -> None:
    """The wait for more members is over: wait again if there were some (GP-20)."""
    if group.new_member_added and phase.remaining_ms:
        group.new_member_added = False
        delay_ms = min(group_limits_of(coordinator.settings.current).initial_rebalance_delay_ms, phase.remaining_ms)
        remaining_ms = max(0, phase.remaining_ms - phase.delay_ms)
        group.enter_phase(InitialDelayedJoin(now_ms + delay_ms, delay_ms, remaining_ms))
    else:
        complete_join(coordinator, group, now_ms)


def complete_join(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """A gathering is over: whoever has not come is out, static members apart (GP-22)."""
    absent = [member for member in group.members.values() if member.pending_join is None]
    for member in absent:
        if member.group_instance_id is None:
            members.remove(group, member)
    if group.members and not _elect_leader(group):
        # Only static members, and none of them has come: their sessions will be over, or they come.
        group.enter_phase(DelayedJoin(now_ms + rebalance_timeout_ms(group)))
        return
    _start_generation(coordinator, group, now_ms)


def _elect_leader(group: Group) -> bool:
    """Have somebody lead who has joined; return False if nobody has."""
    joined = (member.member_id for member in group.members.values() if member.pending_join is not None)
    leader = group.members.get(group.leader_id or "")
    if leader is None or leader.pending_join is None:
        first = next(joined, None)
        if first is None:
            return False
        group.leader_id = first
    return True


def _start_generation(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """Answer the joins, or have the group be empty (GP-23)."""
    group.generation += 1
    group.pending_sync_members.clear()
    group.enter_phase(None)
    if not group.members:
        _become_empty(coordinator, group, now_ms)
        return
    group.protocol_name = select_protocol(group)
    for member in group.members.values():
        member.metadata = member.metadata_for(group.protocol_name)
    group.subscribed_topics = subscribed_topics_of(group)
    group.transition_to(transition(group.state, COMPLETING), now_ms)
    for member in group.members.values():
        members.complete_pending_join(group, member, members.join_result(group, member))
        members.extend_session(group, member, now_ms)
        member.is_new = False
    if coordinator.behavior.has_pending_sync_timeout:
        group.pending_sync_members.update(group.members)
        group.enter_phase(DelayedSync(now_ms + rebalance_timeout_ms(group)))


def _become_empty(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """The last member is out: from here on offsets expire by the group's clock (EX-12)."""
    group.protocol_name = group.leader_id = None
    group.subscribed_topics = subscribed_topics_of(group)
    group.transition_to(transition(group.state, EMPTY), now_ms)
    if not coordinator.behavior.offsets_create_group:
        coordinator.groups.remove(group.group_id)
    # If it can't be written, the members come back at the next start, and are given up then.
    write_group(coordinator, group, now_ms, lambda log_error: None)


def fail_assignments(group: Group, error: int, now_ms: int) -> None:
    """Nobody gets what the leader would have assigned; those who wait for it are told why."""
    for member in group.members.values():
        member.assignment = b""
        if members.complete_pending_sync(member, SyncResult(error)):
            members.extend_session(group, member, now_ms)


def expire_pending_syncs(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """The time for SyncGroup is over: whoever has not asked is out, and the others join again (GP-25)."""
    for member_id in list(group.pending_sync_members):
        members.remove(group, group.members[member_id])
    prepare_rebalance(coordinator, group, now_ms)


def rebalance_timeout_ms(group: Group) -> int:
    """Return how long a gathering may last: as long as the slowest member asks for."""
    return max((member.rebalance_timeout_ms for member in group.members.values()), default=0)
