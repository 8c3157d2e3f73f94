"""`Broker.reset`: the broker is as after its start, and clients of before do not reach what comes after.

Method: raw clients for each kind of state that a client may have kept (member id, producer id, fetch session, topic
id, an open connection), and clients of two libraries that are left polling.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from kafka import KafkaConsumer

from kproto.codes import ErrorCode
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k13_leave_group import LeaveGroupRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server import Broker
from kproto_server.network import nodes
from kproto_server.network.nodes import FORMER_PORTS_MAX
from tests.coordinator.broker_state import commit_request
from tests.network.raw_client import RawClient
from tests.network.requests import (
    ALL_TOPICS,
    commit_offset,
    committed,
    create_topic,
    find_coordinator,
    long_poll,
    topic_names,
)
from tests.network.test_members import HEARTBEAT_V, JOIN_V, SYNC_V, join_request, sync_request
from tests.waiting import LIMIT_S, wait_until

DAY_MS = 86_400_000


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.running() as running:
        yield running


def connect(broker: Broker) -> RawClient:
    return RawClient(broker.bootstrap_servers)


# What is deleted.


def test_topics_groups_offsets_and_observations_are_deleted() -> None:
    with Broker(brokers=2, settings={"offsets.topic.replication.factor": 1}) as broker:
        for number in range(2):
            clients = [RawClient(address) for address in broker.bootstrap_servers.split(",")]
            for client in clients:
                assert topic_names(client) <= {"__consumer_offsets"}
                assert client.ask(ListGroupsRequest(), 0).groups == ()
            create_topic(clients[0])
            assert [committed(client) for client in clients] == [-1, -1]
            assert any(commit_offset(client) == 0 for client in clients)
            broker.reset(new_ports=bool(number))
            assert broker.observations.snapshot().clients == ()
            assert len(broker.requests) == 0
            for client in clients:
                client.wait_closed()


def test_stopped_nodes_are_started() -> None:
    with Broker(brokers=3, started=1) as broker:
        for new_ports in (False, True):
            broker.reset(new_ports=new_ports)
            with connect(broker) as client:
                assert [node.node_id for node in client.ask(ALL_TOPICS, 1).brokers] == [1, 2, 3]
            broker.stop_node(3)


def test_a_reset_without_free_ports_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise OSError("no free ports")

    with Broker.running() as broker:
        broker.cluster.network(latency_ms=1)
        before = broker.run(lambda server: server.nodes.network_of(1))
        monkeypatch.setattr(nodes, "reserve_all", refuse)
        with pytest.raises(OSError, match="no free ports"):
            broker.reset(new_ports=True)
        assert broker.run(lambda server: server.nodes.network_of(1)) == before


@pytest.mark.parametrize("clock", ["real", "manual", "auto", "scaled:100"])
def test_the_clock_is_set_to_now(clock: str) -> None:
    with Broker.running(clock=clock) as broker:
        broker.clock.advance(days=8)
        before_ms = time.time() * 1000
        broker.reset()
        now_ms = broker.clock.now_ms()
        assert before_ms - 1 <= now_ms < before_ms + DAY_MS, "8 days are over"


def test_records_of_the_next_test_do_not_expire_at_once() -> None:
    with Broker.running() as broker:
        broker.clock.advance(days=8)
        broker.reset()
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 4})
        producer.produce("orders", b"1041")
        assert producer.flush(LIMIT_S) == 0
        broker.clock.advance(minutes=6)  # the retention task runs
        with connect(broker) as client:
            partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
            topics = (FetchTopic(topic="orders", partitions=(partition,)),)
            (topic,) = client.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), 4).responses
            assert topic.partitions[0].log_start_offset == -1 or topic.partitions[0].records
            assert topic.partitions[0].records


def test_timers_of_before_do_not_fire(broker: Broker) -> None:
    with connect(broker) as client:
        find_coordinator(client, "g")
        client.ask(join_request(), JOIN_V)
        client.send((long_poll(3_600_000), 4))
        broker.requests.wait(api="Fetch")
    broker.reset()
    background = broker._call(lambda server: len(server.loop.clock._periodic))
    others = broker._call(lambda server: len(server.loop.clock._by_broker) + len(server.loop.clock._in_background))
    assert (background, others) == (broker._call(lambda server: len(server.periodic_tasks)), 0)


def test_a_reset_is_fast(broker: Broker) -> None:
    """In CPU time of the broker's thread; the limit is ten times the documented one, which bench/ measures."""

    def cpu_s() -> float:
        return broker._call(lambda server: time.thread_time())

    def once(new_ports: bool) -> float:
        with connect(broker) as client:
            assert commit_offset(client) == 0
        started = cpu_s()
        broker.reset(new_ports=new_ports)
        return cpu_s() - started

    assert statistics.median(once(new_ports=bool(number % 2)) for number in range(20)) < 0.050


@pytest.mark.parametrize("has_data_directory", [False, True])
def test_internal_topics_lose_their_records(has_data_directory: bool, tmp_path: Path) -> None:
    """And take new ones: transactions and commits go on."""
    counts: list[list[int]] = []
    with Broker.running(data=str(tmp_path / "data") if has_data_directory else None) as broker:
        for _ in range(3):
            producer = Producer(
                {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t", "log_level": 0}
            )
            producer.init_transactions(LIMIT_S)
            producer.begin_transaction()
            producer.produce("orders", b"1041")
            producer.commit_transaction(LIMIT_S)
            with connect(broker) as client:
                assert commit_offset(client) == 0
            counts.append([records_of(broker, "__consumer_offsets"), records_of(broker, "__transaction_state")])
            broker.reset(new_ports=True)
    assert all(counts[0])
    assert counts.count(counts[0]) == len(counts)


def records_of(broker: Broker, topic: str) -> int:
    """Return how many records a topic has, once a client reads it."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
    consumer = Consumer({**settings, "group.id": "x", "enable.auto.commit": False})
    count = broker._call(lambda server: len(server.state.cluster.topics[topic].partitions))
    consumer.assign([TopicPartition(topic, index, 0) for index in range(count)])
    broker.requests.clear()

    def has_read() -> bool:
        consumer.poll(0.01)
        fetches: Any = broker.requests.where(api="Fetch", topic=topic)
        return {one.partition for f in fetches for t in f.request.topics for one in t.partitions} == set(range(count))

    wait_until(has_read, "the first fetch")
    consumer.close()
    return broker._call(lambda server: sum(one.high_watermark for one in server.state.cluster.topics[topic].partitions))


# What a client has kept.


def test_a_connection_is_closed_with_its_requests(broker: Broker) -> None:
    """Also one whose request is delayed, and one that waits for accept."""
    with connect(broker) as idle, connect(broker) as waiting:
        create_topic(idle)
        waiting.send((long_poll(60_000), 4), (ALL_TOPICS, 1))
        broker.requests.wait(api="Fetch")
        broker.reset()
        idle.wait_closed()
        waiting.wait_closed()


def test_a_member_of_before_is_unknown(broker: Broker) -> None:
    with connect(broker) as client:
        find_coordinator(client, "g")
        member = client.ask(join_request(), JOIN_V)
        client.ask(sync_request(member.member_id, 1, {member.member_id: b""}), SYNC_V)
    broker.reset()
    with connect(broker) as client:
        create_topic(client)
        find_coordinator(client, "g")
        joined = client.ask(join_request(member.member_id), JOIN_V)
        heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member.member_id)
        commit = commit_request("g", {"t": {0: 1}}, generation_id_or_member_epoch=1, member_id=member.member_id)
        left = client.ask(LeaveGroupRequest(group_id="g", member_id=member.member_id), 0)
        found = [
            joined.error_code,
            client.ask(heartbeat, HEARTBEAT_V).error_code,
            client.ask(sync_request(member.member_id, 1), SYNC_V).error_code,
            client.ask(commit, 2).topics[0].partitions[0].error_code,
            left.error_code,
        ]
        assert found[:3] == [ErrorCode.UNKNOWN_MEMBER_ID] * 3
        assert found[3] in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
        assert found[4] == ErrorCode.UNKNOWN_MEMBER_ID
        assert broker.groups.members("g") == ()


def produce(client: RawClient, producer_id: int, sequence: int) -> int:
    batch = build_record_batch(
        [Record(offset=0, timestamp=int(time.time() * 1000), key=None, value=b"v")],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )
    topics = (TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=batch),)),)
    (topic,) = client.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 7).responses
    return int(topic.partition_responses[0].error_code)


def test_a_producer_of_before_is_unknown(broker: Broker) -> None:
    def new_producer(client: RawClient) -> int:
        create_topic(client)
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        return int(client.ask(request, 0).producer_id)

    with connect(broker) as client:
        old = new_producer(client)
        assert produce(client, old, 0) == 0
    broker.reset()
    with connect(broker) as client:
        new = new_producer(client)
        assert new != old
        assert [produce(client, old, sequence) for sequence in (0, 1, 7)] == [ErrorCode.UNKNOWN_PRODUCER_ID] * 3
        assert produce(client, new, 0) == 0


def test_a_fetch_session_and_a_topic_id_of_before_are_unknown(broker: Broker) -> None:
    named = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))

    def fetch(topic_id: bytes, session_id: int = 0, session_epoch: int = 0) -> tuple[FetchRequest, int]:
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = (FetchTopic(topic_id=topic_id, partitions=(partition,)),)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, session_id=session_id, session_epoch=session_epoch, topics=topics
        )
        return request, 13

    with connect(broker) as client:
        create_topic(client)
        topic_id = client.ask(named, 12).topics[0].topic_id
        session_id = client.ask(*fetch(topic_id)).session_id
        assert session_id
    broker.reset()
    with connect(broker) as client:
        create_topic(client)
        assert client.ask(*fetch(topic_id, session_id, 1)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        (topic,) = client.ask(*fetch(topic_id)).responses
        assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_the_former_ports_refuse_connections() -> None:
    with Broker.running(brokers=2) as broker:
        addresses = []
        for _ in range(3):
            addresses += broker.bootstrap_servers.split(",")
            broker.reset(new_ports=True)
        assert len(set(addresses)) == 6
        for address in addresses:
            with pytest.raises(ConnectionRefusedError):
                RawClient(address)
        with connect(broker) as client:
            (first, second) = client.ask(ALL_TOPICS, 1).brokers
        assert broker.bootstrap_servers == f"127.0.0.1:{first.port},127.0.0.1:{second.port}"
        broker.stop_node(2)
        broker.start_node(2)
        assert broker.bootstrap_servers.endswith(f":{second.port}")


def test_few_former_ports_stay_reserved(broker: Broker) -> None:
    for _ in range(FORMER_PORTS_MAX + 10):
        broker.reset(new_ports=True)
    assert broker._call(lambda server: len(server.nodes._former)) == FORMER_PORTS_MAX


# Clients that were left polling.


@contextmanager
def polling(consumer: Any) -> Iterator[None]:
    """Poll a consumer in a thread, as a test that forgets to close it does, until the end of the block."""
    ends = threading.Event()

    def poll() -> None:
        while not ends.is_set():
            try:
                consumer.poll(0.05 if isinstance(consumer, Consumer) else 50)
            except Exception:  # noqa: BLE001 - whatever the client says of a broker that has gone
                ends.wait(0.05)

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join(LIMIT_S)


class LeftPolling:
    """A consumer of the group "billing" in a library, and how often it has noticed that its broker has gone."""

    def __init__(self, library: str, bootstrap_servers: str, caplog: pytest.LogCaptureFixture) -> None:
        self.failures = 0
        self._caplog = caplog
        self.consumer: Any
        if library == "confluent-kafka":
            self.consumer = Consumer(
                {
                    "bootstrap.servers": bootstrap_servers,
                    "group.id": "billing",
                    "client.id": "left",
                    "error_cb": self._failed,
                    "reconnect.backoff.max.ms": 100,
                    "log_level": 0,
                }
            )
            self.consumer.subscribe(["orders"])
        else:
            self.consumer = KafkaConsumer(
                "orders",
                bootstrap_servers=bootstrap_servers,
                group_id="billing",
                client_id="left",
                reconnect_backoff_max_ms=100,
            )

    def _failed(self, error: KafkaError) -> None:
        self.failures += 1

    def has_noticed(self) -> bool:
        """Whether the client has tried to connect again, and was refused."""
        refused = [record for record in self._caplog.records if "refused" in record.getMessage().lower()]
        refused += [record for record in self._caplog.records if "error 111" in record.getMessage().lower()]
        return self.failures >= 3 or len(refused) >= 3


@pytest.mark.parametrize("library", ["confluent-kafka", "kafka-python"])
def test_a_consumer_that_was_left_polling_finds_no_broker_on_new_ports(
    library: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Broker.running(settings={"num.partitions": 2}) as broker:
        with connect(broker) as client:
            create_topic(client, "orders")
        left = LeftPolling(library, broker.bootstrap_servers, caplog)
        with polling(left.consumer):
            broker.groups.wait_stable("billing", members=1, partitions=2, timeout_s=LIMIT_S)
            broker.reset(new_ports=True)
            with connect(broker) as client:
                create_topic(client, "orders")
            own = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing", "client.id": "own"})
            own.subscribe(["orders"])
            with polling(own):
                broker.groups.wait_stable("billing", members=1, partitions=2, timeout_s=LIMIT_S)
                wait_until(left.has_noticed, "the refused connections of the client that was left")
                assert [member.client_id for member in broker.groups.members("billing")] == ["own"]
                assert not broker.requests.where(client_id="left")
            own.close()
        left.consumer.close()


@pytest.mark.parametrize("library", ["confluent-kafka", "kafka-python"])
def test_a_consumer_that_was_left_polling_is_a_new_member_on_the_same_port(
    library: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its member id is refused; then it joins without one, as any new client does. This is what is not guaranteed."""
    with Broker.running(settings={"num.partitions": 2}) as broker:
        with connect(broker) as client:
            create_topic(client, "orders")
        left = LeftPolling(library, broker.bootstrap_servers, caplog)
        with polling(left.consumer):
            broker.groups.wait_stable("billing", members=1, partitions=2, timeout_s=LIMIT_S)
            (before,) = broker.groups.members("billing")
            broker.reset()
            with connect(broker) as client:
                create_topic(client, "orders")
            refused = broker.requests.wait(error="UNKNOWN_MEMBER_ID", client_id="left", timeout_s=LIMIT_S)
            assert refused[0].api in ("Heartbeat", "JoinGroup", "SyncGroup", "OffsetCommit", "OffsetFetch")
            wait_until(lambda: bool(broker.groups.members("billing")), "the client as a new member")
            (after,) = broker.groups.members("billing")
            assert after.member_id != before.member_id
        left.consumer.close()
