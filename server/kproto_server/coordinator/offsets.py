"""Committed offsets, as those see them who commit and fetch.

Theory of operation. The table holds only what the log has (OS-15). A change is a batch of entries of one group; it is
appended to the log of the group's offsets partition (`change_log`), and once it is there it is applied, in one step and
in log order, so that nothing ever has to be undone (OS-24) and a reader sees all of a commit or nothing of it (OS-26).

How offsets are kept is `table`'s business. What is added here is that a commit may be deferred: the same client commits
the same partitions again and again, and most of that nobody ever looks at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from kproto_server.coordinator.table.entries import OffsetAndMetadata as OffsetAndMetadata
from kproto_server.coordinator.table.table import OffsetTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kproto_server.coordinator.table.entries import CommitEntries as CommitEntries
    from kproto_server.coordinator.table.entries import DeletionEntries as DeletionEntries
    from kproto_server.coordinator.table.entries import GroupToCheck as GroupToCheck


class LastCommit(Protocol):
    """The last commit of a group, as its client sent it: its entries are worked out when they are asked for."""

    is_deferred: bool
    """Whether it is visible, and not in the table."""

    @property
    def expires_early(self) -> bool:
        """As of `OffsetStore.apply_commit`."""
        ...

    def entries(self) -> CommitEntries: ...


class OffsetStore:
    """The committed offsets of all groups."""

    __slots__ = ("_table", "last_commits", "touched")

    def __init__(self) -> None:
        self._table = OffsetTable()
        self.last_commits: dict[str, Any] = {}
        """By group, those that are remembered: `LastCommit`s of whoever remembers, who knows what else they are."""
        self.touched: dict[str, None] = {}
        """Groups that the next sweep has to look at, as what the table knows of them is not all (`Sweeps`)."""

    def remember(self, group_id: str, commit: LastCommit) -> None:
        """Keep a group's last commit, in place of the one before."""
        self._settle(group_id)
        self.last_commits[group_id] = commit

    def forget(self, group_id: str) -> None:
        """Keep it no more."""
        self._settle(group_id)
        del self.last_commits[group_id]

    def defer(self, group_id: str, commit: LastCommit) -> None:
        """Make the commit that is remembered of a group visible; its entries are worked out when somebody looks.

        Until then it may become, by itself, a later commit of the same partitions.
        """
        commit.is_deferred = True
        if commit.expires_early or not self._table.has(group_id):
            self.touched[group_id] = None

    def _settle(self, group_id: str) -> None:
        """Put what was deferred into the table; everything that looks at a group comes here first."""
        commit = self.last_commits.get(group_id)
        if commit is not None and commit.is_deferred:
            commit.is_deferred = False
            self._table.apply(group_id, commit.entries(), expires_early=commit.expires_early)

    def _is_deferred(self, group_id: str) -> bool:
        commit = self.last_commits.get(group_id)
        return commit is not None and commit.is_deferred

    def _settle_all(self) -> None:
        for group_id in self.last_commits:
            self._settle(group_id)

    def apply_commit(self, group_id: str, entries: CommitEntries, *, expires_early: bool = True) -> None:
        """Make a commit visible that the log has.

        ``expires_early``: False if all its offsets expire a retention time of the broker after their commit, or later.
        """
        if self.last_commits:
            self._settle(group_id)
        self._table.apply(group_id, entries, expires_early=expires_early)

    def apply_deletion(self, group_id: str, entries: DeletionEntries) -> None:
        """Forget offsets whose tombstones the log has."""
        if self.last_commits:
            self._settle(group_id)
        if not self._table.remove(group_id, entries):
            self.touched[group_id] = None

    def of_group(self, group_id: str) -> Mapping[str, Mapping[int, OffsetAndMetadata]]:
        """Return a group's offsets by topic and partition, to be read before its next change; empty if it has none."""
        if self.last_commits:
            self._settle(group_id)
        return self._table.of_group(group_id)

    def has(self, group_id: str) -> bool:
        """Whether a group has offsets."""
        return self._is_deferred(group_id) or self._table.has(group_id)

    def group_ids(self) -> Iterator[str]:
        """Yield the groups that have offsets, in no order. Nothing may be changed meanwhile."""
        self._settle_all()
        return self._table.group_ids()

    def groups_with(self, topic: str) -> Iterator[str]:
        """Yield the groups that have an offset in a topic. Walks all groups: for deletions, not for commits."""
        self._settle_all()
        return self._table.groups_with(topic)

    def due(self, until_ms: int) -> Iterator[list[GroupToCheck]]:
        """Yield groups that may have something that expires, if everything committed until a time does; see
        `OffsetTable.due`."""
        for groups in self._table.due(until_ms):
            yield [(group_id, None if self._is_deferred(group_id) else offsets) for group_id, offsets in groups]

    def check_again(self, group_id: str, min_commit_ms: int) -> None:
        """Have `due` name a group, which it has named, at this time again."""
        self._table.check_again(group_id, min_commit_ms)

    def __len__(self) -> int:
        """The number of stored offsets."""
        self._settle_all()
        return len(self._table)
