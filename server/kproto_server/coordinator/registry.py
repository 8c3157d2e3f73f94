"""The groups of which there is more to say than that they have offsets.

A group that only commits exists by its offsets (LF-31): it has no members, is Empty for ever, and is not in here.
`GroupCoordinator.group` finds both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.coordinator.groups import Group, GroupState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.coordinator.groups import Kind


def simple_group(group_id: str) -> Group:
    """Return a group that only commits. Since when it is there is not known, and decides nothing (EX-21)."""
    group = Group(group_id, 0)
    group.state_timestamp_ms = None
    return group


class GroupRegistry:
    """Groups by their ids."""

    __slots__ = ("_groups", "get", "touched")

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self.get = self._groups.get
        """Return the group with this id, or None. The dictionary's own method: this is on the way of every commit."""
        self.touched: dict[str, None] = {}
        """Groups that the next sweep has to look at."""

    def create(self, group_id: str, now_ms: int, kind: Kind = "classic") -> Group:
        """Make an Empty group in place of any that had this id."""
        group = self._groups[group_id] = Group(group_id, now_ms, kind, self.touched)
        self.touched[group_id] = None
        return group

    def remove(self, group_id: str) -> None:
        """Forget a group; it is Dead for whoever still holds it."""
        group = self._groups.pop(group_id, None)
        if group is not None:
            group.state = GroupState.DEAD
            self.touched[group_id] = None

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups.values())

    def __len__(self) -> int:
        return len(self._groups)
