"""Committed offsets: the table that is served from, and the log that it is a reflection of.

Theory of operation. The table holds only what the log has (OS-15). A change is a batch of entries of one group; it is
appended to the log of the group's offsets partition, synced, and only then applied, in one step and in log order, so
that nothing ever has to be undone (OS-24) and a reader sees all of a commit or nothing of it (OS-26). Whoever makes a
change does these three visibly, one after the other::

    error = log.append_commit(partition, group_id, entries) or log.sync(partition)
    if not error:
        offsets.apply_commit(group_id, entries)

`MemoryOffsetLog` is a log that keeps nothing: in memory the table is all there is.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    CommitEntries = Sequence[tuple[str, Sequence[tuple[int, "OffsetAndMetadata"]]]]
    """Topics with partitions and their offsets; of a partition named twice the last counts, but both are logged."""
    DeletionEntries = Sequence[tuple[str, Sequence[int]]]
    """Topics with partitions."""

NOTHING: Mapping[str, Mapping[int, OffsetAndMetadata]] = MappingProxyType({})


class OffsetAndMetadata(NamedTuple):
    """What is stored for one partition of one group."""

    offset: int
    leader_epoch: int
    """-1: none (OC-46)."""
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None
    """None: expiry follows `offsets.retention.minutes` and the group (EX-20)."""
    topic_id: bytes
    """Of the topic at the time of the commit."""


class OffsetLog(Protocol):
    """Where changes are kept before they are visible. A batch is written whole or not at all (OS-20).

    What is returned is Kafka's code of a failed write, 0 for success.
    """

    def append_commit(self, partition: int, group_id: str, entries: CommitEntries) -> int:
        """Add one commit, as one batch, to the log of an offsets partition (OC-33)."""
        ...

    def append_deletion(self, partition: int, group_id: str, entries: DeletionEntries, removes_group: bool) -> int:
        """Add tombstones of offsets, and of the group itself if it goes with them (EX-30, EX-31)."""
        ...

    def sync(self, partition: int) -> int:
        """Make all that was appended to the partition as durable as this log can."""
        ...


class DeferredCommit(Protocol):
    """A commit that is known to be accepted; its entries are worked out when they are asked for."""

    expires_early: bool
    """As of `OffsetStore.apply_commit`."""

    def entries(self) -> CommitEntries: ...


class MemoryOffsetLog:
    """A log that forgets: writing always succeeds."""

    def append_commit(self, partition: int, group_id: str, entries: CommitEntries) -> int:
        return 0

    def append_deletion(self, partition: int, group_id: str, entries: DeletionEntries, removes_group: bool) -> int:
        return 0

    def sync(self, partition: int) -> int:
        return 0


class OffsetStore:
    """The table of committed offsets, and the log behind it."""

    __slots__ = ("_deferred", "_groups", "log", "touched")

    def __init__(self, log: OffsetLog | None = None) -> None:
        self.log: OffsetLog = log or MemoryOffsetLog()
        self._groups: dict[str, dict[str, dict[int, OffsetAndMetadata]]] = {}
        self._deferred: dict[str, DeferredCommit] = {}
        self.touched: dict[str, None] = {}
        """Groups that the next sweep has to look at (`Sweeps`)."""

    def defer_commit(self, group_id: str, commit: DeferredCommit) -> None:
        """Make a commit visible whose entries are worked out when somebody looks.

        Deferring the same object again stands for a later commit of the same partitions, in place of the one before.
        """
        before = self._deferred.get(group_id)
        if before is not commit:
            if before is not None:
                self._settle(group_id)
            self._deferred[group_id] = commit
            if commit.expires_early or group_id not in self._groups:
                self.touched[group_id] = None

    def _settle(self, group_id: str) -> None:
        """Put what was deferred into the table; everything that looks at a group comes here first."""
        commit = self._deferred.pop(group_id, None)
        if commit is not None:
            self._apply(group_id, commit.entries())

    def _settle_all(self) -> None:
        for group_id in list(self._deferred):
            self._settle(group_id)

    def apply_commit(self, group_id: str, entries: CommitEntries, *, expires_early: bool = True) -> None:
        """Make a commit visible that the log has.

        ``expires_early``: False if all its offsets expire a retention time of the broker from now, or later.
        """
        if self._deferred:
            self._settle(group_id)
        if expires_early:
            self.touched[group_id] = None
        self._apply(group_id, entries)

    def _apply(self, group_id: str, entries: CommitEntries) -> None:
        topics = self._groups.get(group_id)
        if topics is None:
            topics = self._groups[group_id] = {}
            self.touched[group_id] = None
        for name, partitions in entries:
            stored = topics.get(name)
            if stored is None:
                topics[name] = dict(partitions)
            else:
                stored.update(partitions)

    def apply_deletion(self, group_id: str, entries: DeletionEntries) -> None:
        """Forget offsets whose tombstones the log has."""
        self._settle(group_id)
        topics = self._groups.get(group_id)
        if topics is None:
            return
        for name, partitions in entries:
            stored = topics.get(name, {})
            for partition in partitions:
                stored.pop(partition, None)
            if not stored:
                topics.pop(name, None)
        if not topics:
            del self._groups[group_id]
            self.touched[group_id] = None

    def of_group(self, group_id: str) -> Mapping[str, Mapping[int, OffsetAndMetadata]]:
        """Return a group's offsets by topic and partition; a view, empty if there are none."""
        if self._deferred:
            self._settle(group_id)
        return self._groups.get(group_id, NOTHING)

    def groups_with(self, topic: str) -> Iterator[str]:
        """Yield the groups that have an offset in a topic. Walks all groups: for deletions, not for commits."""
        self._settle_all()
        return (group_id for group_id, topics in self._groups.items() if topic in topics)

    def __len__(self) -> int:
        """The number of stored offsets."""
        self._settle_all()
        return sum(len(partitions) for topics in self._groups.values() for partitions in topics.values())
