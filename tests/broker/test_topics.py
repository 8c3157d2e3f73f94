"""`Broker.topics` makes, reads and removes topics and records, and real clients see the effect."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
import trio
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from kproto.codes import ErrorCode
from kproto.errors import EncodeError, UsageError
from kproto_server import Broker
from kproto_server.broker.own_requests import RequestRefused
from kproto_server.broker.producing import NewRecord, ProducedRecord, murmur2
from tests.waiting import LIMIT_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS = {"offsets.topic.replication.factor": 1, "transaction.state.log.replication.factor": 1}
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker.running(clock="manual", brokers=2, settings=SETTINGS) as broker:
        yield broker


@pytest.fixture
def broker(running: Broker) -> Broker:
    running.reset(new_ports=True)
    return running


def consume(broker: Broker, count: int, topic: str = "orders", **settings: Any) -> list[Message]:
    """Return the first records of partition 0 that a consumer of committed records reads."""
    config = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing", "auto.offset.reset": "earliest"}
    with closing(
        Consumer({**config, "isolation.level": "read_committed", "enable.auto.commit": False, **settings})
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found = consumer.consume(count, LIMIT_S)
    assert [one.error() for one in found] == [None] * count
    return found


def send(broker: Broker, *values: bytes, **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    for value in values:
        producer.produce("orders", value, key=b"k", headers={"to": b"alice"}, partition=0)
    assert producer.flush(LIMIT_S) == 0


# What a test produces.


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_consumer_reads_what_a_test_produces(broker: Broker, compression: Any) -> None:
    records = [NewRecord(f"order {number}", "k", {"to": "alice"}, 1000 + number) for number in range(3)]
    produced = broker.topics.produce("orders", records=records, compression=compression)
    assert produced == tuple(ProducedRecord(0, offset) for offset in range(3))
    found = consume(broker, 3)
    assert [one.value() for one in found] == [b"order 0", b"order 1", b"order 2"]
    assert [(one.key(), one.headers(), one.timestamp()[1]) for one in found][1] == (b"k", [("to", b"alice")], 1001)
    assert {one.compression for one in broker.topics.records("orders")} == {compression}


def test_one_record_is_produced_at_the_brokers_time(broker: Broker) -> None:
    broker.clock.advance(days=3)
    broker.topics.produce("orders", b"\xff", partition=0)
    (record,) = broker.topics.records("orders")
    assert (record.timestamp_ms, record.key, record.value) == (broker.clock.now_ms(), None, b"\xff")


def test_keys_choose_partitions_as_in_java_and_others_fill_the_emptiest(broker: Broker) -> None:
    """Method. The hashes are those of Kafka's own test (UtilsTest.testMurmur2)."""
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536, b"abc": 479470107}
    assert {key: murmur2(key) - 2**32 * (murmur2(key) >= 2**31) for key in known} == known
    broker.topics.create("orders", partitions=4)
    for key in known:
        (produced,) = broker.topics.produce("orders", "v", key=key)
        assert produced.partition == (murmur2(key) & 0x7FFFFFFF) % 4
    broker.topics.create("invoices", partitions=3)
    spread = broker.topics.produce("invoices", records=[str(number) for number in range(6)])
    assert [one.partition for one in spread] == [0, 1, 2, 0, 1, 2]


def test_many_records_are_in_many_batches(broker: Broker) -> None:
    values = [bytes([number]) * 9000 for number in range(200)]
    broker.topics.produce("orders", records=values, partition=0)
    assert [one.value() for one in consume(broker, 200)] == values
    assert [one.value for one in broker.topics.records("orders", partition=0, limit=3, newest=True)] == values[-3:]


def test_a_consumer_of_committed_records_reads_only_those_of_committed_transactions(broker: Broker) -> None:
    for outcome in ("abort", "commit", "open"):
        broker.topics.produce("orders", outcome, transaction=outcome, partition=0)
    broker.topics.produce("orders", "behind", partition=0)
    assert [one.value() for one in consume(broker, 1)] == [b"commit"]
    read = broker.topics.records
    assert [one.value for one in read("orders")] == [b"abort", b"commit", b"open", b"behind"]
    assert [one.value for one in read("orders", isolation_level="read_committed")] == [b"commit"]
    assert [one.control for one in read("orders", control=True)] == [None, "abort", None, "commit", None, None]
    assert broker.topics.describe("orders").partitions[0].last_stable_offset == 4
    broker.topics.produce("orders", "next", transaction="commit", partition=0)  # aborts what was open
    assert [one.value() for one in consume(broker, 3)] == [b"commit", b"behind", b"next"]


def test_a_transaction_that_fails_is_aborted(broker: Broker) -> None:
    broker.topics.create("orders", partitions=1, configs={"max.message.bytes": 1000})
    with pytest.raises(RequestRefused, match="orders-0: MESSAGE_TOO_LARGE"):
        broker.topics.produce("orders", records=["small", "x" * 20_000], transaction="commit")
    assert [one.control for one in broker.topics.records("orders", control=True)] == [None, "abort"]


@pytest.mark.parametrize("kafka_version", ["0.8.2", "0.10.2", "2.0", "4.4"])
def test_each_release_takes_records(kafka_version: str) -> None:
    with Broker.running(kafka_version=kafka_version) as broker:
        broker.topics.create("orders", partitions=2)
        broker.topics.produce("orders", records=["a", "b"], compression="gzip")
        assert sorted(one.value or b"" for one in broker.topics.wait_records("orders", count=2)) == [b"a", b"b"]
        if kafka_version < "1.0":
            with pytest.raises(RequestRefused, match=r"REQUEST_TIMED_OUT: delete.topic.enable is false"):
                broker.topics.delete("orders")
        else:
            broker.topics.delete("orders")
            assert broker.topics.list() == ()
        if kafka_version < "0.11":
            with pytest.raises(UsageError, match=r"Kafka version .* has no transactions"):
                broker.topics.produce("orders", "a", transaction="commit")
            with pytest.raises(EncodeError, match="message sets have no headers"):
                broker.topics.produce("orders", "a", headers={"to": "alice"})


def test_a_great_number_of_records_leaves_turns_to_clients(broker: Broker) -> None:
    broker.topics.create("orders", partitions=3)
    produced = broker.topics.produce("orders", records=[str(number) for number in range(2000)])
    assert sorted(produced) == [(index, offset) for index in range(3) for offset in range(667 - (index == 2))]
    assert len(broker.topics.records("orders", limit=1500)) == 1500
    newest = broker.topics.records("orders", limit=2, newest=True, partition=0)
    assert [one.offset for one in newest] == [665, 666]


def test_records_are_on_disk(tmp_path: Path) -> None:
    with Broker.running(data=str(tmp_path)) as broker:
        broker.topics.produce("orders", records=["a", "b"], transaction="commit")
        broker.groups.commit("billing", {("orders", 0): 1})
    with Broker.running(data=str(tmp_path)) as broker:
        assert [one.value for one in broker.topics.records("orders", isolation_level="read_committed")] == [b"a", b"b"]
        broker.groups.wait_committed("billing", {("orders", 0): 1})


def test_neither_rules_nor_the_request_log_see_what_a_test_does(broker: Broker) -> None:
    with broker.faults.add(api="Produce", error="NOT_LEADER_OR_FOLLOWER") as rule:
        broker.topics.produce("orders", "a")
        assert rule.matched == 0
    assert len(broker.requests) == 0
    assert broker.observations.snapshot().clients == ()


# What clients produce.


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_test_reads_what_a_producer_sends(broker: Broker, compression: str) -> None:
    send(broker, b"paid " * 100, **{"compression.type": compression})
    (record,) = broker.topics.records("orders", partition=0)
    assert (record.key, record.value, record.headers) == (b"k", b"paid " * 100, (("to", b"alice"),))
    assert (record.compression, record.control) == (compression, None)


def test_a_test_reads_the_transactions_of_a_producer(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "billing"})
    producer.init_transactions(LIMIT_S)
    for value, end in ((b"lost", producer.abort_transaction), (b"paid", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce("orders", value)
        producer.flush(LIMIT_S)
        end(LIMIT_S)
    assert [one.value for one in broker.topics.records("orders", isolation_level="read_committed")] == [b"paid"]
    (record,) = broker.topics.wait_records("orders", isolation_level="read_committed")
    assert record.is_transactional
    assert record.producer_id >= 0


def test_a_test_waits_for_records(broker: Broker) -> None:
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(broker.topics.wait_records, "orders", count=2, timeout_s=LIMIT_S)
        send(broker, b"a", b"b")
        assert [one.value for one in waiting.result()] == [b"a", b"b"]
    with pytest.raises(TimeoutError, match=r"topic 'orders' has 2 records, not 3; the newest is .*value=b'[ab]'"):
        broker.topics.wait_records("orders", count=3, timeout_s=0.02)
    broker.topics.delete_records("orders", before_offset=1)
    assert [one.value for one in broker.topics.wait_records("orders", offset=1)] == [b"b"]
    with pytest.raises(TimeoutError, match="no records: topic 'invoices': UNKNOWN_TOPIC_OR_PARTITION"):
        broker.topics.wait_records("invoices", timeout_s=0.02)


def test_a_coroutine_waits_while_its_client_runs(broker: Broker) -> None:
    async def main() -> None:
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            sent = asyncio.create_task(producer.send_and_wait("orders", b"paid"))
            (record,) = await broker.topics.wait_records_async("orders", timeout_s=LIMIT_S)
            assert record.value == b"paid"
            await sent
            with pytest.raises(TimeoutError, match=r"this call has stopped the event loop.*: await wait_records_async"):
                broker.topics.wait_records("orders", count=2, timeout_s=0.0)

    asyncio.run(main())

    async def in_trio() -> None:
        with pytest.raises(TimeoutError, match=r"await wait_state_async instead"):
            broker.groups.wait_state("billing", "Stable", timeout_s=0.0)

    trio.run(in_trio)


# Topics.


def test_topics_are_listed_and_described(broker: Broker) -> None:
    made = broker.topics.create("orders", partitions=2, replication_factor=2, configs={"retention.ms": 1000})
    assert broker.topics.list() == (made,)
    assert broker.topics.describe("orders") == made
    assert made.configs == {"retention.ms": "1000"}
    assert [(one.partition, one.replicas, one.end_offset) for one in made.partitions] == [
        (0, made.partitions[0].replicas, 0),
        (1, made.partitions[1].replicas, 0),
    ]
    assert sorted(made.partitions[0].replicas) == [1, 2]
    assert [one.topic for one in known_topics(broker)] == ["orders"]


def known_topics(broker: Broker) -> list[Any]:
    found = Producer({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=LIMIT_S)
    return [one for one in found.topics.values() if not one.topic.startswith("__")]


def test_the_broker_refuses_what_a_real_one_refuses(broker: Broker) -> None:
    broker.topics.create("orders")
    cases: list[tuple[ErrorCode, Any]] = [
        (ErrorCode.TOPIC_ALREADY_EXISTS, lambda: broker.topics.create("orders")),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, lambda: broker.topics.create("a/b")),
        (ErrorCode.INVALID_PARTITIONS, lambda: broker.topics.create("a", partitions=0)),
        (ErrorCode.INVALID_REPLICATION_FACTOR, lambda: broker.topics.create("a", replication_factor=3)),
        (ErrorCode.INVALID_CONFIG, lambda: broker.topics.create("a", configs={"retention.ms": "soon"})),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, lambda: broker.topics.delete("a")),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, lambda: broker.topics.describe("a")),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, lambda: broker.topics.records("a")),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, lambda: broker.topics.records("orders", partition=1)),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, lambda: broker.topics.produce("orders", "a", partition=1)),
        (ErrorCode.OFFSET_OUT_OF_RANGE, lambda: broker.topics.delete_records("orders", before_offset=1)),
    ]
    for error, call in cases:
        with pytest.raises(RequestRefused) as refused:
            call()
        assert refused.value.error == error


def test_a_consumer_begins_behind_deleted_records(broker: Broker) -> None:
    broker.topics.produce("orders", records=["a", "b", "c"])
    assert broker.topics.delete_records("orders", before_offset=2) == {("orders", 0): 2}
    assert [(one.value(), one.offset()) for one in consume(broker, 1)] == [(b"c", 2)]
    assert broker.topics.delete_records("orders") == {("orders", 0): 3}
    broker.topics.create("table", configs={"cleanup.policy": "compact"})
    with pytest.raises(RequestRefused, match="table-0: POLICY_VIOLATION"):
        broker.topics.delete_records("table")


def test_records_expire_by_the_brokers_clock(broker: Broker) -> None:
    broker.topics.create("orders", configs={"retention.ms": 60_000, "segment.ms": 1000})
    broker.topics.produce("orders", "old")
    broker.clock.advance(seconds=50)
    broker.topics.produce("orders", "new")
    assert broker.topics.expire("orders") == {("orders", 0): 0}
    broker.clock.advance(seconds=11)
    assert broker.topics.expire("orders") == {("orders", 0): 1}
    assert [one.value() for one in consume(broker, 1)] == [b"new"]


def test_records_on_disk_expire_before_the_call_returns(tmp_path: Path) -> None:
    with Broker.running(data=str(tmp_path), clock="manual") as broker:
        broker.topics.create("orders", configs={"retention.ms": 1000})
        broker.topics.produce("orders", records=["a", "b"])
        assert broker.topics.expire("orders") == {("orders", 0): 0}
        broker.clock.advance(seconds=5)
        assert broker.topics.expire("orders") == {("orders", 0): 2}
        assert broker.topics.records("orders") == ()


def test_a_deleted_topic_is_gone(broker: Broker) -> None:
    broker.topics.produce("orders", "a")
    broker.groups.commit("billing", {("orders", 0): 1})
    broker.topics.delete("orders")
    assert broker.groups.committed("billing") == {}
    assert known_topics(broker) == []
