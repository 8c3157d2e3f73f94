"""The reference implementation of the table of committed offsets, to which `OffsetTable` has to be equal (D13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.coordinator.table.records import CHECK_ALWAYS, CHECK_NEVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kproto_server.coordinator.offsets import CommitEntries, DeletionEntries, OffsetAndMetadata

Offsets = dict[str, dict[int, "OffsetAndMetadata"]]


class ReferenceTable:
    """Dictionaries of dictionaries."""

    def __init__(self) -> None:
        self.groups: dict[str, Offsets] = {}
        self._due_ms: dict[tuple[str, str, int], int] = {}
        """When the offsets of a group have to be checked."""

    def apply(self, group_id: str, entries: CommitEntries, *, expires_early: bool) -> None:
        for name, partitions in entries:
            for partition, stored in partitions:
                self.groups.setdefault(group_id, {}).setdefault(name, {})[partition] = stored
                early = expires_early and stored.expire_timestamp_ms is not None
                self._due_ms[group_id, name, partition] = CHECK_ALWAYS if early else stored.commit_timestamp_ms

    def remove(self, group_id: str, entries: DeletionEntries) -> None:
        topics = self.groups.get(group_id, {})
        for name, partitions in entries:
            for partition in partitions:
                if topics.get(name, {}).pop(partition, None) is not None:
                    del self._due_ms[group_id, name, partition]
            if not topics.get(name, True):
                del topics[name]
        if not topics:
            self.groups.pop(group_id, None)

    def of_group(self, group_id: str) -> Offsets:
        return self.groups.get(group_id, {})

    def groups_with(self, names: Iterable[str]) -> Iterator[str]:
        return (group_id for group_id, topics in self.groups.items() if any(name in topics for name in names))

    def __len__(self) -> int:
        return len(self._due_ms)

    def groups_to_check(self, until_ms: int) -> set[str]:
        """Return the groups that have offsets to check by a time."""
        return {group_id for (group_id, _, _), due_ms in self._due_ms.items() if due_ms <= until_ms}

    def check_again(self, group_id: str, min_commit_ms: int = CHECK_NEVER) -> None:
        for of_group, name, partition in self._due_ms:
            if of_group == group_id:  # an offset is not due before its own commit, even if the earlier ones are deleted
                commit_ms = self.groups[group_id][name][partition].commit_timestamp_ms
                self._due_ms[group_id, name, partition] = max(min_commit_ms, commit_ms)

    def earliest(self, group_id: str) -> int:
        """Return the least commit timestamp of a group's offsets."""
        return min(stored.commit_timestamp_ms for topic in self.groups[group_id].values() for stored in topic.values())

    def is_expired(self, group_id: str, until_ms: int) -> bool:
        """Return whether all offsets of a group were committed until a time, and none has an expire timestamp."""
        all_of_it = [stored for topic in self.groups[group_id].values() for stored in topic.values()]
        return all(
            stored.commit_timestamp_ms <= until_ms and stored.expire_timestamp_ms is None for stored in all_of_it
        )
