"""What ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


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
