"""Groups with few entries: each is one block of bytes, with the group's id and one record."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from kproto_server.coordinator.table.buckets import Buckets
from kproto_server.coordinator.table.column_layout import EXPIRIES, TIME_EACH
from kproto_server.coordinator.table.overwriting import overwrite_values
from kproto_server.coordinator.table.records import (
    decode,
    encode,
    layout_of,
    set_min_commit_ms,
    sorted_entries,
    topics_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.coordinator.table.buckets import Block
    from kproto_server.coordinator.table.column_layout import Columns
    from kproto_server.coordinator.table.entries import GroupToCheck, OffsetAndMetadata
    from kproto_server.coordinator.table.layouts import Layout, Layouts


class SmallGroups:
    """The groups with few entries."""

    __slots__ = ("_buckets", "_layouts")

    def __init__(self, layouts: Layouts) -> None:
        self._layouts = layouts
        self._buckets = Buckets()

    def find(self, group_id: str) -> Block | None:
        """Return the position of a group, valid until the next change; None if it has no offsets here."""
        return self._buckets.find(_key(group_id))

    def layout_of(self, block: Block) -> Layout:
        _, bucket, _, _, record_start = block
        return layout_of(bucket, record_start, self._layouts)

    def entries(self, block: Block) -> tuple[tuple[int, ...], Columns]:
        """Return the keys and values of a group."""
        _, bucket, _, _, record_start = block
        layout = layout_of(bucket, record_start, self._layouts)
        return layout.keys, decode(bucket, record_start, layout)

    def offsets(self, block: Block) -> dict[str, dict[int, OffsetAndMetadata]]:
        """Return a group's offsets by topic and partition."""
        _, bucket, _, _, record_start = block
        layout = layout_of(bucket, record_start, self._layouts)
        return topics_of(layout, decode(bucket, record_start, layout))

    def overwrite(self, block: Block, name: str, topic_id: bytes, indexes: tuple[int, ...], columns: Columns) -> bool:
        """Overwrite the values of some partitions of a topic; return False if the group does not have all of them, or
        its record has no room for the values."""
        _, bucket, _, _, record_start = block
        layout = layout_of(bucket, record_start, self._layouts)
        topic = layout.by_name.get(name)
        if topic is None or topic.topic_id != topic_id:
            return False
        positions = topic.find(indexes)
        if positions is None:
            return False
        if not isinstance(positions, range):
            positions, columns = sorted_entries(positions, columns)
            if positions[-1] - positions[0] + 1 == len(positions):
                positions = range(positions[0], positions[-1] + 1)
        return overwrite_values(bucket, record_start, layout, positions, columns)

    def add(self, group_id: str, keys: tuple[int, ...], columns: Columns) -> bool:
        """Add a group that is not in the table; return False if it is too large."""
        record = encode(keys, columns)
        if record is None or not self._buckets.add(_key(group_id), record):
            return False
        self._layouts.topics.count(layout_of(record, 0, self._layouts).topics)
        return True

    def replace(self, block: Block, keys: tuple[int, ...], columns: Columns) -> bool:
        """Replace the entries of a group; return False if they are too large."""
        before = self.layout_of(block)
        record = encode(keys, columns)
        if record is None or not self._buckets.replace(block, record):
            return False
        self._layouts.topics.count(layout_of(record, 0, self._layouts).topics)
        self._layouts.topics.discount(before.topics)
        return True

    def remove(self, block: Block) -> None:
        layout = self.layout_of(block)
        self._buckets.remove(block)
        self._layouts.topics.discount(layout.topics)

    def blocks(self) -> Iterator[Block]:
        """Yield all groups."""
        for number in range(len(self._buckets)):
            yield from self._buckets.blocks(number)

    # Expiration.

    def oldest_ms(self) -> int:
        """Return the least minimum commit timestamp of all buckets."""
        return min(self._buckets.min_commit_ms)

    def check_from(self, group_id: str, min_commit_ms: int) -> None:
        """Have `groups_to_check` yield a group at this time, if not before."""
        self.lower_bucket(self._buckets.number_of(crc32(_key(group_id))), min_commit_ms)

    def lower_bucket(self, number: int, min_commit_ms: int) -> None:
        of_buckets = self._buckets.min_commit_ms
        if min_commit_ms < of_buckets[number]:
            of_buckets[number] = min_commit_ms

    def check_again(self, group_id: str, min_commit_ms: int) -> None:
        """Have `groups_to_check` yield a group again, which it has yielded, from this time on."""
        block = self.find(group_id)
        if block is not None:
            number, bucket, _, _, record_start = block
            set_min_commit_ms(bucket, record_start, min_commit_ms)
            self.lower_bucket(number, min_commit_ms)

    def groups_to_check(self, until_ms: int) -> Iterator[list[GroupToCheck]]:
        """As `OffsetTable.groups_to_check`."""
        for blocks in self._buckets.groups_to_check(until_ms):
            yield [(group_id_of(block), self._offsets_of_one_commit(block)) for block in blocks]

    def _offsets_of_one_commit(self, block: Block) -> list[tuple[str, tuple[int, ...]]] | None:
        """Return all offsets of a group if all have the same commit and no expire timestamp, else None."""
        layout = self.layout_of(block)
        if layout.column_flags & (TIME_EACH | EXPIRIES):
            return None
        return [(topic.name, topic.partitions) for topic in layout.topics]


def group_id_of(block: Block) -> str:
    _, bucket, _, start, record_start = block
    return bytes(bucket[start + 1 : record_start]).decode("utf-8", "surrogatepass")


def _key(group_id: str) -> bytes:
    return group_id.encode("utf-8", "surrogatepass")
