"""What the APIs of group members ask first: a group's name, and whether this node is its coordinator (GP-10, GP-30)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.partitioning import coordinator_error, not_coordinator

if TYPE_CHECKING:
    from kproto_server.requests.context import Call

JOIN_GROUP = 11


def coordination_error(group_id: str, call: Call) -> int:
    """Return why a node can't speak for a group whose members ask; 0 if it can."""
    if not group_id and (call.api_key == JOIN_GROUP or call.state.kafka_version.members_name_their_group):
        return ErrorCode.INVALID_GROUP_ID
    error = coordinator_error(call.state, call.node, group_id)
    if error and error == ErrorCode.NOT_COORDINATOR:
        return not_coordinator(call.state.cluster, call.state.kafka_version)
    return error
