"""The offsets of a large group as mappings, decoded as they are read.

A view is valid until the next change of the group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kproto_server.coordinator.table.entries import OffsetAndMetadata
from kproto_server.coordinator.table.layouts import positions_of
from kproto_server.coordinator.table.records import decode, entries_of, slice_columns
from kproto_server.coordinator.table.topics import HALF

if TYPE_CHECKING:
    from collections.abc import ItemsView

    from kproto_server.coordinator.table.large import LargeGroup
    from kproto_server.coordinator.table.layouts import Layout
    from kproto_server.coordinator.table.topics import TopicNumbers


class TopicView(Mapping[int, OffsetAndMetadata]):
    """The offsets of one topic, by partition."""

    def __init__(self, group: LargeGroup, bases: list[int], topics: TopicNumbers) -> None:
        self._group = group
        self._topics = topics
        self._bases = bases
        self._seen: dict[int, OffsetAndMetadata] = {}
        self._has_looked = False
        self._has_all = False

    def __getitem__(self, partition: int) -> OffsetAndMetadata:
        found = self._seen.get(partition)
        return self._look(partition) if found is None else found

    def _look(self, partition: int) -> OffsetAndMetadata:
        """Decode a partition; from the second one on with all others of its record, as more will be read."""
        for base in self._bases:
            record, layout = self._group.record_at(base + partition)
            positions = positions_of(layout.keys, (base + partition,))
            if positions is not None:
                if self._has_looked:
                    self._decode(record, layout, base)
                    return self._seen[partition]
                self._has_looked = True
                offsets, epochs, metadata, times, expiries = slice_columns(
                    decode(record, 0, layout), positions[0], positions[0] + 1
                )
                _, topic_id = self._topics.known(base)
                return OffsetAndMetadata(offsets[0], epochs[0], metadata[0], times[0], expiries[0], topic_id)
        raise KeyError(partition)

    def _decode(self, record: bytearray, layout: Layout, base: int) -> None:
        columns = decode(record, 0, layout)
        for topic in layout.topics:
            if topic.base == base:
                self._seen.update(entries_of(layout, columns, topic))

    def _all(self) -> dict[int, OffsetAndMetadata]:
        if not self._has_all:
            for base in self._bases:
                for record, layout in self._group.records_between(base - HALF, base + HALF - 1):
                    self._decode(record, layout, base)
            self._has_all = True
        return self._seen

    def items(self) -> ItemsView[int, OffsetAndMetadata]:
        return self._all().items()

    def __iter__(self) -> Iterator[int]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return repr(self._all())


class GroupView(Mapping[str, Mapping[int, OffsetAndMetadata]]):
    """The offsets of a group, by topic and partition."""

    def __init__(self, group: LargeGroup, topics: TopicNumbers) -> None:
        self._group = group
        self._topics = topics
        self._seen: dict[str, TopicView] = {}
        """A request may name a topic thousands of times."""

    def __getitem__(self, name: str) -> TopicView:
        found = self._seen.get(name)
        if found is None:
            bases = [base for base in self._topics.bases_of(name) if self._has(base)]
            if not bases:
                raise KeyError(name)
            found = self._seen[name] = TopicView(self._group, bases, self._topics)
        return found

    def _has(self, base: int) -> bool:
        _, layout = self._group.record_at(base + HALF - 1)  # the last record that may have entries of the topic
        return any(topic.base == base for topic in layout.topics)

    def __iter__(self) -> Iterator[str]:
        return iter({topic.name: None for _, layout in self._group.records() for topic in layout.topics})

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr({name: self[name] for name in self})
