"""Offsets of transactions that have not ended: not visible until they are committed (OC-55, OC-56, LF-32 to LF-34).

Theory of operation. Each offsets partition has its own, as each gets its own marker. Whether a committed offset becomes
visible is decided by the order of the records, not of the markers: not if something later has become visible since. So
while an offset waits, the place of the newest visible one of its partition is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.coordinator.offsets import OffsetAndMetadata

    Place = tuple[str, str, int]
    """Group, topic, partition."""

Key = TypeVar("Key")

BEFORE_ALL = -1


class PendingOffset(NamedTuple):
    """What a transaction will make visible."""

    record_offset: int
    """Of its record in the log."""
    stored: OffsetAndMetadata


class PendingOffsets:
    """Those of one offsets partition, by producer id."""

    def __init__(self) -> None:
        self._producers: dict[int, dict[Place, PendingOffset]] = {}
        self._waiting: dict[Place, int] = {}
        """How many producers have one there."""
        self._visible: dict[Place, int] = {}
        """Record offset of what has become visible there in the meantime."""
        self._groups: dict[str, int] = {}
        """How many wait in each group."""

    def add(self, producer_id: int, place: Place, pending: PendingOffset) -> None:
        """Note an offset of a producer's transaction, in place of what it had there."""
        places = self._producers.setdefault(producer_id, {})
        if place not in places:
            self._waiting[place] = self._waiting.get(place, 0) + 1
            self._groups[place[0]] = self._groups.get(place[0], 0) + 1
        places[place] = pending

    def became_visible(self, place: Place, record_offset: int) -> None:
        """Note that an offset was written there by nobody's transaction."""
        if place in self._waiting:
            self._visible[place] = record_offset

    def end(self, producer_id: int, *, commits: bool) -> list[tuple[Place, OffsetAndMetadata]]:
        """End a producer's transaction; return what becomes visible by it."""
        visible: list[tuple[Place, OffsetAndMetadata]] = []
        for place, (record_offset, stored) in self._producers.pop(producer_id, {}).items():
            if commits and record_offset > self._visible.get(place, BEFORE_ALL):
                self._visible[place] = record_offset
                visible.append((place, stored))
            self._leave(place)
        return visible

    def remove(self, producer_id: int, place: Place) -> None:
        """Forget the offset that one producer's transaction has there."""
        places = self._producers.get(producer_id, {})
        if places.pop(place, None) is not None:
            self._leave(place)
            if not places:
                del self._producers[producer_id]

    def remove_all(self, place: Place) -> None:
        """Forget the offsets that any transaction has there."""
        if place in self._waiting:
            for producer_id in list(self._producers):
                self.remove(producer_id, place)

    def _leave(self, place: Place) -> None:
        _count_down(self._groups, place[0])
        if not _count_down(self._waiting, place):
            self._visible.pop(place, None)

    def has_group(self, group_id: str) -> bool:
        """Whether any offset of a group waits: its group may not go (OC-57)."""
        return group_id in self._groups

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __contains__(self, place: Place) -> bool:
        return place in self._waiting

    def __iter__(self) -> Iterator[tuple[int, Place, PendingOffset]]:
        for producer_id, places in self._producers.items():
            for place, pending in places.items():
                yield producer_id, place, pending


def _count_down(counts: dict[Key, int], key: Key) -> int:
    counts[key] -= 1
    return counts[key] or counts.pop(key)
