"""The clock's part: gatherings that are over, and members that are silent too long.

Theory of operation. Deadlines are values on the group (`Group.phase`) and on its members. After each event `arm` brings
two timers in line with them. That of the phase is exact. That of the members is set for `Group.next_look_ms`, no later
than the first of their deadlines; a heartbeat only moves a deadline on, so it costs no timer. When the time has come,
`_look` takes out who was silent, and looks for the next deadline: once a session timeout or so, however many members.

A client waits for the end of a phase, so a clock that stands must not hold it back (D7). Nobody waits for a session to
be over: there a clock that stands keeps everyone. An auto-advancing clock skips the first wait for more members, which
nothing ends but time; all the others are times for clients to come, which they do in theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.coordinator.membership import members
from kproto_server.coordinator.membership.limits import group_limits_of
from kproto_server.coordinator.membership.phases import DelayedJoin, InitialDelayedJoin
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
    """Set the group's timers by its deadlines."""
    _schedule_phase(coordinator, group)
    _schedule_member_check(coordinator, group)


def _schedule_phase(coordinator: GroupCoordinator, group: Group) -> None:
    phase = group.phase
    if phase is not None and group.phase_timer is None:
        group.phase_timer = coordinator.clock.call_at(
            phase.due_ms,
            lambda: _on_phase_deadline(coordinator, group),
            for_client=True,
            in_background=not isinstance(phase, InitialDelayedJoin),
        )


def _schedule_member_check(coordinator: GroupCoordinator, group: Group) -> None:
    due_ms, timer = group.next_member_check_ms, group.session_timer
    if due_ms is None:
        return
    if timer is not None:
        if timer.action is not None and timer.due_ms <= due_ms:
            return
        timer.cancel()
    group.session_timer = coordinator.clock.call_at(
        due_ms, lambda: _check_members(coordinator, group), in_background=True
    )


def _on_phase_deadline(coordinator: GroupCoordinator, group: Group) -> None:
    """The time is over, by the broker's clock or by that of the clients that wait."""
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
    """Take out the members that were silent too long, and ids that nobody came back with (GP-38, GP-14)."""
    group.session_timer = None
    if group.state is DEAD:
        return
    now_ms = coordinator.clock.now_ms()
    for member_id, deadline_ms in list(group.pending_members.items()):
        if deadline_ms <= now_ms:
            del group.pending_members[member_id]
            pending_member_left(coordinator, group, now_ms)
    for member in list(group.members.values()):
        if member.session_deadline_ms <= now_ms and _can_expire(member) and member.member_id in group.members:
            members.remove(group, member)
            member_left(coordinator, group, now_ms)
    group.next_member_check_ms = min(
        [
            *group.pending_members.values(),
            *[member.session_deadline_ms for member in group.members.values() if _can_expire(member)],
        ],
        default=None,
    )
    schedule(coordinator, group)


def _can_expire(member: Member) -> bool:
    """Whether a member could be heard of: one whose request waits has its connection muted (GP-38)."""
    return member.is_new or (member.pending_join is None and member.pending_sync is None)


def on_group_loaded(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """Take over a group from the log: its members have their session timeouts in full (EX-17)."""
    for member in group.members.values():
        members.extend_session(group, member, now_ms)
    if (
        coordinator.behavior.limits_group_size
        and len(group.members) > group_limits_of(coordinator.settings.current).size_max
    ):
        prepare_rebalance(coordinator, group, now_ms)
    schedule(coordinator, group)
