"""The first checks of all requests of group members: the group id, and whether this node coordinates the group
(GP-10, GP-30).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from kproto_server.requests.context import RequestContext

JOIN_GROUP = 11


class GroupIdBehavior(VersionBehavior):
    """What Kafka releases do differently with an empty group id."""

    @cached_property
    def members_need_group_id(self) -> bool:
        """Whether Heartbeat, LeaveGroup and SyncGroup refuse an empty group id, from 2.0 on; before, such a group has
        no members (measured on 1.1.1 and 2.0.1)."""
        return self.at_least(2, 0)


def member_request_error(group_id: str, context: RequestContext) -> int:
    """Return the error of a member's request that this node cannot serve; 0 if it can."""
    if not group_id and (context.api_key == JOIN_GROUP or context.behavior(GroupIdBehavior).members_need_group_id):
        return ErrorCode.INVALID_GROUP_ID
    error = context.coordinator.error_at(context.node, group_id)
    if error and error == ErrorCode.NOT_COORDINATOR:
        return context.coordinator.not_coordinator_error
    return error
