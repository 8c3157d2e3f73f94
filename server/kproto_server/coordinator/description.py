"""The texts in which a release describes a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.coordinator.groups import GroupState

if TYPE_CHECKING:
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior


def state_name(group: Group, behavior: CoordinatorBehavior) -> str:
    """Return the release's name of the group's state."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        return behavior.completing_rebalance_name
    name: str = group.state.value
    return name


def not_found(group_id: str) -> str:
    """Return the error message for a group that does not exist."""
    return f"Group {group_id} not found."
