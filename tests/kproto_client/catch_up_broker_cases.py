"""KIP-333 and the broker: transactions, the group's members, the checkpoint topic.

Each case is a function of a `KafkaFixture`.
"""

from __future__ import annotations

import json
import time
from typing import Any

import confluent_kafka
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]

from kproto.client import Event
from kproto.client.checkpoint_topic import PARTITION_COUNT, TOPIC_CONFIG
from kproto.client.decisions.checkpoints import CHECKPOINT_TOPIC, checkpoint_partition
from tests.kproto_client.catch_up_cases import ON, behind, parallel_of, serve
from tests.kproto_client.kafka_fixture import LIMIT_S, Case, KafkaFixture, cases, read, unique_name, wait_for_assignment
from tests.waiting import wait_until


def a_pause_before_the_assignment_has_no_effect(kafka: KafkaFixture) -> None:
    """CK-67: as without the setting, since librdkafka does not know the partition yet."""
    topic, group = behind(kafka)
    with kafka.consumer(group, **ON) as consumer:
        consumer.pause([TopicPartition(topic, 0)])
        consumer.subscribe([topic])
        assert read(consumer, 50) == list(range(70, 120))


def transactional_producer(kafka: KafkaFixture) -> Producer:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": unique_name("tx"), "log_level": 0})
    producer.init_transactions(LIMIT_S)
    return producer


def write_in_transaction(producer: Producer, topic: str, count: int) -> None:
    """Begin a transaction and write records; leave the transaction open."""
    producer.begin_transaction()
    for _ in range(count):
        producer.produce(topic, b"x", partition=0)
    producer.flush(LIMIT_S)


def committed_offset_after_the_last_stable_offset(kafka: KafkaFixture) -> None:
    """CK-12, CK-52: as of a member with read_uncommitted; no record is read again when the transaction ends."""
    topic, group = kafka.topic(), unique_name("group")
    kafka.write(topic, 50)
    producer = transactional_producer(kafka)
    write_in_transaction(producer, topic, 10)
    kafka.commit(group, topic, 60)
    events: list[Event] = []
    settings = {**ON, "auto_offset_reset": "earliest", "isolation_level": "read_committed"}
    with kafka.consumer(group, **settings, event_cb=events.append) as consumer:
        consumer.subscribe([topic])
        wait_for_assignment(consumer, 1)
        delegate = consumer._delegate
        assert delegate is not None
        wait_until(lambda: consumer.poll(0.02) is None and not delegate._pending.exist, "the start position")
        producer.commit_transaction(LIMIT_S)
        kafka.write(topic, 1)
        # A real broker may write the marker after the response to EndTxn, and so after this record.
        assert read(consumer, 1) in ([60], [61])
    assert events == []


def aborted_records_and_markers(kafka: KafkaFixture) -> None:
    """CK-61: the range ends with aborted records and a marker; the position of consumer 2 passes them."""
    topic, group = behind(kafka, 10, 50)
    producer = transactional_producer(kafka)
    write_in_transaction(producer, topic, 5)
    producer.abort_transaction(LIMIT_S)
    with kafka.consumer(group, **ON, isolation_level="read_committed") as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 40) == list(range(10, 50))
        kafka.write(topic, 2)
        assert read(consumer, 2) == [56, 57]
        assert not parallel_of(consumer).consumer2_is_open
        consumer.commit(asynchronous=False)
        assert kafka.committed(group, topic) == 58


def consumer1_start_with_isolation_level(kafka: KafkaFixture) -> None:
    """CK-53, CK-10: consumer 1 starts at the last stable offset or, for read_uncommitted, at the high watermark."""
    topic, group = behind(kafka, 10, 50)
    producer = transactional_producer(kafka)
    write_in_transaction(producer, topic, 5)
    for isolation, consumer1_start in (("read_uncommitted", 55), ("read_committed", 50)):
        with kafka.consumer(group, **ON, isolation_level=isolation) as consumer:
            consumer.subscribe([topic])
            assert read(consumer, 1) == [10]
            assert parallel_of(consumer).catch_ups[topic, 0].consumer1_start == consumer1_start
    with kafka.consumer(group, **ON, isolation_level="read_committed") as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 40) == list(range(10, 50))
        producer.commit_transaction(LIMIT_S)
        assert read(consumer, 5) == list(range(50, 55))


def one_membership(kafka: KafkaFixture) -> None:
    """CK-54: the group has one member while two consumers read, and its commits carry that membership."""
    topic, group = behind(kafka, 70, 3000)
    with kafka.consumer(group, **ON) as consumer:
        consumer.subscribe([topic])
        read(consumer, 1)
        assert parallel_of(consumer).consumer2_is_open
        (future,) = kafka.admin.describe_consumer_groups([group]).values()
        assert [each.member_id for each in future.result(LIMIT_S).members] == [consumer.memberid()]
        (result,) = consumer.commit(asynchronous=False)
        assert (result.offset, result.error) == (71, None)
        non_member = confluent_kafka.Consumer(kafka.config(group))
        try:
            non_member.commit(offsets=[TopicPartition(topic, 0, 90)], asynchronous=False)
        except confluent_kafka.KafkaException as error:
            error_code = error.args[0].code()
        finally:
            non_member.close()
        assert error_code == confluent_kafka.KafkaError.UNKNOWN_MEMBER_ID, "a commit without the membership"


def checkpoints_in_a_compacted_topic(kafka: KafkaFixture) -> None:
    """CK-71: the keys and values in the log, and the settings and partitions of the topic."""
    topic, group = behind(kafka)
    before_ms = int(time.time() * 1000)
    with kafka.consumer(group, **ON) as consumer:
        consumer.subscribe([topic])
        read(consumer, 1)
        serve(consumer)
        found = raw_checkpoints(kafka, group, topic)
    assert sorted(found) == [0, 1]
    assert (found[0]["start"], found[0]["end"]) == (70, 120)
    assert found[0]["position"] in (70, 71)
    assert (found[1]["start"], found[1]["end"], found[1]["position"]) == (120, -1, 120)
    assert before_ms <= found[0]["t"] <= int(time.time() * 1000)
    resource = ConfigResource(ResourceType.TOPIC, CHECKPOINT_TOPIC)
    (future,) = kafka.admin.describe_configs([resource]).values()
    configs = future.result(LIMIT_S)
    assert {name: configs[name].value for name in TOPIC_CONFIG} == TOPIC_CONFIG
    partitions = kafka.admin.list_topics(timeout=LIMIT_S).topics[CHECKPOINT_TOPIC].partitions
    assert len(partitions) == PARTITION_COUNT


def raw_checkpoints(kafka: KafkaFixture, group: str, topic: str) -> dict[int, dict[str, Any]]:
    """Return the checkpoint values by range number, as a plain consumer reads them."""
    consumer = confluent_kafka.Consumer({**kafka.config(unique_name("group")), "auto.offset.reset": "earliest"})
    count = len(kafka.admin.list_topics(timeout=LIMIT_S).topics[CHECKPOINT_TOPIC].partitions)
    consumer.assign([TopicPartition(CHECKPOINT_TOPIC, checkpoint_partition(group, count), 0)])
    found: dict[int, dict[str, Any]] = {}
    limit = time.monotonic() + LIMIT_S
    while len(found) < 2:
        assert time.monotonic() < limit
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            version, *owner, number = json.loads(message.key() or b"")
            assert version == 1
            if owner == [group, topic, 0]:
                found[number] = json.loads(message.value() or b"")
    consumer.close()
    return found


CASES: dict[str, Case] = cases(
    a_pause_before_the_assignment_has_no_effect,
    one_membership,
    checkpoints_in_a_compacted_topic,
    aborted_records_and_markers,
    committed_offset_after_the_last_stable_offset,
    consumer1_start_with_isolation_level,
)
