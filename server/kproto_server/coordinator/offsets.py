"""The committed offsets of all groups, as commits and fetches use them.

Theory of operation. The store has only what the log has (OS-15). A change has entries of one group; it is appended to
the log of the group's offsets partition (`change_log`), and applied in one step, in the order of the log, once the log
has it. So no change has to be undone (OS-24), and a reader sees all of a commit or nothing of it (OS-26).

`table` stores the offsets. This module adds lazy entries: a client commits the same partitions again and again, and
most of these commits are never read. Such a commit may be applied undecoded; it is decoded and put into the table when
its group is read or changed in another way.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from kproto_server.coordinator.table.entries import OffsetAndMetadata as OffsetAndMetadata
from kproto_server.coordinator.table.table import OffsetTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kproto_server.coordinator.table.entries import CommitEntries as CommitEntries
    from kproto_server.coordinator.table.entries import DeletionEntries as DeletionEntries
    from kproto_server.coordinator.table.entries import GroupToCheck as GroupToCheck


class LazyEntries:
    """The entries of a commit that is not decoded yet.

    Until the store calls `take`, the owner may replace the commit by a later one of the same partitions, without a
    call.
    """

    __slots__ = ()

    @property
    def expires_early(self) -> bool:
        """As for `OffsetStore.apply_commit`."""
        raise NotImplementedError

    def take(self) -> CommitEntries:
        """Return the entries. The store calls this once, and has no reference to this object afterwards."""
        raise NotImplementedError


class OffsetStore:
    """The committed offsets of all groups."""

    __slots__ = ("_lazy", "_table", "touched")

    def __init__(self) -> None:
        self._table = OffsetTable()
        self._lazy: dict[str, LazyEntries] = {}
        """Commits that are visible, but not in the table yet, by group id."""
        self.touched: dict[str, None] = {}
        """Ids of groups that the next expiration run has to check, as the table does not name them."""

    def settle(self, group_id: str) -> None:
        """Put lazy entries into the table. Each method that reads or changes a group calls this first."""
        lazy = self._lazy.pop(group_id, None)
        if lazy is not None:
            self._table.apply(group_id, lazy.take(), expires_early=lazy.expires_early)

    def _settle_all(self) -> None:
        for group_id in list(self._lazy):
            self.settle(group_id)

    def apply_commit(self, group_id: str, entries: CommitEntries | LazyEntries, *, expires_early: bool = True) -> None:
        """Make a commit visible.

        ``expires_early``: False if all of its offsets expire a retention time of the broker after the commit, or later.
        Lazy entries have their own.
        """
        if self._lazy:
            self.settle(group_id)
        if not isinstance(entries, LazyEntries):
            self._table.apply(group_id, entries, expires_early=expires_early)
            return
        self._lazy[group_id] = entries
        if entries.expires_early or not self._table.has(group_id):
            self.touched[group_id] = None

    def apply_deletion(self, group_id: str, entries: DeletionEntries) -> None:
        """Delete offsets whose tombstones the log has."""
        if self._lazy:
            self.settle(group_id)
        if not self._table.remove(group_id, entries):
            self.touched[group_id] = None

    def of_group(self, group_id: str) -> Mapping[str, Mapping[int, OffsetAndMetadata]]:
        """Return a group's offsets by topic and partition, valid until its next change; empty if it has none."""
        if self._lazy:
            self.settle(group_id)
        return self._table.of_group(group_id)

    def offset_of(self, key: tuple[str, str, int]) -> OffsetAndMetadata | None:
        """Return the offset of a group, topic and partition; None if there is none."""
        group_id, topic, partition = key
        return self.of_group(group_id).get(topic, {}).get(partition)

    def has(self, group_id: str) -> bool:
        """Return whether a group has offsets."""
        return group_id in self._lazy or self._table.has(group_id)

    def group_ids(self) -> Iterator[str]:
        """Yield the ids of groups with offsets, in no order. Nothing may be changed during the iteration."""
        self._settle_all()
        return self._table.group_ids()

    def some_group_ids(self, count: int) -> list[str]:
        """Return the ids of some groups with offsets, ``count`` at most; lazy entries stay so."""
        found = dict.fromkeys(islice(self._lazy, count))
        for group_id in self._table.group_ids():
            if len(found) >= count:
                break
            found[group_id] = None
        return list(found)

    def groups_with(self, topics: Iterable[str]) -> Iterator[str]:
        """Yield the ids of groups with an offset in one of some topics. Reads all groups: for deletions, not for
        commits."""
        self._settle_all()
        return self._table.groups_with(topics)

    def groups_to_check(self, until_ms: int) -> Iterator[list[GroupToCheck]]:
        """Yield groups that may have an expired offset if all commits until a time are; see
        `OffsetTable.groups_to_check`."""
        for groups in self._table.groups_to_check(until_ms):
            yield [(group_id, None if group_id in self._lazy else offsets) for group_id, offsets in groups]

    @property
    def oldest_ms(self) -> int:
        """The time from which on `groups_to_check` may yield a group; no group is earlier."""
        return self._table.oldest_ms

    def check_again(self, group_id: str, min_commit_ms: int) -> None:
        """Have `groups_to_check` yield a group again, which it has yielded, for times from ``min_commit_ms`` on."""
        self._table.check_again(group_id, min_commit_ms)

    def __len__(self) -> int:
        """The number of stored offsets."""
        self._settle_all()
        return len(self._table)
