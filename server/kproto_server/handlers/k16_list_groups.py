"""ListGroups (API key 16): the groups that this node coordinates (GP-42)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k16_list_groups import ListedGroup, ListGroupsResponse
from kproto_server.coordinator.description import state_name
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Collection

    from kproto.messages.k16_list_groups import ListGroupsRequest
    from kproto_server.coordinator.groups import Group
    from kproto_server.requests.context import RequestContext


class ListGroupsBehavior(VersionBehavior):
    """What Kafka releases do differently in ListGroups."""

    @cached_property
    def filters_ignore_case(self) -> bool:
        """Whether the filters compare names without regard to case: from 3.8 on (GP-42; measured on 3.7.2 and
        3.8.1)."""
        return self.at_least(3, 8)


def handle(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    ignores_case = context.behavior(ListGroupsBehavior).filters_ignore_case
    states, types = _filter(request.states_filter, ignores_case), _filter(request.types_filter, ignores_case)

    def passes(group: Group) -> bool:
        state = state_name(group, context.coordinator.behavior)
        return (not states or (state.lower() if ignores_case else state) in states) and (
            not types or group.kind in types
        )

    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return ListGroupsResponse(
        # During a load the loaded groups are listed, and the error says that the list is incomplete.
        error_code=loading if loading in context.coordinator.unavailable.values() else 0,
        groups=tuple(
            [
                ListedGroup(
                    group_id=group.group_id,
                    protocol_type="consumer" if group.kind == "consumer" else group.protocol_type or "",
                    group_state=state_name(group, context.coordinator.behavior),
                    group_type=group.kind,
                )
                for group in context.coordinator.all_groups()
                if passes(group) and context.coordinator.owned_partition(context.node, group.group_id) is not None
            ]
        ),
    )


def _filter(names: Collection[str], ignores_case: bool) -> frozenset[str]:
    """Return the names of a filter. An empty filter passes all groups, one with only unknown names passes none."""
    return frozenset(name.lower() for name in names) if ignores_case else frozenset(names)
