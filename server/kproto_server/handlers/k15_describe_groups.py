"""DescribeGroups (API key 15): groups of the classic protocol; other groups and missing ones are Dead (GP-40,
GP-41)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k15_describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse
from kproto_server.coordinator.description import not_found, state_name
from kproto_server.coordinator.groups import GroupState
from kproto_server.deferred import SMALL_BYTES, LargeResponse, sum_exceeds
from kproto_server.handlers._described_groups import by_partition
from kproto_server.handlers._operations import AuthorizedOperationsBehavior
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from kproto.messages.k15_describe_groups import DescribeGroupsRequest
    from kproto_server.coordinator.groups import Group
    from kproto_server.requests.context import RequestContext

SMALL_MEMBERS = 2000
"""Members that are described at once. A response with more, as it names a large group many times, is encoded in slices.
"""

NOT_FOUND_SINCE = 6
"""The version from which on a missing group has an error and a message."""

OPERATIONS_SINCE = 3
"""The version from which on the response has authorized operations."""

NO_OPERATIONS = -(2**31)
"""The value of the field in a version that does not have it."""


class DescribeGroupsBehavior(VersionBehavior):
    """What Kafka releases do differently in DescribeGroups."""

    @cached_property
    def merges_duplicates(self) -> bool:
        """Whether a group that the request names twice is described once: up to 2.2 (measured on 2.2.2 and 2.3.1)."""
        return not self.at_least(2, 3)

    @cached_property
    def returns_previous_assignments(self) -> bool:
        """Whether members have their last assignments while the group rebalances: from 4.0 on (GP-40; measured on
        2.1.1, 3.9.2 and 4.4.0)."""
        return self.at_least(4, 0)

    @cached_property
    def returns_assignment_as_metadata(self) -> bool:
        """Whether a member's metadata field has its assignment, too: a mistake of 2.3 (GP-40; measured on 2.2.2, 2.3.1
        and 2.4.1)."""
        return self.release == (2, 3)


def handle(request: DescribeGroupsRequest, context: RequestContext) -> DescribeGroupsResponse | LargeResponse:
    groups = request.groups
    operations = _unrequested_operations(context)
    if request.include_authorized_operations:
        operations = context.behavior(AuthorizedOperationsBehavior).on_group
    if context.behavior(DescribeGroupsBehavior).merges_duplicates:
        groups = tuple(dict.fromkeys(groups))
    groups = tuple(by_partition(groups, context))
    described = {group_id: _describe(group_id, operations, context) for group_id in dict.fromkeys(groups)}
    response = DescribeGroupsResponse(groups=tuple([described[group_id] for group_id in groups]))
    sizes = {group_id: _size_bytes(group) for group_id, group in described.items()}
    is_small = not sum_exceeds(SMALL_BYTES, (sizes[group_id] for group_id in groups))
    if is_small and not sum_exceeds(SMALL_MEMBERS, (len(group.members) for group in response.groups)):
        return response
    return LargeResponse(response, [group.error_code for group in response.groups if group.error_code])


def _size_bytes(group: DescribedGroup) -> int:
    """Return the size of what clients have chosen: a request may name a group thousands of times."""
    of_members = [
        len(member.member_id)
        + len(member.group_instance_id or "")
        + len(member.client_id)
        + len(member.member_metadata)
        + len(member.member_assignment)
        for member in group.members
    ]
    return len(group.protocol_type) + len(group.protocol_data) + sum(of_members)


def _unrequested_operations(context: RequestContext) -> int:
    return (
        context.behavior(AuthorizedOperationsBehavior).unrequested
        if context.api_version >= OPERATIONS_SINCE
        else NO_OPERATIONS
    )


def _describe(group_id: str, operations: int, context: RequestContext) -> DescribedGroup:
    error = context.coordinator.error_at(context.node, group_id)
    if error:
        return _without_members(group_id, "", error, operations=_unrequested_operations(context))
    group = context.coordinator.group(group_id)
    if group is not None and group.kind == "classic":
        return _classic(group, operations, context)
    if context.api_version < NOT_FOUND_SINCE:
        return _without_members(group_id, GroupState.DEAD.value, 0, operations=operations)
    message = not_found(group_id) if group is None else f"Group {group_id} is not a classic group."
    return _without_members(group_id, GroupState.DEAD.value, ErrorCode.GROUP_ID_NOT_FOUND, message)


def _without_members(
    group_id: str, state: str, error: int, message: str | None = None, operations: int = NO_OPERATIONS
) -> DescribedGroup:
    return DescribedGroup(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state=state,
        protocol_type="",
        protocol_data="",
        members=(),
        authorized_operations=operations,
    )


def _classic(group: Group, operations: int, context: RequestContext) -> DescribedGroup:
    stable = group.state is GroupState.STABLE
    behavior = context.behavior(DescribeGroupsBehavior)
    returns_assignments = stable or behavior.returns_previous_assignments
    swaps = behavior.returns_assignment_as_metadata
    return DescribedGroup(
        error_code=0,
        group_id=group.group_id,
        group_state=state_name(group, context.coordinator.behavior),
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=tuple(
            [
                DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=(member.assignment if swaps else member.metadata) if stable else b"",
                    member_assignment=member.assignment if returns_assignments else b"",
                )
                for member in group.members.values()
            ]
        ),
        authorized_operations=operations,
    )
