"""The placement of replicas on nodes, so that leaders and load are even (Kafka's striped replica placer).

The first replica of partition p is on the p-th node after the start node. The other replicas follow at a distance that
grows by one with each pass over all nodes, so that no two nodes share all their partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def stripe(
    node_ids: Sequence[int], partition_count: int, replication_factor: int, *, start: int, first_partition: int = 0
) -> list[list[int]]:
    """Return the replicas of the partitions from ``first_partition`` on; the first replica is the preferred leader.

    ``start``: the index in ``node_ids`` of partition 0's first replica; ``replication_factor``: at most their number.
    """
    count = len(node_ids)
    placed = []
    for partition in range(first_partition, first_partition + partition_count):
        first = (partition + start) % count
        shift = start + partition // count
        others = [(first + 1 + (shift + j) % (count - 1)) % count for j in range(replication_factor - 1)]
        placed.append([node_ids[index] for index in (first, *others)])
    return placed
