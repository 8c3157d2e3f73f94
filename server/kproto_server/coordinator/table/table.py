"""The table of committed offsets: at most 64 octets an entry, everything included (OS-13).

Theory of operation. A group with few entries is a block in a hash table of octets (`buckets`), a group with many an
object with such records (`large`); the commit or deletion that makes it so turns one into the other. `topics` has names
and ids once for all, `records` the values. What an operation costs depends on the entries that it names, and not on how
many there are: nothing here is ever copied, searched or rebuilt as a whole.

Entries of one topic name that were committed under different topic ids are rare: the topic was made anew and its
offsets stayed, as in the logs of releases without ids. Such a group is taken apart and put together (`_rewrite`).
"""

from __future__ import annotations

from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING
from zlib import crc32

from kproto_server.coordinator.table.buckets import Buckets
from kproto_server.coordinator.table.entries import OffsetAndMetadata
from kproto_server.coordinator.table.forms import NOTHING, Columns
from kproto_server.coordinator.table.large import LargeGroup
from kproto_server.coordinator.table.layouts import Layouts
from kproto_server.coordinator.table.records import (
    ALWAYS,
    NEVER,
    decode,
    encode,
    in_order,
    layout_of,
    merge,
    put,
    set_since,
    topics_of,
    without,
)
from kproto_server.coordinator.table.topics import Topics
from kproto_server.coordinator.table.views import GroupView

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from kproto_server.coordinator.table.buckets import Block
    from kproto_server.coordinator.table.entries import CommitEntries, DeletionEntries
    from kproto_server.coordinator.table.layouts import Layout, TopicOfLayout

    Offsets = Mapping[str, Mapping[int, OffsetAndMetadata]]

NO_OFFSETS: Offsets = MappingProxyType({})
SMALL_AGAIN_MAX = 32
"""Entries that a large group may have left to become a small one."""


class OffsetTable:
    """Offsets by group, topic and partition."""

    __slots__ = ("_count", "_large", "_layouts", "_small", "_topics", "oldest_ms")

    def __init__(self) -> None:
        self._topics = Topics()
        self._layouts = Layouts(self._topics)
        self._small = Buckets()
        self._large: dict[str, LargeGroup] = {}
        self._count = 0
        self.oldest_ms = NEVER
        """No since of a bucket or of a large group is earlier."""

    def __len__(self) -> int:
        """The number of offsets."""
        return self._count

    def has(self, group_id: str) -> bool:
        """Whether a group has offsets."""
        return group_id in self._large or self._small.find(_key(group_id)) is not None

    def of_group(self, group_id: str) -> Offsets:
        """Return a group's offsets, to be read before its next change."""
        large = self._large.get(group_id)
        if large is not None:
            return GroupView(large, self._topics)
        block = self._small.find(_key(group_id))
        if block is None:
            return NO_OFFSETS
        _, bucket, _, _, place = block
        layout = layout_of(bucket, place, self._layouts)
        return topics_of(layout, decode(bucket, place, layout))

    def group_ids(self) -> Iterator[str]:
        """Yield the groups that have offsets. The table must not change meanwhile."""
        yield from self._large
        for block in self._blocks():
            yield _group_id(block)

    def groups_with(self, name: str) -> Iterator[str]:
        """Yield the groups that have an offset in a topic. The table must not change meanwhile."""
        bases = frozenset(self._topics.bases_of(name))
        if not bases:
            return
        for group_id, large in self._large.items():
            if any(not bases.isdisjoint(layout.bases) for _, layout in large.records()):
                yield group_id
        for block in self._blocks():
            if not bases.isdisjoint(layout_of(block.bucket, block.place, self._layouts).bases):
                yield _group_id(block)

    def _blocks(self) -> Iterator[Block]:
        for number in range(len(self._small)):
            yield from self._small.blocks(number)

    # Changes.

    def apply(self, group_id: str, entries: CommitEntries, *, expires_early: bool) -> None:
        """Put in offsets. ``expires_early``: as of `OffsetStore.apply_commit`."""
        flat = self._flat(entries)
        if flat is None or (self._topics.ambiguous and self._mixes(group_id, entries)):
            columns = self._rewrite(group_id, entries)
        else:
            keys, columns = flat
            if not keys:
                return
            large = self._large.get(group_id)
            if large is not None:
                self._apply_to_large(group_id, large, keys, columns)
            else:
                self._apply_to_small(group_id, keys, columns)
        early = expires_early and columns.expiries.count(None) != len(columns.expiries)
        self.lower(group_id, ALWAYS if early else min(columns.times))

    def _flat(self, entries: CommitEntries) -> tuple[tuple[int, ...], Columns] | None:
        """Return the keys and columns of a commit; None if it has several ids for a topic."""
        keys: list[int] = []
        rows: list[OffsetAndMetadata] = []
        for name, partitions in entries:
            if partitions:
                topic_id = partitions[0][1].topic_id
                base = self._topics.base(name, topic_id)
                for index, stored in partitions:
                    if stored.topic_id != topic_id:
                        return None
                    keys.append(base + index)
                    rows.append(stored)
        return tuple(keys), _columns(rows)

    def _apply_to_small(self, group_id: str, keys: Sequence[int], columns: Columns) -> None:
        """Put in offsets of a group that is not large, or not there."""
        key = _key(group_id)
        block = self._small.find(key)
        if block is None:
            self._add(group_id, key, *in_order(keys, columns))
            return
        _, bucket, _, _, place = block
        layout = layout_of(bucket, place, self._layouts)
        if not put(bucket, place, layout, keys, columns):
            all_keys, columns = merge(layout.keys, decode(bucket, place, layout), keys, columns)
            self._replace(group_id, block, layout, all_keys, columns)

    def _add(self, group_id: str, key: bytes, keys: Sequence[int], columns: Columns) -> None:
        record = encode(keys, columns)
        if record is not None and self._small.add(key, record):
            self._topics.count(layout_of(record, 0, self._layouts))
        else:
            self._large[group_id] = LargeGroup(keys, columns, self._layouts)
        self._count += len(keys)

    def _replace(self, group_id: str, block: Block, layout: Layout, keys: Sequence[int], columns: Columns) -> None:
        """Give a small group other entries."""
        record = encode(keys, columns)
        if record is not None and self._small.replace(block, record):
            self._topics.count(layout_of(record, 0, self._layouts))
        else:
            self._large[group_id] = LargeGroup(keys, columns, self._layouts)
            self._small.remove(block)
        self._topics.discount(layout)
        self._count += len(keys) - layout.count

    def _apply_to_large(self, group_id: str, large: LargeGroup, keys: Sequence[int], columns: Columns) -> None:
        before = large.count
        large.apply(*in_order(keys, columns))
        self._count += large.count - before
        if large.count <= SMALL_AGAIN_MAX:
            self._make_small(group_id, large)

    def _make_small(self, group_id: str, large: LargeGroup) -> None:
        """Make a small group of a large one that has become so, if there is room."""
        keys, columns = large.entries()
        record = encode(keys, columns)
        if record is not None and self._small.add(_key(group_id), record):
            self._topics.count(layout_of(record, 0, self._layouts))
            del self._large[group_id]
            large.dissolve()
            self.lower(group_id, large.since_ms)

    def remove(self, group_id: str, entries: DeletionEntries) -> None:
        """Take out those of these offsets that are there."""
        doomed = {
            base + index for name, partitions in entries for base in self._topics.bases_of(name) for index in partitions
        }
        large = self._large.get(group_id)
        if large is not None:
            before = large.count
            large.remove(sorted(doomed))
            self._count += large.count - before
            if not large.count:
                del self._large[group_id]
            elif large.count <= SMALL_AGAIN_MAX:
                self._make_small(group_id, large)
            return
        block = self._small.find(_key(group_id))
        if block is None:
            return
        _, bucket, _, _, place = block
        layout = layout_of(bucket, place, self._layouts)
        if doomed.issuperset(layout.keys):
            self._small.remove(block)
            self._topics.discount(layout)
            self._count -= layout.count
        elif not doomed.isdisjoint(layout.keys):
            self._replace(group_id, block, layout, *without(layout.keys, decode(bucket, place, layout), doomed))

    # Topics that were made anew.

    def _mixes(self, group_id: str, entries: CommitEntries) -> bool:
        """Whether a group has a topic, or will have, under another id than a commit."""
        ids: dict[str, bytes] = {}
        for name, partitions in entries:
            if partitions and ids.setdefault(name, partitions[0][1].topic_id) != partitions[0][1].topic_id:
                return True
        return any(ids.get(topic.name, topic.topic_id) != topic.topic_id for topic in self._topics_of(group_id))

    def _topics_of(self, group_id: str) -> Iterator[TopicOfLayout]:
        large = self._large.get(group_id)
        if large is not None:
            for _, layout in large.records():
                yield from layout.topics
        elif (block := self._small.find(_key(group_id))) is not None:
            yield from layout_of(block.bucket, block.place, self._layouts).topics

    def _rewrite(self, group_id: str, entries: CommitEntries) -> Columns:
        """Put in offsets, whatever ids the topics have; return all that the group has then."""
        topics = {name: dict(stored) for name, stored in self.of_group(group_id).items()}
        for name, partitions in entries:
            topics.setdefault(name, {}).update(partitions)
        rows = {
            self._topics.base(name, stored.topic_id) + index: stored
            for name, partitions in topics.items()
            for index, stored in partitions.items()
        }
        keys, columns = in_order(tuple(rows), _columns(rows.values()))
        large = self._large.get(group_id)
        block = self._small.find(_key(group_id))
        if large is not None:
            self._large[group_id] = LargeGroup(keys, columns, self._layouts)
            large.dissolve()
            self._count += len(keys) - large.count
        elif block is not None:
            self._replace(group_id, block, layout_of(block.bucket, block.place, self._layouts), keys, columns)
        else:
            self._add(group_id, _key(group_id), keys, columns)
        for name, _ in entries:
            self._topics.forget_unused(name)
        return columns

    # Times.

    def lower(self, group_id: str, since_ms: int) -> None:
        """Have `due` name a group at this time, if not before."""
        large = self._large.get(group_id)
        if large is not None:
            large.since_ms = min(large.since_ms, since_ms)
        else:
            number = self._small.number_of(crc32(_key(group_id)))
            if since_ms < self._small.since[number]:
                self._small.since[number] = since_ms
        if since_ms < self.oldest_ms:
            self.oldest_ms = since_ms

    def put_off(self, group_id: str, since_ms: int) -> None:
        """Have `due` name a group, which it has named, at this time again."""
        block = None if group_id in self._large else self._small.find(_key(group_id))
        if block is not None:
            set_since(block.bucket, block.place, since_ms)
        self.lower(group_id, since_ms)

    def due(self, until_ms: int) -> Iterator[list[str]]:
        """Yield groups that may have offsets committed until this time, or offsets with a deadline of their own.

        Each has to be put off or removed before the next are asked for, unless somebody else keeps an eye on it. Where
        there are none, empty lists are yielded now and then. The table may change meanwhile.
        """
        if self.oldest_ms > until_ms:
            return
        for group_id in list(self._large):
            large = self._large.get(group_id)
            if large is not None and large.since_ms <= until_ms:
                large.since_ms = NEVER
                yield [group_id]
        for blocks in self._small.due(until_ms):
            yield [_group_id(block) for block in blocks]
        larges = min((large.since_ms for large in self._large.values()), default=NEVER)
        self.oldest_ms = min(larges, min(self._small.since))


def _key(group_id: str) -> bytes:
    return group_id.encode("utf-8", "surrogatepass")


def _group_id(block: Block) -> str:
    return bytes(block.bucket[block.start + 1 : block.place]).decode("utf-8", "surrogatepass")


def _columns(rows: Collection[OffsetAndMetadata]) -> Columns:
    return Columns(*islice(zip(*rows, strict=True), len(NOTHING))) if rows else NOTHING
