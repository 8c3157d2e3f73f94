"""Record layouts: which entries a record has, and where; decoded once for all records with the same entries.

A record stores its layout as column flags and encoded keys. A cache has the decoded layouts. It is bounded by the
number of entries in it, as there may be as many layouts as groups.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from kproto_server.coordinator.table.column_layout import ColumnLayout, column_layout_of
from kproto_server.coordinator.table.keys import decode_keys
from kproto_server.coordinator.table.topics import base_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from kproto_server.coordinator.table.topics import TopicNumbers

    Positions = range | tuple[int, ...]
    """Indexes of entries in the order of a layout's keys: consecutive, or any."""

ENTRIES_CACHED_MAX = 32_768
"""The entries of all cached layouts. An entry takes about 100 bytes there."""
LAYOUT_COSTS_ENTRIES = 8
"""A layout counts as this many entries more."""


class LayoutTopic:
    """The entries of one topic in a layout."""

    __slots__ = ("base", "first", "name", "partitions", "stop", "topic_id")

    def __init__(self, base: int, name: str, topic_id: bytes, first: int, keys: tuple[int, ...]) -> None:
        self.base: int = base
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.first: int = first
        self.stop: int = first + len(keys)
        self.partitions: tuple[int, ...] = tuple([key - base for key in keys])

    def find(self, partitions: tuple[int, ...]) -> Positions | None:
        """Return the indexes of some partitions in the layout; None if it does not have all of them."""
        if partitions == self.partitions:
            return range(self.first, self.stop)
        return positions_of(self.partitions, partitions, self.first)


class Layout:
    """The decoded layout of a record."""

    __slots__ = ("by_name", "column_flags", "column_layout", "count", "data", "keys", "topics")

    def __init__(self, data: bytes, topics: TopicNumbers) -> None:
        self.data: bytes = data
        self.column_flags: int = data[0]
        self.keys: tuple[int, ...] = decode_keys(data, 1)
        self.count: int = len(self.keys)
        self.column_layout: ColumnLayout = column_layout_of(self.column_flags, self.count)
        self.topics: tuple[LayoutTopic, ...] = _topics(self.keys, topics)
        self.by_name: dict[str, LayoutTopic] = {topic.name: topic for topic in self.topics}


def positions_of(known: tuple[int, ...], wanted: tuple[int, ...], first: int = 0) -> Positions | None:
    """Return the indexes of numbers in a sorted tuple; None if not all are in it. Usually they are consecutive."""
    start = bisect_left(known, wanted[0])
    if known[start : start + len(wanted)] == wanted:
        return range(first + start, first + start + len(wanted))
    positions: list[int] = []
    for number in wanted:
        position = bisect_left(known, number)
        if position == len(known) or known[position] != number:
            return None
        positions.append(first + position)
    return tuple(positions)


def _topics(keys: tuple[int, ...], topics: TopicNumbers) -> tuple[LayoutTopic, ...]:
    found = []
    first = 0
    while first < len(keys):
        base = base_of(keys[first])
        stop = first + 1
        while stop < len(keys) and base_of(keys[stop]) == base:
            stop += 1
        name, topic_id = topics.known(base)
        found.append(LayoutTopic(base, name, topic_id, first, keys[first:stop]))
        first = stop
    return tuple(found)


class Layouts:
    """The cached layouts of one table."""

    __slots__ = ("_cached", "_entries_count", "_generation", "topics")

    def __init__(self, topics: TopicNumbers) -> None:
        self.topics: TopicNumbers = topics
        self._cached: dict[bytes, Layout] = {}
        self._entries_count = 0
        self._generation = 0
        """`TopicNumbers.generation` when the cache was filled."""

    def get(self, data: bytes) -> Layout:
        """Return a decoded layout."""
        layout = self._cached.get(data)
        return self._add(data) if layout is None or self._generation != self.topics.generation else layout

    def cached(self) -> Collection[Layout]:
        """Return the layouts in the cache."""
        return self._cached.values()

    def _add(self, data: bytes) -> Layout:
        layout = Layout(data, self.topics)
        cost = layout.count + LAYOUT_COSTS_ENTRIES
        if self._entries_count + cost > ENTRIES_CACHED_MAX or self._generation != self.topics.generation:
            self._cached.clear()
            self._entries_count = 0
            self._generation = self.topics.generation
        self._entries_count += cost
        self._cached[data] = layout
        return layout
