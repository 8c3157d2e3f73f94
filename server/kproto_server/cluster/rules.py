"""How a cluster decides whether a topic can be made or grown, and in which words it refuses (BA-90, BA-91).

There are two such bodies in Kafka: in a ZooKeeper cluster the controller broker's admin manager, in a KRaft cluster the
quorum's controller. They check other things in another order and word it differently; clients print the words. A
Kafka version has one of the two (`rules_for`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal, collision_key
from kproto_server.configuration.setting_table import NEW_PARTITIONS_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kproto_server.cluster.node import Node
    from kproto_server.cluster.topics import Topic, TopicDefaults
    from kproto_server.cluster.version_behavior import TopicBehavior
    from kproto_server.releases.kafka_version import KafkaVersion

BROKER_DEFAULT = -1
"""As a number of partitions or replicas: what the broker's settings say."""

Placement = list[list[int]]
"""The replicas of each partition, in order of partitions; the first of each is the preferred leader."""


class NewTopic(NamedTuple):
    """A topic that was asked for."""

    name: str
    partition_count: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    """Partitions with their replicas, in place of the two numbers."""
    configs: Mapping[str, str | None] = {}


class ClusterQueries(Protocol):
    """The part of a cluster that the rules read."""

    kafka_version: KafkaVersion
    behavior: TopicBehavior
    defaults: TopicDefaults
    topics: dict[str, Topic]

    def alive_nodes(self) -> list[Node]: ...

    def counted_nodes(self) -> list[Node]: ...

    def is_alive(self, node_id: int) -> bool: ...

    def stripe(self, partition_count: int, replication_factor: int, *, first_partition: int = 0) -> list[list[int]]: ...


class TopicRules(Protocol):
    """One of the two."""

    def check_new(self, cluster: ClusterQueries, topic: NewTopic) -> Placement | Refusal:
        """Say where the topic's partitions go, or why it can't be made."""
        ...

    def check_growth(
        self, cluster: ClusterQueries, topic: Topic, count: int, assignments: Sequence[Sequence[int]] | None
    ) -> Placement | Refusal:
        """Say where the partitions go that bring a topic to ``count``, or why there can't be so many."""
        ...


def check_new_partition_count(count: int, of: str = "") -> Refusal | None:
    """Refuse more partitions than anybody means; ``of``: a word on which ones, with a space behind it."""
    # DEVIATION: counted for each topic, where KRaft counts for each request; ZooKeeper tries, and fails in its own way.
    if count <= NEW_PARTITIONS_MAX:
        return None
    return Refusal(ErrorCode.POLICY_VIOLATION, f"Excessively large number of {of}partitions per request.")


def colliding(cluster: ClusterQueries, name: str) -> list[str]:
    """Return the topics whose names differ from this one in ``.`` and ``_`` only, in order."""
    key = collision_key(name)
    if "_" not in key:
        return []
    return sorted(other for other in cluster.topics if collision_key(other) == key and other != name)


def given_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    """Return the configs that have a value."""
    return {name: value for name, value in configs.items() if value is not None}


def check_nulls(cluster: ClusterQueries, configs: Mapping[str, str | None]) -> Refusal | None:
    """Refuse configs without a value; the oldest releases trip over them, and say nothing."""
    empty = ",".join(name for name, value in configs.items() if value is None)
    if not empty:
        return None
    error = cluster.behavior.null_config_error
    if error is ErrorCode.UNKNOWN_SERVER_ERROR:
        return Refusal(error)
    space = " " if error is ErrorCode.INVALID_REQUEST else ""
    return Refusal(error, f"Null value not supported for topic configs{space}: {empty}")


def check_configs(cluster: ClusterQueries, configs: Mapping[str, str | None]) -> Refusal | None:
    """Say what is wrong with the values of a topic's configs."""
    if not configs:
        return None
    from kproto_server.configuration.topic_configs import config_problem  # most topics have none: not at the start

    problem = config_problem(cluster.kafka_version, given_configs(configs))
    if problem is None:
        return None
    is_unknown = problem.startswith("Unknown topic config name")
    return Refusal(ErrorCode.INVALID_CONFIG if is_unknown else cluster.behavior.invalid_config_error, problem)


def exists_already(name: str) -> Refusal:
    return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
