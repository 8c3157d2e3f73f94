"""The offsets of open transactions: not visible until the transaction is committed (OC-55, OC-56, LF-32 to LF-34).

Theory of operation. Each offsets partition has its own pending offsets, as each gets its own transaction marker. The
order of the records, not of the markers, decides whether a committed offset becomes visible: it does not if a later
record has made another offset of the same partition visible. So for each key with a pending offset, the position of its
newest visible record is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto_server.coordinator.offsets import OffsetAndMetadata

    OffsetKey = tuple[str, str, int]
    """Group, topic, partition."""

Key = TypeVar("Key")

NEVER_VISIBLE = -1
"""Before each record offset."""


class PendingOffset(NamedTuple):
    """An offset that the transaction makes visible if it is committed."""

    record_offset: int
    """The offset of its record in the log, or its number among the pending offsets since the load."""
    stored: OffsetAndMetadata
    visible_before: OffsetAndMetadata | None = None
    """The offset of the same key that was visible when this one became pending."""


class PendingOffsets:
    """The pending offsets of one offsets partition, by producer id."""

    def __init__(self) -> None:
        self._producers: dict[int, dict[OffsetKey, PendingOffset]] = {}
        self._producer_counts: dict[OffsetKey, int] = {}
        """The number of producers with a pending offset for each key."""
        self._visible: dict[OffsetKey, int] = {}
        """The offset of the newest visible record, for keys with a pending offset."""
        self._groups: dict[str, int] = {}
        """The number of pending offsets of each group."""
        self._groups_of: dict[int, set[str]] = {}
        """The groups of a producer's transaction, also those whose pending offsets were removed since."""
        self._transaction_counts: dict[str, int] = {}
        """The number of these transactions of each group."""
        self._newest = NEVER_VISIBLE
        """The greatest record offset so far."""
        self.epochs: dict[int, int] = {}
        """The epochs of producers whose transaction has become pending since the load, by producer id."""
        self.open_epochs: dict[int, int] = {}
        """The same from the append of the offsets to that of the marker: later offsets would have no marker."""
        self._markers: dict[int, tuple[int, int]] = {}
        """The epoch of each producer's last marker, and its time in ms, by producer id; the oldest first."""

    def add(self, producer_id: int, key: OffsetKey, pending: PendingOffset) -> None:
        """Add an offset of a producer's transaction; it replaces the one with the same key."""
        of_producer = self._producers.setdefault(producer_id, {})
        if key not in of_producer:
            self._producer_counts[key] = self._producer_counts.get(key, 0) + 1
            self._groups[key[0]] = self._groups.get(key[0], 0) + 1
            self._note_transaction(producer_id, key[0])
        of_producer[key] = pending
        self._newest = max(self._newest, pending.record_offset)

    def _note_transaction(self, producer_id: int, group_id: str) -> None:
        groups = self._groups_of.setdefault(producer_id, set())
        if group_id not in groups:
            groups.add(group_id)
            self._transaction_counts[group_id] = self._transaction_counts.get(group_id, 0) + 1

    def became_visible(self, key: OffsetKey, record_offset: int) -> None:
        """Note a record outside of transactions, which is visible at once."""
        if key in self._producer_counts:
            self._visible[key] = record_offset
            self._newest = max(self._newest, record_offset)

    def end(self, producer_id: int, *, commits: bool) -> list[tuple[OffsetKey, OffsetAndMetadata]]:
        """End a producer's transaction; return the offsets that become visible."""
        visible: list[tuple[OffsetKey, OffsetAndMetadata]] = []
        for key, (record_offset, stored, _) in self._producers.pop(producer_id, {}).items():
            if commits and record_offset > self._visible.get(key, NEVER_VISIBLE):
                self._visible[key] = record_offset
                visible.append((key, stored))
            self._count_removed(key)
        for group_id in self._groups_of.pop(producer_id, ()):
            _count_down(self._transaction_counts, group_id)
        return visible

    def next_record_offset(self) -> int:
        """Return a number above those of all pending and visible records, for a record that is appended now."""
        self._newest += 1
        return self._newest

    def note_visible(self, visible: Callable[[OffsetKey], OffsetAndMetadata | None]) -> None:
        """Note the visible offsets of all keys, when the load ends and `end_live` begins to compare them."""
        for of_producer in self._producers.values():
            for key, pending in of_producer.items():
                of_producer[key] = pending._replace(visible_before=visible(key))

    def end_live(
        self, producer_id: int, visible: Callable[[OffsetKey], OffsetAndMetadata | None], *, commits: bool
    ) -> list[tuple[OffsetKey, OffsetAndMetadata]]:
        """End a producer's transaction while commits outside of transactions are not noted; return the offsets that
        become visible.

        ``visible``: returns the visible offset of a key, which shows later commits: they have replaced the offset.
        """
        self.epochs.pop(producer_id, None)
        pending = self._producers.get(producer_id, {})
        replaced = [key for key, (_, _, before) in pending.items() if commits and visible(key) not in (None, before)]
        for key in replaced:
            self.remove(producer_id, key)
        ended = self.end(producer_id, commits=commits)
        for key, stored in ended:
            for of_producer in self._producers.values() if key in self._producer_counts else ():
                if key in of_producer:
                    of_producer[key] = of_producer[key]._replace(visible_before=stored)
        return ended

    def note_marker(self, producer_id: int, epoch: int, now_ms: int, expiration_ms: int) -> None:
        """Note a marker that was appended: it fences older epochs of the producer, which expires afterwards."""
        markers = self._markers
        markers.pop(producer_id, None)
        markers[producer_id] = epoch, now_ms
        while (oldest := next(iter(markers))) != producer_id and markers[oldest][1] < now_ms - expiration_ms:
            del markers[oldest]

    def newest_epoch(self, producer_id: int) -> int:
        """Return the greatest epoch of a producer's offsets and markers in the log; -1: there are none."""
        marker_epoch, _ = self._markers.get(producer_id, (-1, 0))
        return max(marker_epoch, self.epochs.get(producer_id, -1), self.open_epochs.get(producer_id, -1))

    def remove(self, producer_id: int, key: OffsetKey) -> None:
        """Remove one producer's pending offset of a key."""
        of_producer = self._producers.get(producer_id, {})
        if of_producer.pop(key, None) is not None:
            self._count_removed(key)
            if not of_producer:
                del self._producers[producer_id]

    def remove_all(self, key: OffsetKey) -> None:
        """Remove all producers' pending offsets of a key."""
        if key in self._producer_counts:
            for producer_id in list(self._producers):
                self.remove(producer_id, key)

    def forget_group(self, group_id: str) -> None:
        """Note that a group was deleted: open transactions are not those of a new group with its id."""
        if self._transaction_counts.pop(group_id, None) is not None:
            for groups in self._groups_of.values():
                groups.discard(group_id)

    def _count_removed(self, key: OffsetKey) -> None:
        _count_down(self._groups, key[0])
        if not _count_down(self._producer_counts, key):
            self._visible.pop(key, None)

    def has_group(self, group_id: str) -> bool:
        """Return whether a group has a pending offset."""
        return group_id in self._groups

    def has_transaction(self, group_id: str) -> bool:
        """Return whether a transaction is open that has had a pending offset of a group; it may have been removed."""
        return group_id in self._transaction_counts

    def __bool__(self) -> bool:
        return bool(self._producer_counts)

    def __contains__(self, key: OffsetKey) -> bool:
        return key in self._producer_counts

    def get(self, producer_id: int, key: OffsetKey) -> PendingOffset | None:
        """Return the pending offset of a producer's transaction, if there is one."""
        return self._producers.get(producer_id, {}).get(key)

    def __iter__(self) -> Iterator[tuple[int, OffsetKey, PendingOffset]]:
        for producer_id, of_producer in self._producers.items():
            for key, pending in of_producer.items():
                yield producer_id, key, pending


def _count_down(counts: dict[Key, int], key: Key) -> int:
    counts[key] -= 1
    return counts[key] or counts.pop(key)
