"""What ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from kproto.codes import ErrorCode
from kproto_server.coordinator.description import not_found

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.coordinator.groups import Group, Kind
    from kproto_server.requests.context import RequestContext

T = TypeVar("T")


def find(described: Callable[..., T], group_id: str, kind: Kind, context: RequestContext) -> Group | T:
    """Return a group of a kind that this node coordinates, or an error in place of it."""
    coordinator = context.coordinator
    error = coordinator.error_at(context.node, group_id)
    if error:
        return refused(described, group_id, error)
    group = coordinator.group(group_id)
    if group is not None and group.kind == kind:
        return group
    message = not_found(group_id) if group is None else f"Group {group_id} is not a {kind} group."
    return refused(described, group_id, ErrorCode.GROUP_ID_NOT_FOUND, message)


def refused(described: Callable[..., T], group_id: str, error: int, message: str | None = None) -> T:
    """Return an error in place of a group; ``described``: makes the message of the API."""
    return described(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        members=(),
    )
