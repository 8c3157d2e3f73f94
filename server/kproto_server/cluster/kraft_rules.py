"""The rules of the controller in a KRaft cluster.

Source:
    CreateTopics and CreatePartitions responses of 3.3.2, 3.9.2 and 4.4.0 (fixtures/golden/topics).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster import rules
from kproto_server.cluster.topics import Refusal, name_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.cluster.rules import ClusterQueries, NewTopic, Placement
    from kproto_server.cluster.topics import Topic


class KRaftRules:
    def check_new(self, cluster: ClusterQueries, topic: NewTopic) -> Placement | Refusal:
        refusal = (
            _check_name(cluster, topic.name)
            or rules.check_nulls(cluster, topic.configs)
            or rules.check_configs(cluster, topic.configs)
        )
        if refusal is not None:
            return refusal
        return _place_as_assigned(cluster, topic) if topic.assignments else _place_by_count(cluster, topic)

    def check_growth(
        self, cluster: ClusterQueries, topic: Topic, count: int, assignments: Sequence[Sequence[int]] | None
    ) -> Placement | Refusal:
        present = len(topic.partitions)
        if count == present:
            return rules.invalid_partitions(f"Topic already has {present} partition(s).")
        if count < present:
            return rules.invalid_partitions(
                f"The topic {topic.name} currently has {present} partition(s); {count} would not be an increase."
            )
        if assignments is None:
            factor = topic.replication_factor
            excess = rules.check_new_partition_count(count - present, cluster.behavior.added_partitions_adjective)
            refusal = excess or _check_factor(cluster, factor)
            return refusal or cluster.stripe(count - present, factor, first_partition=present)
        if len(assignments) != count - present:
            return rules.invalid_assignment(
                f"Attempted to add {count - present} additional partition(s), but only {len(assignments)} "
                "assignment(s) were specified."
            )
        return _check_all_assignments(cluster, list(enumerate(assignments, start=present)), topic.replication_factor)

    def check_move(
        self, cluster: ClusterQueries, before: Sequence[int], replicas: Sequence[int], *, allows_factor_change: bool
    ) -> Refusal | None:
        problem = _replicas_problem(cluster, replicas)
        stopped = [replica for replica in replicas if not cluster.is_alive(replica)]
        if problem is None and stopped:
            # DEVIATION: a real broker accepts it, and waits until the broker is alive.
            problem = f"The manual partition assignment includes broker {stopped[0]}, which is not alive."
        if problem is not None:
            return rules.invalid_assignment(problem)
        if not allows_factor_change and len(before) != len(replicas):
            return Refusal(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The replication factor is changed from {len(before)} to {len(replicas)}",
            )
        return None


def _check_name(cluster: ClusterQueries, name: str) -> Refusal | None:
    problem = name_problem(name, cluster.kafka_version)
    if problem is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if name in cluster.topics:
        return rules.exists_already(name)
    if others := rules.colliding(cluster, name):
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {others[0]}")
    return None


def _place_by_count(cluster: ClusterQueries, topic: NewTopic) -> Placement | Refusal:
    count, factor = topic.partition_count, topic.replication_factor
    if factor < rules.BROKER_DEFAULT or factor == 0:
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if count < rules.BROKER_DEFAULT or count == 0:
        return rules.invalid_partitions("Number of partitions was set to an invalid non-positive value.")
    count = cluster.defaults.num_partitions if count == rules.BROKER_DEFAULT else count
    factor = cluster.defaults.replication_factor if factor == rules.BROKER_DEFAULT else factor
    return rules.check_new_partition_count(count) or _check_factor(cluster, factor) or cluster.stripe(count, factor)


def _check_factor(cluster: ClusterQueries, factor: int) -> Refusal | None:
    """Refuse a replication factor above the number of registered brokers, of which one must be alive (BA-52)."""
    registered = len(cluster.counted_nodes())
    if factor > registered:
        or_cordoned = (
            " or some brokers have all their log directories cordoned" if cluster.behavior.has_cordoned_log_dirs else ""
        )
        reason = (
            f"The target replication factor of {factor} cannot be reached because only {registered} broker(s) are "
            f"registered{or_cordoned}."
        )
    elif not cluster.alive_nodes():
        reason = "All brokers are currently fenced."
    else:
        return None
    return Refusal(
        ErrorCode.INVALID_REPLICATION_FACTOR, f"Unable to replicate the partition {factor} time(s): {reason}"
    )


def _place_as_assigned(cluster: ClusterQueries, topic: NewTopic) -> Placement | Refusal:
    for field, value in (("replication factor", topic.replication_factor), ("numPartitions", topic.partition_count)):
        if value != rules.BROKER_DEFAULT:
            return Refusal(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {field} was not set to -1.",
            )
    placed: dict[int, Sequence[int]] = {}
    for index, replicas in topic.assignments:
        if index in placed:
            return rules.invalid_assignment(f"Found multiple manual partition assignments for partition {index}")
        placed[index] = replicas
    checked = _check_all_assignments(cluster, topic.assignments, len(topic.assignments[0][1]))
    if isinstance(checked, Refusal):
        return checked
    if sorted(placed) != list(range(len(placed))):
        return rules.invalid_assignment("partitions should be a consecutive 0-based integer sequence")
    return [list(placed[index]) for index in range(len(placed))]


def _check_all_assignments(
    cluster: ClusterQueries, assignments: Sequence[tuple[int, Sequence[int]]], factor: int
) -> Placement | Refusal:
    for index, replicas in assignments:
        problem = _assignment_problem(cluster, index, replicas, factor)
        if problem is not None:
            return rules.invalid_assignment(problem)
    return [list(replicas) for _, replicas in assignments]


def _replicas_problem(cluster: ClusterQueries, replicas: Sequence[int]) -> str | None:
    if not replicas:
        return "The manual partition assignment includes an empty replica list."
    registered = {node.node_id for node in cluster.counted_nodes()}
    before = None
    for replica in sorted(replicas):
        if replica not in registered:
            return f"The manual partition assignment includes broker {replica}, but no such broker is registered."
        if replica == before:
            return f"The manual partition assignment includes the broker {replica} more than once."
        before = replica
    return None


def _assignment_problem(cluster: ClusterQueries, index: int, replicas: Sequence[int], factor: int) -> str | None:
    problem = _replicas_problem(cluster, replicas)
    if problem is not None:
        return problem
    if len(replicas) != factor:
        return (
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {factor} replica(s)."
        )
    if not any(cluster.is_alive(replica) for replica in replicas):
        return (
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
            "controlled shutdown."
        )
    return None
