"""Which entries a record has, and where: worked out once for all records that have the same.

In a record this is a form and the octets of its keys. What they mean is kept for those that were asked for last, in a
cache that is bounded by the entries in it: there may be as many layouts as there are groups.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from kproto_server.coordinator.table.column_layout import column_layout_of
from kproto_server.coordinator.table.keys import decode_keys
from kproto_server.coordinator.table.topics import base_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from kproto_server.coordinator.table.topics import Topics

    Positions = range | tuple[int, ...]
    """Places of entries in the order of a layout's keys: neighbours, or any."""

ENTRIES_CACHED_MAX = 32_768
"""Of the layouts in the cache. An entry takes about 100 octets there."""
LAYOUT_COSTS_ENTRIES = 8
"""As how many entries a layout counts by itself."""


class TopicOfLayout:
    """Entries of one topic in a layout."""

    __slots__ = ("base", "first", "name", "partitions", "stop", "topic_id")

    def __init__(self, base: int, name: str, topic_id: bytes, first: int, keys: tuple[int, ...]) -> None:
        self.base = base
        self.name = name
        self.topic_id = topic_id
        self.first = first
        self.stop = first + len(keys)
        self.partitions = tuple([key - base for key in keys])

    def find(self, partitions: tuple[int, ...]) -> Positions | None:
        """Return the positions of some partitions in the layout; None if it does not have all of them."""
        if partitions == self.partitions:
            return range(self.first, self.stop)
        return positions_of(self.partitions, partitions, self.first)


class Layout:
    """A form and keys."""

    __slots__ = ("by_name", "column_flags", "column_layout", "count", "keys", "octets", "topics")

    def __init__(self, octets: bytes, topics: Topics) -> None:
        self.octets = octets
        self.column_flags = octets[0]
        self.keys = decode_keys(octets, 1)
        self.count = len(self.keys)
        self.column_layout = column_layout_of(self.column_flags, self.count)
        self.topics = _topics(self.keys, topics)
        self.by_name = {topic.name: topic for topic in self.topics}


def positions_of(known: tuple[int, ...], wanted: tuple[int, ...], first: int = 0) -> Positions | None:
    """Return where numbers are among others that are in order; None if not all are there. Most are neighbours."""
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


def _topics(keys: tuple[int, ...], topics: Topics) -> tuple[TopicOfLayout, ...]:
    found = []
    first = 0
    while first < len(keys):
        base = base_of(keys[first])
        stop = first + 1
        while stop < len(keys) and base_of(keys[stop]) == base:
            stop += 1
        name, topic_id = topics.known(base)
        found.append(TopicOfLayout(base, name, topic_id, first, keys[first:stop]))
        first = stop
    return tuple(found)


class Layouts:
    """The layouts of one table."""

    __slots__ = ("_cached", "_entries_count", "_generation", "topics")

    def __init__(self, topics: Topics) -> None:
        self.topics = topics
        self._cached: dict[bytes, Layout] = {}
        self._entries_count = 0
        self._generation = 0
        """Of the topics whose numbers were taken for those."""

    def get(self, octets: bytes) -> Layout:
        """Return the layout that octets of a record mean."""
        layout = self._cached.get(octets)
        return self._add(octets) if layout is None or self._generation != self.topics.generation else layout

    def remembered(self) -> Collection[Layout]:
        """Return the layouts in the cache."""
        return self._cached.values()

    def _add(self, octets: bytes) -> Layout:
        layout = Layout(octets, self.topics)
        cost = layout.count + LAYOUT_COSTS_ENTRIES
        if self._entries_count + cost > ENTRIES_CACHED_MAX or self._generation != self.topics.generation:
            self._cached.clear()
            self._entries_count = 0
            self._generation = self.topics.generation
        self._entries_count += cost
        self._cached[octets] = layout
        return layout
