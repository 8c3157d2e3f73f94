"""What a broker checks before it makes a topic, and what it says when it refuses (BA-90)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal, collision_key, name_problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kproto_server.cluster.cluster import Cluster

BROKER_DEFAULT = -1
"""As a number of partitions or replicas: what the broker's settings say."""


def check_name(cluster: Cluster, name: str) -> Refusal | None:
    """Say why no topic of this name can be made."""
    problem = name_problem(name)
    if problem is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if name in cluster.topics:
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    key = collision_key(name)
    for other in cluster.topics:
        if collision_key(other) == key:
            return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")
    return None


def check_counts(cluster: Cluster, partition_count: int, replication_factor: int) -> Refusal | None:
    """Say why so many partitions of so many replicas can't be made now."""
    if partition_count <= 0:
        return Refusal(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    if replication_factor <= 0:
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor was set to an invalid non-positive value."
        )
    return check_replication_factor(cluster, replication_factor)


def check_replication_factor(cluster: Cluster, replication_factor: int) -> Refusal | None:
    """Say why the cluster can't carry so many replicas of a partition now (BA-52)."""
    available = len(cluster.counted_nodes())
    if replication_factor > available or not cluster.alive_nodes():
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {replication_factor} larger than available brokers: {available}.",
        )
    return None


def check_assignments(cluster: Cluster, assignments: Mapping[int, Sequence[int]]) -> list[list[int]] | Refusal:
    """Return the replicas of each partition in order, or say why they can't be placed so."""
    if sorted(assignments) != list(range(len(assignments))):
        return Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    return [list(assignments[index]) for index in range(len(assignments))]
