"""Groups with many entries, or with long metadata or a long id: records in the order of their keys.

A group is cut into records as a tree is into leaves: what a commit of some partitions changes are the records that have
them, however many others there are.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from kproto_server.coordinator.table.layouts import positions_of
from kproto_server.coordinator.table.overwriting import put
from kproto_server.coordinator.table.records import columns_from, cut, decode, layout_of, merge, part, without

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.coordinator.table.column_layout import Columns
    from kproto_server.coordinator.table.layouts import Layout, Layouts


class LargeGroup:
    """One group."""

    __slots__ = ("_first_keys", "_layouts", "_records", "count", "min_commit_ms")

    def __init__(self, keys: tuple[int, ...], columns: Columns, layouts: Layouts) -> None:
        """Keys are in order."""
        self._layouts = layouts
        self._records: list[bytearray] = []
        self._first_keys: list[int] = []
        """Of the records."""
        self._put_in(0, cut(keys, columns))
        self.count = len(keys)
        """Entries."""
        _, _, _, times, _ = columns
        self.min_commit_ms = min(times)
        """As of a bucket."""

    def _put_in(self, number: int, made: list[bytearray]) -> None:
        layouts = [layout_of(record, 0, self._layouts) for record in made]
        for layout in layouts:
            self._layouts.topics.count(layout)
        self._records[number:number] = made
        self._first_keys[number:number] = [layout.keys[0] for layout in layouts]

    def entries(self) -> tuple[tuple[int, ...], Columns]:
        """Return all entries."""
        keys: list[int] = []
        rows: list[tuple[Any, ...]] = []
        for record, layout in self.records():
            keys += layout.keys
            rows += zip(*decode(record, 0, layout), strict=True)
        return tuple(keys), columns_from(rows)

    def dissolve(self) -> None:
        """The group is used no more."""
        for _, layout in self.records():
            self._layouts.topics.discount(layout)

    def overwrite(self, keys: tuple[int, ...], columns: Columns) -> bool:
        """Put new values for entries that are there, in runs of neighbours; False if that is not so, or there is no
        room for the values, and some of them may have been put in or none."""
        position = 0
        while position < len(keys):
            record, layout = self.record_at(keys[position])
            first = bisect_left(layout.keys, keys[position])
            count = min(layout.count - first, len(keys) - position)
            if not count or layout.keys[first : first + count] != keys[position : position + count]:
                return False
            chosen = columns if count == len(keys) else part(columns, position, position + count)
            if not put(record, 0, layout, range(first, first + count), chosen):
                return False
            position += count
        return True

    def apply(self, keys: tuple[int, ...], columns: Columns) -> None:
        """Put in entries, whose keys are in order."""
        position = 0
        while position < len(keys):
            number, stop = self._range(keys, position)
            if stop - position == len(keys):
                self._apply(number, keys, columns)
            else:
                self._apply(number, keys[position:stop], part(columns, position, stop))
            position = stop

    def _range(self, keys: tuple[int, ...], position: int) -> tuple[int, int]:
        """Return the number of the record that a key belongs into, and where the keys end that belong there too."""
        number = max(0, bisect_right(self._first_keys, keys[position]) - 1)
        if number + 1 == len(self._records):
            return number, len(keys)
        return number, bisect_left(keys, self._first_keys[number + 1], position)

    def _apply(self, number: int, keys: tuple[int, ...], columns: Columns) -> None:
        record = self._records[number]
        layout = layout_of(record, 0, self._layouts)
        positions = positions_of(layout.keys, keys)
        if positions is None or not put(record, 0, layout, positions, columns):
            self._replace(number, layout, *merge(layout.keys, decode(record, 0, layout), keys, columns))

    def remove(self, keys: tuple[int, ...]) -> None:
        """Take out those of these entries that are there. Keys are in order."""
        position = 0
        while position < len(keys) and self._records:
            number, stop = self._range(keys, position)
            record = self._records[number]
            layout = layout_of(record, 0, self._layouts)
            doomed = frozenset(keys[position:stop])
            if not doomed.isdisjoint(layout.keys):
                self._replace(number, layout, *without(layout.keys, decode(record, 0, layout), doomed))
            position = stop

    def _replace(self, number: int, layout: Layout, keys: tuple[int, ...], columns: Columns) -> None:
        """Put entries in the place of a record with this layout."""
        self._put_in(number + 1, cut(keys, columns))
        del self._records[number], self._first_keys[number]
        self._layouts.topics.discount(layout)
        self.count += len(keys) - layout.count

    def records(self) -> Iterator[tuple[bytearray, Layout]]:
        """Yield all records."""
        for record in self._records:
            yield record, layout_of(record, 0, self._layouts)

    def record_at(self, key: int) -> tuple[bytearray, Layout]:
        """Return the record that has a key, if any has."""
        record = self._records[max(0, bisect_right(self._first_keys, key) - 1)]
        return record, layout_of(record, 0, self._layouts)

    def records_between(self, low: int, high: int) -> Iterator[tuple[bytearray, Layout]]:
        """Yield the records that may have keys from ``low`` to ``high``."""
        first = max(0, bisect_right(self._first_keys, low) - 1)
        for record in self._records[first : bisect_right(self._first_keys, high)]:
            yield record, layout_of(record, 0, self._layouts)
