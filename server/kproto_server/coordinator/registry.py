"""The registered groups: those that have more than offsets.

A group that only commits exists by its offsets (LF-31): it has no members, is always Empty, and is not registered.
`GroupCoordinator.group` finds both kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.coordinator.groups import Group, GroupState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def simple_group(group_id: str) -> Group:
    """Return a group that only commits. Its creation time is unknown and decides nothing (EX-21)."""
    group = Group(group_id, 0)
    group.state_timestamp_ms = None
    return group


def as_group(one: str | Group) -> Group:
    """Return an element of `GroupCoordinator.group_list` as a group."""
    return simple_group(one) if isinstance(one, str) else one


class GroupRegistry:
    """Groups by id."""

    __slots__ = ("_groups", "deleted", "get", "replaced", "touched")

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self.get: Callable[[str], Group | None] = self._groups.get
        """Return the group with this id, or None. Bound to the dictionary's method: each commit calls it."""
        self.touched: dict[str, None] = {}
        """Ids of groups that the next expiration run has to check; a dictionary, as it keeps their order."""
        self.replaced: dict[Group, Group | None] = {}
        """By a group that the log does not have yet, the group in whose place it is; None: there was none."""
        self.deleted: dict[str, Group] = {}
        """By id, the last group whose deletion the log does not have yet."""

    def create(self, group_id: str, now_ms: int) -> Group:
        """Create an Empty classic group, which replaces any group with this id."""
        group = Group(group_id, now_ms)
        self.add(group)
        return group

    def add(self, group: Group) -> None:
        """Register a group, which replaces any group with its id."""
        group._touched = self.touched
        self._groups[group.group_id] = group
        self.touched[group.group_id] = None

    def remove(self, group_id: str) -> None:
        """Remove a group; its state is Dead for pending requests that still refer to it."""
        group = self._groups.pop(group_id, None)
        if group is not None:
            group.state = GroupState.DEAD
            self.touched[group_id] = None

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups.values())

    def __len__(self) -> int:
        return len(self._groups)
