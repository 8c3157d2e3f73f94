"""What is asked at random: a history, and how many of them are put to two brokers."""

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
from tests.differential.pair import Difference, Pair, Side
from tests.network.raw_client import RawClient
from tests.waiting import wait_until

CREATE_TOPICS, LIST_OFFSETS, METADATA = 19, 2, 3
NO_ID = bytes(15) + b"\x07"
"""A topic id that nobody has."""

Versions = Mapping[int, tuple[int, int]]
"""API key: least and greatest version."""
Configs = Mapping[str, str]


class History(ABC):
    """One history: requests that depend on each other, on a group or topics of its own."""

    def __init__(self, tested: Side, real: Side, versions: Versions, release: tuple[int, ...], seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - no secret, and to be had again
        self.versions = versions
        self.release = release
        self.seed = seed
        self.pair = Pair(tested, real, self.learn, self.shown)

    @abstractmethod
    def prepare(self) -> None:
        """Make what is asked about."""

    @abstractmethod
    def step(self) -> None:
        """Ask something."""

    def learn(self, side: Side, slot: int, answer: Any) -> None:  # noqa: B027 - there may be nothing
        """Take note of what a broker gave out."""

    def shown(self, struct: Struct, fields: dict[str, Any]) -> None:  # noqa: B027 - all may be
        """Change what of a struct is compared."""

    def excuses(self, difference: Difference) -> bool:
        """Whether both may choose here."""
        return False

    def run(self, steps: int) -> None:
        for side in self.pair.sides:
            side.begin_anew()
        self.prepare()
        for _ in range(steps):
            self.step()

    def serves(self, api_key: int) -> bool:
        return api_key in self.versions

    def version(self, api_key: int, least: int = 0) -> int:
        """Any version of an API that both serve."""
        low, high = self.versions[api_key]
        return self.random.randint(max(low, min(least, high)), high)

    def mostly(self, usual: Any, *others: Any, percent: int = 84) -> Any:
        return usual if self.random.random() * 100 < percent or not others else self.random.choice(others)


def versions_of(*addresses: str) -> Versions:
    """What all these brokers serve."""
    told = []
    for address in addresses:
        with RawClient(address) as client:
            answer = client.ask(ApiVersionsRequest(), 0)
            told.append({one.api_key: (one.min_version, one.max_version) for one in answer.api_keys})
    common = {}
    for api_key, (low, high) in told[0].items():
        ranges = [each[api_key] for each in told if api_key in each]
        if len(ranges) == len(told):
            common[api_key] = max(low, *(r[0] for r in ranges)), min(high, *(r[1] for r in ranges))
    return common


def make_topics(side: Side, topics: Mapping[str, tuple[int, Configs]], versions: Versions) -> None:
    """Make topics, each with so many partitions; wait until the broker leads them, and note their ids."""
    with RawClient(side.address) as client:
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
        made = client.ask(CreateTopicsRequest(topics=wanted, timeout_ms=10_000), versions[CREATE_TOPICS][1])
        assert {topic.error_code for topic in made.topics} <= {0, 36}, made
        wait_until(lambda: _are_led(client, topics, versions), f"leaders of {', '.join(topics)}")
        _note_ids(side, client, topics, versions)


def _are_led(client: RawClient, topics: Mapping[str, tuple[int, Configs]], versions: Versions) -> bool:
    asked = tuple(
        ListOffsetsTopic(
            name=name,
            partitions=tuple(ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(count)),
        )
        for name, (count, _) in topics.items()
    )
    answer = client.ask(ListOffsetsRequest(replica_id=-1, topics=asked), versions[LIST_OFFSETS][1])
    return not any(partition.error_code for topic in answer.topics for partition in topic.partitions)


def _note_ids(side: Side, client: RawClient, names: Iterable[str], versions: Versions) -> None:
    version = versions[METADATA][1]
    answer = client.ask(MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in names)), version)
    for topic in answer.topics:
        if any(topic.topic_id):
            side.note(f"id of {topic.name}", topic.topic_id)


def topic_id(side: Side, name: str) -> bytes:
    found = side.value(f"id of {name}")
    return found if isinstance(found, bytes) else NO_ID


def named(side: Side, topic: str, field: str = "name", *, by_id: bool) -> dict[str, Any]:
    """A topic as a request has it: by the field of its name, or by id."""
    return {"topic_id": topic_id(side, topic)} if by_id else {field: topic}


class Found(NamedTuple):
    """A difference, and what led to it."""

    seed: int
    difference: Difference
    talk: list[str]


def campaign(make: Callable[[int], History], seeds: Iterable[int], steps: int) -> tuple[int, list[Found]]:
    """Run histories; return how many requests and answers there were, and the differences."""
    found: list[Found] = []
    lines = 0
    for seed in seeds:
        history = make(seed)
        try:
            history.run(steps)
        except Difference as difference:
            if not history.excuses(difference):
                found.append(Found(seed, difference, history.pair.talk))
        lines += len(history.pair.talk)
    return lines, found
