"""What the APIs of group members ask first: a group's name, and whether this node is its coordinator (GP-10, GP-30)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.partitioning import not_coordinator, owned_partition

if TYPE_CHECKING:
    from kproto_server.call import Call


def coordination_error(group_id: str, call: Call) -> int:
    """Return why a node can't speak for a group whose members ask; 0 if it can."""
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    if owned_partition(call.state.cluster, call.node, group_id) is None:
        return not_coordinator(call.state.cluster, call.state.profile)
    return 0
