"""Replicas that fall behind: what clients see while there are fewer than `min.insync.replicas`, and that they go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import KafkaError
from confluent_kafka import Producer as ConfluentProducer
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from kproto.codes import ErrorCode
from kproto.messages.k03_metadata import MetadataRequest
from kproto_server import Broker
from tests.network.raw_client import RawClient
from tests.network.requests import commit_offset, committed, create_topic, find_coordinator
from tests.waiting import LIMIT_S, wait_until

SETTINGS = {"default.replication.factor": 3, "min.insync.replicas": 2, "offsets.commit.timeout.ms": 50}
ORDERS = TopicPartition("orders", 0)


@pytest.fixture(params=["2.8", "latest"])
def broker(request: Any) -> Iterator[Broker]:
    with Broker.running(kafka_version=request.param, brokers=3, settings=SETTINGS) as running:
        with RawClient(running.bootstrap_servers) as client:
            create_topic(client, "orders")
            wait_until(lambda: find_coordinator(client, "billing") == 0, "the coordinator")
        yield running


def followers(broker: Broker, leader: int | None) -> list[int]:
    return [node_id for node_id in (1, 2, 3) if node_id != leader]


def in_sync(broker: Broker) -> list[int]:
    with RawClient(broker.bootstrap_servers) as client:
        topics = client.ask(MetadataRequest(topics=None), 5).topics
    return [len(one.isr_nodes) for topic in topics if topic.name == "orders" for one in topic.partitions]


def test_librdkafka_produces_again_when_a_replica_is_in_sync(broker: Broker) -> None:
    first, second = followers(broker, broker.cluster.leader("orders", 0))
    broker.cluster.stop_replication(first)
    assert in_sync(broker) == [2]
    broker.cluster.stop_replication(second)
    assert in_sync(broker) == [1]
    reports: list[Any] = []
    producer = ConfluentProducer({"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": 10})
    producer.produce("orders", b"1041", on_delivery=lambda error, _: reports.append(error))
    producer.poll(0)
    broker.requests.wait(api="Produce", error="NOT_ENOUGH_REPLICAS", count=2, timeout_s=LIMIT_S)
    broker.cluster.start_replication(first)
    assert producer.flush(LIMIT_S) == 0
    assert reports == [None]
    assert in_sync(broker) == [2]


def test_librdkafka_with_acks_1_notices_nothing(broker: Broker) -> None:
    for node_id in followers(broker, broker.cluster.leader("orders", 0)):
        broker.cluster.stop_replication(node_id)
    reports: list[Any] = []
    producer = ConfluentProducer({"bootstrap.servers": broker.bootstrap_servers, "acks": 1})
    producer.produce("orders", b"1041", on_delivery=lambda error, _: reports.append(error))
    assert producer.flush(LIMIT_S) == 0
    assert reports == [None]


def test_librdkafka_gives_up_after_its_timeout(broker: Broker) -> None:
    for node_id in followers(broker, broker.cluster.leader("orders", 0)):
        broker.cluster.stop_replication(node_id)
    reports: list[Any] = []
    producer = ConfluentProducer({"bootstrap.servers": broker.bootstrap_servers, "message.timeout.ms": 300})
    producer.produce("orders", b"1041", on_delivery=lambda error, _: reports.append(error))
    assert producer.flush(LIMIT_S) == 0
    (error,) = reports
    assert error.code() in (KafkaError._MSG_TIMED_OUT, KafkaError.NOT_ENOUGH_REPLICAS)


def test_kafka_python_commits_when_a_replica_of_the_offsets_topic_is_in_sync(broker: Broker) -> None:
    first, second = followers(broker, broker.cluster.coordinator(group="billing"))
    for node_id in (first, second):
        broker.cluster.stop_replication(node_id)
    with RawClient(broker.bootstrap_servers) as client:
        create_topic(client)
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, group_id="billing", enable_auto_commit=False, retry_backoff_ms=10
    )
    with closing(consumer):
        consumer.assign([ORDERS])
        sent = consumer.commit_async({ORDERS: OffsetAndMetadata(42, "", -1)})

        def is_refused() -> bool:
            consumer.poll(10)
            return bool(broker.requests.where(api="OffsetCommit", error="COORDINATOR_NOT_AVAILABLE"))

        wait_until(is_refused, "a refused commit")
        assert broker.groups.committed("billing") == {}
        broker.cluster.start_replication(first)
        consumer.commit({ORDERS: OffsetAndMetadata(43, "", -1)})
        assert sent is not None
    assert broker.groups.committed("billing") == {("orders", 0): 43}


def test_a_repeated_commit_is_refused_too() -> None:
    """The broker has responded to a commit like it before."""
    settings = {**SETTINGS, "offsets.topic.num.partitions": 1}
    with Broker.running(kafka_version="2.8", brokers=3, settings=settings) as broker:
        with RawClient(broker.bootstrap_servers) as client:
            wait_until(lambda: find_coordinator(client, "g") == 0, "the coordinator")
        node_id = broker.cluster.coordinator(group="g")
        assert node_id is not None
        with RawClient(broker.bootstrap_servers.split(",")[node_id - 1]) as client:
            for offset in (1, 2, 3):
                assert commit_offset(client, offset=offset) == 0
            for other in followers(broker, node_id):
                broker.cluster.stop_replication(other)
            assert commit_offset(client, offset=4) == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert committed(client) == 3
            broker.reset()
    with Broker.running(brokers=3, settings=SETTINGS) as broker:
        broker.cluster.stop_replication(2)
        broker.reset()
        with RawClient(broker.bootstrap_servers) as client:
            create_topic(client, "orders")
        assert in_sync(broker) == [3]


def test_a_stopped_node_that_starts_again_is_in_sync_only_if_it_replicates(broker: Broker) -> None:
    (first, _) = followers(broker, broker.cluster.leader("orders", 0))
    broker.cluster.stop_replication(first)
    broker.stop_node(first)
    broker.start_node(first)
    assert in_sync(broker) == [2]
    broker.cluster.start_replication(first)
    assert in_sync(broker) == [3]


@pytest.mark.parametrize(("kafka_version", "commit"), [("3.6", 15), ("3.7", 0), ("latest", 0)])
def test_more_replicas_needed_than_there_are(kafka_version: str, commit: int) -> None:
    """Measured on 2.8.2, 3.6.2, 3.7.2, 3.9.2 and 4.4.0."""
    settings = {"min.insync.replicas": 2}
    with (
        Broker.running(kafka_version=kafka_version, settings=settings) as broker,
        RawClient(broker.bootstrap_servers) as client,
    ):
        wait_until(lambda: find_coordinator(client, "g") == 0, "the coordinator")
        assert commit_offset(client) == commit
