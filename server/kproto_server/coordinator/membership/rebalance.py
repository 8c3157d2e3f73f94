"""A rebalance, from its beginning to the generation that it ends with (GP-20 to GP-26).

Theory of operation. A rebalance goes through phases (`phases`), each with a deadline:

    Empty
      |  first JoinGroup
      v
    PreparingRebalance, InitialDelayedJoin     ends at its deadline; extended while new members join
      |
      |    Stable or CompletingRebalance
      |      |  a member joins, leaves, or changes its protocols: `prepare_rebalance`
      |      v
      |    PreparingRebalance, DelayedJoin     ends when all members have joined, or at its deadline
      v      v
    `complete_join`: members that have not joined are removed; without members the group is Empty
      |
      v
    CompletingRebalance, DelayedSync           ends when all members have sent SyncGroup, or at its deadline
      |  the leader's SyncGroup is in the log (`sync`)
      v
    Stable

The state alone does not say which requests are pending, the phase does: in PreparingRebalance the members' JoinGroups,
in CompletingRebalance their SyncGroups. Each event that may end a phase early calls `try_complete_join`: a JoinGroup, a
member that leaves, an unused member id that expires. `timers` calls the function for the deadline of each phase.

Invariants:

- `Group.pending_join_count` is the number of members whose `pending_join` is set.
- Each transition goes through `state_machine.transition`, which asserts that it is valid.
- A generation begins with `_start_generation`, which completes all pending JoinGroups in one step: no member sees a
  generation whose list of members is not final.
- The log gets a group when its leader has assigned (`sync`), when a static member returns, and when it becomes Empty,
  but not while it rebalances: a restart goes back to the last complete generation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.membership import members
from kproto_server.coordinator.membership.limits import group_limits_of
from kproto_server.coordinator.membership.phases import DelayedJoin, DelayedSync, HeldJoin, InitialDelayedJoin
from kproto_server.coordinator.membership.protocols import select_protocol, subscribed_topics_of
from kproto_server.coordinator.membership.records import write_group
from kproto_server.coordinator.membership.responses import SyncResult
from kproto_server.coordinator.membership.state_machine import (
    COMPLETING,
    EMPTY,
    PREPARING,
    REBALANCES_WHEN_MEMBER_LEAVES,
    transition,
)

if TYPE_CHECKING:
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group


WAIT_MIN_MS = 1000
"""How long a group waits at least for static members that have not joined: a rebalance timeout of 0 would make the wait
end and begin again for ever."""


def prepare_rebalance(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """Begin a rebalance: enter PreparingRebalance and wait for the members to join (GP-20)."""
    if group.state is COMPLETING:
        # The assignments of the old generation will not come any more; its members have to join again.
        fail_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS, now_ms)
    group.pending_sync_members.clear()
    is_first = group.state is EMPTY
    group.transition_to(transition(group.state, PREPARING), now_ms)
    if is_first and coordinator.behavior.has_initial_rebalance_delay:
        # Consumers of one application start one after the other: without the delay each would cause a rebalance.
        delay_ms = group_limits_of(coordinator.settings.current).initial_rebalance_delay_ms
        group.new_member_added = False
        remaining_ms = max(0, rebalance_timeout_ms(group) - delay_ms)
        group.enter_phase(InitialDelayedJoin(now_ms + delay_ms, delay_ms, remaining_ms))
    else:
        group.enter_phase(DelayedJoin(now_ms + rebalance_timeout_ms(group)))
        # A single member begins the rebalance with its own JoinGroup: all members have joined already.
        try_complete_join(coordinator, group, now_ms)


def prepare_rebalance_or_complete_join(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """Begin a rebalance; if one is in progress, end its first phase if all members have joined."""
    if group.state is PREPARING:
        try_complete_join(coordinator, group, now_ms)
    else:
        prepare_rebalance(coordinator, group, now_ms)


def member_left(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """Have the other members rejoin after a removal; members that already rejoin stop waiting for it (GP-37)."""
    if group.state in REBALANCES_WHEN_MEMBER_LEAVES:
        prepare_rebalance(coordinator, group, now_ms)
    else:
        pending_member_left(coordinator, group, now_ms)


def pending_member_left(
    coordinator: GroupCoordinator, group: Group, now_ms: int, *, ends_initial_delay: bool = False
) -> None:
    """Stop waiting for a member id that was given out and is not used: it may be the last that was missing."""
    if group.state is PREPARING:
        try_complete_join(coordinator, group, now_ms, ends_initial_delay=ends_initial_delay)


def try_complete_join(
    coordinator: GroupCoordinator, group: Group, now_ms: int, *, ends_initial_delay: bool = False
) -> None:
    """Complete the join phase if all members and all pending member ids have joined.

    An initial rebalance delay is not completed early, as further members may come, unless ``ends_initial_delay``.
    """
    all_joined = group.pending_join_count == len(group.members) and not group.pending_members
    phases = (DelayedJoin, InitialDelayedJoin) if ends_initial_delay else DelayedJoin
    if all_joined and isinstance(group.phase, phases):
        complete_join(coordinator, group, now_ms)


def extend_initial_delay_or_complete_join(
    coordinator: GroupCoordinator, group: Group, phase: InitialDelayedJoin, now_ms: int
) -> None:
    """Handle the deadline of an initial rebalance delay: wait again if members have joined during it (GP-20).

    All delays together are at most as long as the rebalance timeout of the first member.
    """
    if group.new_member_added and phase.remaining_ms:
        group.new_member_added = False
        delay_ms = min(group_limits_of(coordinator.settings.current).initial_rebalance_delay_ms, phase.remaining_ms)
        remaining_ms = max(0, phase.remaining_ms - phase.delay_ms)
        group.enter_phase(InitialDelayedJoin(now_ms + delay_ms, delay_ms, remaining_ms))
    else:
        complete_join(coordinator, group, now_ms)


def complete_join(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """End the join phase: remove the dynamic members that have not joined, and start a generation (GP-22).

    A static member stays until its session expires, so that an instance can restart without a rebalance.
    """
    hold = coordinator.holds.get(group.group_id)
    if hold is not None and hold.phase == "join":
        group.enter_phase(HeldJoin(now_ms))
        return
    absent = [member for member in group.members.values() if member.pending_join is None]
    for member in absent:
        if member.group_instance_id is None:
            members.remove(group, member)
    if group.members and not _elect_leader(group):
        # Only static members, and none of them has joined: wait on, until one joins or their sessions expire.
        group.enter_phase(DelayedJoin(now_ms + max(WAIT_MIN_MS, rebalance_timeout_ms(group))))
        return
    _start_generation(coordinator, group, now_ms)


def _elect_leader(group: Group) -> bool:
    """Have a member lead that has joined; return False if none has.

    The old leader leads on if it has joined, since it may have state of its own about the assignment.
    """
    joined = (member.member_id for member in group.members.values() if member.pending_join is not None)
    leader = group.members.get(group.leader_id or "")
    if leader is None or leader.pending_join is None:
        first = next(joined, None)
        if first is None:
            return False
        group.leader_id = first
    return True


def _start_generation(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """Start a generation: complete the JoinGroups and wait for SyncGroups; without members become Empty (GP-23)."""
    group.generation += 1
    group.pending_sync_members.clear()
    group.enter_phase(None)
    if not group.members:
        _become_empty(coordinator, group, now_ms)
        return
    group.protocol_name = select_protocol(group)
    for member in group.members.values():
        member.metadata = member.metadata_for(group.protocol_name)
    # Known from here on, and not only when the group is Stable: offset expiration reads it (EX-21).
    group.subscribed_topics = subscribed_topics_of(group)
    group.transition_to(transition(group.state, COMPLETING), now_ms)
    # The leader's response lists the metadata of all members, so each had to be set before the first response.
    for member in group.members.values():
        members.complete_pending_join(group, member, members.join_result(group, member))
        members.extend_session(group, member, now_ms)
        member.is_new = False
    if coordinator.behavior.has_pending_sync_timeout:
        group.pending_sync_members.update(group.members)
        group.enter_phase(DelayedSync(now_ms + rebalance_timeout_ms(group)))


def _become_empty(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """Enter Empty, as the last member has left: the retention time of the offsets begins (EX-12)."""
    group.protocol_name = group.leader_id = None
    group.subscribed_topics = subscribed_topics_of(group)
    group.transition_to(transition(group.state, EMPTY), now_ms)
    if not coordinator.behavior.offsets_create_group:
        coordinator.groups.remove(group.group_id)

    def settle(log_error: int) -> None:
        # If the write has failed, a restart loads the old members, and their sessions expire then.
        group.write_error = log_error

    write_group(coordinator, group, now_ms, settle)


def fail_assignments(group: Group, error: int, now_ms: int) -> None:
    """Reset the assignments, and complete the pending SyncGroups with an error."""
    for member in group.members.values():
        member.assignment = b""
        if members.complete_pending_sync(member, SyncResult(error)):
            # The session of a member with a pending request is not checked; it runs again from the response on.
            members.extend_session(group, member, now_ms)


def expire_pending_syncs(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """Remove the members that have not sent SyncGroup by the deadline, and have the others rejoin (GP-25)."""
    for member_id in list(group.pending_sync_members):
        members.remove(group, group.members[member_id])
    prepare_rebalance(coordinator, group, now_ms)


def rebalance_timeout_ms(group: Group) -> int:
    """Return how long a phase may last: the greatest rebalance timeout of the members."""
    return max((member.rebalance_timeout_ms for member in group.members.values()), default=0)
