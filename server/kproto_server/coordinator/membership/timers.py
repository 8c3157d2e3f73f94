"""The deadlines of a group: of its phase, of its members' sessions, and of unused member ids.

Theory of operation. Deadlines are values of the group (`Group.phase`) and of its members. After each event, `schedule`
brings two timers in line with them:

- the timer of the phase, which is exact;
- the timer of the sessions, set for `Group.next_member_check_ms`, no later than the first deadline of a member. A
  heartbeat only moves a deadline back, which needs no timer. The check removes the members whose session has expired
  and finds the next deadline: about one check for each session timeout, however many members there are.

Clients wait for the end of a phase, so it must come even if the broker's clock stands still (D7): ``for_client`` lets
real time count. No client waits for the end of a session: on a clock that stands still all members stay. On a clock
that advances by itself when it is idle, only the initial rebalance delay is a reason to advance, since nothing but time
ends it; during the other deadlines clients act in their own time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.coordinator.membership import members
from kproto_server.coordinator.membership.limits import group_limits_of
from kproto_server.coordinator.membership.phases import DelayedJoin, HeldJoin, InitialDelayedJoin
from kproto_server.coordinator.membership.rebalance import (
    complete_join,
    expire_pending_syncs,
    extend_initial_delay_or_complete_join,
    member_left,
    pending_member_left,
    prepare_rebalance,
)
from kproto_server.coordinator.membership.state_machine import DEAD

if TYPE_CHECKING:
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group, Member


def schedule(coordinator: GroupCoordinator, group: Group) -> None:
    """Bring the group's timers in line with its deadlines."""
    phase = group.phase
    if phase is not None and group.phase_timer is None and not isinstance(phase, HeldJoin):
        group.phase_timer = coordinator.clock.call_at(
            phase.due_ms,
            lambda: _on_phase_deadline(coordinator, group),
            for_client=True,
            in_background=not isinstance(phase, InitialDelayedJoin),
        )
    check_ms, timer = group.next_member_check_ms, group.session_timer
    if check_ms is None:
        return
    if timer is not None:
        if timer.action is not None and timer.due_ms <= check_ms:
            return
        timer.cancel()
    group.session_timer = coordinator.clock.call_at(
        check_ms, lambda: _check_members(coordinator, group), in_background=True
    )


def _on_phase_deadline(coordinator: GroupCoordinator, group: Group) -> None:
    """End the phase, by the broker's clock or by that of the waiting clients."""
    if group.state is DEAD:
        return
    now_ms, phase = coordinator.clock.now_ms(), group.phase
    group.enter_phase(None)
    match phase:
        case InitialDelayedJoin():
            extend_initial_delay_or_complete_join(coordinator, group, phase, now_ms)
        case DelayedJoin():
            complete_join(coordinator, group, now_ms)
        case _:
            expire_pending_syncs(coordinator, group, now_ms)
    schedule(coordinator, group)


def _check_members(coordinator: GroupCoordinator, group: Group) -> None:
    """Remove the members whose session has expired, and the member ids that were not used (GP-38, GP-14)."""
    group.session_timer = None
    if group.state is DEAD:
        return
    now_ms = coordinator.clock.now_ms()
    for member_id, deadline_ms in list(group.pending_members.items()):
        if deadline_ms <= now_ms:
            del group.pending_members[member_id]
            # In the new coordinator this ends the initial rebalance delay, too (measured on 4.4.0).
            ends_initial_delay = coordinator.behavior.is_new_coordinator
            pending_member_left(coordinator, group, now_ms, ends_initial_delay=ends_initial_delay)
    for member in list(group.members.values()):
        # The removal of a member may have completed a join phase, which removes others: hence the last condition.
        if member.session_deadline_ms <= now_ms and _can_expire(member) and member.member_id in group.members:
            _expire(coordinator, group, member, now_ms)
    group.next_member_check_ms = min(
        [
            *group.pending_members.values(),
            *[member.session_deadline_ms for member in group.members.values() if _can_expire(member)],
        ],
        default=None,
    )
    schedule(coordinator, group)


def end_sessions(coordinator: GroupCoordinator, group: Group) -> None:
    """End the sessions that are over now: their timer fires behind the requests of the same millisecond."""
    if group.next_member_check_ms is not None and group.next_member_check_ms <= coordinator.clock.now_ms():
        if group.session_timer is not None:
            group.session_timer.cancel()
        _check_members(coordinator, group)


def expire(coordinator: GroupCoordinator, group: Group, member: Member) -> None:
    """Remove a member as if its session had expired, also while a request of it is pending."""
    _expire(coordinator, group, member, coordinator.clock.now_ms())
    schedule(coordinator, group)


def _expire(coordinator: GroupCoordinator, group: Group, member: Member, now_ms: int) -> None:
    members.remove(group, member)
    member_left(coordinator, group, now_ms)


def _can_expire(member: Member) -> bool:
    """Return whether the member could send a heartbeat: while a request is pending, its connection is not read (GP-38).
    A new member expires even so, after `NEW_MEMBER_TIMEOUT_MS`."""
    return member.is_new or (member.pending_join is None and member.pending_sync is None)


def on_group_loaded(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """Start the sessions of a loaded group: each member has its full session timeout (EX-17)."""
    for member in group.members.values():
        members.extend_session(group, member, now_ms)
    limits = group_limits_of(coordinator.settings.current)
    if coordinator.behavior.limits_group_size and len(group.members) > limits.size_max:
        prepare_rebalance(coordinator, group, now_ms)
    schedule(coordinator, group)
