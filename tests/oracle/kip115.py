"""KIP-115 with too few brokers, as scripts for real clusters and for kproto (BA-50 to BA-53).

`grow`: a cluster of three starts with one broker. With one, two and three brokers up, the script sends to the first
broker the requests of a client that looks for a coordinator and of an admin client that creates topics, and records the
error codes. While brokers are missing, it records the first response; with three brokers, it repeats each request until
it succeeds.

The other scripts begin with three brokers and lose some: before a client needs an internal topic, while it is created
and the cluster has not noticed the loss yet, and afterwards; or they ask for more replicas than there are brokers.
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
"""Per internal topic; the default of 50 is slow on real brokers."""
SETTINGS = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": str(PARTITIONS),
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": str(PARTITIONS),
}
GROUP, TRANSACTION = 0, 1
FOUR = {**SETTINGS, "offsets.topic.replication.factor": "4", "transaction.state.log.replication.factor": "4"}
INTERNAL = {"__consumer_offsets": GROUP, "__transaction_state": TRANSACTION}
"""The internal topics, with the key type of FindCoordinator."""


class GrowingCluster(Protocol):
    """A cluster of three brokers of which the first one runs."""

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of each broker, comma-separated."""

    def start(self, node_id: int) -> None:
        """Start a broker; return when the others know it."""


class FailingCluster(GrowingCluster, Protocol):
    """A cluster of three running brokers."""

    def stop(self, node_id: int) -> None:
        """Stop a broker; return when the others know it."""

    def kill(self, node_id: int) -> None:
        """Kill a broker; the others do not know it yet."""

    def wait_noticed(self) -> None:
        """Let the session of a killed broker time out."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request and its result."""

    brokers: int
    """Number of running brokers."""
    request: str
    result: tuple[Any, ...]


def grow(cluster: GrowingCluster) -> list[Step]:
    """Run the script; return its steps."""
    steps = []
    with RawClient(cluster.bootstrap) as client:
        for count in range(1, BROKERS):
            steps += [Step(count, *step) for step in _steps_with_too_few(client, count)]
            cluster.start(count + 1)
        steps += [Step(BROKERS, *step) for step in _steps_with_all(client)]
    return steps


def create_manually(cluster: GrowingCluster) -> list[Step]:
    """Create the offsets topic by CreateTopics with one replica, while one broker runs."""
    with RawClient(cluster.bootstrap) as client:
        created = _create(client, "__consumer_offsets", 1)
        wait_until(lambda: _coordinator(client, GROUP)[0] == 0, "a coordinator")
        return [
            Step(1, "create", created),
            Step(1, "find", _coordinator(client, GROUP)),
            Step(1, "metadata", _metadata(client, "__consumer_offsets")),
        ]


def lose_before(cluster: FailingCluster) -> list[Step]:
    """One broker, then two are gone before a client has asked for a coordinator; then they come back."""
    steps = []
    with RawClient(cluster.bootstrap) as client:
        for running in (2, 1):
            cluster.stop(running + 1)
            _create(client, f"orders-{running}", 1)
            for name, key_type in INTERNAL.items():
                found = _until_success(partial(_coordinator, client, key_type))
                steps.append(Step(running, f"find for {name}", found))
                steps.append(Step(running, f"metadata of {name}", _until_success(partial(_metadata, client, name))))
        for node_id in (2, 3):
            cluster.start(node_id)
        steps += [Step(BROKERS, *step) for step in _steps_at_the_end(client)]
    return steps


def lose_unnoticed(cluster: FailingCluster) -> list[Step]:
    """A broker is killed, and the topics are created before the cluster notices it."""
    with RawClient(cluster.bootstrap) as client:
        _create(client, "created-at-1-with-1", 1)
        cluster.kill(3)
        steps = []
        for name, key_type in INTERNAL.items():
            steps.append(Step(3, f"find for {name}", _until_success(partial(_coordinator, client, key_type))))
            steps.append(Step(3, f"replicas of {name}", _metadata(client, name, may_create=False)[1:]))
        cluster.wait_noticed()
        wait_until(lambda: _leaders(client) <= {1, 2}, "other leaders")
        return steps + [Step(2, *step) for step in _steps_at_the_end(client)]


def lose_afterwards(cluster: FailingCluster) -> list[Step]:
    """The topics exist; two brokers stop, one after the other."""
    steps = []
    with RawClient(cluster.bootstrap) as client:
        steps += [Step(BROKERS, *step) for step in _steps_at_the_end(client)]
        for node_id in (3, 2):
            cluster.stop(node_id)
            wait_until(lambda node_id=node_id: node_id not in _leaders(client), "other leaders")  # type: ignore[misc]
            steps += [Step(node_id - 1, *step) for step in _steps_at_the_end(client)]
    return steps


def ask_for_more(cluster: FailingCluster) -> list[Step]:
    """The settings ask for four replicas (`FOUR`)."""
    with RawClient(cluster.bootstrap) as client:
        _create(client, "created-at-3-with-1", 1)
        return [Step(BROKERS, *step) for step in _steps_with_too_few(client, BROKERS)]


def _steps_at_the_end(client: RawClient) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Find the coordinators, and commit."""
    for name, key_type in INTERNAL.items():
        yield f"find for {name} at last", _until_success(partial(_coordinator, client, key_type))
        yield f"metadata of {name} at last", _until_success(partial(_metadata, client, name, may_create=False))
    topic = "committed"
    _create(client, topic, 1)
    coordinator = client.ask(FindCoordinatorRequest(key="g"), 1)
    with RawClient(f"{coordinator.host}:{coordinator.port}") as connection:
        yield "commit", _until_success(lambda: _commit(connection, topic))
        yield "fetch", _fetch(connection, topic)


def _leaders(client: RawClient) -> set[int]:
    """Return the leaders of the partitions of the internal topics."""
    response = client.ask(MetadataRequest(topics=None), 4)
    return {one.leader_id for topic in response.topics if topic.name in INTERNAL for one in topic.partitions}


def _steps_with_too_few(client: RawClient, count: int) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for name, key_type in INTERNAL.items():
        yield f"metadata of {name}, without creation", _metadata(client, name, may_create=False)
        yield f"find for {name}", _coordinator(client, key_type)
        yield f"find for {name} again", _coordinator(client, key_type)
        yield f"metadata of {name}", _metadata(client, name)
        yield f"metadata of {name} again", _metadata(client, name)
    for factor in range(1, BROKERS + 1):
        yield f"create with factor {factor}", _create(client, f"created-at-{count}-with-{factor}", factor)
    topic = f"created-at-{count}-with-1"
    wait_until(lambda: _metadata(client, topic, may_create=False)[0] == 0, topic)
    yield "commit", _commit(client, topic)
    yield "fetch", _fetch(client, topic)
    yield "describe", _describe(client)
    yield "internal topics", tuple(sorted(_topic_names(client) & set(INTERNAL)))


def _steps_with_all(client: RawClient) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for name, key_type in INTERNAL.items():
        yield f"find for {name}", _coordinator(client, key_type)
        yield f"find for {name} at last", _until_success(partial(_coordinator, client, key_type))
        yield f"metadata of {name} at last", _until_success(partial(_metadata, client, name, may_create=False))
    yield "create with factor 3", _create(client, "created-at-3-with-3", 3)
    yield "create with factor 4", _create(client, "created-at-3-with-4", 4)
    coordinator = client.ask(FindCoordinatorRequest(key="g"), 1)
    with RawClient(f"{coordinator.host}:{coordinator.port}") as connection:
        yield "commit to the coordinator", _until_success(lambda: _commit(connection, "created-at-1-with-1"))
        yield "fetch from the coordinator", _fetch(connection, "created-at-1-with-1")


def _until_success(send: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
    """Repeat a request until its error code is NONE: a real cluster creates topics and loads partitions in between."""
    results = []

    def succeeds() -> bool:
        results.append(send())
        return bool(results[-1][0] == 0)

    wait_until(succeeds, "a response without an error")
    return results[-1]


def _coordinator(client: RawClient, key_type: int) -> tuple[Any, ...]:
    """Return the error code, and whether the response names a node."""
    response = client.ask(FindCoordinatorRequest(key="g", key_type=key_type), 1)
    return response.error_code, response.node_id > 0


def _metadata(client: RawClient, name: str, *, may_create: bool = True) -> tuple[Any, ...]:
    """Return the highest error code, whether the topic is internal, and the counts of partitions and replicas."""
    request = MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=may_create)
    (topic,) = client.ask(request, 4).topics
    errors = [topic.error_code, *(partition.error_code for partition in topic.partitions)]
    replicas = {len(partition.replica_nodes) for partition in topic.partitions}
    return max(errors), topic.is_internal, len(topic.partitions), sorted(replicas)


def _topic_names(client: RawClient) -> set[str]:
    return {topic.name for topic in client.ask(MetadataRequest(topics=None), 4).topics}


def _create(client: RawClient, name: str, factor: int) -> tuple[Any, ...]:
    """Return the error code and the error message."""
    topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=factor, assignments=(), configs=())
    (result,) = client.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 2).topics
    return result.error_code, result.error_message


def _commit(client: RawClient, topic: str) -> tuple[Any, ...]:
    response = client.ask(commit_request("g", {topic: {0: 42}}), 2)
    return (response.topics[0].partitions[0].error_code,)


def _fetch(client: RawClient, topic: str) -> tuple[Any, ...]:
    request: Request = OffsetFetchRequest(
        group_id="g", topics=(OffsetFetchRequestTopic(name=topic, partition_indexes=(0,)),)
    )
    response = client.ask(request, 2)
    return response.error_code, *((p.error_code, p.committed_offset) for t in response.topics for p in t.partitions)


def _describe(client: RawClient) -> tuple[Any, ...]:
    (group,) = client.ask(DescribeGroupsRequest(groups=("g",)), 0).groups
    return group.error_code, group.group_state
