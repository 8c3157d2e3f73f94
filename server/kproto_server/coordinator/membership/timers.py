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
from kproto_server.coordinator.membership.machine import DEAD
from kproto_server.coordinator.membership.phases import FirstGathering, Gathering
from kproto_server.coordinator.membership.rebalance import (
    begin,
    first_gathered,
    gathered,
    member_gone,
    pending_gone,
    syncs_missing,
)

if TYPE_CHECKING:
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group, Member


def arm(coordinator: GroupCoordinator, group: Group) -> None:
    """Set the group's timers by its deadlines."""
    _arm_phase(coordinator, group)
    _arm_session(coordinator, group)


def _arm_phase(coordinator: GroupCoordinator, group: Group) -> None:
    phase = group.phase
    if phase is not None and group.phase_timer is None:
        group.phase_timer = coordinator.clock.call_at(
            phase.due_ms,
            lambda: _phase_over(coordinator, group),
            for_client=True,
            in_background=not isinstance(phase, FirstGathering),
        )


def _arm_session(coordinator: GroupCoordinator, group: Group) -> None:
    due_ms, timer = group.next_look_ms, group.session_timer
    if due_ms is None:
        return
    if timer is not None:
        if timer.action is not None and timer.due_ms <= due_ms:
            return
        timer.cancel()
    group.session_timer = coordinator.clock.call_at(due_ms, lambda: _look(coordinator, group), in_background=True)


def _phase_over(coordinator: GroupCoordinator, group: Group) -> None:
    """The time is over, by the broker's clock or by that of the clients that wait."""
    if group.state is DEAD:
        return
    now_ms, phase = coordinator.clock.now_ms(), group.phase
    group.enter(None)
    match phase:
        case FirstGathering():
            first_gathered(coordinator, group, phase, now_ms)
        case Gathering():
            gathered(coordinator, group, now_ms)
        case _:
            syncs_missing(coordinator, group, now_ms)
    arm(coordinator, group)


def _look(coordinator: GroupCoordinator, group: Group) -> None:
    """Take out the members that were silent too long, and ids that nobody came back with (GP-38, GP-14)."""
    group.session_timer = None
    if group.state is DEAD:
        return
    now_ms = coordinator.clock.now_ms()
    for member_id, lapses_ms in list(group.pending_members.items()):
        if lapses_ms <= now_ms:
            del group.pending_members[member_id]
            pending_gone(coordinator, group, now_ms)
    for member in list(group.members.values()):
        if member.session_deadline_ms <= now_ms and _can_expire(member) and member.member_id in group.members:
            members.remove(group, member)
            member_gone(coordinator, group, now_ms)
    group.next_look_ms = min(
        [
            *group.pending_members.values(),
            *[member.session_deadline_ms for member in group.members.values() if _can_expire(member)],
        ],
        default=None,
    )
    arm(coordinator, group)


def _can_expire(member: Member) -> bool:
    """Whether a member could be heard of: one whose request waits has its connection muted (GP-38)."""
    return member.is_new or (member.joining is None and member.syncing is None)


def resume(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """Take over a group from the log: its members have their session timeouts in full (EX-17)."""
    for member in group.members.values():
        members.expect(group, member, now_ms)
    if (
        coordinator.kafka_version.limits_group_size
        and len(group.members) > group_limits_of(coordinator.settings.current).size_max
    ):
        begin(coordinator, group, now_ms)
    arm(coordinator, group)
