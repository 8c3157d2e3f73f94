"""Which nodes carry which partitions: replicas striped over the nodes, so that leaders and load are even.

Partition p's first replica is the node p places after the start; the others follow at a distance that grows by one
each time the partitions have gone round all nodes, so that no two nodes share all their partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def stripe(
    node_ids: Sequence[int], partition_count: int, replication_factor: int, *, start: int, first_partition: int = 0
) -> list[list[int]]:
    """Return the replicas of partitions ``first_partition`` and following; the first of each is the preferred leader.

    ``start`` is the place in ``node_ids`` of partition 0's first replica. ``replication_factor`` is at most their
    number.
    """
    count = len(node_ids)
    placed = []
    for partition in range(first_partition, first_partition + partition_count):
        first = (partition + start) % count
        shift = start + partition // count
        others = [(first + 1 + (shift + j) % (count - 1)) % count for j in range(replication_factor - 1)]
        placed.append([node_ids[place] for place in (first, *others)])
    return placed
