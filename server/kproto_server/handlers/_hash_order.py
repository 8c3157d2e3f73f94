"""The order in which a Java HashMap yields names: kept where a tool prints what it gets as it gets it.

TopicCommand prints the configs of a topic in the order of the DescribeConfigs answer, which is that of such a map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from kproto_server.coordinator.partitioning import java_hash

if TYPE_CHECKING:
    from collections.abc import Iterable


class Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)

BEFORE_OTHERS = (
    "segment.bytes",
    "flush.messages",
    "index.interval.bytes",
    "max.compaction.lag.ms",
    "remote.copy.lag.bytes",
    "retention.bytes",
    "retention.ms",
)
"""Names that share a bucket with others and were put in before them, in this order (DescribeConfigs of 4.4.0)."""


def in_hash_order(entries: Iterable[N]) -> list[N]:
    """Return the entries as a HashMap that grew to hold them would yield them."""
    found = list(entries)
    bucket_count = 16
    while len(found) > bucket_count * 3 // 4:
        bucket_count *= 2
    inserted = {name: place for place, name in enumerate(BEFORE_OTHERS)}

    def place(entry: N) -> tuple[int, int]:
        spread = java_hash(entry.name) & 0xFFFFFFFF
        return (spread ^ spread >> 16) % bucket_count, inserted.get(entry.name, len(inserted))

    return sorted(found, key=place)
