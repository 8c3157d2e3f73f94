"""DeleteGroups (API key 42): delete Empty groups with their offsets (EX-61)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.jvm.arithmetic import java_hash
from kproto.jvm.hash_map import BUCKETS_MIN, in_hash_order
from kproto.messages.k42_delete_groups import DeletableGroupResult, DeleteGroupsResponse
from kproto_server.coordinator.deletion import delete_group, group_delete_error
from kproto_server.coordinator.membership.timers import end_sessions
from kproto_server.handlers._described_groups import by_partition
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from kproto.messages.k42_delete_groups import DeleteGroupsRequest
    from kproto_server.deferred import DeferredResponse
    from kproto_server.requests.context import RequestContext


class DeleteGroupsBehavior(VersionBehavior):
    """What Kafka releases do differently in DeleteGroups."""

    @cached_property
    def refuses_empty_group_id(self) -> bool:
        """Whether the empty group id is refused: in 1.1, the first release with DeleteGroups (measured on 1.1.1 and
        2.0.1)."""
        return not self.at_least(2, 0)

    @cached_property
    def hashes_group_ids(self) -> bool:
        """Whether the groups of an offsets partition are in the order of a Java HashSet (measured on 4.0.2 and
        4.1.2)."""
        return self.at_least(4, 1)


def handle(request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse | DeferredResponse:
    # The response has a duplicate group once (measured on 1.1.1 to 4.4.0).
    group_ids = list(dict.fromkeys(request.groups_names))
    order = _in_hash_order if context.behavior(DeleteGroupsBehavior).hashes_group_ids else list
    errors = dict.fromkeys(by_partition(group_ids, context, order), 0)
    for group_id in errors:
        _delete(group_id, context, errors)
    return context.coordinator.log.then(
        lambda: DeleteGroupsResponse(
            throttle_time_ms=0,
            results=tuple(
                [DeletableGroupResult(group_id=group_id, error_code=error) for group_id, error in errors.items()]
            ),
        )
    )


def _in_hash_order(group_ids: list[str]) -> list[str]:
    """Return the group ids of one offsets partition in the order of a HashSet that is made from a list."""
    return in_hash_order(group_ids, java_hash, capacity=max(BUCKETS_MIN, len(group_ids) * 4 // 3 + 1))


def _delete(group_id: str, context: RequestContext, errors: dict[str, int]) -> None:
    """Delete a group; note its error."""
    if not group_id and context.behavior(DeleteGroupsBehavior).refuses_empty_group_id:
        errors[group_id] = ErrorCode.INVALID_GROUP_ID
        return
    group = context.coordinator.group(group_id)
    if group is not None and group.kind == "classic":
        # A client that waits for the session timeout of its static members deletes the group in that millisecond.
        end_sessions(context.coordinator, group)
        group = context.coordinator.group(group_id)
    errors[group_id] = context.coordinator.error_at(context.node, group_id) or group_delete_error(group)
    if not errors[group_id]:
        if group is not None and group.kind == "share":
            context.share_groups.members.delete_all_states(group_id, context.now_ms)
        delete_group(context.coordinator, group_id, context.now_ms, lambda error: errors.update({group_id: error}))
