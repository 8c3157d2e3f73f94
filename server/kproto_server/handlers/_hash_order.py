"""The order in which a Java HashMap yields names.

TopicCommand prints the configs of a topic in the order of the DescribeConfigs response, which is the order of a
HashMap.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

from kproto.java_arithmetic import java_hash
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.releases.kafka_version import KafkaVersion


class Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)

INSERTED_FIRST = (
    "segment.bytes",
    "flush.messages",
    "index.interval.bytes",
    "max.compaction.lag.ms",
    "remote.copy.lag.bytes",
    "retention.bytes",
    "retention.ms",
)
"""Names that share a hash bucket with others and were inserted before them, in this order (DescribeConfigs of
4.4.0)."""
SWAPPED = ("index.interval.bytes", "min.cleanable.dirty.ratio")
"""One of these names, and the other name in its bucket, which older releases inserted before it (measured on 2.8.2,
3.9.2, 4.0.2 and 4.1.2)."""


class ConfigOrderBehavior(VersionBehavior):
    """What Kafka releases do differently in the order of configs."""

    @cached_property
    def index_interval_comes_early(self) -> bool:
        """Whether index.interval.bytes comes before a config that shares its hash bucket (measured on 4.1.2 and
        4.2.2)."""
        return self.at_least(4, 2)


def in_hash_order(entries: Iterable[N], kafka_version: KafkaVersion) -> list[N]:
    """Return the entries in the order of a HashMap that grew to hold them."""
    found = list(entries)
    bucket_count = 16
    while len(found) > bucket_count * 3 // 4:
        bucket_count *= 2
    inserted = {name: index for index, name in enumerate(INSERTED_FIRST)}
    if not kafka_version.behavior(ConfigOrderBehavior).index_interval_comes_early:
        late, early = SWAPPED
        inserted[early] = inserted.pop(late)

    def sort_key(entry: N) -> tuple[int, int]:
        spread = java_hash(entry.name) & 0xFFFFFFFF
        return (spread ^ spread >> 16) % bucket_count, inserted.get(entry.name, len(INSERTED_FIRST))

    return sorted(found, key=sort_key)
