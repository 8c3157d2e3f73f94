"""confluent-kafka's transactional producer, with brokers of each way to do transactions."""

from __future__ import annotations

from typing import Any

import pytest

from kproto_server.broker.broker import Broker
from kproto_server.clock import ClockMode

pytest.importorskip("confluent_kafka")
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

LIMIT_S = 30
VERSIONS = ["2.8", "3.9", "latest"]


def new_producer(broker: Broker, **settings: Any) -> Producer:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "a", **settings})
    producer.init_transactions(LIMIT_S)
    return producer


def offset_of(broker: Broker) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
    try:
        found: int = consumer.committed([TopicPartition("t", 0)], LIMIT_S)[0].offset
        return found
    finally:
        consumer.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_offsets_follow_the_transaction(version: str) -> None:
    with Broker.running(kafka_version=version) as broker:
        producer = new_producer(broker)
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
        metadata = consumer.consumer_group_metadata()
        for offset, commits in ((5, True), (7, False), (8, True), (9, False)):
            producer.begin_transaction()
            producer.produce("t", b"x", partition=0)
            producer.send_offsets_to_transaction([TopicPartition("t", 0, offset)], metadata, LIMIT_S)
            (producer.commit_transaction if commits else producer.abort_transaction)(LIMIT_S)
            assert offset_of(broker) == (offset if commits else offset - 1 if offset == 9 else 5)
        consumer.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_second_instance_fences_the_first(version: str) -> None:
    with Broker.running(kafka_version=version) as broker:
        first = new_producer(broker)
        first.begin_transaction()
        first.produce("t", b"x", partition=0)
        first.flush(LIMIT_S)
        second = new_producer(broker)
        with pytest.raises(KafkaException) as raised:
            first.commit_transaction(LIMIT_S)
        assert raised.value.args[0].fatal()
        second.begin_transaction()
        second.produce("t", b"y", partition=0)
        second.commit_transaction(LIMIT_S)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_transaction_times_out_by_the_clock_of_the_broker(version: str) -> None:
    with Broker.running(kafka_version=version, clock=ClockMode(rate=0.0)) as broker:
        producer = new_producer(broker)
        producer.begin_transaction()
        producer.produce("t", b"x", partition=0)
        producer.flush(LIMIT_S)
        broker.clock.advance(minutes=2)
        with pytest.raises(KafkaException):
            producer.commit_transaction(LIMIT_S)
