"""What heartbeats of consumer groups, streams groups and share groups have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
"""The member epoch of a static member that has left and will return."""
UNCHANGED = -1
"""The rebalance timeout of a heartbeat that does not change it."""
TOPICS_OF_TURN = 1_000
"""With more topics, a heartbeat is decoded, handled and responded to at turns of their own."""


class Client(NamedTuple):
    """The sender of a request."""

    client_id: str
    client_host: str
    may_describe: Callable[[str], bool] | None = None
    """Returns whether the sender may describe a topic now; None: it may describe all."""


def problem_of_ids(member_id: str | None, group_id: str, instance_id: str | None, rack_id: str | None) -> str | None:
    """Return which id of a heartbeat is blank; None: none. Ids that are None are not given."""
    ids = (("MemberId", member_id), ("GroupId", group_id), ("InstanceId", instance_id), ("RackId", rack_id))
    for name, value in ids:
        if value is not None and not value.strip():
            return f"{name} can't be empty."
    return None
