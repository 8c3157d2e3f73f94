"""LeaveGroup: a member leaves, or an administrator removes members by instance id (GP-36, GP-37)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.membership import members, timers
from kproto_server.coordinator.membership.rebalance import member_left, pending_member_left

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior

    Leaving = tuple[str, str | None]
    """Member id and group instance id."""


def leave(coordinator: GroupCoordinator, group_id: str, leaving: Sequence[Leaving], now_ms: int) -> list[int]:
    """Remove members; return an error code for each."""
    group = coordinator.groups.get(group_id)
    if group is None or group.kind == "consumer":
        return [ErrorCode.UNKNOWN_MEMBER_ID for _ in leaving]
    size, pending_count = len(group.members), len(group.pending_members)
    errors = [_leave(group, member_id, instance, coordinator.behavior) for member_id, instance in leaving]
    pending_left = len(group.pending_members) < pending_count
    # The new coordinator treats a pending member id like a member here.
    if len(group.members) < size or (pending_left and coordinator.behavior.is_new_coordinator):
        member_left(coordinator, group, now_ms)
    elif pending_left:
        pending_member_left(coordinator, group, now_ms)
    timers.schedule(coordinator, group)
    return errors


def _leave(group: Group, member_id: str, group_instance_id: str | None, behavior: CoordinatorBehavior) -> int:
    """Remove one member, or one pending member id; return an error code if there is none."""
    if member_id and group.pending_members.pop(member_id, None) is not None:
        return 0
    if not member_id:
        member_id = "" if group_instance_id is None else group.static_members.get(group_instance_id, "")
        group_instance_id = None
    error = members.member_error(group, member_id, group_instance_id, behavior)
    if not error:
        members.remove(group, group.members[member_id])
    return error
