"""ListGroups (API key 16): the groups that this node coordinates (GP-42)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k16_list_groups import ListedGroup, ListGroupsResponse
from kproto_server.coordinator.description import state_name
from kproto_server.coordinator.groups import GroupState
from kproto_server.coordinator.registry import as_group
from kproto_server.deferred import SMALL_BYTES, LargeResponse, in_slices, sum_exceeds
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Collection, Generator

    from kproto.messages.k16_list_groups import ListGroupsRequest
    from kproto_server.coordinator.groups import Group
    from kproto_server.deferred import DelayedOperation
    from kproto_server.requests.context import RequestContext

NOT_READY = "not_ready"
"""How a filter names this state."""
SLICE_GROUPS = 3000
"""Groups that are listed before other connections are served: about 10 ms."""


class ListGroupsBehavior(VersionBehavior):
    """What Kafka releases do differently in ListGroups."""

    @cached_property
    def filters_ignore_case(self) -> bool:
        """Whether the filters compare names without regard to case: from 3.8 on (GP-42; measured on 3.7.2 and
        3.8.1)."""
        return self.at_least(3, 8)


def handle(
    request: ListGroupsRequest, context: RequestContext
) -> ListGroupsResponse | LargeResponse | DelayedOperation:
    return in_slices(_slices(request, context), context.now_ms)


def _slices(
    request: ListGroupsRequest, context: RequestContext
) -> Generator[None, None, ListGroupsResponse | LargeResponse]:
    ignores_case = context.behavior(ListGroupsBehavior).filters_ignore_case
    states, types = _filter(request.states_filter, ignores_case), _filter(request.types_filter, ignores_case)

    def passes(group: Group) -> bool:
        state = state_name(group, context.coordinator.behavior)
        if group.state is GroupState.NOT_READY:
            state = NOT_READY
        return (not states or (state.lower() if ignores_case else state) in states) and (
            not types or group.kind in types
        )

    found: list[ListedGroup] = []
    every_group = context.coordinator.group_list()
    for start in range(0, len(every_group), SLICE_GROUPS):
        if start:
            yield
        part = every_group[start : start + SLICE_GROUPS]
        found += [
            ListedGroup(
                group_id=group.group_id,
                protocol_type="consumer" if group.kind == "consumer" else group.protocol_type or "",
                group_state=state_name(group, context.coordinator.behavior),
                group_type=group.kind,
            )
            for group in map(as_group, part)
            if passes(group) and context.coordinator.owned_partition(context.node, group.group_id) is not None
        ]
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    # During a load the loaded groups are listed, and the error says that the list is incomplete.
    error = loading if loading in context.coordinator.unavailable.values() else 0
    response = ListGroupsResponse(error_code=error, groups=tuple(found))
    sizes = (len(one.group_id) + len(one.protocol_type) for one in found)
    is_large = len(found) > SLICE_GROUPS or sum_exceeds(SMALL_BYTES, sizes)
    return LargeResponse(response, [error] if error else ()) if is_large else response


def _filter(names: Collection[str], ignores_case: bool) -> frozenset[str]:
    """Return the names of a filter. An empty filter passes all groups, one with only unknown names passes none."""
    return frozenset(name.lower() for name in names) if ignores_case else frozenset(names)
