"""LeaveGroup: a member leaves, or an administrator removes members by instance id (GP-36, GP-37)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto_server.coordinator.groups import KINDS_WITH_CLASSIC_MEMBERS
from kproto_server.coordinator.membership import members, timers
from kproto_server.coordinator.membership.rebalance import member_left, pending_member_left

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior

    Leaving = tuple[str, str | None]
    """Member id and group instance id."""


class Left(NamedTuple):
    """The result of a LeaveGroup."""

    errors: Sequence[int]
    """An error code for each member."""
    write_error: Callable[[], int] = int
    """Returns the error of the write, once the log has settled it; 0 if nothing is written."""


def leave(coordinator: GroupCoordinator, group_id: str, leaving: Sequence[Leaving], now_ms: int) -> Left:
    """Remove members."""
    group = coordinator.groups.get(group_id)
    if group is None or group.kind not in KINDS_WITH_CLASSIC_MEMBERS:
        return Left([ErrorCode.UNKNOWN_MEMBER_ID for _ in leaving])
    if group.kind == "consumer":
        from kproto_server.coordinator.consumer_groups import classic_members

        return Left(*classic_members.leave(coordinator, group, leaving, now_ms))
    size, pending_count, group.write_error = len(group.members), len(group.pending_members), 0
    errors = [_leave(group, member_id, instance, coordinator.behavior) for member_id, instance in leaving]
    pending_left = len(group.pending_members) < pending_count
    # The new coordinator treats a pending member id like a member here.
    if len(group.members) < size or (pending_left and coordinator.behavior.is_new_coordinator):
        member_left(coordinator, group, now_ms)
    elif pending_left:
        pending_member_left(coordinator, group, now_ms)
    timers.schedule(coordinator, group)
    return Left(errors, lambda: group.write_error)


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
