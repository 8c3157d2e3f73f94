"""The order in which a HashMap of Java or Scala yields names and producer ids.

TopicCommand prints the configs of a topic in the order of the DescribeConfigs response, which is the order of a
HashMap; so does TransactionsCommand with the producers of a partition.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

from kproto.jvm.arithmetic import java_hash
from kproto.jvm.hash_map import in_hash_order, spread_hash
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
    def has_java_maps(self) -> bool:
        """Whether the order is that of Java's HashMap, in which index.interval.bytes comes before a config that shares
        its bucket, instead of Scala's (measured on 4.1.2 and 4.2.2)."""
        return self.at_least(4, 2)


def configs_in_hash_order(entries: Iterable[N], kafka_version: KafkaVersion) -> list[N]:
    """Return the entries in the order of a HashMap that grew to hold them."""
    inserted = {name: index for index, name in enumerate(INSERTED_FIRST)}
    if not kafka_version.behavior(ConfigOrderBehavior).has_java_maps:
        late, early = SWAPPED
        inserted[early] = inserted.pop(late)
    as_inserted = sorted(entries, key=lambda entry: inserted.get(entry.name, len(INSERTED_FIRST)))
    return in_hash_order(as_inserted, lambda entry: java_hash(entry.name))


def group_configs_in_hash_order(entries: Iterable[N], kafka_version: KafkaVersion) -> list[N]:
    """Return the configs of a group in the order of a HashMap: of Java, or of Scala, which sorts a bucket by hash."""
    found = list(entries)
    if not kafka_version.behavior(ConfigOrderBehavior).has_java_maps:
        found.sort(key=lambda entry: spread_hash(java_hash(entry.name)))
    return in_hash_order(found, lambda entry: java_hash(entry.name))


def ids_in_hash_order(ids: Iterable[int]) -> list[int]:
    """Return numbers of 64 bits in the order of a HashMap that grew to hold them; equal buckets in their order here."""
    return in_hash_order(ids, lambda number: number ^ number >> 32)
