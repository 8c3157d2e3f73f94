"""The table of committed offsets: at most 64 bytes for each entry, everything included (OS-13).

Theory of operation. A group with few entries is a block of bytes in a hash table (`small`, `buckets`); a group with
many entries is an object with several such records (`large`). A commit or deletion that changes the size of a group
turns one into the other. `topics` stores the names and ids of topics once for all groups; `records` has the values of a
group's entries, in the columns that they need (`column_layout`); `layouts` caches which entries a record has (`keys`).

The cost of an operation depends on the entries that it names, and not on the number of all entries: nothing in the
table is ever copied, searched or rebuilt as a whole.

Entries with the same topic name and different topic ids are rare: the topic was deleted and created again, and its
offsets were kept, as in the logs of releases without topic ids. `_rewrite` decodes and encodes such a group.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from kproto_server.coordinator.table.large import LargeGroup
from kproto_server.coordinator.table.layouts import Layouts
from kproto_server.coordinator.table.records import (
    CHECK_ALWAYS,
    CHECK_NEVER,
    merge,
    sorted_entries,
    to_columns,
    without_keys,
)
from kproto_server.coordinator.table.small import SmallGroups, group_id_of
from kproto_server.coordinator.table.topics import TopicNumbers
from kproto_server.coordinator.table.views import GroupView

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kproto_server.coordinator.table.buckets import Block
    from kproto_server.coordinator.table.column_layout import Columns
    from kproto_server.coordinator.table.entries import CommitEntries, DeletionEntries, GroupToCheck, OffsetAndMetadata
    from kproto_server.coordinator.table.layouts import LayoutTopic

    Offsets = Mapping[str, Mapping[int, OffsetAndMetadata]]

NO_OFFSETS: Offsets = MappingProxyType({})
SMALL_AGAIN_MAX = 32
"""A large group with so few entries becomes a small one."""


class OffsetTable:
    """Offsets by group, topic and partition."""

    __slots__ = ("_count", "_large", "_layouts", "_small", "_topics", "oldest_ms")

    def __init__(self) -> None:
        self._topics = TopicNumbers()
        self._layouts = Layouts(self._topics)
        self._small = SmallGroups(self._layouts)
        self._large: dict[str, LargeGroup] = {}
        self._count = 0
        self.oldest_ms: int = CHECK_NEVER
        """A lower bound of the minimum commit timestamps of all buckets and large groups."""

    def __len__(self) -> int:
        """The number of offsets."""
        return self._count

    def has(self, group_id: str) -> bool:
        """Whether a group has offsets."""
        return group_id in self._large or self._small.find(group_id) is not None

    def of_group(self, group_id: str) -> Offsets:
        """Return a group's offsets by topic and partition, valid until its next change."""
        large = self._large.get(group_id)
        if large is not None:
            return GroupView(large, self._topics)
        block = self._small.find(group_id)
        return NO_OFFSETS if block is None else self._small.offsets(block)

    def group_ids(self) -> Iterator[str]:
        """Yield the ids of groups with offsets. The table must not change during the iteration."""
        yield from self._large
        for block in self._small.blocks():
            yield group_id_of(block)

    def groups_with(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the ids of groups with an offset in one of some topics. The table must not change during the
        iteration."""
        known = {name for name in names if self._topics.bases_of(name)}
        if not known:
            return
        for group_id, large in self._large.items():
            if not all(known.isdisjoint(layout.by_name) for _, layout in large.records()):
                yield group_id
        for block in self._small.blocks():
            if not known.isdisjoint(self._small.layout_of(block).by_name):
                yield group_id_of(block)

    # Changes.

    def apply(self, group_id: str, entries: CommitEntries, *, expires_early: bool) -> None:
        """Add or replace offsets. ``expires_early``: as for `OffsetStore.apply_commit`."""
        group = self._large.get(group_id) or self._small.find(group_id)
        if group is not None:
            min_commit_ms = self._overwrite(group, entries, expires_early)
            if min_commit_ms is not None:
                self._lower(group, min_commit_ms)
                return
        flat = self._flat(entries)
        if flat is None or (self._topics.ambiguous and self._mixes(group_id, entries)):
            columns = self._rewrite(group_id, entries)
        else:
            keys, columns = flat
            if not keys:
                return
            self._put_in(group_id, group, keys, columns)
        self._check_from(group_id, _min_commit_ms(columns, expires_early))

    def _overwrite(self, group: Block | LargeGroup, entries: CommitEntries, expires_early: bool) -> int | None:
        """Overwrite the offsets of a group; return their minimum commit timestamp.

        Return None if the group does not have all of these partitions, or has no room for the values; some values may
        be overwritten then.
        """
        min_commit_ms = CHECK_NEVER
        for name, partitions in entries:
            if not partitions:
                continue
            indexes, rows = zip(*partitions, strict=True)
            offsets, epochs, metadata, times, expiries, ids = zip(*rows, strict=True)
            if ids.count(ids[0]) != len(ids):
                return None
            columns = offsets, epochs, metadata, times, expiries
            if isinstance(group, LargeGroup):
                base = self._topics.base(name, ids[0])
                is_overwritten = group.overwrite(
                    tuple([base + index for index in indexes]) if base else indexes, columns
                )
            else:
                is_overwritten = self._small.overwrite(group, name, ids[0], indexes, columns)
            if not is_overwritten:
                return None
            min_commit_ms = min(min_commit_ms, _min_commit_ms(columns, expires_early))
        return min_commit_ms

    def _flat(self, entries: CommitEntries) -> tuple[tuple[int, ...], Columns] | None:
        """Return the keys and columns of a commit; None if it has several ids of a topic."""
        keys: list[int] = []
        rows: list[OffsetAndMetadata] = []
        for name, partitions in entries:
            if partitions:
                topic_id = partitions[0][1].topic_id
                if [stored.topic_id for _, stored in partitions].count(topic_id) != len(partitions):
                    return None
                base = self._topics.base(name, topic_id)
                keys += [base + index for index, _ in partitions]
                rows += [stored for _, stored in partitions]
        return tuple(keys), to_columns(rows)

    def _put_in(self, group_id: str, group: Block | LargeGroup | None, keys: tuple[int, ...], columns: Columns) -> None:
        """Add offsets to a group, or replace those that it has."""
        if group is None:
            self._add(group_id, *sorted_entries(keys, columns))
        elif isinstance(group, LargeGroup):
            before = group.count
            group.apply(*sorted_entries(keys, columns))
            self._count += group.count - before
            self._make_small(group_id, group)
        else:
            self._replace(group_id, group, *merge(*self._small.entries(group), keys, columns))

    def _add(self, group_id: str, keys: tuple[int, ...], columns: Columns) -> None:
        if not self._small.add(group_id, keys, columns):
            self._large[group_id] = LargeGroup(keys, columns, self._layouts)
        self._count += len(keys)

    def _replace(self, group_id: str, block: Block, keys: tuple[int, ...], columns: Columns) -> None:
        """Replace the entries of a small group."""
        self._count += len(keys) - self._small.layout_of(block).count
        if not self._small.replace(block, keys, columns):
            self._large[group_id] = LargeGroup(keys, columns, self._layouts)
            self._small.remove(block)

    def _make_small(self, group_id: str, large: LargeGroup) -> None:
        """Turn a large group with few entries into a small one."""
        if large.count <= SMALL_AGAIN_MAX and self._small.add(group_id, *large.entries()):
            large.release_topics()
            del self._large[group_id]
            self._check_from(group_id, large.min_commit_ms)

    def remove(self, group_id: str, entries: DeletionEntries) -> bool:
        """Remove offsets, as far as the group has them; return whether it has others."""
        deleted = {
            base + index for name, partitions in entries for base in self._topics.bases_of(name) for index in partitions
        }
        large = self._large.get(group_id)
        if large is not None:
            before = large.count
            large.remove(tuple(sorted(deleted)))
            self._count += large.count - before
            if large.count:
                self._make_small(group_id, large)
            else:
                del self._large[group_id]
            return large.count > 0
        block = self._small.find(group_id)
        if block is None:
            return False
        layout = self._small.layout_of(block)
        if deleted.issuperset(layout.keys):
            self._small.remove(block)
            self._count -= layout.count
            return False
        if not deleted.isdisjoint(layout.keys):
            self._replace(group_id, block, *without_keys(*self._small.entries(block), deleted))
        return True

    # Topics that were deleted and created again.

    def _mixes(self, group_id: str, entries: CommitEntries) -> bool:
        """Return whether a group has, or would have after a commit, a topic with several ids."""
        ids: dict[str, bytes] = {}
        for name, partitions in entries:
            if partitions and ids.setdefault(name, partitions[0][1].topic_id) != partitions[0][1].topic_id:
                return True
        return any(ids.get(topic.name, topic.topic_id) != topic.topic_id for topic in self._topics_of(group_id))

    def _topics_of(self, group_id: str) -> Iterator[LayoutTopic]:
        large = self._large.get(group_id)
        if large is not None:
            for _, layout in large.records():
                yield from layout.topics
        elif (block := self._small.find(group_id)) is not None:
            yield from self._small.layout_of(block).topics

    def _rewrite(self, group_id: str, entries: CommitEntries) -> Columns:
        """Add or replace offsets by topic name, whatever ids the topics have; return the columns of the group."""
        topics = {name: dict(stored) for name, stored in self.of_group(group_id).items()}
        for name, partitions in entries:
            topics.setdefault(name, {}).update(partitions)
        rows = {
            self._topics.base(name, stored.topic_id) + index: stored
            for name, partitions in topics.items()
            for index, stored in partitions.items()
        }
        keys, columns = sorted_entries(tuple(rows), to_columns(rows.values()))
        large = self._large.get(group_id)
        block = self._small.find(group_id)
        if large is not None:
            self._large[group_id] = LargeGroup(keys, columns, self._layouts)
            large.release_topics()
            self._count += len(keys) - large.count
        elif block is not None:
            self._replace(group_id, block, keys, columns)
        else:
            self._add(group_id, keys, columns)
        for name, _ in entries:
            self._topics.forget_unused(name)
        return columns

    # Expiration.

    def _check_from(self, group_id: str, min_commit_ms: int) -> None:
        """Have `groups_to_check` yield a group at this time, if not before."""
        large = self._large.get(group_id)
        if large is not None:
            self._lower(large, min_commit_ms)
        else:
            self._small.check_from(group_id, min_commit_ms)
            self.oldest_ms = min(self.oldest_ms, min_commit_ms)

    def _lower(self, group: Block | LargeGroup, min_commit_ms: int) -> None:
        if isinstance(group, LargeGroup):
            group.min_commit_ms = min(group.min_commit_ms, min_commit_ms)
        else:
            self._small.lower_bucket(group[0], min_commit_ms)
        if min_commit_ms < self.oldest_ms:
            self.oldest_ms = min_commit_ms

    def check_again(self, group_id: str, min_commit_ms: int) -> None:
        """Have `groups_to_check` yield a group again, which it has yielded, from this time on."""
        large = self._large.get(group_id)
        if large is not None:
            self._lower(large, min_commit_ms)
        else:
            self._small.check_again(group_id, min_commit_ms)
            self.oldest_ms = min(self.oldest_ms, min_commit_ms)

    def groups_to_check(self, until_ms: int) -> Iterator[list[GroupToCheck]]:
        """Yield groups that may have offsets committed until this time, or offsets with an expire timestamp.

        A group is not yielded again until `check_again` or its next commit; the caller keeps track of registered
        groups. Yields empty lists from time to time, so that the caller can end a step. The table may change during the
        iteration.
        """
        if self.oldest_ms > until_ms:
            return
        for group_id in list(self._large):
            large = self._large.get(group_id)
            if large is not None and large.min_commit_ms <= until_ms:
                large.min_commit_ms = CHECK_NEVER
                yield [(group_id, None)]
        yield from self._small.groups_to_check(until_ms)
        larges = min((large.min_commit_ms for large in self._large.values()), default=CHECK_NEVER)
        self.oldest_ms = min(larges, self._small.oldest_ms())


def _min_commit_ms(columns: Columns, expires_early: bool) -> int:
    """Return the minimum commit timestamp of offsets, as expiration needs it."""
    _, _, _, times, expiries = columns
    if expires_early and expiries.count(None) != len(expiries):
        return CHECK_ALWAYS
    return min(times)
