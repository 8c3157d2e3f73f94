"""Topics as numbers: name and id of a topic are stored once for all of its entries.

The *key* of an entry is one integer: the topic's number times 2**32, plus the partition. In the order of keys the
entries of a topic are neighbors. A negative partition, which only releases without a check accept, comes before
partition 0. The key of a topic's partition 0 is the topic's *base*.

A number is used again when no record has it any more, so that created and deleted topics do not take memory for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PARTITIONS = 1 << 32
"""The distance between the bases of consecutive topic numbers."""
HALF = 1 << 31


class HasBase(Protocol):
    """A topic in a layout."""

    base: int


class TopicNumbers:
    """The numbers of all topics that have entries."""

    __slots__ = ("_bases", "_bases_of_name", "_counts", "_free", "_known", "ambiguous", "generation")

    def __init__(self) -> None:
        self._bases: dict[tuple[str, bytes], int] = {}
        self._bases_of_name: dict[str, list[int]] = {}
        self._known: list[tuple[str, bytes]] = []
        self._counts: list[int] = []
        """How many records have the topic, by number."""
        self._free: list[int] = []
        """Numbers that can be used again."""
        self.ambiguous: set[str] = set()
        """Names of several topics: the topic was deleted and created again."""
        self.generation: int = 0
        """How often a number was used again: layouts cached before are obsolete."""

    def base(self, name: str, topic_id: bytes) -> int:
        """Return a topic's base, with a new number if need be; it stays the topic's once a record is counted."""
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
        """Free the numbers of a name's topics that no record has."""
        for base in list(self.bases_of(name)):
            if not self._counts[base // PARTITIONS]:
                self._remove(base // PARTITIONS)

    def bases_of(self, name: str) -> Sequence[int]:
        """Return the bases of all topics with a name."""
        return self._bases_of_name.get(name, ())

    def known(self, base: int) -> tuple[str, bytes]:
        """Return a topic's name and id."""
        return self._known[base // PARTITIONS]

    def count(self, topics: Iterable[HasBase]) -> None:
        """Count one more record with these topics. To replace a record, call this before `discount`."""
        counts = self._counts
        for topic in topics:
            counts[topic.base // PARTITIONS] += 1

    def discount(self, topics: Iterable[HasBase]) -> None:
        """Count one record less with these topics; free the numbers that no record has any more."""
        counts = self._counts
        for topic in topics:
            number = topic.base // PARTITIONS
            counts[number] -= 1
            if not counts[number]:
                self._remove(number)


def base_of(key: int) -> int:
    """Return the base of a key's topic."""
    return (key + HALF) // PARTITIONS * PARTITIONS
