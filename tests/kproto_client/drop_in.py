"""A program with confluent-kafka's Consumer, in which ours can take its place: all calls, all callbacks, all told."""

from __future__ import annotations

import time
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, Message, TopicPartition

from tests.waiting import wait_until

LIMIT_S = 30.0


def run(consumer_class: type[confluent_kafka.Consumer], config: dict[str, Any], topic: str) -> list[object]:
    """Consume a topic of two partitions with ten records each; return what happened, in an order that is always so."""
    told: list[object] = []
    assigned: list[tuple[str, object]] = []

    def on_commit(error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        told.append(("on_commit", error, sorted(each for each in places(partitions) if each[1] >= 0)))

    def on_assign(member: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        assert member is consumer
        assigned.append(("on_assign", sorted(places(partitions))))

    def on_revoke(member: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        assert member is consumer
        assigned.append(("on_revoke", sorted(places(partitions))))

    with consumer_class({**config, "on_commit": on_commit}) as consumer:
        consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke)
        records = poll(consumer, 20)
        first = next(each for each in records if each.partition() == 0)
        told.append(sorted((m.partition(), m.offset(), m.value(), m.error()) for m in records))
        told.append(sorted(places(consumer.position(consumer.assignment()))))
        told.append(places(consumer.commit(message=first, asynchronous=False)))
        told.append(sorted(places(consumer.commit(asynchronous=False))))
        told.append(attempt(lambda: consumer.commit(asynchronous=False)))
        at = TopicPartition(topic, 1, 4)
        told.append(places(consumer.commit(offsets=[at], asynchronous=False)))
        told.append(places(consumer.committed([at], timeout=LIMIT_S)))
        consumer.seek(TopicPartition(topic, 1, 7))
        told.append([(m.partition(), m.offset()) for m in poll(consumer, 3)])
        consumer.pause([at])
        consumer.seek(TopicPartition(topic, 1, 5))
        told.append(consumer.poll(0.05))
        consumer.resume([at])
        told.append([(m.partition(), m.offset()) for m in poll(consumer, 5)])
        told.append(consumer.get_watermark_offsets(at, timeout=LIMIT_S))
        told.append(attempt(lambda: consumer.store_offsets(offsets=[at])))
        told.append(consumer.list_topics(topic, timeout=LIMIT_S).topics[topic].partitions.keys())
        consumer.commit()
        wait_until_told(consumer, told, "on_commit")
        consumer.unsubscribe()
        poll_until_revoked(consumer, assigned)
        consumer.assign([TopicPartition(topic, 0, 8)])
        told.append([m.offset() for m in poll(consumer, 2)])
        consumer.unassign()
        told.append(consumer.assignment())
    told.append(attempt(lambda: consumer.poll(0)))
    told.append(attempt(lambda: consumer_class({**config, "no.such.setting": 1})))
    return [*told, *assigned]


def places(partitions: list[TopicPartition]) -> list[tuple[int, int, str]]:
    return [(each.partition, each.offset, str(each.error)) for each in partitions]


def attempt(call: Any) -> object:
    try:
        return call()
    except (confluent_kafka.KafkaException, RuntimeError) as error:
        return type(error).__name__, str(error)


def poll(consumer: confluent_kafka.Consumer, count: int) -> list[Message]:
    """One by one, and some at once."""
    found: list[Message] = []
    limit = time.monotonic() + LIMIT_S
    while len(found) < count:
        assert time.monotonic() < limit
        message = consumer.poll(0.2)
        found += [] if message is None else [message]
        if len(found) < count:
            found += consumer.consume(count - len(found), 0.05)
    return found


def wait_until_told(consumer: confluent_kafka.Consumer, told: list[object], what: str) -> None:
    def is_told() -> bool:
        assert consumer.poll(0.02) is None
        return any(isinstance(each, tuple) and each[0] == what for each in told)

    wait_until(is_told, what)


def poll_until_revoked(consumer: confluent_kafka.Consumer, assigned: list[tuple[str, object]]) -> None:
    def is_revoked() -> bool:
        consumer.poll(0.02)
        return assigned[-1][0] == "on_revoke"

    wait_until(is_revoked, "on_revoke")
