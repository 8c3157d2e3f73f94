"""The coordinator of some or all groups goes away: fail the pending requests of their members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.membership import members, timers
from kproto_server.coordinator.membership.rebalance import pending_member_left
from kproto_server.coordinator.membership.responses import SyncResult, rejected_join
from kproto_server.coordinator.membership.state_machine import DEAD

if TYPE_CHECKING:
    from collections.abc import Collection

    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group


def unload(coordinator: GroupCoordinator, partitions: Collection[int]) -> None:
    """Fail the pending requests of the groups of offsets partitions that get another leader with NOT_COORDINATOR.

    All nodes share the groups, so that the members' next coordinator knows them. A member whose first JoinGroup was
    pending never got its id, and is removed.
    """
    now_ms = coordinator.clock.now_ms()
    for group in list(coordinator.groups):
        if group.kind != "classic" or coordinator.partition_of(group.group_id) not in partitions:
            continue
        fail_pending(group, ErrorCode.NOT_COORDINATOR)
        for member in [member for member in group.members.values() if member.is_new]:
            members.remove(group, member)
        pending_member_left(coordinator, group, now_ms)
        timers.schedule(coordinator, group)


def unload_all(coordinator: GroupCoordinator, error: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> None:
    """Fail all pending requests and cancel all timers, as all groups are about to be dropped."""
    for group in coordinator.groups:
        fail_pending(group, error)
        end_group(group)


def forget_all(coordinator: GroupCoordinator) -> None:
    """Fail all pending requests with NOT_COORDINATOR, end all groups and drop them: the offsets topic was deleted."""
    unload_all(coordinator, ErrorCode.NOT_COORDINATOR)
    coordinator.forget_groups()


def end_group(group: Group) -> None:
    """End the timers of a group that is not registered any more."""
    group.state = DEAD
    group.enter_phase(None)
    if group.session_timer is not None:
        group.session_timer.cancel()
        group.session_timer = None


def fail_pending(group: Group, error: ErrorCode) -> None:
    """Fail the pending requests of all members."""
    for member in group.members.values():
        members.complete_pending_join(group, member, rejected_join(error, member.member_id))
        members.complete_pending_sync(member, SyncResult(error))
