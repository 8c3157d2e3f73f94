"""The groups that exist, by their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.coordinator.groups import Group, GroupState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.coordinator.groups import Kind


class GroupRegistry:
    """The groups that exist."""

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

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups.values())

    def __len__(self) -> int:
        return len(self._groups)
