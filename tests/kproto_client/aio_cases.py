"""Cases of `kproto.client.aio`: a rebalance while a record is processed, and offsets in transactions.

Each case is an async function of a `KafkaFixture`; the tests run them with kproto and with real brokers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
from confluent_kafka import Message, Producer, TopicPartition

from kproto.client.aio import Consumer
from tests.kproto_client.added_partition_cases import CONSUMER_PROTOCOL, COOPERATIVE
from tests.kproto_client.catch_up_broker_cases import transactional_producer
from tests.kproto_client.catch_up_cases import behind
from tests.kproto_client.kafka_fixture import LIMIT_S, KafkaFixture
from tests.waiting import wait_until

BACKENDS = ("trio", "asyncio")
RANGE: dict[str, Any] = {"partition_assignment_strategy": "range"}
REBALANCES = {"range": RANGE, "cooperative-sticky": COOPERATIVE}
REBALANCES_WITH_CONSUMER_PROTOCOL = {**REBALANCES, "consumer protocol": CONSUMER_PROTOCOL}
"""For brokers with KIP-848's groups: kproto and Kafka 4.0 and newer."""


async def until(condition: Callable[[], bool], what: str) -> None:
    await anyio.to_thread.run_sync(wait_until, condition, what)


async def take(consumer: Consumer) -> tuple[int, int]:
    """Return partition and offset of the next record."""
    with anyio.fail_after(LIMIT_S):
        return place(await anext(consumer))


def place(record: Message) -> tuple[int, int]:
    partition, offset = record.partition(), record.offset()
    assert partition is not None
    assert offset is not None
    return partition, offset


async def join_while_a_record_is_processed(kafka: KafkaFixture, settings: dict[str, Any]) -> None:
    """The new member reads while the other one still processes its first record. Fetched records of the revoked
    partition are dropped; the record that is being processed is read again if its partition is revoked."""
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 30, 2)
    config = kafka.config(group, **settings)
    async with Consumer(config) as first, Consumer(config) as second:
        await first.subscribe([topic])
        in_process = await take(first)
        await until(lambda: len(first._polls.records) == 59, "all records")
        await second.subscribe([topic])
        of_second = [await take(second)]
        revoked = of_second[0][0]
        assert {each.partition for each in await first.assignment()} <= {1 - revoked}
        of_second += [await take(second) for _ in range(29)]
        assert of_second == [(revoked, offset) for offset in range(30)]
        if settings == RANGE:  # the other partition is assigned again, from its committed offset
            expected = [(1 - revoked, offset) for offset in range(30)]
        else:
            expected = [(1 - revoked, offset) for offset in range(30) if (1 - revoked, offset) != in_process]
        assert [await take(first) for _ in expected] == expected
        for consumer in (first, second):  # a record is processed when the next one is asked for
            with anyio.move_on_after(0.01):
                await anext(consumer)
    assert [kafka.committed(group, topic, partition) for partition in (0, 1)] == [30, 30]


async def offsets_of_delivered_records_in_a_transaction(kafka: KafkaFixture) -> None:
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 30)
    producer: Producer = await anyio.to_thread.run_sync(transactional_producer, kafka)
    async with Consumer(kafka.config(group, enable_auto_commit=False)) as consumer:
        await consumer.subscribe([topic])
        for _ in range(10):
            await take(consumer)
        producer.begin_transaction()
        positions = await consumer.position(await consumer.assignment())
        metadata = await consumer.consumer_group_metadata()
        await anyio.to_thread.run_sync(producer.send_offsets_to_transaction, positions, metadata, LIMIT_S)
        await anyio.to_thread.run_sync(producer.commit_transaction, LIMIT_S)
        assert [each.offset for each in await consumer.committed([TopicPartition(topic, 0)], LIMIT_S)] == [10]
