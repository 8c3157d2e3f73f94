"""Groups with many entries, with long metadata, or with a long id: records sorted by key.

The entries of a group are split into records as those of a tree into leaves: a commit changes only the records of its
partitions, however many others there are.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from kproto_server.coordinator.table.layouts import positions_of
from kproto_server.coordinator.table.overwriting import overwrite_values
from kproto_server.coordinator.table.records import (
    decode,
    layout_of,
    merge,
    slice_columns,
    split_records,
    to_columns,
    without_keys,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.coordinator.table.column_layout import Columns
    from kproto_server.coordinator.table.layouts import Layout, Layouts


class LargeGroup:
    """One group."""

    __slots__ = ("_first_keys", "_layouts", "_records", "count", "min_commit_ms")

    def __init__(self, keys: tuple[int, ...], columns: Columns, layouts: Layouts) -> None:
        """``keys`` are sorted."""
        self._layouts = layouts
        self._records: list[bytearray] = []
        self._first_keys: list[int] = []
        """The first key of each record."""
        self._put_in(0, split_records(keys, columns))
        self.count: int = len(keys)
        """The number of entries."""
        _, _, _, times, _ = columns
        self.min_commit_ms: int = min(times)
        """As for a bucket (`buckets`)."""

    def _put_in(self, number: int, made: list[bytearray]) -> None:
        layouts = [layout_of(record, 0, self._layouts) for record in made]
        for layout in layouts:
            self._layouts.topics.count(layout.topics)
        self._records[number:number] = made
        self._first_keys[number:number] = [layout.keys[0] for layout in layouts]

    def entries(self) -> tuple[tuple[int, ...], Columns]:
        """Return all entries."""
        keys: list[int] = []
        rows: list[tuple[Any, ...]] = []
        for record, layout in self.records():
            keys += layout.keys
            rows += zip(*decode(record, 0, layout), strict=True)
        return tuple(keys), to_columns(rows)

    def release_topics(self) -> None:
        """Give up the topic numbers of all records, as the group is dropped."""
        for _, layout in self.records():
            self._layouts.topics.discount(layout.topics)

    def overwrite(self, keys: tuple[int, ...], columns: Columns) -> bool:
        """Overwrite values, in runs of consecutive keys. Return False if the group does not have all keys, or has no
        room for the values; some values may be overwritten then."""
        position = 0
        while position < len(keys):
            record, layout = self.record_at(keys[position])
            first = bisect_left(layout.keys, keys[position])
            count = min(layout.count - first, len(keys) - position)
            if not count or layout.keys[first : first + count] != keys[position : position + count]:
                return False
            chosen = columns if count == len(keys) else slice_columns(columns, position, position + count)
            if not overwrite_values(record, 0, layout, range(first, first + count), chosen):
                return False
            position += count
        return True

    def apply(self, keys: tuple[int, ...], columns: Columns) -> None:
        """Add or replace entries with sorted keys."""
        position = 0
        while position < len(keys):
            number, stop = self._range(keys, position)
            if stop - position == len(keys):
                self._apply(number, keys, columns)
            else:
                self._apply(number, keys[position:stop], slice_columns(columns, position, stop))
            position = stop

    def _range(self, keys: tuple[int, ...], position: int) -> tuple[int, int]:
        """Return the number of the record that a key belongs to, and the end of the keys that belong there too."""
        number = max(0, bisect_right(self._first_keys, keys[position]) - 1)
        if number + 1 == len(self._records):
            return number, len(keys)
        return number, bisect_left(keys, self._first_keys[number + 1], position)

    def _apply(self, number: int, keys: tuple[int, ...], columns: Columns) -> None:
        record = self._records[number]
        layout = layout_of(record, 0, self._layouts)
        positions = positions_of(layout.keys, keys)
        if positions is None or not overwrite_values(record, 0, layout, positions, columns):
            self._replace(number, layout, *merge(layout.keys, decode(record, 0, layout), keys, columns))

    def remove(self, keys: tuple[int, ...]) -> None:
        """Remove entries with sorted keys; keys without an entry are ignored."""
        position = 0
        while position < len(keys) and self._records:
            number, stop = self._range(keys, position)
            record = self._records[number]
            layout = layout_of(record, 0, self._layouts)
            deleted = frozenset(keys[position:stop])
            if not deleted.isdisjoint(layout.keys):
                self._replace(number, layout, *without_keys(layout.keys, decode(record, 0, layout), deleted))
            position = stop

    def _replace(self, number: int, layout: Layout, keys: tuple[int, ...], columns: Columns) -> None:
        """Replace a record with this layout by entries."""
        self._put_in(number + 1, split_records(keys, columns))
        del self._records[number], self._first_keys[number]
        self._layouts.topics.discount(layout.topics)
        self.count += len(keys) - layout.count

    def records(self) -> Iterator[tuple[bytearray, Layout]]:
        """Yield all records."""
        for record in self._records:
            yield record, layout_of(record, 0, self._layouts)

    def record_at(self, key: int) -> tuple[bytearray, Layout]:
        """Return the record that has a key, if any record has it."""
        record = self._records[max(0, bisect_right(self._first_keys, key) - 1)]
        return record, layout_of(record, 0, self._layouts)

    def records_between(self, low: int, high: int) -> Iterator[tuple[bytearray, Layout]]:
        """Yield the records that may have keys from ``low`` to ``high``."""
        first = max(0, bisect_right(self._first_keys, low) - 1)
        for record in self._records[first : bisect_right(self._first_keys, high)]:
            yield record, layout_of(record, 0, self._layouts)
