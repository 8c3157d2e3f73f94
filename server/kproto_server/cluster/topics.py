"""Topics and partitions, the rules for topic names, and the settings of new topics.

The classes are no dataclasses: creating dataclasses would take most of the start-up time of this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import KprotoError
from kproto.records.partitioning import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from kproto_server.cluster.version_behavior import TopicBehavior
from kproto_server.partition_log.partition_data import NO_DATA, PartitionData

if TYPE_CHECKING:
    from kproto.codes import ErrorCode
    from kproto_server.configuration.settings import Settings
    from kproto_server.releases.kafka_version import KafkaVersion

COORDINATED_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTION_TOPIC})
"""Topics that brokers create for themselves; the leaders of their partitions coordinate groups and transactions."""

INTERNAL_TOPICS = COORDINATED_TOPICS | {SHARE_STATE_TOPIC}
"""Topics that clients may read but not write or change; Metadata marks them as internal."""

NAME_LENGTH_MAX = 249
"""A topic name and a partition index must fit into a directory name of 255 characters."""

NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")

NO_LEADER = -1


Whereabouts = tuple[list[int], list[int], int, int]
"""Replicas, in-sync replicas, leader and leader epoch of a partition."""


class Partition:
    """One partition: its replicas, its leader and its records."""

    __slots__ = ("data", "index", "isr", "leader", "leader_epoch", "replicas")

    def __init__(self, index: int, replicas: list[int], isr: list[int], leader: int) -> None:
        self.index: int = index
        self.replicas: list[int] = replicas
        """Node ids; the first is the preferred leader."""
        self.isr: list[int] = isr
        """Ids of the in-sync replicas; of a partition without a leader, of the last ones."""
        self.leader: int = leader
        """Node id, or `NO_LEADER`."""
        self.leader_epoch: int = 0
        self.data: PartitionData = NO_DATA
        """The records; `NO_DATA` before the first one."""

    @property
    def placement(self) -> Whereabouts:
        """Where the partition is, for `restore`."""
        return self.replicas, self.isr, self.leader, self.leader_epoch

    def restore(self, placement: Whereabouts) -> None:
        """Be again where the partition was."""
        self.replicas, self.isr, self.leader, self.leader_epoch = placement

    @property
    def log_start_offset(self) -> int:
        return self.data.start_offset

    @property
    def high_watermark(self) -> int:
        return self.data.next_offset

    def make_data(self) -> PartitionData:
        """Return the partition's own data, created if necessary."""
        if self.data is NO_DATA:
            self.data = PartitionData()
        return self.data


class Topic:
    """A topic. Its id is 16 random bytes; a new topic of the same name has another id."""

    __slots__ = ("configs", "created_ms", "name", "partitions", "topic_id")

    def __init__(
        self, name: str, topic_id: bytes, partitions: list[Partition], configs: dict[str, str], created_ms: int
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partitions: list[Partition] = partitions
        self.configs: dict[str, str] = configs
        """The topic's own configs, by Kafka's names."""
        self.created_ms: int = created_ms

    @property
    def internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas)

    def partition(self, index: int) -> Partition | None:
        """Return a partition by its index, or None."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None


class Refusal(NamedTuple):
    """Why an operation was refused: an error code, and the message where the response has one."""

    error: ErrorCode
    message: str | None = None


class TopicsNotStored(KprotoError):
    """Changes of topics or configs cannot be written to the disk, and are undone."""


class TopicDefaults(NamedTuple):
    """The broker settings for new topics that do not set these values themselves."""

    auto_create: bool = True
    num_partitions: int = 1
    replication_factor: int = 1
    offsets_num_partitions: int = 50
    offsets_replication_factor: int = 3
    transaction_num_partitions: int = 50
    transaction_replication_factor: int = 3
    transaction_in_sync_min: int | None = None
    share_num_partitions: int = 50
    share_replication_factor: int = 3
    share_in_sync_min: int | None = None

    @classmethod
    def of(cls, settings: Settings, node_count: int) -> TopicDefaults:
        """Return the settings of new topics.

        If the replication factor of an internal topic is not set, it is 1 with a single node, as in Kafka's quickstart
        (BA-54), otherwise 3, Kafka's default for any number of nodes (KIP-115). The same holds for their
        `min.insync.replicas`: if it is not set, it is 2, but no more than the replication factor.
        """
        unset = 1 if node_count == 1 else 3

        def factor(name: str) -> int:
            return settings.int(name) if settings.is_set(name) else unset

        def in_sync_min(name: str) -> int | None:
            return settings.int(name) if settings.is_set(name) else None

        return cls(
            auto_create=settings.bool("auto.create.topics.enable"),
            num_partitions=settings.int("num.partitions"),
            replication_factor=settings.int("default.replication.factor"),
            offsets_num_partitions=settings.int("offsets.topic.num.partitions"),
            offsets_replication_factor=factor("offsets.topic.replication.factor"),
            transaction_num_partitions=settings.int("transaction.state.log.num.partitions"),
            transaction_replication_factor=factor("transaction.state.log.replication.factor"),
            transaction_in_sync_min=in_sync_min("transaction.state.log.min.isr"),
            share_num_partitions=settings.int("share.coordinator.state.topic.num.partitions"),
            share_replication_factor=factor("share.coordinator.state.topic.replication.factor"),
            share_in_sync_min=in_sync_min("share.coordinator.state.topic.min.isr"),
        )

    def internal_topic(self, name: str) -> tuple[int, int]:
        """Return partition count and replication factor of one of `INTERNAL_TOPICS`."""
        if name == OFFSETS_TOPIC:
            return self.offsets_num_partitions, self.offsets_replication_factor
        if name == SHARE_STATE_TOPIC:
            return self.share_num_partitions, self.share_replication_factor
        return self.transaction_num_partitions, self.transaction_replication_factor

    def internal_topic_configs(self, name: str, replication_factor: int) -> dict[str, str]:
        """Return the configs with which brokers create one of `INTERNAL_TOPICS`."""
        unset = min(2, replication_factor)
        if name == SHARE_STATE_TOPIC:
            return {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": str(self.share_in_sync_min or unset),
                "retention.ms": "-1",
                "segment.bytes": "104857600",
            }
        compacted = {"cleanup.policy": "compact", "segment.bytes": "104857600"}
        if name == OFFSETS_TOPIC:
            return compacted | {"compression.type": "producer"}
        return compacted | {
            "compression.type": "uncompressed",
            "min.insync.replicas": str(self.transaction_in_sync_min or unset),
            "unclean.leader.election.enable": "false",
        }


def name_problem(name: str, kafka_version: KafkaVersion) -> str | None:
    """Return Kafka's message for an invalid topic name; None if the name is valid (BA-90)."""
    if 0 < len(name) <= NAME_LENGTH_MAX and name not in (".", "..") and NAME_CHARACTERS.issuperset(name):
        return None
    behavior = kafka_version.behavior(TopicBehavior)
    return _name_problem(name) if behavior.has_new_topic_name_messages else _old_name_problem(name, behavior)


def _name_problem(name: str) -> str:
    if not name:
        problem = "the empty string is not allowed"
    elif name in (".", ".."):
        problem = f"'{name}' is not allowed"
    elif len(name) > NAME_LENGTH_MAX:
        problem = f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    else:
        problem = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return f"Topic name is invalid: {problem}"


def _old_name_problem(name: str, behavior: TopicBehavior) -> str:
    if not name:
        return "Topic name is illegal, it can't be empty"
    if name in (".", ".."):
        return 'Topic name cannot be "." or ".."'
    if len(name) > NAME_LENGTH_MAX:
        label = behavior.long_topic_name_label
        return f"Topic name is illegal, it can't be longer than {NAME_LENGTH_MAX} characters, {label}: {name}"
    return f"Topic name \"{name}\" is illegal, it contains a character other than ASCII alphanumerics, '.', '_' and '-'"


def collision_key(name: str) -> str | None:
    """Return a key that is equal for names that differ only in ``.`` and ``_``: their metrics would collide (BA-90).

    None: the name has neither of them, and collides with no other.
    """
    key = name.replace(".", "_")
    return key if "_" in key else None
