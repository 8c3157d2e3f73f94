"""The network between clients and a node: latency, bandwidth, black holes, nodes that refuse connections.

Method: real clients and raw sockets against a broker with such conditions. Times are lower bounds, so that a slow
machine changes nothing; upper bounds are timeouts of the clients.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import KafkaError
from confluent_kafka import Producer as ConfluentProducer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from kproto.errors import UsageError
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto_server import Broker
from tests.network.raw_client import RawClient
from tests.network.requests import committed, create_topic
from tests.waiting import LIMIT_S, wait_until

SETTINGS = {"default.replication.factor": 2, "offsets.topic.replication.factor": 2}
ORDERS = TopicPartition("orders", 0)
VERSIONS = (ApiVersionsRequest(), 0)
SILENCE_S = 0.05
"""A connection that is silent for so long is silent."""


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.running(brokers=2, settings=SETTINGS) as running:
        with RawClient(running.bootstrap_servers) as client:
            create_topic(client, "orders")
        yield running


def address(broker: Broker, node_id: int) -> str:
    return broker.bootstrap_servers.split(",")[node_id - 1]


def connections(broker: Broker, node_id: int) -> int:
    return broker._call(lambda server: len(server.nodes.listeners[node_id].transports))


def is_silent(client: RawClient) -> bool:
    client.socket.settimeout(SILENCE_S)
    try:
        client.socket.recv(1)
    except TimeoutError:
        return True
    finally:
        client.socket.settimeout(LIMIT_S)
    return False


# Latency.


def test_kafka_python_commits_with_latency(broker: Broker) -> None:
    """A connection that existed before, too."""
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, group_id="billing", enable_auto_commit=False, retry_backoff_ms=10
    )
    with closing(consumer):
        consumer.assign([ORDERS])
        consumer.commit({ORDERS: OffsetAndMetadata(1, "", -1)})
        with broker.cluster.network(latency_ms=100):
            before = time.monotonic()
            consumer.commit({ORDERS: OffsetAndMetadata(2, "", -1)})
            assert time.monotonic() - before >= 0.2
        consumer.commit({ORDERS: OffsetAndMetadata(3, "", -1)})
    assert broker.groups.committed("billing") == {("orders", 0): 3}


def test_latency_goes_by_the_brokers_clock() -> None:
    with Broker.running(clock="manual") as broker, RawClient(broker.bootstrap_servers) as client:
        with broker.cluster.network(1, latency_ms=3_600_000):
            client.send(VERSIONS)
            assert is_silent(client)
            wait_until(lambda: has_response_after(broker, client, hours=1), "the response")
        client.read_frame()


def has_response_after(broker: Broker, client: RawClient, **duration: int) -> bool:
    broker.clock.advance(**duration)
    client.socket.setblocking(False)
    try:
        client.socket.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    finally:
        client.socket.settimeout(LIMIT_S)
    return True


def test_large_records_with_latency_arrive_whole(broker: Broker) -> None:
    records = [bytes([number]) * 700_000 for number in range(6)]
    with broker.cluster.network(latency_ms=1):
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        with closing(producer):
            for record in records:
                producer.send("orders", record)
            producer.flush(LIMIT_S)
        consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, fetch_max_bytes=10 << 20)
        with closing(consumer):
            consumer.assign([ORDERS])
            consumer.seek(ORDERS, 0)
            seen: list[Any] = []

            def has_seen_all() -> bool:
                seen.extend(one.value for of in consumer.poll(100).values() for one in of)
                return len(seen) >= len(records)

            wait_until(has_seen_all, "the records")
    assert seen == records


# Bandwidth.


def test_librdkafka_produces_with_little_bandwidth(broker: Broker) -> None:
    reports: list[Any] = []
    with broker.cluster.network(bytes_per_second=100_000):
        before = time.monotonic()
        producer = ConfluentProducer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("orders", bytes(20_000), on_delivery=lambda error, _: reports.append(error))
        assert producer.flush(LIMIT_S) == 0
        assert time.monotonic() - before >= 0.2
    assert reports == [None]


def test_bandwidth_goes_by_the_brokers_clock() -> None:
    with Broker.running(clock="manual") as broker, RawClient(broker.bootstrap_servers) as client:
        broker.cluster.network(1, bytes_per_second=1)
        client.send(VERSIONS)
        wait_until(lambda: has_response_after(broker, client, minutes=10), "the response")


# Black holes.


def test_librdkafka_gives_up_in_a_black_hole(broker: Broker) -> None:
    reports: list[Any] = []
    producer = ConfluentProducer({"bootstrap.servers": broker.bootstrap_servers, "message.timeout.ms": 500})
    producer.list_topics(timeout=LIMIT_S)
    with broker.cluster.network(black_hole=True):
        producer.produce("orders", b"1041", on_delivery=lambda error, _: reports.append(error))
        assert producer.flush(LIMIT_S) == 0
    assert [error.code() for error in reports] == [KafkaError._MSG_TIMED_OUT]


def test_a_connection_survives_a_black_hole(broker: Broker) -> None:
    with RawClient(address(broker, 1)) as client:
        client.ask(*VERSIONS)
        with broker.cluster.network(1, black_hole=True):
            client.send(VERSIONS)
            with RawClient(address(broker, 1)) as another:
                another.send(VERSIONS)
                assert is_silent(client)
                assert is_silent(another)
            with RawClient(address(broker, 2)) as of_another_node:
                of_another_node.ask(*VERSIONS)
        client.read_frame()
        client.ask(*VERSIONS)


def test_a_node_does_not_see_that_a_client_ends_in_a_black_hole(broker: Broker) -> None:
    with RawClient(address(broker, 1)) as client:
        client.ask(*VERSIONS)
        hole = broker.cluster.network(1, black_hole=True)
    assert connections(broker, 1) == 1
    hole.remove()
    wait_until(lambda: connections(broker, 1) == 0, "the end of the connection")


def test_a_client_does_not_see_that_a_node_ends_in_a_black_hole(broker: Broker) -> None:
    with RawClient(address(broker, 1)) as client:
        client.ask(*VERSIONS)
        with broker.cluster.network(1, black_hole=True):
            broker.cluster.crash(1)
            assert is_silent(client)
        with pytest.raises(ConnectionResetError):
            client.socket.recv(1)


def test_aiokafka_times_out_and_goes_on_afterwards(broker: Broker) -> None:
    async def send() -> Any:
        producer = AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, request_timeout_ms=300, retry_backoff_ms=10
        )
        async with producer:
            async with broker.cluster.network(black_hole=True):
                with pytest.raises(AiokafkaError):
                    await producer.send_and_wait("orders", b"1041")
            return await producer.send_and_wait("orders", b"1042")

    asyncio.run(send())
    assert len(broker.requests.where(api="Produce", error=0)) >= 1


# Refused connections.


def test_a_node_that_refuses_keeps_its_connections(broker: Broker) -> None:
    with RawClient(address(broker, 1)) as client:
        client.ask(*VERSIONS)
        with broker.cluster.network(1, refuse=True):
            with pytest.raises(ConnectionRefusedError):
                RawClient(address(broker, 1))
            client.ask(*VERSIONS)
        with RawClient(address(broker, 1)) as another:
            another.ask(*VERSIONS)


def test_kafka_python_goes_to_another_node(broker: Broker) -> None:
    broker.cluster.network(1, refuse=True)
    broker.cluster.move_leader("orders", 0, 2)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=10, reconnect_backoff_ms=10)
    with closing(producer):
        producer.send("orders", b"1041").get(LIMIT_S)
    assert {request.node_id for request in broker.requests.where(api="Produce")} == {2}


def test_conditions_stay_while_a_node_is_stopped_and_started(broker: Broker) -> None:
    broker.cluster.network(1, refuse=True)
    broker.stop_node(1)
    broker.start_node(1)
    with pytest.raises(ConnectionRefusedError):
        RawClient(address(broker, 1))
    broker.reset()
    with RawClient(address(broker, 1)) as client:
        client.ask(*VERSIONS)
    broker.cluster.network(1, refuse=True, latency_ms=1)
    broker.cluster.network(1, latency_ms=1)
    with RawClient(address(broker, 1)) as client:
        client.ask(*VERSIONS)


# Ends.


def test_a_reset_ends_conditions(broker: Broker) -> None:
    with RawClient(address(broker, 1)) as client:
        client.ask(*VERSIONS)
        broker.cluster.network(black_hole=True)
        broker.reset()
        assert client.socket.recv(1) == b""
    with RawClient(address(broker, 1)) as client:
        client.ask(*VERSIONS)


@pytest.mark.parametrize("conditions", [{"latency_ms": 60_000}, {"bytes_per_second": 10}])
def test_a_shutdown_does_not_wait_for_conditions(conditions: Any) -> None:
    broker = Broker()
    broker.start()
    with RawClient(broker.bootstrap_servers) as client:
        client.ask(*VERSIONS)
        broker.cluster.network(**conditions)
        client.send(VERSIONS)
        broker.stop()
        client.read_frame()
        assert client.socket.recv(1) == b""


def test_removal_after_the_end_of_the_broker(broker: Broker) -> None:
    with broker.cluster.network(latency_ms=1):
        broker.stop()


def test_offsets_of_a_slow_client_are_as_those_of_a_fast_one(broker: Broker) -> None:
    broker.cluster.network(latency_ms=5, bytes_per_second=1_000_000)
    with RawClient(broker.bootstrap_servers) as client:
        assert committed(client) == -1


@pytest.mark.parametrize(
    ("conditions", "text"),
    [
        ({}, "give one"),
        ({"latency_ms": -1}, "latency_ms is a number from 0 to 86400000, not -1"),
        ({"latency_ms": 1 << 62}, "latency_ms is a number from 0 to 86400000, not"),
        ({"latency_ms": True}, "latency_ms is a number from 0 to 86400000, not True"),
        ({"bytes_per_second": 0}, "bytes_per_second is a number from 1 on, not 0"),
        ({"black_hole": 1}, "black_hole is True or False, not 1"),
        ({"black_hole": True, "latency_ms": 1}, "no byte passes a black hole"),
        ({"node_id": 3, "latency_ms": 1}, "node 3 does not exist"),
    ],
)
def test_what_is_refused(conditions: Any, text: str, broker: Broker) -> None:
    with pytest.raises(UsageError, match=text):
        broker.cluster.network(**conditions)
