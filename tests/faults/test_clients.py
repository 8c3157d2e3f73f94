"""What real clients do when a rule acts on their requests: they retry, report an error, or time out.

Method: kafka-python, confluent-kafka (librdkafka) and aiokafka against a broker with one rule. `Broker.requests` says
what they sent afterwards. Timeouts of clients are real time, so they are short.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import KafkaError
from confluent_kafka import Producer as ConfluentProducer
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError as KafkaPythonError
from kafka.structs import OffsetAndMetadata

from kproto_server import Broker
from tests.network.raw_client import RawClient
from tests.network.requests import create_topic
from tests.waiting import LIMIT_S, wait_until

SETTINGS = {"num.partitions": 2, "default.replication.factor": 2, "offsets.topic.replication.factor": 2}
ORDERS = TopicPartition("orders", 0)


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker.running(brokers=2, settings=SETTINGS) as broker:
        yield broker


@pytest.fixture
def broker(running: Broker) -> Broker:
    running.reset(new_ports=True)
    with RawClient(running.bootstrap_servers) as client:
        create_topic(client, "orders")
    return running


# kafka-python.


def committing(broker: Broker, **settings: Any) -> KafkaConsumer:
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        group_id="billing",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        retry_backoff_ms=10,
        **settings,
    )
    consumer.assign([ORDERS])
    return consumer


def commit(consumer: KafkaConsumer, offset: int) -> None:
    consumer.commit({ORDERS: OffsetAndMetadata(offset, "", -1)})


@pytest.mark.parametrize("error", ["NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "REQUEST_TIMED_OUT"])
def test_kafka_python_repeats_a_commit_after_a_retriable_error(error: str, broker: Broker) -> None:
    with (
        broker.faults.add(api="OffsetCommit", group="billing", error=error, times=2) as rule,
        closing(committing(broker)) as consumer,
    ):
        commit(consumer, 42)
        assert rule.fired == 2
        assert broker.groups.committed("billing") == {("orders", 0): 42}
        if error == "NOT_COORDINATOR":
            assert len(broker.requests.where(api="FindCoordinator", group="billing")) >= 3


def test_kafka_python_reports_an_error_that_it_cannot_repeat(broker: Broker) -> None:
    broker.faults.add(api="OffsetCommit", error="GROUP_AUTHORIZATION_FAILED")
    with closing(committing(broker)) as consumer, pytest.raises(KafkaPythonError, match="GroupAuthorizationFailed"):
        commit(consumer, 42)


def test_kafka_python_commits_again_after_a_lost_response(broker: Broker) -> None:
    """The first commit takes effect, and the client does not learn it."""
    rule = broker.faults.add(api="OffsetCommit", close=True, when="after", times=1)
    with closing(committing(broker)) as consumer:
        commit(consumer, 42)
    assert rule.fired == 1
    assert len(broker.requests.where(api="OffsetCommit", error=0)) == 1
    assert len(broker.requests.where(api="OffsetCommit")) == 2


def test_kafka_python_detects_a_wrong_checksum(broker: Broker) -> None:
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap_servers)) as producer:
        producer.send("orders", b"1041", partition=0).get(LIMIT_S)
    broker.faults.add(api="Fetch", corrupt="checksum")
    with closing(committing(broker)) as consumer, pytest.raises(KafkaPythonError, match="CorruptRecord"):
        next(consumer)


def test_kafka_python_reads_a_response_in_pieces(broker: Broker) -> None:
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap_servers)) as producer:
        producer.send("orders", b"1041", partition=0).get(LIMIT_S)
    broker.faults.add(api="Fetch", chunk_bytes=11)
    with closing(committing(broker)) as consumer:
        assert next(consumer).value == b"1041"


def test_kafka_python_uses_the_versions_that_are_listed(broker: Broker) -> None:
    broker.faults.add(max_versions={"OffsetCommit": 5})
    with closing(committing(broker)) as consumer:
        commit(consumer, 42)
    assert {one.api_version for one in broker.requests.where(api="OffsetCommit")} == {5}


def test_kafka_python_repeats_api_versions_in_a_version_that_is_served(broker: Broker) -> None:
    rule = broker.faults.add(api="ApiVersions", versions="3-", error="UNSUPPORTED_VERSION")
    with closing(committing(broker)) as consumer:
        commit(consumer, 42)
    assert rule.fired
    assert {one.api_version < 3 for one in broker.requests.where(api="ApiVersions")} == {False, True}


def test_kafka_python_finds_the_coordinator_again(broker: Broker) -> None:
    """It asks the wrong node, receives NOT_COORDINATOR, and looks for the coordinator once more."""
    with closing(committing(broker)) as consumer:
        commit(consumer, 1)
    (right,) = {one.node_id for one in broker.requests.where(api="OffsetCommit")}
    broker.faults.add(coordinator=3 - right, times=1)
    with closing(committing(broker)) as consumer:
        commit(consumer, 42)
    assert [one.node_id for one in broker.requests.where(api="OffsetCommit")][1:] == [3 - right, right]
    assert len(broker.requests.where(error="NOT_COORDINATOR")) == 1


# confluent-kafka.


@contextmanager
def producing(broker: Broker, *partitions: int, **settings: Any) -> Iterator[list[Any]]:
    """Send a record to each partition; afterwards the list has the errors of the reports, None for a success."""
    reports: dict[int | None, Any] = {}
    errors: list[Any] = []
    producer = ConfluentProducer({"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": 10, **settings})
    for partition in partitions:
        producer.produce(
            "orders",
            b"1041",
            partition=partition,
            on_delivery=lambda error, one: reports.update({one.partition(): error}),
        )
    yield errors
    assert producer.flush(LIMIT_S) == 0
    errors.extend(reports[partition] for partition in partitions)


def produced(broker: Broker, *partitions: int, **settings: Any) -> list[Any]:
    """Produce a record to each partition and return the errors of the reports, None for a success."""
    with producing(broker, *partitions, **settings) as errors:
        pass
    return errors


def ends(broker: Broker) -> list[int]:
    consumer = ConfluentConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "unused"})
    with closing(consumer):
        return [consumer.get_watermark_offsets(ConfluentPartition("orders", one), LIMIT_S)[1] for one in (0, 1)]


def test_librdkafka_repeats_api_versions_in_a_version_that_is_served(broker: Broker) -> None:
    rule = broker.faults.add(api="ApiVersions", versions="3-", error="UNSUPPORTED_VERSION")
    assert produced(broker, 0) == [None]
    assert rule.fired
    assert {one.api_version < 3 for one in broker.requests.where(api="ApiVersions")} == {False, True}


def test_librdkafka_reports_the_error_of_one_partition(broker: Broker) -> None:
    broker.faults.add(api="Produce", topic="orders", partition=1, error="INVALID_RECORD")
    errors = produced(broker, 0, 1)
    assert [error and error.code() for error in errors] == [None, KafkaError.INVALID_RECORD]
    assert ends(broker) == [1, 0]


@pytest.mark.parametrize("lost", [{"close": True}, {"reset": True}, {"truncate_bytes": 9}])
def test_librdkafka_does_not_repeat_a_record_whose_response_is_lost(lost: Any, broker: Broker) -> None:
    """An idempotent producer sends the record again, and the broker recognizes it."""
    when = {} if "close" not in lost and "reset" not in lost else {"when": "after"}
    rule = broker.faults.add(api="Produce", times=1, **lost, **when)  # type: ignore[arg-type]
    assert produced(broker, 0, **{"enable.idempotence": True}) == [None]
    assert rule.fired == 1
    assert len(broker.requests.where(api="Produce")) == 2
    assert ends(broker) == [1, 0]


def test_librdkafka_reports_a_response_that_it_cannot_read(broker: Broker) -> None:
    broker.faults.add(api="Produce", corrupt="length")
    (error,) = produced(broker, 0)
    assert error.code() == KafkaError._BAD_MSG


def test_librdkafka_sends_again_what_gets_no_response(broker: Broker) -> None:
    rule = broker.faults.add(api="Produce", no_response=True, times=1)
    assert produced(broker, 0, **{"socket.timeout.ms": 1000}) == [None]
    assert rule.fired == 1


def test_librdkafka_gives_up_when_the_record_is_too_late(broker: Broker) -> None:
    broker.faults.add(api="Produce", delay_ms=60_000)
    (error,) = produced(broker, 0, **{"message.timeout.ms": 1000, "socket.timeout.ms": 500})
    assert error.code() == KafkaError._MSG_TIMED_OUT


def test_librdkafka_finds_the_new_leader(broker: Broker) -> None:
    """Its metadata is old: it asks the former leader, receives NOT_LEADER_OR_FOLLOWER, and asks for metadata again.

    A client may ask for metadata more than once before its first Produce: the rule acts until that one has failed.
    """
    rule = broker.faults.add(leader=2, topic="orders")
    with producing(broker, 0, 1) as errors:
        wait_until(lambda: bool(broker.requests.where(api="Produce", error="NOT_LEADER_OR_FOLLOWER")), "the error")
        rule.remove()
    assert errors == [None, None]


def test_librdkafka_waits_while_metadata_is_stale(broker: Broker) -> None:
    """Metadata keeps naming the former leader: the record is refused until metadata is up to date again.

    From version 10 on, the response of Produce would name the new leader (KIP-951).
    """
    broker.faults.add(max_versions={"Produce": 9})
    rule = broker.faults.add(stale=True, api="Metadata")
    broker.cluster.move_leader("orders", 0)
    with producing(broker, 0) as errors:
        broker.requests.wait(api="Produce", error="NOT_LEADER_OR_FOLLOWER", timeout_s=LIMIT_S)
        rule.wait_fired(rule.fired + 2, timeout_s=LIMIT_S)
        assert broker.requests.where(api="Produce", error=0) == ()
        rule.remove()
    assert errors == [None]
    assert len(broker.requests.where(api="Produce", error=0)) == 1


def test_librdkafka_reports_the_throttle_time(broker: Broker) -> None:
    seen: list[float] = []
    broker.faults.add(api="Produce", throttle_ms=200, times=1)
    assert produced(broker, 0, throttle_cb=lambda event: seen.append(event.throttle_time)) == [None]
    wait_until(lambda: bool(seen), "the throttle event")
    assert seen == [0.2]


def test_librdkafka_reports_that_the_group_is_not_allowed(broker: Broker) -> None:
    broker.faults.add(api="FindCoordinator", group="billing", error="GROUP_AUTHORIZATION_FAILED")
    consumer = ConfluentConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing"})
    with closing(consumer):
        consumer.subscribe(["orders"])
        event = consumer.poll(LIMIT_S)
        assert event is not None
        error = event.error()
        assert error is not None
        assert error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED


# aiokafka.


async def send_with_aiokafka(broker: Broker, **settings: Any) -> Any:
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=10, **settings)
    await producer.start()
    try:
        return await producer.send_and_wait("orders", b"1041", partition=0)
    finally:
        await producer.stop()


@pytest.mark.parametrize(
    "action", [{"error": "NOT_LEADER_OR_FOLLOWER"}, {"error": "NOT_ENOUGH_REPLICAS"}, {"reset": True}]
)
def test_aiokafka_sends_again(action: Any, broker: Broker) -> None:
    async def main() -> None:
        async with broker.faults.add(api="Produce", times=2, **action) as rule:
            sent = await send_with_aiokafka(broker)
            await rule.wait_fired_async(2)
            assert sent.offset == 0

    asyncio.run(main())


def test_aiokafka_times_out(broker: Broker) -> None:
    broker.faults.add(api="Produce", no_response=True)
    with pytest.raises(AiokafkaError):
        asyncio.run(send_with_aiokafka(broker, request_timeout_ms=500))
