"""DeleteGroups (API key 42): Empty groups go, with their offsets (EX-61)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k42_delete_groups import DeletableGroupResult, DeleteGroupsResponse
from kproto_server.coordinator.deletion import delete_group, group_delete_error
from kproto_server.coordinator.partitioning import owned_partition

if TYPE_CHECKING:
    from kproto.messages.k42_delete_groups import DeleteGroupsRequest
    from kproto_server.call import Call


def handle(request: DeleteGroupsRequest, call: Call) -> DeleteGroupsResponse:
    names = request.groups_names
    errors = {group_id: _delete(group_id, call) for group_id in dict.fromkeys(names)}
    # A group named twice is deleted once; only the new coordinator then says so twice.
    answered = errors if call.state.profile.merges_duplicate_partitions else names
    return DeleteGroupsResponse(
        throttle_time_ms=0,
        results=tuple([DeletableGroupResult(group_id=name, error_code=errors[name]) for name in answered]),
    )


def _delete(group_id: str, call: Call) -> int:
    state = call.state
    if owned_partition(state.cluster, call.node, group_id) is None:
        return ErrorCode.NOT_COORDINATOR
    group = state.groups.get(group_id)
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return group_delete_error(group) or delete_group(state, group)
