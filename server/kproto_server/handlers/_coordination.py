"""What the APIs of group members ask first: a group's name, and whether this node is its coordinator (GP-10, GP-30)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode

if TYPE_CHECKING:
    from kproto_server.requests.context import RequestContext

JOIN_GROUP = 11


def coordination_error(group_id: str, context: RequestContext) -> int:
    """Return why a node can't speak for a group whose members ask; 0 if it can."""
    if not group_id and (context.api_key == JOIN_GROUP or context.kafka_version.members_name_their_group):
        return ErrorCode.INVALID_GROUP_ID
    error = context.coordinator.error_at(context.node, group_id)
    if error and error == ErrorCode.NOT_COORDINATOR:
        return context.coordinator.not_coordinator_error
    return error
