"""Random histories of requests, and their run against two brokers."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from kproto.declaration import Struct
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto.messages.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.differential.broker_pair import BrokerPair, ComparedBroker, Difference
from tests.network.raw_client import RawClient
from tests.waiting import wait_until

CREATE_TOPICS, LIST_OFFSETS, METADATA = 19, 2, 3
NO_ID = bytes(15) + b"\x07"
"""A topic id that no topic has."""

Versions = Mapping[int, tuple[int, int]]
"""API key: lowest and highest version."""
Configs = Mapping[str, str]


class History(ABC):
    """A random sequence of requests about one group or a few topics, in which later requests depend on responses."""

    def __init__(
        self, tested: ComparedBroker, real: ComparedBroker, versions: Versions, release: tuple[int, ...], seed: int
    ) -> None:
        self.random = random.Random(seed)  # noqa: S311 - a reproducible sequence, no secret
        self.versions = versions
        self.release = release
        self.seed = seed
        self.pair = BrokerPair(tested, real, self.learn, self.normalize)

    @abstractmethod
    def prepare(self) -> None:
        """Create the topics and groups of the history."""

    @abstractmethod
    def step(self) -> None:
        """Send one random request."""

    def learn(self, broker: ComparedBroker, slot: int, response: Any) -> None:  # noqa: B027 - optional
        """Name the values that a broker assigned in a response."""

    def normalize(self, struct: Struct, fields: dict[str, Any]) -> None:  # noqa: B027 - optional
        """Change the fields of a struct that are compared."""

    def is_allowed(self, difference: Difference) -> bool:
        """Return whether both responses are correct."""
        return False

    def run(self, steps: int) -> None:
        for broker in self.pair.brokers:
            broker.reset()
        self.prepare()
        for _ in range(steps):
            self.step()

    def serves(self, api_key: int) -> bool:
        return api_key in self.versions

    def version(self, api_key: int, lowest: int = 0) -> int:
        """Return a random version of an API that both brokers serve."""
        low, high = self.versions[api_key]
        return self.random.randint(max(low, min(lowest, high)), high)

    def mostly(self, usual: Any, *others: Any, percent: int = 84) -> Any:
        return usual if self.random.random() * 100 < percent or not others else self.random.choice(others)


def common_versions(*addresses: str) -> Versions:
    """Return the versions that all these brokers serve."""
    by_broker = []
    for address in addresses:
        with RawClient(address) as client:
            response = client.ask(ApiVersionsRequest(), 0)
            by_broker.append({one.api_key: (one.min_version, one.max_version) for one in response.api_keys})
    common = {}
    for api_key, (low, high) in by_broker[0].items():
        ranges = [each[api_key] for each in by_broker if api_key in each]
        if len(ranges) == len(by_broker):
            common[api_key] = max(low, *(r[0] for r in ranges)), min(high, *(r[1] for r in ranges))
    return common


def create_topics(broker: ComparedBroker, topics: Mapping[str, tuple[int, Configs]], versions: Versions) -> None:
    """Create topics with partition counts and configs, wait for their leaders, and name their ids."""
    with RawClient(broker.address) as client:
        wanted = tuple(
            CreatableTopic(
                name=name,
                num_partitions=count,
                replication_factor=1,
                assignments=(),
                configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in configs.items()),
            )
            for name, (count, configs) in topics.items()
        )
        created = client.ask(CreateTopicsRequest(topics=wanted, timeout_ms=10_000), versions[CREATE_TOPICS][1])
        assert {topic.error_code for topic in created.topics} <= {0, 36}, created
        wait_until(lambda: _have_leaders(client, topics, versions), f"leaders of {', '.join(topics)}")
        _note_ids(broker, client, topics, versions)


def _have_leaders(client: RawClient, topics: Mapping[str, tuple[int, Configs]], versions: Versions) -> bool:
    partitions = tuple(
        ListOffsetsTopic(
            name=name,
            partitions=tuple(ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(count)),
        )
        for name, (count, _) in topics.items()
    )
    response = client.ask(ListOffsetsRequest(replica_id=-1, topics=partitions), versions[LIST_OFFSETS][1])
    return not any(partition.error_code for topic in response.topics for partition in topic.partitions)


def _note_ids(broker: ComparedBroker, client: RawClient, names: Iterable[str], versions: Versions) -> None:
    version = versions[METADATA][1]
    response = client.ask(MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in names)), version)
    for topic in response.topics:
        if any(topic.topic_id):
            broker.note(f"id of {topic.name}", topic.topic_id)


def topic_id(broker: ComparedBroker, name: str) -> bytes:
    found = broker.value(f"id of {name}")
    return found if isinstance(found, bytes) else NO_ID


def topic_fields(broker: ComparedBroker, topic: str, field: str = "name", *, by_id: bool) -> dict[str, Any]:
    """Return the field of a request struct that names a topic: the name field, or the topic id."""
    return {"topic_id": topic_id(broker, topic)} if by_id else {field: topic}


class FoundDifference(NamedTuple):
    """A difference, and the transcript up to it."""

    seed: int
    difference: Difference
    transcript: list[str]


def run_histories(
    make: Callable[[int], History], seeds: Iterable[int], steps: int
) -> tuple[int, list[FoundDifference]]:
    """Run one history per seed; return the number of requests and responses, and the differences."""
    found: list[FoundDifference] = []
    line_count = 0
    for seed in seeds:
        history = make(seed)
        try:
            history.run(steps)
        except Difference as difference:
            if not history.is_allowed(difference):
                found.append(FoundDifference(seed, difference, history.pair.transcript))
        line_count += len(history.pair.transcript)
    return line_count, found
