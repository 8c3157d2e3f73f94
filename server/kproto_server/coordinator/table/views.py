"""Offsets of a large group, decoded as far as they are looked at.

A view is to be read before the next change of the group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kproto_server.coordinator.table.entries import OffsetAndMetadata
from kproto_server.coordinator.table.records import decode, entries_of
from kproto_server.coordinator.table.topics import HALF

if TYPE_CHECKING:
    from collections.abc import ItemsView

    from kproto_server.coordinator.table.large import LargeGroup
    from kproto_server.coordinator.table.topics import Topics


class TopicView(Mapping[int, OffsetAndMetadata]):
    """Offsets of one topic, by partition."""

    def __init__(self, group: LargeGroup, bases: list[int]) -> None:
        self._group = group
        self._bases = bases
        self._seen: dict[int, OffsetAndMetadata] = {}
        self._has_all = False

    def __getitem__(self, partition: int) -> OffsetAndMetadata:
        found = self._seen.get(partition)
        return self._look(partition) if found is None else found

    def _look(self, partition: int) -> OffsetAndMetadata:
        """Decode the record that has a partition: the next one asked for is likely to be there too."""
        for base in self._bases:
            record, layout = self._group.record_at(base + partition)
            if layout.find((base + partition,)) is not None:
                columns = decode(record, 0, layout)
                for topic in layout.topics:
                    if topic.base == base:
                        self._seen.update(entries_of(layout, columns, topic))
                return self._seen[partition]
        raise KeyError(partition)

    def _all(self) -> dict[int, OffsetAndMetadata]:
        if not self._has_all:
            for base in self._bases:
                for record, layout in self._group.records_between(base - HALF, base + HALF - 1):
                    columns = decode(record, 0, layout)
                    for topic in layout.topics:
                        if topic.base == base:
                            self._seen.update(entries_of(layout, columns, topic))
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
    """Offsets by topic and partition."""

    def __init__(self, group: LargeGroup, topics: Topics) -> None:
        self._group = group
        self._topics = topics

    def __getitem__(self, name: str) -> TopicView:
        bases = [base for base in self._topics.bases_of(name) if self._has(base)]
        if not bases:
            raise KeyError(name)
        return TopicView(self._group, bases)

    def _has(self, base: int) -> bool:
        return any(
            topic.base == base
            for _, layout in self._group.records_between(base - HALF, base + HALF - 1)
            for topic in layout.topics
        )

    def __iter__(self) -> Iterator[str]:
        return iter({topic.name: None for _, layout in self._group.records() for topic in layout.topics})

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr({name: self[name] for name in self})
