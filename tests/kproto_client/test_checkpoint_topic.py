"""The checkpoint topic: what is read of it, and consumers that have to do without it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from kproto.client import CheckpointsFailed, Event, background, checkpoint_topic
from kproto.client.background import Background, Steps
from kproto.client.broker_queries import BrokerQueries
from kproto.client.checkpoint_topic import OPEN_LIMIT_S, RETRY_AFTER_S, CheckpointTopic
from kproto.client.configuration import read as read_configuration
from kproto.client.decisions.catch_up_ranges import OPEN_END, OffsetRange
from kproto.client.decisions.checkpoints import (
    CHECKPOINT_TOPIC,
    Checkpoint,
    CheckpointKey,
    GroupCheckpoints,
    checkpoint_partition,
)
from kproto.client.events import Events
from kproto_server import Broker
from tests.kproto_client.catch_up_cases import ON, behind, parallel_of, serve, wait_for_checkpoints
from tests.kproto_client.kafka_fixture import LIMIT_S, KafkaFixture, read, unique_name
from tests.waiting import wait_until

CHECKPOINT = Checkpoint(range=OffsetRange(70, 120), position=70, time_ms=0)
OTHERS = 3000
"""Checkpoints of other groups."""


def partition_of_group(kafka: KafkaFixture, group: str) -> int:
    """Return the group's partition of the checkpoint topic, which is created if it is missing."""
    topic, first = behind(kafka)
    with kafka.consumer(first, **ON) as consumer:
        consumer.subscribe([topic])
        read(consumer, 1)
        serve(consumer)
    count = len(kafka.admin.list_topics(timeout=LIMIT_S).topics[CHECKPOINT_TOPIC].partitions)
    return checkpoint_partition(group, count)


def write_checkpoints_of_another_group(kafka: KafkaFixture, partition: int) -> None:
    key = CheckpointKey("another", "orders", 0, 0).encode()
    for _ in range(OTHERS):
        kafka.producer.produce(CHECKPOINT_TOPIC, key=key, value=CHECKPOINT.encode(), partition=partition)
    assert kafka.producer.flush(LIMIT_S) == 0


def fetched_from(broker: Broker, client_id: str) -> list[int]:
    """Return the positions from which a client has fetched the checkpoint topic."""
    requests: list[Any] = [
        logged.request for logged in broker.requests.where(api="Fetch", client_id=client_id, topic=CHECKPOINT_TOPIC)
    ]
    return [each.fetch_offset for request in requests for topic in request.topics for each in topic.partitions]


def test_checkpoints_of_other_groups_are_not_read_twice(broker: Broker, kafka: KafkaFixture) -> None:
    """CK-71: an owner starts to read where the owner before found the first checkpoint in force."""
    topic, group = behind(kafka)
    partition = partition_of_group(kafka, group)
    write_checkpoints_of_another_group(kafka, partition)
    for fetches in (range(10 * OTHERS), range(OTHERS, 10 * OTHERS)):
        client_id = unique_name("client")
        with kafka.consumer(group, **ON, parallel_rebalance_merge=False, client_id=client_id) as consumer:
            consumer.subscribe([topic])
            assert read(consumer, 1) == [70]
            serve(consumer)
            wait_for_checkpoints(kafka, group, topic, {0: OffsetRange(71, 120), 1: OffsetRange(120, OPEN_END)})
            wait_until(lambda: (kafka.committed(group, CHECKPOINT_TOPIC, partition) or 0) >= OTHERS, "the commit")
        found = fetched_from(broker, client_id)
        assert found
        assert all(position in fetches for position in found)


def test_merged_ranges_need_no_earlier_checkpoints(broker: Broker, kafka: KafkaFixture) -> None:
    """CK-82: with `parallel.rebalance.merge`, nothing is read and nothing waits for the topic."""
    topic, group = behind(kafka)
    write_checkpoints_of_another_group(kafka, partition_of_group(kafka, group))
    client_id = unique_name("client")
    with kafka.consumer(group, **ON, client_id=client_id) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 1) == [70]
        serve(consumer)
    assert fetched_from(broker, client_id) == []
    assert kafka.committed(group, CHECKPOINT_TOPIC, partition_of_group(kafka, group)) is None


def test_the_users_callback_does_not_see_commits_of_the_checkpoint_topic(kafka: KafkaFixture) -> None:
    topic, group = behind(kafka)
    partition = partition_of_group(kafka, group)
    topics: set[str] = set()
    with kafka.consumer(
        group,
        **ON,
        parallel_rebalance_merge=False,
        on_commit=lambda error, partitions: topics.update(each.topic for each in partitions),
    ) as consumer:
        consumer.subscribe([topic])
        read(consumer, 1)
        serve(consumer)
        consumer.commit()
        wait_until(lambda: (consumer.poll(0.01), bool(topics))[1], "on_commit")
        wait_until(lambda: kafka.committed(group, CHECKPOINT_TOPIC, partition) is not None, "the commit")
        consumer.poll(0.01)
    assert topics == {topic}


def test_the_first_checkpoint_in_force() -> None:
    """CK-71: a tombstone ends a checkpoint; records of other groups and formats do not count."""
    found = GroupCheckpoints("billing")
    key, other = CheckpointKey("billing", "orders", 0, 0), CheckpointKey("billing2", "orders", 0, 0)
    assert found.first_in_force(7) == 7
    found.add(3, key.encode(), CHECKPOINT.encode())
    found.add(4, other.encode(), CHECKPOINT.encode())
    found.add(5, CheckpointKey("billing", "orders", 1, 0).encode(), CHECKPOINT.encode())
    found.add(6, b'[1,"billing",7]', CHECKPOINT.encode())
    assert found.first_in_force(7) == 3
    assert found.by_partition() == {("orders", 0): {0: CHECKPOINT}, ("orders", 1): {0: CHECKPOINT}}
    found.add(7, key.encode(), None)
    assert found.first_in_force(8) == 5


class FakeAdmin:
    """An admin client whose responses a test gives."""

    def __init__(self) -> None:
        self.described: list[Future[Any]] = []

    def describe_topics(self, topics: object) -> dict[str, Future[Any]]:
        self.described.append(Future())
        return {CHECKPOINT_TOPIC: self.described[-1]}

    def describe_cluster(self) -> Future[Any]:
        cluster: Future[Any] = Future()
        cluster.set_result(SimpleNamespace(nodes=["127.0.0.1:9092"]))
        return cluster

    def create_topics(self, topics: object, operation_timeout: float) -> dict[str, Future[Any]]:
        created: Future[Any] = Future()
        created.set_exception(KafkaException(KafkaError(KafkaError.TOPIC_ALREADY_EXISTS)))
        return {CHECKPOINT_TOPIC: created}


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (background, checkpoint_topic):
        monkeypatch.setattr(module, "time", clock)
    return clock


def topic_without_broker(admin: FakeAdmin, event_cb: Callable[[Event], None] = print) -> CheckpointTopic:
    queries = cast("BrokerQueries", SimpleNamespace(admin=admin, is_closed=False))
    config = {"group.id": "billing", "bootstrap.servers": "127.0.0.1:1"}
    configuration = read_configuration(config)

    def publish(event: Event) -> None:
        Events(configuration).publish(event)
        event_cb(event)

    return CheckpointTopic(queries, configuration, publish)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_write_does_not_wait_for_brokers_that_hang(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """CK-71: after the time limit there is one warning, and the next attempt follows after a minute."""
    admin = FakeAdmin()
    events: list[Event] = []
    topic = topic_without_broker(admin, events.append)
    topic.write(("orders", 0), {0: CHECKPOINT})
    assert topic.is_busy
    clock.now_s = OPEN_LIMIT_S + 1
    topic.serve()
    assert not topic.is_busy
    topic.write(("orders", 0), {0: CHECKPOINT})
    assert len(admin.described) == 1
    assert [event.retry_after_s for event in events if isinstance(event, CheckpointsFailed)] == [RETRY_AFTER_S]
    assert warnings(caplog) == list(map(str, events))
    clock.now_s += RETRY_AFTER_S
    topic.write(("orders", 0), {0: CHECKPOINT})
    assert len(admin.described) == 2


def test_a_user_who_may_not_create_the_topic_gets_one_warning(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """CK-71: checkpoints are given up."""
    admin = FakeAdmin()
    events: list[Event] = []
    topic = topic_without_broker(admin, events.append)
    topic.write(("orders", 0), {0: CHECKPOINT})
    admin.described[0].set_exception(KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
    topic.serve()
    clock.now_s = 10 * RETRY_AFTER_S
    topic.write(("orders", 0), {0: CHECKPOINT})
    assert not topic.is_busy
    assert len(admin.described) == 1
    (warning,) = warnings(caplog)
    assert "given up" in warning
    assert "TOPIC_AUTHORIZATION_FAILED" in warning
    assert [event.retry_after_s for event in events if isinstance(event, CheckpointsFailed)] == [None]


def test_a_topic_that_another_member_creates_is_awaited(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """CK-71: brokers hear of a new topic one after the other."""
    admin = FakeAdmin()
    events: list[Event] = []
    topic = topic_without_broker(admin, events.append)
    produced: list[str] = []
    producer = SimpleNamespace(produce=lambda name, **_: produced.append(name), poll=print)
    monkeypatch.setattr(topic, "_open_producer", lambda: producer)
    topic.write(("orders", 0), {0: CHECKPOINT})
    for _ in range(3):
        admin.described[-1].set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
        topic.serve()
        topic.serve()
    admin.described[-1].set_result(SimpleNamespace(partitions=[0, 1]))
    topic.serve()
    assert produced == [CHECKPOINT_TOPIC]
    assert events == []


@pytest.mark.parametrize(
    "error",
    [KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION)), BufferError("Local: Queue full")],
    ids=["deleted topic", "full queue"],
)
def test_a_write_that_librdkafka_refuses_stops_nothing(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """CK-71: the next attempt follows after a minute, and looks the topic up again."""
    admin = FakeAdmin()
    events: list[Event] = []
    topic = topic_without_broker(admin, events.append)

    def refuse(name: str, **_: object) -> None:
        raise error

    monkeypatch.setattr(topic, "_open_producer", lambda: SimpleNamespace(produce=refuse))
    topic.write(("orders", 0), {0: CHECKPOINT})
    admin.described[-1].set_result(SimpleNamespace(partitions=[0, 1]))
    topic.serve()
    assert not topic.is_busy
    assert [event.retry_after_s for event in events if isinstance(event, CheckpointsFailed)] == [RETRY_AFTER_S]
    clock.now_s += RETRY_AFTER_S
    topic.write(("orders", 0), {0: CHECKPOINT})
    assert len(admin.described) == 2


def test_a_catch_up_goes_on_without_the_deleted_topic(kafka: KafkaFixture) -> None:
    """CK-71: the records of the range, and new ones."""
    topic, group = behind(kafka)
    with kafka.consumer(group, **ON) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 1) == [70]
        serve(consumer)
        (deleted,) = kafka.admin.delete_topics([CHECKPOINT_TOPIC], operation_timeout=LIMIT_S).values()
        deleted.result(LIMIT_S)

        def is_refused() -> bool:
            consumer.poll(0)
            parallel_of(consumer).write_checkpoints()
            return parallel_of(consumer)._checkpoint_topic._partition is None

        wait_until(is_refused, "a checkpoint that librdkafka refuses")
        kafka.write(topic, 1)
        wait_until(lambda: read(consumer, 1) == [120], "a record after the range")


def test_the_topic_is_not_looked_up_after_the_queries_are_closed(caplog: pytest.LogCaptureFixture) -> None:
    """Commits while the consumer is being closed may still write checkpoints."""
    configuration = read_configuration({"group.id": "billing", "bootstrap.servers": "127.0.0.1:1"})
    queries, events = BrokerQueries(configuration), list[Event]()
    topic = CheckpointTopic(queries, configuration, events.append)
    queries.close()
    topic.write(("orders", 0), {0: CHECKPOINT})
    topic.close()
    assert (events, warnings(caplog)) == ([], [])


def test_background_work_is_closed_at_its_limit(clock: Clock) -> None:
    ended: list[str] = []

    def steps() -> Steps[int]:
        try:
            ended.append(str((yield first)))
            yield None
            yield Future()
        finally:
            ended.append("closed")
        return 1

    first: Future[Any] = Future()
    work = Background(steps(), 5.0)
    assert not work.advance()
    first.set_result(7)
    assert not work.advance()
    assert ended == ["7"]
    clock.now_s = 6.0
    with pytest.raises(KafkaException, match="_TIMED_OUT"):
        work.advance()
    assert ended == ["7", "closed"]


def test_checkpoints_are_written_after_unsubscribe(kafka: KafkaFixture) -> None:
    """CK-71: no partition has to be assigned for that."""
    topic, group = behind(kafka)
    with kafka.consumer(group, **ON) as consumer:
        consumer.subscribe([topic])
        read(consumer, 1)
        serve(consumer)
        parallel = parallel_of(consumer)

        def are_on_the_way() -> bool:
            parallel.write_checkpoints()
            return parallel.is_busy  # not if the broker has responded already

        wait_until(are_on_the_way, "checkpoints that are not acknowledged yet")
        consumer.unsubscribe()
        wait_until(lambda: consumer.poll(0.01) is None and not parallel.is_busy, "the checkpoints")
