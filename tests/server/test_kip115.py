"""KIP-115: no coordinator until there are enough brokers for the offsets topic; then at once, without a restart.

Real clients commit while brokers start one by one: by the retries of the library, the commit must succeed with the
third broker, and not before. Other tests send the requests of each step by hand; tests/oracle/test_kip115.py compares
real clusters.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto_server.broker.broker import Broker
from tests.network.raw_client import RawClient
from tests.network.requests import committed, create_topic, find_coordinator
from tests.waiting import LIMIT_S, wait_until

OFFSETS = "__consumer_offsets"
GROUP = "g"
NO_COORDINATOR = 15
INVALID_REPLICATION_FACTOR = 38
FIND_COORDINATOR = 10
OFFSET = 42


# Real clients.


def commit_with_kafka_python(bootstrap: str) -> None:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=GROUP, enable_auto_commit=False)
    try:
        partition = TopicPartition("t", 0)
        consumer.assign([partition])
        consumer.commit({partition: OffsetAndMetadata(OFFSET, "", -1)})
    finally:
        consumer.close()


def commit_with_confluent(bootstrap: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "enable.auto.commit": False})
    try:
        partition = ConfluentTopicPartition("t", 0, OFFSET)
        consumer.assign([partition])
        (done,) = consumer.commit(offsets=[partition], asynchronous=False)
        assert done.error is None
    finally:
        consumer.close()


def commit_with_aiokafka(bootstrap: str) -> None:
    async def commit() -> None:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=GROUP, enable_auto_commit=False)
        await consumer.start()
        try:
            partition = AioTopicPartition("t", 0)
            consumer.assign([partition])
            await consumer.commit({partition: OFFSET})
        finally:
            await consumer.stop()

    asyncio.run(commit())


class Committing(threading.Thread):
    """A client that commits once; `failure` has the error."""

    def __init__(self, commit: Callable[[str], None], bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.commit = commit
        self.bootstrap = bootstrap
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self.commit(self.bootstrap)
        except BaseException as error:  # the test looks at it
            self.failure = error
            raise


def refusals(broker: Broker) -> int:
    """Return how often clients got an error because there was no coordinator."""
    return sum(
        seen.count
        for client in broker.observations.snapshot().clients
        for seen in client.errors
        if (seen.api_key, seen.error_code) == (FIND_COORDINATOR, NO_COORDINATOR)
    )


def wait_refused_twice(broker: Broker) -> None:
    before = refusals(broker)
    wait_until(lambda: refusals(broker) >= before + 2, "a client that asks for its coordinator")


@pytest.mark.parametrize(
    ("kafka_version", "commit"),
    [
        ("2.1", commit_with_kafka_python),
        ("2.1", commit_with_aiokafka),
        ("latest", commit_with_kafka_python),
        ("latest", commit_with_aiokafka),
        ("latest", commit_with_confluent),  # takes seconds between its questions
    ],
)
def test_a_client_commits_as_soon_as_the_third_broker_is_up(kafka_version: str, commit: Callable[[str], None]) -> None:
    """BA-50, BA-53; the client knows of the first broker only."""
    with Broker(kafka_version=kafka_version, brokers=3, started=1) as broker:
        bootstrap = broker.bootstrap_servers.split(",")[0]
        with RawClient(bootstrap) as client:
            create_topic(client)
        client_at_work = Committing(commit, bootstrap)
        client_at_work.start()
        for node_id in (2, 3):
            wait_refused_twice(broker)
            assert client_at_work.is_alive(), client_at_work.failure
            broker.start_node(node_id)
        client_at_work.join(LIMIT_S)

        assert not client_at_work.is_alive(), "it is still trying"
        assert client_at_work.failure is None
        assert offsets_of_all(broker) == {OFFSET}


def offsets_of_all(broker: Broker) -> set[int]:
    """What the coordinator, whichever node it is, has for the group."""
    found = set()
    for address in broker.bootstrap_servers.split(","):
        with RawClient(address) as client:
            found.add(committed(client, GROUP))
    return found - {-1}


# On the wire.


def metadata(client: RawClient, name: str = OFFSETS) -> tuple[int, bool, int, set[int]]:
    """Error, whether it is internal, how many partitions, and how many replicas they have."""
    (topic,) = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=name),)), 1).topics
    return (
        topic.error_code,
        topic.is_internal,
        len(topic.partitions),
        {len(partition.replica_nodes) for partition in topic.partitions},
    )


def create(client: RawClient, name: str, factor: int, version: int) -> int:
    topic = CreatableTopic(name=name, num_partitions=2, replication_factor=factor, assignments=(), configs=())
    (result,) = client.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=1000), version).topics
    return int(result.error_code)


def has_offsets_topic(client: RawClient) -> bool:
    return OFFSETS in {topic.name for topic in client.ask(MetadataRequest(topics=None), 1).topics}


@pytest.mark.parametrize(
    ("kafka_version", "metadata_error"),
    [
        ("0.11", INVALID_REPLICATION_FACTOR),
        ("2.1", INVALID_REPLICATION_FACTOR),
        ("2.8", INVALID_REPLICATION_FACTOR),
        ("3.9", 3),
        ("4.4", 3),
        ("latest", 3),
    ],
)
def test_each_step_until_there_are_enough(kafka_version: str, metadata_error: int) -> None:
    """BA-50, BA-53: default.replication.factor and offsets.topic.replication.factor are Kafka's defaults, 1 and 3."""
    with (
        Broker(kafka_version=kafka_version, brokers=3, started=1) as broker,
        RawClient(broker.bootstrap_servers) as client,
    ):
        for count in (1, 2):
            assert find_coordinator(client, GROUP) == NO_COORDINATOR
            assert metadata(client) == (metadata_error, True, 0, set())
            assert create(client, f"too-many-{count}", count + 1, 2) == INVALID_REPLICATION_FACTOR
            assert create(client, f"as-many-{count}", count, 2) == 0
            assert not has_offsets_topic(client), "asking for all topics makes none"
            broker.start_node(count + 1)

        assert find_coordinator(client, GROUP) == NO_COORDINATOR, "it is made now"
        assert find_coordinator(client, GROUP) == 0
        assert metadata(client) == (0, True, 50, {3})
        assert create(client, "of-three", 3, 2) == 0


@pytest.mark.parametrize("kafka_version", ["0.11", "2.1", "4.4", "latest"])
def test_metadata_makes_it_too_as_soon_as_it_can(kafka_version: str) -> None:
    """BA-53."""
    with (
        Broker(kafka_version=kafka_version, brokers=3, started=1) as broker,
        RawClient(broker.bootstrap_servers) as client,
    ):
        broker.start_node(2)
        metadata(client)
        assert not has_offsets_topic(client)
        broker.start_node(3)
        metadata(client)
        assert metadata(client) == (0, True, 50, {3})


def test_before_0_11_it_gets_as_many_replicas_as_there_are_brokers() -> None:
    """BA-50; CreateTopics has its own rule, which does not clamp."""
    with Broker(kafka_version="0.10.2", brokers=3, started=1) as broker, RawClient(broker.bootstrap_servers) as client:
        assert create(client, "of-three", 3, 1) == INVALID_REPLICATION_FACTOR
        assert find_coordinator(client, GROUP) == NO_COORDINATOR, "it is made now"
        assert find_coordinator(client, GROUP) == 0
        assert metadata(client) == (0, True, 50, {1})

        broker.start_node(2)
        broker.start_node(3)
        assert metadata(client) == (0, True, 50, {1}), "and keeps them"
        assert create(client, "of-three", 3, 1) == 0


@pytest.mark.parametrize("kafka_version", ["0.10.2", "2.1", "latest"])
def test_a_topic_made_by_hand_serves_with_a_factor_that_fits(kafka_version: str) -> None:
    """BA-50: the setting does not count there."""
    with (
        Broker(kafka_version=kafka_version, brokers=3, started=1) as broker,
        RawClient(broker.bootstrap_servers) as client,
    ):
        assert create(client, OFFSETS, 1, 1 if kafka_version == "0.10.2" else 2) == 0
        assert find_coordinator(client, GROUP) == 0
        assert metadata(client) == (0, True, 2, {1})


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_the_setting_is_what_has_to_be_reached(factor: int) -> None:
    """BA-54: the number of brokers changes at run time."""
    settings = {"offsets.topic.replication.factor": factor}
    with Broker(brokers=3, started=1, settings=settings) as broker, RawClient(broker.bootstrap_servers) as client:
        for node_id in range(2, factor + 1):
            assert find_coordinator(client, GROUP) == find_coordinator(client, GROUP) == NO_COORDINATOR
            broker.start_node(node_id)
        assert [find_coordinator(client, GROUP) for _ in range(2)] == [NO_COORDINATOR, 0]
        assert metadata(client)[3] == {factor}


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_single_broker_with_nothing_set_serves_at_once(brokers: int) -> None:
    """BA-54: as Kafka's own quickstart sets it; a cluster has Kafka's default of 3."""
    with Broker(brokers=brokers) as broker, RawClient(broker.bootstrap_servers) as client:
        assert [find_coordinator(client, GROUP) for _ in range(2)] == [NO_COORDINATOR, 0]
        assert metadata(client)[3] == {brokers}


def test_a_single_broker_with_three_replicas_set_never_has_a_coordinator() -> None:
    """BA-50: what is set is meant."""
    settings = {"offsets.topic.replication.factor": 3}
    with Broker(settings=settings) as broker, RawClient(broker.bootstrap_servers) as client:
        assert [find_coordinator(client, GROUP) for _ in range(3)] == [NO_COORDINATOR] * 3
        assert not has_offsets_topic(client)


def stop_and_ask(kafka_version: str) -> Any:
    """With one of three brokers down again before the topic was needed: the coordinator at the second question."""
    with Broker(kafka_version=kafka_version, brokers=3) as broker, RawClient(broker.bootstrap_servers) as client:
        broker.stop_node(3)
        find_coordinator(client, GROUP)
        return find_coordinator(client, GROUP), metadata(client)


def test_a_broker_that_is_down_counts_in_kraft_and_not_with_zookeeper() -> None:
    """BA-52."""
    assert stop_and_ask("2.1")[0] == NO_COORDINATOR
    error, (metadata_error, _, partitions, replicas) = stop_and_ask("4.4")
    assert (error, metadata_error, partitions, replicas) == (0, 0, 50, {3})
