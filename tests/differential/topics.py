"""Random admin clients of a few topics and groups: valid and invalid requests to create, alter, describe and delete
them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kproto.declaration import Struct
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kproto.messages.k19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kproto.messages.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from kproto.messages.k32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from kproto.messages.k33_alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kproto.messages.k37_create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kproto.messages.k44_incremental_alter_configs import AlterableConfig as Alteration
from kproto.messages.k44_incremental_alter_configs import AlterConfigsResource as AlteredResource
from kproto.messages.k44_incremental_alter_configs import IncrementalAlterConfigsRequest
from kproto.messages.k75_describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from tests.differential import group_configs
from tests.differential.broker_pair import ComparedBroker, Difference
from tests.differential.history import History, topic_id

TOPIC = 2
SETTINGS = {"delete.topic.enable": "true", "offsets.topic.num.partitions": "1", "auto.create.topics.enable": "false"}
VALID_CONFIGS = {
    "cleanup.policy": ["compact", "delete", "compact,delete"],
    "retention.ms": ["60000", "-1"],
    "segment.bytes": ["1048576"],
    "compression.type": ["gzip", "producer"],
    "min.insync.replicas": ["1"],
    "max.message.bytes": ["100", "2000000"],
    "message.timestamp.type": ["LogAppendTime"],
}
INVALID_CONFIGS = [
    ("no.such", "1"),
    ("retention.ms", "soon"),
    ("cleanup.policy", "shred"),
    ("segment.bytes", "1"),
    ("min.insync.replicas", "0"),
    ("", "1"),
]
ASSIGNMENTS: list[dict[int, tuple[int, ...]]] = [
    {0: (1,)},
    {0: (1,), 1: (1,)},
    {0: (1, 1)},
    {0: (9,)},
    {0: ()},
    {1: (1,)},
]
"""Replica assignments: the brokers of each partition."""
INVALID_NAMES = ["with space", "x" * 250, "ä"]
NOT_IN_ZOOKEEPER = ["", ".", ".."]
"""Invalid names for which brokers with ZooKeeper have other error texts (DEVIATIONS)."""


class TopicHistory(History):
    def prepare(self) -> None:
        self.invalid_names = INVALID_NAMES + NOT_IN_ZOOKEEPER * (self.release >= (3, 3))
        self.created: list[str] = []
        self.deleted: list[str] = []
        self.count = 0

    def step(self) -> None:
        actions: dict[Callable[[], None], int] = {
            self.create: 24,
            self.delete: 5,
            self.add_partitions: 8,
            self.describe: 14,
            self.alter: 8,
            self.alter_incrementally: 14,
            self.metadata: 16,
            self.describe_partitions: 4,
        }
        if self.release >= (4, 0):
            of_groups = {
                group_configs.alter: 4,
                group_configs.alter_incrementally: 10,
                group_configs.describe: 6,
                group_configs.list_groups: 2,
            }
            actions |= {partial(action, self): weight for action, weight in of_groups.items()}
        self.random.choices(list(actions), list(actions.values()))[0]()

    def learn(self, broker: ComparedBroker, slot: int, response: Any) -> None:
        if isinstance(response, (CreateTopicsResponse, MetadataResponse)):
            for topic in response.topics:
                if any(topic.topic_id):
                    broker.note(f"id of {topic.name}", topic.topic_id)

    def normalize(self, struct: Struct, fields: dict[str, Any]) -> None:
        match struct:
            case MetadataResponse():
                fields["brokers"] = [broker.node_id for broker in struct.brokers]
                fields["cluster_id"] = struct.cluster_id is not None
                fields["topics"] = [one for one in fields["topics"] if not str(one["name"]).startswith("_")]
            case DescribeConfigsResourceResult():
                fields["documentation"] = None

    def is_allowed(self, difference: Difference) -> bool:
        """Return whether DEVIATIONS has the difference.

        It has the Scala name of a collection in an error text, gaps between the partitions of a topic before 2.3, and
        groups of 4.1 and 4.2 whose configs were removed.
        """
        api, parts = difference.request.api, difference.parts
        if api == "Metadata" and self.release < (2, 3):
            return all(path.endswith(".partition_index") for path, _, _ in parts)
        if api == "ListConfigResources" and (4, 1) <= self.release < (4, 3):
            return all(
                path == ".config_resources" and all(one in real for one in tested) for path, tested, real in parts
            )
        return all(path.endswith(".error_message") and "HashMap" in str(real) for path, _, real in parts)

    # -- targets

    def _new_name(self) -> str:
        self.count += 1
        return f"t{self.seed}-{self.count}"

    def _name(self) -> str:
        usual = self.random.choice(self.created) if self.created else "nope"
        deleted = self.deleted if self.release >= (3, 3) else []  # with ZooKeeper, deletion takes longer
        return str(self.mostly(usual, "nope", *deleted, *self.invalid_names, percent=80))

    def _configs(self) -> list[tuple[str, str | None]]:
        names = self.random.sample(list(VALID_CONFIGS), self.mostly(0, 1, 2, percent=40))
        found: list[tuple[str, str | None]] = [(name, self.random.choice(VALID_CONFIGS[name])) for name in names]
        if self.random.random() < 0.15:
            found.append(self.random.choice(INVALID_CONFIGS))
        return found

    # -- requests

    def create(self) -> None:
        version = self.version(19)
        existing = self.created[-1:]
        names = [self.mostly(self._new_name(), *existing, *self.invalid_names) for _ in range(self.mostly(1, 2))]
        topics = tuple(self._creatable(name, version) for name in dict.fromkeys(names))
        validate_only = version >= 1 and self.random.random() < 0.15
        request = CreateTopicsRequest(topics=topics, timeout_ms=10_000, validate_only=validate_only)
        (responses,) = self.pair.send(0, lambda broker: request, version).values()
        if not validate_only:
            self.created += [topic.name for topic in responses.real.topics if topic.error_code == 0]
            self._wait_for_metadata()

    def _creatable(self, name: str, version: int) -> CreatableTopic:
        defaults = [-1] if version >= 4 else []
        if self.random.random() < 0.12:
            assignment = self.random.choice(ASSIGNMENTS)
            assignments = tuple(
                CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
                for index, brokers in assignment.items()
            )
            partitions, replicas = self.mostly((-1, -1), (1, -1), (-1, 1), (2, 1), percent=70)
        else:
            assignments = ()
            partitions = self.mostly(self.random.choice([1, 2, 3]), 0, -2, *defaults, percent=85)
            replicas = self.mostly(1, 2, 0, -2, *defaults, percent=85)
        return CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            assignments=assignments,
            configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in self._configs()),
        )

    def delete(self) -> None:
        version = self.version(20)
        names = list(dict.fromkeys(self._name() for _ in range(self.mostly(1, 2))))
        by_id = version >= 6 and self.random.random() < 0.5

        def build(broker: ComparedBroker) -> DeleteTopicsRequest:
            if version < 6:
                return DeleteTopicsRequest(topic_names=tuple(names), timeout_ms=10_000)
            states = [
                DeleteTopicState(name=None, topic_id=topic_id(broker, name))
                if by_id
                else DeleteTopicState(name=name, topic_id=bytes(16))
                for name in names
            ]
            return DeleteTopicsRequest(topics=tuple(states), timeout_ms=10_000)

        (responses,) = self.pair.send(0, build, version).values()
        codes = {topic.name: topic.error_code for topic in responses.real.responses}
        deleted = [name for name in names if codes.get(name) == 0]
        self.deleted += deleted
        self.created = [name for name in self.created if name not in deleted]
        self._wait_for_metadata()

    def add_partitions(self) -> None:
        if not self.serves(37):
            return
        new = self.mostly(None, ((1,),), ((1,), (1,)), ((9,),), ((1, 1),), ((),), percent=75)
        assignments = None if new is None else tuple(CreatePartitionsAssignment(broker_ids=ids) for ids in new)
        count = self.random.choice([1, 2, 3, 4, 5, 0, -1])
        topic = CreatePartitionsTopic(name=self._name(), count=count, assignments=assignments)
        validate_only = self.random.random() < 0.2
        request = CreatePartitionsRequest(topics=(topic,), timeout_ms=10_000, validate_only=validate_only)
        self.pair.send(0, lambda broker: request, self.version(37))
        self._wait_for_metadata()

    def describe(self) -> None:
        if not self.serves(32):
            return
        version = self.version(32)
        keys = self.mostly(None, ("retention.ms", "cleanup.policy"), ("no.such",), (), percent=60)
        resources = tuple(
            DescribeConfigsResource(resource_type=self.mostly(TOPIC, 77), resource_name=name, configuration_keys=keys)
            for name in dict.fromkeys(self._name() for _ in range(self.mostly(1, 2)))
        )
        synonyms = version >= 1 and self.random.random() < 0.5
        request = DescribeConfigsRequest(resources=resources, include_synonyms=synonyms)
        self.pair.send_until_equal(0, lambda broker: request, version)

    def alter(self) -> None:
        if not self.serves(33):
            return
        configs = tuple(AlterableConfig(name=name, value=value) for name, value in self._configs())
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=self._name(), configs=configs)
        request = AlterConfigsRequest(resources=(resource,), validate_only=self.random.random() < 0.2)
        self.pair.send(0, lambda broker: request, self.version(33))

    def alter_incrementally(self) -> None:
        if not self.serves(44):
            return
        changes = []
        for index, (name, value) in enumerate(self._configs()):  # at most one error: brokers report any one of several
            operation = 0 if index else self.mostly(0, 1, 2, 3, 9, percent=60)
            changes.append(Alteration(name=name, config_operation=operation, value=None if operation == 1 else value))
            if operation > 1:
                break
        resource = AlteredResource(resource_type=TOPIC, resource_name=self._name(), configs=tuple(changes))
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=self.random.random() < 0.2)
        self.pair.send(0, lambda broker: request, self.version(44))

    def metadata(self) -> None:
        version = self.version(3, 4)
        names = list(dict.fromkeys(self._name() for _ in range(self.random.randint(1, 3))))
        by_id = version >= 12 and self.random.random() < 0.3

        def build(broker: ComparedBroker) -> MetadataRequest:
            ids = [MetadataRequestTopic(name=None, topic_id=topic_id(broker, name)) for name in names]
            topics = ids if by_id else [MetadataRequestTopic(name=name) for name in names]
            return MetadataRequest(topics=tuple(topics), allow_auto_topic_creation=False)

        self.pair.send_until_equal(0, build, version)

    def describe_partitions(self) -> None:
        if self.serves(75):
            topics = tuple(TopicRequest(name=name) for name in dict.fromkeys([self._name(), self._name()]))
            self.pair.send_until_equal(
                0, lambda broker: DescribeTopicPartitionsRequest(topics=topics), self.version(75)
            )

    def _wait_for_metadata(self) -> None:
        """Query the metadata of all topics until it is equal in both brokers."""
        names = [*self.created, *self.deleted]
        if names:
            topics = tuple(MetadataRequestTopic(name=name) for name in names)
            request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
            self.pair.send_until_equal(0, lambda broker: request, self.versions[3][1])
