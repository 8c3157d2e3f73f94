"""A program for confluent-kafka's Consumer or kproto's: all calls and callbacks, with their results in one trace."""

from __future__ import annotations

import time
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, Message, TopicPartition

from tests.waiting import wait_until

LIMIT_S = 30.0


def run(consumer_class: type[confluent_kafka.Consumer], config: dict[str, Any], topic: str) -> list[object]:
    """Consume a topic of two partitions with ten records each; return the results of all calls in a stable order."""
    trace: list[object] = []
    rebalances: list[tuple[str, object]] = []

    def on_commit(error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        trace.append(("on_commit", error, sorted(each for each in offsets(partitions) if each[1] >= 0)))

    def on_assign(member: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        assert member is consumer
        rebalances.append(("on_assign", sorted(offsets(partitions))))

    def on_revoke(member: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        assert member is consumer
        rebalances.append(("on_revoke", sorted(offsets(partitions))))

    with consumer_class({**config, "on_commit": on_commit}) as consumer:
        consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke)
        records = poll(consumer, 20)
        first = next(each for each in records if each.partition() == 0)
        trace.append(sorted((m.partition(), m.offset(), m.value(), m.error()) for m in records))
        trace.append(sorted(offsets(consumer.position(consumer.assignment()))))
        trace.append(offsets(consumer.commit(message=first, asynchronous=False)))
        trace.append(sorted(offsets(consumer.commit(asynchronous=False))))
        trace.append(attempt(lambda: consumer.commit(asynchronous=False)))
        second_partition = TopicPartition(topic, 1, 4)
        trace.append(offsets(consumer.commit(offsets=[second_partition], asynchronous=False)))
        trace.append(offsets(consumer.committed([second_partition], timeout=LIMIT_S)))
        consumer.seek(TopicPartition(topic, 1, 7))
        trace.append([(m.partition(), m.offset()) for m in poll(consumer, 3)])
        consumer.pause([second_partition])
        consumer.seek(TopicPartition(topic, 1, 5))
        trace.append(consumer.poll(0.05))
        consumer.resume([second_partition])
        trace.append([(m.partition(), m.offset()) for m in poll(consumer, 5)])
        trace.append(consumer.get_watermark_offsets(second_partition, timeout=LIMIT_S))
        trace.append(attempt(lambda: consumer.store_offsets(offsets=[second_partition])))
        trace.append(consumer.list_topics(topic, timeout=LIMIT_S).topics[topic].partitions.keys())
        consumer.commit()
        poll_until_in_trace(consumer, trace, "on_commit")
        consumer.unsubscribe()
        poll_until_revoked(consumer, rebalances)
        consumer.assign([TopicPartition(topic, 0, 8)])
        trace.append([m.offset() for m in poll(consumer, 2)])
        consumer.unassign()
        trace.append(consumer.assignment())
    trace.append(attempt(lambda: consumer.poll(0)))
    trace.append(attempt(lambda: consumer_class({**config, "no.such.setting": 1})))
    return [*trace, *rebalances]


def offsets(partitions: list[TopicPartition]) -> list[tuple[int, int, str]]:
    return [(each.partition, each.offset, str(each.error)) for each in partitions]


def attempt(call: Any) -> object:
    try:
        return call()
    except (confluent_kafka.KafkaException, RuntimeError) as error:
        return type(error).__name__, str(error)


def poll(consumer: confluent_kafka.Consumer, count: int) -> list[Message]:
    """Return records by `poll` and by `consume` in turn."""
    records: list[Message] = []
    limit = time.monotonic() + LIMIT_S
    while len(records) < count:
        assert time.monotonic() < limit
        message = consumer.poll(0.2)
        records += [] if message is None else [message]
        if len(records) < count:
            records += consumer.consume(count - len(records), 0.05)
    return records


def poll_until_in_trace(consumer: confluent_kafka.Consumer, trace: list[object], name: str) -> None:
    def is_in_trace() -> bool:
        assert consumer.poll(0.02) is None
        return any(isinstance(each, tuple) and each[0] == name for each in trace)

    wait_until(is_in_trace, name)


def poll_until_revoked(consumer: confluent_kafka.Consumer, rebalances: list[tuple[str, object]]) -> None:
    def is_revoked() -> bool:
        consumer.poll(0.02)
        return rebalances[-1][0] == "on_revoke"

    wait_until(is_revoked, "on_revoke")
