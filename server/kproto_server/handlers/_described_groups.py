"""What the descriptions of consumer, share and streams groups have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from kproto.codes import ErrorCode
from kproto_server.coordinator.description import not_found
from kproto_server.deferred import LargeResponse, lazily, noting_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kproto.message import Response
    from kproto_server.coordinator.groups import Group, Kind
    from kproto_server.requests.context import RequestContext

T = TypeVar("T")
R = TypeVar("R", bound="Response")


def respond(make: Callable[..., R], describe: Callable[[T], Any], groups: Sequence[T]) -> LargeResponse:
    """Return a response with the descriptions of groups; it is made in slices, as one group may have any size.

    Args:
        make: makes the response of the API.
        describe: returns the description of a group, with an ``error_code``; its long arrays are made by `lazily`.
        groups: what the request has of each group.
    """
    error_codes: list[int] = []
    described = lazily(noting_errors(describe, error_codes), groups)
    return LargeResponse(make(throttle_time_ms=0, groups=described), error_codes)


def empty_ids_first(group_ids: Sequence[str]) -> list[str]:
    """Return the groups in the order of the response: a real broker refuses empty ids at once."""
    return sorted(group_ids, key=bool)


def find(described: Callable[..., T], group_id: str, kind: Kind, context: RequestContext) -> Group | T:
    """Return a group of a kind that this node coordinates, or an error in place of it.

    The error of a coordinator has a message for share groups only (measured on 4.2.2, 4.3.1 and 4.4.0).
    """
    if not group_id:
        return refused(described, group_id, ErrorCode.INVALID_GROUP_ID)
    coordinator = context.coordinator
    error = coordinator.error_at(context.node, group_id)
    if error:
        return refused(described, group_id, error, ErrorCode(error).message if kind == "share" else None)
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
