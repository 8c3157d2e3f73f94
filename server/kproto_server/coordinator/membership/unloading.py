"""The end of a coordinator, for the members who wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.membership import members, timers
from kproto_server.coordinator.membership.rebalance import pending_member_left
from kproto_server.coordinator.membership.responses import SyncResult, rejected_join

if TYPE_CHECKING:
    from kproto_server.cluster.cluster import Node
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group


def unload(coordinator: GroupCoordinator, node: Node) -> None:
    """A node that is about to stop tells everybody who waits to look for another one.

    The groups are the cluster's, so who finds the next coordinator is known there. New members were told no id yet, and
    are nobody's.
    """
    now_ms = coordinator.clock.now_ms()
    for group in list(coordinator.groups):
        if coordinator.owned_partition(node, group.group_id) is None:
            continue
        _dismiss(group, ErrorCode.NOT_COORDINATOR)
        for member in [member for member in group.members.values() if member.is_new]:
            members.remove(group, member)
        pending_member_left(coordinator, group, now_ms)
        timers.schedule(coordinator, group)


def unload_all(coordinator: GroupCoordinator) -> None:
    """All groups are about to be forgotten: nobody who waits is a member any more."""
    for group in coordinator.groups:
        _dismiss(group, ErrorCode.UNKNOWN_MEMBER_ID)
        group.enter_phase(None)
        if group.session_timer is not None:
            group.session_timer.cancel()


def _dismiss(group: Group, error: ErrorCode) -> None:
    for member in group.members.values():
        members.complete_pending_join(group, member, rejected_join(error, member.member_id))
        members.complete_pending_sync(member, SyncResult(error))
