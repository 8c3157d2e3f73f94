"""Leaders and coordinators that move, nodes that crash or are disconnected: what clients see, and that they go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import Producer as ConfluentProducer
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from kproto.codes import ErrorCode
from kproto.errors import UsageError
from kproto.messages.k03_metadata import MetadataRequest
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto_server import Broker
from tests.network.raw_client import RawClient
from tests.network.requests import create_topic
from tests.waiting import LIMIT_S, wait_until

SETTINGS = {"num.partitions": 4, "default.replication.factor": 3, "offsets.topic.num.partitions": 2}
HEARTBEAT = HeartbeatRequest(group_id="billing", generation_id=1, member_id="m")
MOVES = 20
AHEAD_MAX = 400
"""Records that a test produces before its consumers have read earlier ones."""


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.running(brokers=3, settings=SETTINGS, clock="manual") as running:
        with RawClient(running.bootstrap_servers) as client:
            create_topic(client, "orders")
            client.ask(FindCoordinatorRequest(key="billing"), 0)
        yield running


def address(broker: Broker, node_id: int) -> str:
    return broker.bootstrap_servers.split(",")[node_id - 1]


def heartbeat(broker: Broker, node_id: int) -> int:
    with RawClient(address(broker, node_id)) as client:
        return int(client.ask(HEARTBEAT, 3).error_code)


def test_a_coordinator_moves_and_loads(broker: Broker) -> None:
    before = broker.cluster.coordinator(group="billing")
    assert before is not None
    after = broker.cluster.move_coordinator(group="billing", loading_ms=5000)
    assert broker.cluster.coordinator(group="billing") == after != before
    assert heartbeat(broker, before) == ErrorCode.NOT_COORDINATOR
    with RawClient(address(broker, after)) as client:
        request = FindCoordinatorRequest(key="billing")
        assert client.ask(request, 0).node_id == after
    broker.clock.advance(seconds=5)
    assert heartbeat(broker, after) == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_move_of_a_coordinator_decides_when_it_is_loaded(broker: Broker) -> None:
    broker.cluster.move_coordinator(group="billing", loading_ms=1000)
    broker.clock.advance(milliseconds=900)
    after = broker.cluster.move_coordinator(group="billing", loading_ms=1000)
    broker.clock.advance(milliseconds=900)
    assert heartbeat(broker, after) == ErrorCode.NONE  # as of a coordinator that loads
    broker.clock.advance(milliseconds=100)
    assert heartbeat(broker, after) == ErrorCode.UNKNOWN_MEMBER_ID
    broker.cluster.move_coordinator(group="billing", loading_ms=1000)
    after = broker.cluster.move_coordinator(group="billing")
    assert heartbeat(broker, after) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_coordinator_whose_log_cannot_be_served_is_not_served_after_a_move(broker: Broker) -> None:
    """It has no offsets: consumers would start again from the beginning."""
    unavailable: dict[int, int] = broker.run(lambda server: server.state.coordinator.unavailable)
    broker.run(lambda server: unavailable.update(dict.fromkeys(range(50), ErrorCode.NOT_COORDINATOR)))
    after = broker.cluster.move_coordinator(group="billing", loading_ms=1000)
    for _ in range(2):
        assert heartbeat(broker, after) == ErrorCode.NOT_COORDINATOR
        broker.clock.advance(seconds=1)


def test_a_leader_moves(broker: Broker) -> None:
    before = broker.cluster.leader("orders", 0)
    after = broker.cluster.move_leader("orders", 0)
    assert broker.cluster.leader("orders", 0) == after != before
    assert broker.cluster.move_leader("orders", 0, after) == after  # it is the leader already
    with RawClient(broker.bootstrap_servers) as client:
        (topic,) = client.ask(MetadataRequest(topics=None), 9).topics[:1]
    (moved,) = [one for one in topic.partitions if one.partition_index == 0]
    assert (moved.leader_id, moved.leader_epoch) == (after, 1)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda broker: broker.cluster.move_leader("none", 0), "there is no partition 0 of topic 'none'"),
        (lambda broker: broker.cluster.move_leader("orders", 9), "there is no partition 9 of topic 'orders'"),
        (lambda broker: broker.cluster.move_leader("orders", 0, 7), "node 7 has no replica of orders-0, or is stopped"),
        (lambda broker: broker.cluster.move_coordinator(), "a group or a transactional id has a coordinator"),
        (lambda broker: broker.cluster.move_coordinator(group="g", loading_ms=-1), "loading_ms is a number from 0 on"),
        (lambda broker: broker.cluster.move_coordinator(transactional_id="t"), "'t' has no coordinator yet"),
        (lambda broker: broker.cluster.crash(4), "node 4 does not exist"),
        (lambda broker: broker.cluster.disconnect(4), "node 4 does not exist"),
    ],
)
def test_what_cannot_be_done(call: Any, text: str, broker: Broker) -> None:
    with pytest.raises(UsageError, match=text):
        call(broker)


def test_the_cluster_notices_a_crash_when_the_session_times_out(broker: Broker) -> None:
    leader = broker.cluster.leader("orders", 0)
    assert leader is not None
    with RawClient(address(broker, leader)) as client:
        client.ask(MetadataRequest(topics=None), 9)
        broker.cluster.crash(leader)
        with pytest.raises(ConnectionResetError):
            client.socket.recv(1)
    with pytest.raises(ConnectionRefusedError):
        RawClient(address(broker, leader))
    broker.clock.advance(milliseconds=8_999)
    assert broker.cluster.leader("orders", 0) == leader
    broker.clock.advance(milliseconds=1)
    assert broker.cluster.leader("orders", 0) != leader
    broker.start_node(leader)
    assert broker.cluster.move_leader("orders", 0, leader) == leader


def test_a_node_that_crashes_and_starts_again_has_lost_its_leadership(broker: Broker) -> None:
    leader = broker.cluster.leader("orders", 0)
    assert leader is not None
    broker.cluster.crash(leader)
    broker.start_node(leader)
    assert broker.cluster.leader("orders", 0) != leader
    broker.clock.advance(seconds=10)
    heartbeat(broker, leader)


def test_a_node_that_is_disconnected_stays_the_leader(broker: Broker) -> None:
    leader = broker.cluster.leader("orders", 0)
    assert leader is not None
    broker.cluster.disconnect(leader)
    broker.clock.advance(minutes=1)
    assert broker.cluster.leader("orders", 0) == leader
    with pytest.raises(ConnectionRefusedError):
        RawClient(address(broker, leader))
    broker.start_node(leader)
    heartbeat(broker, leader)
    assert broker.cluster.leader("orders", 0) == leader


def test_reset_after_a_crash(broker: Broker) -> None:
    broker.cluster.crash(2)
    broker.reset()
    broker.clock.advance(minutes=1)
    heartbeat(broker, 2)


# Clients.


def test_librdkafka_finds_the_leader_after_each_move(broker: Broker) -> None:
    reports: list[Any] = []
    producer = ConfluentProducer(
        {"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True, "retry.backoff.ms": 10}
    )
    for number in range(MOVES):
        broker.cluster.move_leader("orders", 0)
        producer.produce(
            "orders", b"%d" % number, partition=0, on_delivery=lambda error, one: reports.append((error, one.offset()))
        )
        assert producer.flush(LIMIT_S) == 0
    assert reports == [(None, number) for number in range(MOVES)]
    assert len(broker.requests.where(api="Produce", error="NOT_LEADER_OR_FOLLOWER")) >= MOVES - 1


@pytest.mark.parametrize("end", ["stop", "crash", "disconnect"])
def test_librdkafka_produces_when_there_is_a_leader_again(end: str, broker: Broker) -> None:
    """At once if the node stops, when the cluster notices a crash, and when a disconnected leader starts again."""
    reports: list[Any] = []
    settings = {"retry.backoff.ms": 10, "reconnect.backoff.ms": 50, "topic.metadata.refresh.fast.interval.ms": 20}
    producer = ConfluentProducer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, **settings})
    leader = broker.cluster.leader("orders", 0)
    assert leader is not None

    def produce() -> None:
        producer.produce("orders", b"1041", partition=0, on_delivery=lambda error, one: reports.append(error))

    produce()
    assert producer.flush(LIMIT_S) == 0
    ends = {"stop": broker.stop_node, "crash": broker.cluster.crash, "disconnect": broker.cluster.disconnect}
    ends[end](leader)
    produce()
    if end != "stop":
        seen = len(broker.requests.where(api="Metadata"))
        broker.requests.wait(api="Metadata", count=seen + 2, timeout_s=LIMIT_S)
        assert len(broker.requests.where(api="Produce", error=0)) == 1
        assert broker.cluster.leader("orders", 0) == leader
    if end == "crash":
        broker.clock.advance(seconds=9)
    elif end == "disconnect":
        broker.start_node(leader)
    assert producer.flush(LIMIT_S) == 0
    assert reports == [None, None]
    assert [one.node_id == leader for one in broker.requests.where(api="Produce", error=0)] == [
        True,
        end == "disconnect",
    ]


def test_twenty_moves_of_a_coordinator_lose_nothing(broker: Broker) -> None:
    """Two members consume and commit, and a client produces, while the coordinator moves from node to node.

    Each move has a load, and waits until a commit has succeeded after it.
    """
    producer = ConfluentProducer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})
    produced: list[bytes] = []
    seen: set[bytes | None] = set()
    stop, moved_all = threading.Event(), threading.Event()

    def produce() -> None:
        while not moved_all.is_set():
            values = [b"%d" % (len(produced) + partition) for partition in range(4)]
            for partition, value in enumerate(values):
                producer.produce("orders", value, partition=partition)
            assert producer.flush(LIMIT_S) == 0
            produced.extend(values)
            wait_until(lambda: len(produced) - len(seen) < AHEAD_MAX or moved_all.is_set(), "the members")

    def consume() -> None:
        consumer = ConfluentConsumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "billing",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": True,
                "auto.commit.interval.ms": 20,
                "heartbeat.interval.ms": 100,
                "retry.backoff.ms": 10,
            }
        )
        consumer.subscribe(["orders"])
        with closing(consumer):
            while not stop.is_set():
                record = consumer.poll(0.1)
                if record is not None and record.error() is None:
                    seen.add(record.value())

    def committed() -> int:
        return sum(broker.groups.committed("billing").values())

    members = [threading.Thread(target=consume, daemon=True) for _ in range(2)]
    load = threading.Thread(target=produce, daemon=True)
    for thread in (*members, load):
        thread.start()
    try:
        broker.groups.wait_stable("billing", members=2, partitions=4, timeout_s=LIMIT_S)
        # librdkafka does not repeat its OffsetFetch: a move before its end would have a partition stand still.
        wait_until(lambda: len(broker.groups.committed("billing")) == 4, "the first commits")
        for _ in range(MOVES):
            broker.cluster.move_coordinator(group="billing", loading_ms=50)
            before, count = committed(), len(produced)
            wait_until(lambda count=count: len(produced) > count, "records while the coordinator loads")  # type: ignore[misc]
            broker.clock.advance(milliseconds=50)
            wait_until(lambda before=before: committed() > before, "a commit after the move")  # type: ignore[misc]
        moved_all.set()
        load.join(LIMIT_S)
        wait_until(lambda: len(seen) == len(produced), "all records")
        wait_until(lambda: committed() == len(produced), "all commits")
    finally:
        moved_all.set()
        stop.set()
        for thread in (load, *members):
            thread.join(LIMIT_S)
    assert seen == set(produced)


def test_kafka_python_commits_while_its_coordinator_moves(broker: Broker) -> None:
    orders = TopicPartition("orders", 0)
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, group_id="billing", enable_auto_commit=False, retry_backoff_ms=10
    )
    with closing(consumer):
        consumer.assign([orders])
        for number in range(MOVES):
            broker.cluster.move_coordinator(group="billing")
            consumer.commit({orders: OffsetAndMetadata(number, "", -1)})
            assert broker.groups.committed("billing") == {("orders", 0): number}
    assert len(broker.requests.where(api="OffsetCommit", error="NOT_COORDINATOR")) >= MOVES - 1
