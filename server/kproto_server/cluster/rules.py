"""Whether a topic can be created or get more partitions, and the error message if not (BA-90, BA-91).

Kafka has two implementations: in a ZooKeeper cluster the admin manager of the controller broker, in a KRaft cluster the
quorum's controller. Their checks, the order of the checks and their messages differ, and clients print the messages.
`Cluster` has the rules of its Kafka version. This module has what both have in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal
from kproto_server.configuration.setting_table import NEW_PARTITIONS_MAX

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from kproto_server.cluster.node import Node
    from kproto_server.cluster.topics import Topic, TopicDefaults
    from kproto_server.cluster.version_behavior import TopicBehavior
    from kproto_server.releases.kafka_version import KafkaVersion

BROKER_DEFAULT = -1
"""As a partition count or replication factor: the default of the broker."""

Placement = list[list[int]]
"""The replicas of each partition, in the order of the partitions; the first replica is the preferred leader."""


class NewTopic(NamedTuple):
    """A topic to create."""

    name: str
    partition_count: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    """Partitions with their replicas, instead of the two numbers."""
    configs: Mapping[str, str | None] = {}


class ClusterQueries(Protocol):
    """The part of a cluster that the rules read."""

    kafka_version: KafkaVersion
    behavior: TopicBehavior
    defaults: TopicDefaults
    topics: dict[str, Topic]

    def names_like(self, name: str) -> Collection[str]: ...

    def alive_nodes(self) -> list[Node]: ...

    def counted_nodes(self) -> list[Node]: ...

    def is_alive(self, node_id: int) -> bool: ...

    def stripe(self, partition_count: int, replication_factor: int, *, first_partition: int = 0) -> list[list[int]]: ...


class TopicRules(Protocol):
    """The rules of one mode."""

    def check_new(self, cluster: ClusterQueries, topic: NewTopic) -> Placement | Refusal:
        """Return the placement of a new topic's partitions, or why the topic cannot be created."""
        ...

    def check_growth(
        self, cluster: ClusterQueries, topic: Topic, count: int, assignments: Sequence[Sequence[int]] | None
    ) -> Placement | Refusal:
        """Return the placement of the partitions that a topic lacks to ``count``, or why they cannot be added."""
        ...

    def check_move(
        self, cluster: ClusterQueries, before: Sequence[int], replicas: Sequence[int], *, allows_factor_change: bool
    ) -> Refusal | None:
        """Return why a partition cannot move from its replicas to others."""
        ...


def check_new_partition_count(count: int, adjective: str = "") -> Refusal | None:
    """Refuse too many new partitions, of a topic or of a request; ``adjective``: a word for the message, with a space
    behind it."""
    # DEVIATION: ZooKeeper has no limit and fails otherwise.
    if count <= NEW_PARTITIONS_MAX:
        return None
    return Refusal(ErrorCode.POLICY_VIOLATION, f"Excessively large number of {adjective}partitions per request.")


def colliding(cluster: ClusterQueries, name: str) -> list[str]:
    """Return the topics whose names differ from this one only in ``.`` and ``_``, in alphabetical order."""
    return sorted(other for other in cluster.names_like(name) if other != name)


def given_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    """Return the configs that have a value."""
    return {name: value for name, value in configs.items() if value is not None}


def check_nulls(cluster: ClusterQueries, configs: Mapping[str, str | None]) -> Refusal | None:
    """Refuse configs without a value; the oldest releases do so without a message."""
    empty = ",".join(name for name, value in configs.items() if value is None)
    if not empty:
        return None
    error = cluster.behavior.null_config_error
    if error is ErrorCode.UNKNOWN_SERVER_ERROR:
        return Refusal(error)
    space = " " if error is ErrorCode.INVALID_REQUEST else ""
    return Refusal(error, f"Null value not supported for topic configs{space}: {empty}")


def check_configs(cluster: ClusterQueries, configs: Mapping[str, str | None]) -> Refusal | None:
    """Refuse a topic's configs if one is unknown or has an invalid value."""
    if not configs:
        return None
    from kproto_server.configuration.topic_configs import config_problem  # imported late: most topics have no configs

    problem = config_problem(cluster.kafka_version, given_configs(configs))
    if problem is None:
        return None
    is_unknown = problem.startswith("Unknown topic config name")
    return Refusal(ErrorCode.INVALID_CONFIG if is_unknown else cluster.behavior.invalid_config_error, problem)


def exists_already(name: str) -> Refusal:
    return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def invalid_partitions(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_PARTITIONS, message)


def invalid_assignment(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
