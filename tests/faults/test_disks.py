"""Disks of nodes that are full, read-only or slow, and what producers with acks=all get while a follower has ended.

Method: real clients. What real clusters do is in tests/oracle/test_disks.py.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaConnectionError
from kafka.structs import OffsetAndMetadata

from kproto.errors import UsageError
from kproto_server import Broker
from kproto_server.network.disks import set_disk
from kproto_server.network.server import Server
from tests.network.raw_client import RawClient
from tests.network.requests import create_topic, find_coordinator
from tests.oracle.disks import produce, request
from tests.waiting import LIMIT_S, wait_until

SETTINGS = {"default.replication.factor": 3, "offsets.topic.num.partitions": 1}
SESSION_S = 9
OFFSET_COMMIT = 8
ORDERS = TopicPartition("orders", 0)


@pytest.fixture(params=["memory", "data directory"])
def broker(request: Any, tmp_path: Any) -> Iterator[Broker]:
    data = None if request.param == "memory" else str(tmp_path / "data")
    with Broker.running(brokers=3, settings=SETTINGS, data=data) as running:
        with RawClient(running.bootstrap_servers) as client:
            create_topic(client, "orders")
            wait_until(lambda: find_coordinator(client, "billing") == 0, "the coordinator")
        yield running


def leader(broker: Broker) -> int:
    found = broker.cluster.leader("orders", 0)
    assert found is not None
    return found


def address(broker: Broker, node_id: int) -> str:
    return broker.bootstrap_servers.split(",")[node_id - 1]


def is_running(broker: Broker, node_id: int) -> bool:
    return broker.run(lambda server: node_id in server.nodes.listeners)


@pytest.mark.parametrize("disk", ["full", "read_only"])
def test_librdkafka_produces_to_the_next_leader(broker: Broker, disk: str) -> None:
    first = leader(broker)
    reports: list[Any] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": 10, "log_level": 0})
    broker.cluster.disk(first, **{disk: True})
    producer.produce("orders", b"1041", on_delivery=lambda error, _: reports.append(error))
    producer.poll(0)
    broker.requests.wait(api="Produce", error="KAFKA_STORAGE_ERROR", timeout_s=LIMIT_S)
    wait_until(lambda: not is_running(broker, first), "its end")
    assert leader(broker) == first, "the cluster has not noticed it"
    broker.clock.advance(seconds=SESSION_S)
    assert leader(broker) != first
    assert producer.flush(LIMIT_S) == 0
    assert reports == [None]
    with pytest.raises(UsageError, match=f"node {first} can't start: its disk is {disk.replace('_', '-')}"):
        broker.start_node(first)
    broker.reset()
    assert is_running(broker, first)


def test_kafka_python_commits_at_the_next_coordinator(broker: Broker) -> None:
    first = broker.cluster.coordinator(group="billing")
    assert first is not None
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, group_id="billing", enable_auto_commit=False, retry_backoff_ms=10
    )
    with closing(consumer):
        consumer.assign([ORDERS])
        for number in (1, 2):
            consumer.commit({ORDERS: OffsetAndMetadata(number, "", -1)})
        with broker.cluster.disk(first, full=True):
            sent = consumer.commit_async({ORDERS: OffsetAndMetadata(3, "", -1)})

            def is_refused() -> bool:
                consumer.poll(10)
                return bool(broker.requests.where(api="OffsetCommit", error="NOT_COORDINATOR"))

            wait_until(is_refused, "a refused commit")
            wait_until(lambda: not is_running(broker, first), "its end")
            broker.clock.advance(seconds=SESSION_S)

            def commits() -> bool:
                """The client may try the broker that has ended first, and raises the error of that connection."""
                try:
                    consumer.commit({ORDERS: OffsetAndMetadata(4, "", -1)})
                except KafkaConnectionError:
                    return False
                return True

            wait_until(commits, "a commit at the next coordinator")
            assert sent is not None
        broker.start_node(first)
    assert broker.groups.committed("billing") == {("orders", 0): 4}


def test_a_follower_that_has_ended_delays_acks_all_until_the_cluster_notices_it(broker: Broker) -> None:
    follower = next(node for node in (1, 2, 3) if node != leader(broker))
    broker.cluster.disk(follower, full=True)
    reports: list[Any] = []
    config = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, "retry.backoff.ms": 10}
    producer = Producer({**config, "request.timeout.ms": 300, "enable.idempotence": True})
    producer.produce("orders", b"1041", on_delivery=lambda error, _: reports.append(error))
    producer.poll(0)
    broker.requests.wait(api="Produce", error="REQUEST_TIMED_OUT", timeout_s=LIMIT_S)
    wait_until(lambda: not is_running(broker, follower), "its end")
    broker.clock.advance(seconds=SESSION_S)
    assert producer.flush(LIMIT_S) == 0
    assert reports == [None]
    assert len(broker.topics.records("orders")) == 1, "repeated, and there once"


def test_a_crashed_follower_does_so_too(broker: Broker) -> None:
    follower = next(node for node in (1, 2, 3) if node != leader(broker))
    broker.cluster.crash(follower)
    with RawClient(address(broker, leader(broker))) as client:
        assert produce(client, acks=1, timeout_ms=100) == 0
        assert produce(client, acks=-1, timeout_ms=100) == KafkaError.REQUEST_TIMED_OUT
        assert len(broker.topics.records("orders")) == 2, "a real broker would show it later"
        broker.clock.advance(seconds=SESSION_S)
        assert produce(client, acks=-1, timeout_ms=60_000) == 0


@pytest.mark.parametrize(("kafka_version", "error"), [("3.6", 20), ("3.7", 7)])
def test_a_produce_that_waits_when_too_few_are_left(kafka_version: str, error: int) -> None:
    settings = {**SETTINGS, "min.insync.replicas": 3}
    with Broker.running(brokers=3, settings=settings, kafka_version=kafka_version, clock="manual") as broker:
        with RawClient(broker.bootstrap_servers) as client:
            create_topic(client, "orders")
        follower = next(node for node in (1, 2, 3) if node != leader(broker))
        broker.cluster.crash(follower)
        with RawClient(address(broker, leader(broker))) as client:
            client.send(request(acks=-1, timeout_ms=20_000))
            broker.requests.wait(api="Produce")
            broker.clock.advance(seconds=SESSION_S)
            broker.clock.advance(seconds=30)
            response = client.read_frame()
            assert error.to_bytes(2, "big") in response


def test_a_slow_disk_delays_writes_and_nothing_else(broker: Broker) -> None:
    first = leader(broker)
    with broker.cluster.disk(first, latency_ms=100), RawClient(address(broker, first)) as client:
        began = time.monotonic()
        assert produce(client, acks=1, timeout_ms=1000) == 0
        assert time.monotonic() - began >= 0.1
        assert {rule.given["delay_ms"] for rule in broker.faults} == {100}
    assert len(broker.faults) == 0


def test_librdkafka_waits_for_a_slow_disk(broker: Broker) -> None:
    """The latency goes by the broker's clock: a minute passes in no time, and the commit is done."""
    results: list[Any] = []
    node = broker.cluster.coordinator(group="billing")
    assert node is not None
    settings: Any = {"group.id": "billing", "on_commit": lambda error, offsets: results.append((error, offsets))}
    with closing(Consumer({"bootstrap.servers": broker.bootstrap_servers, **settings})) as consumer:
        with broker.cluster.disk(node, latency_ms=60_000):
            consumer.commit(offsets=[ConfluentPartition("orders", 0, 42)], asynchronous=True)
            (rule,) = [one for one in broker.faults if one.given["api"] == OFFSET_COMMIT]
            rule.wait_fired(timeout_s=LIMIT_S)
            assert broker.groups.committed("billing") == {}
            broker.clock.advance(seconds=60)
            wait_until(lambda: consumer.poll(0.05) is None and bool(results), "the commit")
        assert [(error, one.offset) for error, offsets in results for one in offsets] == [(None, 42)]
    assert broker.groups.committed("billing") == {("orders", 0): 42}


@pytest.mark.parametrize("given", [{}, {"full": True, "read_only": True}, {"latency_ms": -1}, {"full": 1}])
def test_wrong_conditions_are_refused(given: dict[str, Any]) -> None:
    with Broker.running() as broker, pytest.raises(UsageError):
        broker.cluster.disk(1, **given)


def test_a_reset_behind_a_failed_write_of_the_same_iteration_has_all_nodes_run(broker: Broker) -> None:
    def fail_and_reset(server: Server) -> None:
        topic = server.state.cluster.topics["orders"]
        node_id = topic.partitions[0].leader
        set_disk(server, node_id, errno.ENOSPC)
        with pytest.raises(OSError, match="the disk takes no writes"):
            server.state.log_manager.data_of(topic, topic.partitions[0])
        assert server.state.cluster.silent == {node_id}
        server.reset()

    broker.run(fail_and_reset)
    assert broker.run(lambda server: (set(server.state.cluster.silent), sorted(server.nodes.listeners))) == (
        set(), [1, 2, 3]
    )  # fmt: skip


def test_a_disk_that_is_good_again_at_once_has_its_node_replicate(broker: Broker) -> None:
    def fail_and_repair(server: Server) -> None:
        topic = server.state.cluster.topics["orders"]
        node_id = topic.partitions[0].leader
        set_disk(server, node_id, errno.ENOSPC)
        with pytest.raises(OSError, match="the disk takes no writes"):
            server.state.log_manager.data_of(topic, topic.partitions[0])
        set_disk(server, node_id)

    broker.run(fail_and_repair)
    assert broker.run(lambda server: (set(server.state.cluster.silent), sorted(server.nodes.listeners))) == (
        set(), [1, 2, 3]
    )  # fmt: skip
