"""What is told of a group, in the words of the Kafka version's release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.coordinator.groups import GroupState

if TYPE_CHECKING:
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior


def state_name(group: Group, behavior: CoordinatorBehavior) -> str:
    """Return the group's state as the release calls it."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        return behavior.completing_rebalance_name
    name: str = group.state.value
    return name


def not_found(group_id: str) -> str:
    """Return what is said of a group that does not exist, where there is a field for it."""
    return f"Group {group_id} not found."
