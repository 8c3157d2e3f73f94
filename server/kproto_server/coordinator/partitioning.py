"""Which partition of the offsets topic holds a group, and whether a node may speak for it."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode

if TYPE_CHECKING:
    from kproto_server.cluster.cluster import Cluster, Node
    from kproto_server.releases.kafka_version import KafkaVersion
    from kproto_server.state import BrokerState

OFFSETS_TOPIC = "__consumer_offsets"

V0_PARTITION = -1
"""Stands for the log of what OffsetCommit v0 stores, which is in no partition of the offsets topic (OC-20)."""

INT32_MIN = -(2**31)

REMEMBERED_GROUPS_MAX = 65536
"""Hashing a long group id costs more than the rest of a small commit; 64 Ki entries take about 10 MB."""


def java_hash(text: str) -> int:
    """Return Java's String.hashCode: over UTF-16 code units, in 32-bit signed arithmetic (LF-40)."""
    units = text.encode("utf-16-le", "surrogatepass")
    value = 0
    for unit in struct.unpack(f"<{len(units) // 2}H", units):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - 2**32 if value & 0x80000000 else value


@lru_cache(maxsize=REMEMBERED_GROUPS_MAX)
def partition_for(group_id: str, partition_count: int) -> int:
    """Return the partition of the offsets topic that holds a group (LF-40).

    ``partition_count`` is that of the existing topic, not of the settings.
    """
    value = java_hash(group_id)
    return 0 if value == INT32_MIN else abs(value) % partition_count


def owned_partition(cluster: Cluster, node: Node, group_id: str) -> int | None:
    """Return the offsets partition of a group if ``node`` leads it.

    None means NOT_COORDINATOR: another node leads it, none does, or there is no offsets topic yet (OC-10 row 12).
    """
    topic = cluster.topics.get(OFFSETS_TOPIC)
    if topic is None:
        return None
    partitions = topic.partitions
    index = partition_for(group_id, len(partitions))
    return index if partitions[index].leader == node.node_id else None


def coordinator_error(state: BrokerState, node: Node, group_id: str) -> int:
    """Return why a node can't speak for a group: NOT_COORDINATOR, or what is with the log of the group's partition,
    which may not be loaded yet, or not be readable (LF-30, LF-36); 0 if it can."""
    partition = owned_partition(state.cluster, node, group_id)
    if partition is None:
        return ErrorCode.NOT_COORDINATOR
    return state.unavailable.get(partition, 0)


def not_coordinator(cluster: Cluster, kafka_version: KafkaVersion) -> int:
    """Return the error of a commit at a node that does not own the group's partition (OC-10 row 12)."""
    return ErrorCode.NOT_COORDINATOR if OFFSETS_TOPIC in cluster.topics else kafka_version.no_offsets_topic_error
