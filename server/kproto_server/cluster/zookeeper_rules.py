"""The rules of the controller broker's admin manager in a ZooKeeper cluster.

Source:
    CreateTopics and CreatePartitions responses of 0.10.2.2 to 3.0.2 (fixtures/golden/topics).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster import rules
from kproto_server.cluster.topics import Refusal, name_problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kproto_server.cluster.rules import ClusterQueries, NewTopic, Placement
    from kproto_server.cluster.topics import Topic


class ZooKeeperRules:
    def check_new(self, cluster: ClusterQueries, topic: NewTopic) -> Placement | Refusal:
        behavior = cluster.behavior
        exists = rules.exists_already(topic.name) if topic.name in cluster.topics else None
        if exists is not None and behavior.checks_topic_exists_first:
            return exists
        of_configs = rules.check_configs(cluster, topic.configs)
        refusal = rules.check_nulls(cluster, topic.configs) or (
            of_configs if behavior.checks_configs_before_partitions else None
        )
        if refusal is not None:
            return refusal
        placed = _place_as_assigned(topic) if topic.assignments else _place_by_count(cluster, topic)
        if isinstance(placed, Refusal):
            return placed
        uneven = _check_even(cluster, dict(topic.assignments)) if topic.assignments else None
        return _check_name(cluster, topic.name) or exists or uneven or of_configs or placed

    def check_growth(
        self, cluster: ClusterQueries, topic: Topic, count: int, assignments: Sequence[Sequence[int]] | None
    ) -> Placement | Refusal:
        present = len(topic.partitions)
        if count == present:
            return rules.invalid_partitions(f"Topic already has {present} partitions.")
        if count < present:
            return rules.invalid_partitions(
                f"Topic currently has {present} partitions, which is higher than the requested {count}."
            )
        if assignments is None:
            factor = topic.replication_factor
            refusal = rules.check_new_partition_count(count - present) or _check_factor(cluster, factor)
            return refusal or cluster.stripe(count - present, factor, first_partition=present)
        unknown = _check_unknown(cluster, assignments)
        if unknown is not None:
            return unknown
        if len(assignments) != count - present:
            return rules.invalid_assignment(
                f"Increasing the number of partitions by {count - present} but {len(assignments)} assignments provided."
            )
        return _check_new_partitions(topic, assignments)

    def check_move(
        self, cluster: ClusterQueries, before: Sequence[int], replicas: Sequence[int], *, allows_factor_change: bool
    ) -> Refusal | None:
        alive = [node.node_id for node in cluster.alive_nodes()]
        others = [replica for replica in replicas if replica not in alive]
        listed = ", ".join(map(str, replicas))
        if not replicas:
            problem = "Empty replica list specified in partition reassignment."
        elif len(set(replicas)) < len(replicas):
            problem = f"Duplicate replica ids in partition reassignment replica list: ArrayBuffer({listed})"
        elif min(replicas) < 0:
            problem = f"Invalid broker id in replica list: ArrayBuffer({listed})"
        elif others:
            problem = (
                "Replica assignment has brokers that are not alive. Replica list: "
                f"ArrayBuffer({', '.join(map(str, others))}), live broker list: Set({', '.join(map(str, alive))})"
            )
        else:
            return None
        return rules.invalid_assignment(problem)


def _check_name(cluster: ClusterQueries, name: str) -> Refusal | None:
    problem = name_problem(name, cluster.kafka_version)
    if problem is None and (others := rules.colliding(cluster, name)):
        problem = f"Topic '{name}' collides with existing topics: {', '.join(others)}"
    return None if problem is None else Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def _place_by_count(cluster: ClusterQueries, topic: NewTopic) -> Placement | Refusal:
    count, factor = topic.partition_count, topic.replication_factor
    if cluster.behavior.creates_topics_with_defaults:
        count = cluster.defaults.num_partitions if count == rules.BROKER_DEFAULT else count
        factor = cluster.defaults.replication_factor if factor == rules.BROKER_DEFAULT else factor
    if count <= 0:
        return rules.invalid_partitions(_sentence(cluster, "Number of partitions must be larger than 0."))
    return rules.check_new_partition_count(count) or _check_factor(cluster, factor) or cluster.stripe(count, factor)


def _check_factor(cluster: ClusterQueries, factor: int) -> Refusal | None:
    """Refuse a replication factor above the number of live brokers (BA-52)."""
    available = len(cluster.counted_nodes())
    if factor <= 0:
        message = "Replication factor must be larger than 0."
    elif factor > available:
        message = f"Replication factor: {factor} larger than available brokers: {available}."
    else:
        return None
    return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, _sentence(cluster, message))


def _sentence(cluster: ClusterQueries, message: str) -> str:
    """Return an error message as the release writes it."""
    return message if cluster.behavior.writes_sentences else f"{message[0].lower()}{message[1:-1]}"


def _place_as_assigned(topic: NewTopic) -> Placement | Refusal:
    if topic.partition_count != rules.BROKER_DEFAULT or topic.replication_factor != rules.BROKER_DEFAULT:
        return Refusal(
            ErrorCode.INVALID_REQUEST,
            "Both numPartitions or replicationFactor and replicasAssignments were set. "
            "Both cannot be used at the same time.",
        )
    placed = dict(topic.assignments)  # of a duplicate partition the last one counts
    # Unknown brokers, and no brokers at all, are accepted: the topic exists and waits for a leader.
    return [list(placed[index]) for index in sorted(placed)]


def _check_even(cluster: ClusterQueries, placed: Mapping[int, Sequence[int]]) -> Refusal | None:
    if len({len(replicas) for replicas in placed.values()}) != 1:
        return rules.invalid_assignment("All partitions should have the same number of replicas")
    if any(len(set(replicas)) < len(replicas) for replicas in placed.values()):
        pairs = ", ".join(f"{index} -> ArrayBuffer({', '.join(map(str, r))})" for index, r in placed.items())
        return rules.invalid_assignment(f"Duplicate replica assignment found: Map({pairs})")
    # DEVIATION: before 2.3 partition indexes may have gaps; in kproto they have none.
    if cluster.behavior.refuses_partition_gaps and sorted(placed) != list(range(len(placed))):
        return rules.invalid_assignment("partitions should be a consecutive 0-based integer sequence")
    return None


def _check_unknown(cluster: ClusterQueries, assignments: Iterable[Sequence[int]]) -> Refusal | None:
    available = {node.node_id for node in cluster.counted_nodes()}
    unknown = sorted({replica for replicas in assignments for replica in replicas} - available)
    if not unknown:
        return None
    return rules.invalid_assignment(f"Unknown broker(s) in replica assignment: {', '.join(map(str, unknown))}.")


def _check_new_partitions(topic: Topic, assignments: Sequence[Sequence[int]]) -> Placement | Refusal:
    first, factor = len(topic.partitions), topic.replication_factor
    for index, replicas in enumerate(assignments, start=first):
        if not replicas:
            return rules.invalid_assignment(f"Cannot have replication factor of 0 for partition id {index}.")
        if len(set(replicas)) < len(replicas):
            listed = ", ".join(map(str, replicas))
            return rules.invalid_assignment(
                f"Duplicate brokers not allowed in replica assignment: {listed} for partition id {index}."
            )
    uneven = {index: len(r) for index, r in enumerate(assignments, start=first) if len(r) != factor}
    if uneven:
        return rules.invalid_assignment(
            f"Inconsistent replication factor between partitions, partition 0 has {factor} while partitions "
            f"[{', '.join(map(str, uneven))}] have replication factors "
            f"[{', '.join(map(str, uneven.values()))}], respectively."
        )
    return [list(replicas) for replicas in assignments]
