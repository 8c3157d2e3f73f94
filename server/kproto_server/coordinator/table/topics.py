"""Topics as numbers: a name and the id that the topic had, once for all entries that are of it.

An entry's *key* is one number too: that of its topic times 2**32, plus the partition. In the order of keys the entries
of a topic are neighbours; a negative partition, which only releases without a check let in, comes first of them.

A number is given again when no record has it any more, so that topics that come and go leave nothing behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.coordinator.table.layouts import Layout

PARTITIONS = 1 << 32
"""By how much the keys of neighbouring topics differ."""
HALF = 1 << 31


class Topics:
    """The topics that entries are of. *Base* is the key of a topic's partition 0."""

    __slots__ = ("_bases", "_bases_of_name", "_counts", "_free", "_known", "ambiguous", "generation")

    def __init__(self) -> None:
        self._bases: dict[tuple[str, bytes], int] = {}
        self._bases_of_name: dict[str, list[int]] = {}
        self._known: list[tuple[str, bytes]] = []
        self._counts: list[int] = []
        """By number: records that have the topic."""
        self._free: list[int] = []
        self.ambiguous: set[str] = set()
        """Names that stand for several topics."""
        self.generation = 0
        """How often a number was given again: what was remembered of them before is void."""

    def base(self, name: str, topic_id: bytes) -> int:
        """Return a topic's base; it is its own once a record has it."""
        base = self._bases.get((name, topic_id))
        return self._add(name, topic_id) if base is None else base

    def _add(self, name: str, topic_id: bytes) -> int:
        if self._free:
            number = self._free.pop()
            self._known[number] = (name, topic_id)
            self.generation += 1
        else:
            number = len(self._known)
            self._known.append((name, topic_id))
            self._counts.append(0)
        base = self._bases[name, topic_id] = number * PARTITIONS
        bases = self._bases_of_name.setdefault(name, [])
        bases.append(base)
        if len(bases) > 1:
            self.ambiguous.add(name)
        return base

    def _remove(self, number: int) -> None:
        name, topic_id = self._known[number]
        bases = self._bases_of_name[name]
        bases.remove(self._bases.pop((name, topic_id)))
        if not bases:
            del self._bases_of_name[name]
        elif len(bases) == 1:
            self.ambiguous.remove(name)
        self._free.append(number)

    def forget_unused(self, name: str) -> None:
        """Forget topics of a name that no record has."""
        for base in list(self.bases_of(name)):
            if not self._counts[base // PARTITIONS]:
                self._remove(base // PARTITIONS)

    def bases_of(self, name: str) -> Sequence[int]:
        """Return the bases of all topics that have a name."""
        return self._bases_of_name.get(name, ())

    def known(self, base: int) -> tuple[str, bytes]:
        """Return a topic's name and id."""
        return self._known[base // PARTITIONS]

    def count(self, layout: Layout) -> None:
        """Note that there is one record more with this layout. Before `discount` of the one that it replaces."""
        counts = self._counts
        for topic in layout.topics:
            counts[topic.base // PARTITIONS] += 1

    def discount(self, layout: Layout) -> None:
        """Note that there is one record less with this layout."""
        counts = self._counts
        for topic in layout.topics:
            number = topic.base // PARTITIONS
            counts[number] -= 1
            if not counts[number]:
                self._remove(number)


def base_of(key: int) -> int:
    """Return the base of the topic that a key is of."""
    return (key + HALF) // PARTITIONS * PARTITIONS
