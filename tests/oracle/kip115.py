"""What KIP-115 says of too few brokers, as a script that real clusters and ours are asked (BA-50 to BA-53).

A cluster of three begins with one broker. With one, two and three of them up, the first is asked what a client asks
that wants a coordinator, and what an administrator asks that makes topics; errors are noted. The first answers alone
count while brokers are too few; with all three up, each question is asked until it is answered well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from kproto.message import Request
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from tests.coordinator.broker_state import commit_request
from tests.network.raw_client import RawClient
from tests.waiting import wait_until

BROKERS = 3
PARTITIONS = 4
"""Of each internal topic; the default of 50 takes real brokers long."""
SETTINGS = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": str(PARTITIONS),
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": str(PARTITIONS),
}
GROUP, TRANSACTION = 0, 1
INTERNAL = {"__consumer_offsets": GROUP, "__transaction_state": TRANSACTION}
"""The topics, and what their coordinators are asked for as."""


class GrowingCluster(Protocol):
    """Three brokers of which the first is up."""

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of each, comma-separated."""

    def start(self, node_id: int) -> None:
        """Start one; return when it is known."""


@dataclass(frozen=True, slots=True)
class Step:
    """One question and its answer."""

    brokers: int
    """How many were up."""
    question: str
    answer: tuple[Any, ...]


def grow(cluster: GrowingCluster) -> list[Step]:
    """Run the whole script; return what was answered."""
    steps = []
    with RawClient(cluster.bootstrap) as client:
        for count in range(1, BROKERS):
            steps += [Step(count, *asked) for asked in _ask_while_too_few(client, count)]
            cluster.start(count + 1)
        steps += [Step(BROKERS, *asked) for asked in _ask_when_enough(client)]
    return steps


def make_by_hand(cluster: GrowingCluster) -> list[Step]:
    """The offsets topic made by an administrator, with one replica, while one broker is up."""
    with RawClient(cluster.bootstrap) as client:
        created = _create(client, "__consumer_offsets", 1)
        wait_until(lambda: _coordinator(client, GROUP)[0] == 0, "a coordinator")
        return [
            Step(1, "create", created),
            Step(1, "find", _coordinator(client, GROUP)),
            Step(1, "metadata", _metadata(client, "__consumer_offsets")),
        ]


def _ask_while_too_few(client: RawClient, count: int) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for name, key_type in INTERNAL.items():
        yield f"metadata of {name}, not to be made", _metadata(client, name, may_create=False)
        yield f"find for {name}", _coordinator(client, key_type)
        yield f"find for {name} again", _coordinator(client, key_type)
        yield f"metadata of {name}", _metadata(client, name)
        yield f"metadata of {name} again", _metadata(client, name)
    for factor in range(1, BROKERS + 1):
        yield f"create with factor {factor}", _create(client, f"made-at-{count}-with-{factor}", factor)
    topic = f"made-at-{count}-with-1"
    wait_until(lambda: _metadata(client, topic, may_create=False)[0] == 0, topic)
    yield "commit", _commit(client, topic)
    yield "fetch", _fetch(client, topic)
    yield "describe", _describe(client)
    yield "internal topics", tuple(sorted(_topic_names(client) & set(INTERNAL)))


def _ask_when_enough(client: RawClient) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for name, key_type in INTERNAL.items():
        yield f"find for {name}", _coordinator(client, key_type)
        yield f"find for {name} in the end", _until_well(partial(_coordinator, client, key_type))
        yield f"metadata of {name} in the end", _until_well(partial(_metadata, client, name, may_create=False))
    yield "create with factor 3", _create(client, "made-at-3-with-3", 3)
    yield "create with factor 4", _create(client, "made-at-3-with-4", 4)
    coordinator = client.ask(FindCoordinatorRequest(key="g"), 1)
    with RawClient(f"{coordinator.host}:{coordinator.port}") as there:
        yield "commit to the coordinator", _until_well(lambda: _commit(there, "made-at-1-with-1"))
        yield "fetch from the coordinator", _fetch(there, "made-at-1-with-1")


def _until_well(ask: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
    """Ask until the answer's error is 0; a real cluster takes a while to make topics and to load their partitions."""
    answers = []

    def is_well() -> bool:
        answers.append(ask())
        return bool(answers[-1][0] == 0)

    wait_until(is_well, "an answer without an error")
    return answers[-1]


def _coordinator(client: RawClient, key_type: int) -> tuple[Any, ...]:
    """The error, and whether a node is named."""
    response = client.ask(FindCoordinatorRequest(key="g", key_type=key_type), 1)
    return response.error_code, response.node_id > 0


def _metadata(client: RawClient, name: str, *, may_create: bool = True) -> tuple[Any, ...]:
    """The worst error, whether the topic is internal, how many partitions, and how many replicas they have."""
    request = MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=may_create)
    (topic,) = client.ask(request, 4).topics
    errors = [topic.error_code, *(partition.error_code for partition in topic.partitions)]
    replicas = {len(partition.replica_nodes) for partition in topic.partitions}
    return max(errors), topic.is_internal, len(topic.partitions), sorted(replicas)


def _topic_names(client: RawClient) -> set[str]:
    return {topic.name for topic in client.ask(MetadataRequest(topics=None), 4).topics}


def _create(client: RawClient, name: str, factor: int) -> tuple[Any, ...]:
    """The error and its text."""
    topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=factor, assignments=(), configs=())
    (result,) = client.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 2).topics
    return result.error_code, result.error_message


def _commit(client: RawClient, topic: str) -> tuple[Any, ...]:
    response = client.ask(commit_request("g", {topic: {0: 42}}), 2)
    return (response.topics[0].partitions[0].error_code,)


def _fetch(client: RawClient, topic: str) -> tuple[Any, ...]:
    asked: Request = OffsetFetchRequest(
        group_id="g", topics=(OffsetFetchRequestTopic(name=topic, partition_indexes=(0,)),)
    )
    response = client.ask(asked, 2)
    return response.error_code, *((p.error_code, p.committed_offset) for t in response.topics for p in t.partitions)


def _describe(client: RawClient) -> tuple[Any, ...]:
    (group,) = client.ask(DescribeGroupsRequest(groups=("g",)), 0).groups
    return group.error_code, group.group_state
