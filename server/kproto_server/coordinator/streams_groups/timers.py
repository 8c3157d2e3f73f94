"""The deadlines of a streams group's members (`epoch_groups.deadlines`), and its initial rebalance delay.

Theory of operation. When a member joins an Empty group, targets are not computed before the delay is over, so that
other members can join. Then they are computed, and the members get them with their next heartbeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.coordinator.epoch_groups.deadlines import Deadlines
from kproto_server.coordinator.epoch_groups.writing import write
from kproto_server.coordinator.streams_groups.data import MemberState
from kproto_server.coordinator.streams_groups.group import StreamsGroup
from kproto_server.coordinator.streams_groups.leaving import remove
from kproto_server.coordinator.streams_groups.limits import limits_of_group
from kproto_server.coordinator.streams_groups.targets import with_due_targets

if TYPE_CHECKING:
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.streams_groups.limits import StreamsLimits


def _remove(coordinator: GroupCoordinator, group: StreamsGroup, member_id: str, now_ms: int) -> None:
    remove(coordinator, group, (member_id,), now_ms)


DEADLINES: Deadlines[StreamsGroup] = Deadlines(_remove, MemberState.UNREVOKED_TASKS)


def begin_delay(coordinator: GroupCoordinator, group: StreamsGroup, limits: StreamsLimits, now_ms: int) -> None:
    """Begin the initial rebalance delay of an Empty group, unless it has begun."""
    if limits.initial_delay_ms > 0 and group.delay_timer is None:
        group.delay_timer = coordinator.clock.call_at(
            now_ms + limits.initial_delay_ms, lambda: _end_delay(coordinator, group)
        )


def _end_delay(coordinator: GroupCoordinator, group: StreamsGroup) -> None:
    """Compute the first targets."""
    group.delay_timer = None
    if coordinator.groups.get(group.group_id) is not group or not group.members or group.configured is None:
        return
    limits, now_ms = limits_of_group(coordinator, group.group_id), coordinator.clock.now_ms()
    due = with_due_targets(coordinator, group, group.data, limits, now_ms)
    write(coordinator, group, due.data, now_ms)


def on_group_loaded(coordinator: GroupCoordinator, group: Group, now_ms: int) -> None:
    """Begin the sessions of a loaded group."""
    assert isinstance(group, StreamsGroup), "of this kind"
    DEADLINES.begin(coordinator, group, limits_of_group(coordinator, group.group_id).session_timeout_ms, now_ms)
