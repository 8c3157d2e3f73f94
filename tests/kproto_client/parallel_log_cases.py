"""KIP-333 and what brokers have: transactions, the group's members, the topic of checkpoints.

Each case is a function of a broker's side, as those of `parallel_cases.py`.
"""

from __future__ import annotations

import json
import time
from typing import Any

import confluent_kafka
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]

from kproto.client.core.checkpoints import TOPIC
from tests.kproto_client.kafka_side import LIMIT_S, Case, KafkaSide, name, read
from tests.kproto_client.parallel_cases import ON, behind, inside


def transactional_producer(kafka: KafkaSide) -> Producer:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name("tx"), "log_level": 0})
    producer.init_transactions(LIMIT_S)
    return producer


def write_in_transaction(producer: Producer, topic: str, count: int) -> None:
    """Begin one, and leave it open with so many records in the log."""
    producer.begin_transaction()
    for _ in range(count):
        producer.produce(topic, b"x", partition=0)
    producer.flush(LIMIT_S)


def aborted_records_and_markers(kafka: KafkaSide) -> None:
    """CK-61: the range ends with records and a marker that no reader sees; its position passes them."""
    topic, group = behind(kafka, 10, 50)
    producer = transactional_producer(kafka)
    write_in_transaction(producer, topic, 5)
    producer.abort_transaction(LIMIT_S)
    with kafka.consumer(group, **ON, isolation_level="read_committed") as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 40) == list(range(10, 50))
        kafka.write(topic, 2)
        assert read(consumer, 2) == [56, 57]
        assert not inside(consumer)._side.is_open
        consumer.commit(asynchronous=False)
        assert kafka.committed(group, topic) == 58


def head_of_committed_records(kafka: KafkaSide) -> None:
    """CK-53, CK-10: the last stable offset for read_committed, the high watermark for read_uncommitted."""
    topic, group = behind(kafka, 10, 50)
    producer = transactional_producer(kafka)
    write_in_transaction(producer, topic, 5)
    for isolation, head in (("read_uncommitted", 55), ("read_committed", 50)):
        with kafka.consumer(group, **ON, isolation_level=isolation) as consumer:
            consumer.subscribe([topic])
            assert read(consumer, 1) == [10]
            assert inside(consumer).machines[topic, 0].head == head
    with kafka.consumer(group, **ON, isolation_level="read_committed") as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 40) == list(range(10, 50))
        producer.commit_transaction(LIMIT_S)
        assert read(consumer, 5) == list(range(50, 55))


def one_membership(kafka: KafkaSide) -> None:
    """CK-54: the group has one member while two consumers read, and its commits are that member's."""
    topic, group = behind(kafka, 70, 3000)
    with kafka.consumer(group, **ON) as consumer:
        consumer.subscribe([topic])
        read(consumer, 1)
        assert inside(consumer)._side.is_open
        (future,) = kafka.admin.describe_consumer_groups([group]).values()
        assert [each.member_id for each in future.result(LIMIT_S).members] == [consumer.memberid()]
        (answer,) = consumer.commit(asynchronous=False)
        assert (answer.offset, answer.error) == (71, None)
        stranger = confluent_kafka.Consumer(kafka.config(group))
        try:
            stranger.commit(offsets=[TopicPartition(topic, 0, 90)], asynchronous=False)
        except confluent_kafka.KafkaException as error:
            refused = error.args[0].code()
        finally:
            stranger.close()
        assert refused == confluent_kafka.KafkaError.UNKNOWN_MEMBER_ID, "a commit without the membership"


def checkpoints_are_in_a_compacted_topic(kafka: KafkaSide) -> None:
    """CK-71: keys and values as they are in the log, and what the topic's settings are."""
    topic, group = behind(kafka)
    before_ms = int(time.time() * 1000)
    with kafka.consumer(group, **ON) as consumer:
        consumer.subscribe([topic])
        read(consumer, 1)
        found = raw_checkpoints(kafka, group, topic)
    assert sorted(found) == [0, 1]
    assert (found[0]["start"], found[0]["end"], found[0]["position"]) == (70, 120, 70)
    assert (found[1]["start"], found[1]["end"], found[1]["position"]) == (120, -1, 120)
    assert before_ms <= found[0]["t"] <= int(time.time() * 1000)
    resource = ConfigResource(ResourceType.TOPIC, TOPIC)
    (future,) = kafka.admin.describe_configs([resource]).values()
    assert future.result(LIMIT_S)["cleanup.policy"].value == "compact"


def raw_checkpoints(kafka: KafkaSide, group: str, topic: str) -> dict[int, dict[str, Any]]:
    """By the range's number; read by a consumer that knows nothing of them."""
    consumer = confluent_kafka.Consumer({**kafka.config(name("group")), "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: dict[int, dict[str, Any]] = {}
    limit = time.monotonic() + LIMIT_S
    while len(found) < 2:
        assert time.monotonic() < limit
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            version, *whose, number = json.loads(message.key() or b"")
            assert version == 1
            if whose == [group, topic, 0]:
                found[number] = json.loads(message.value() or b"")
    consumer.close()
    return found


CASES: dict[str, Case] = {
    str(case.__name__).replace("_", " "): (case, ())
    for case in (
        one_membership,
        checkpoints_are_in_a_compacted_topic,
    )
}
OF_TRANSACTIONS: dict[str, Case] = {
    str(case.__name__).replace("_", " "): (case, ())
    for case in (
        aborted_records_and_markers,
        head_of_committed_records,
    )
}
"""For brokers that have transactions; kproto has none."""
