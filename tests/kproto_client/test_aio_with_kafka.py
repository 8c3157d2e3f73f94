"""`kproto.client.aio` with a real Kafka: a rebalance while a record is processed, and offsets in transactions."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import anyio.to_thread
import pytest
from confluent_kafka import Producer, TopicPartition

from kproto.client.aio import Consumer
from tests.kproto_client.catch_up_broker_cases import transactional_producer
from tests.kproto_client.catch_up_cases import behind
from tests.kproto_client.kafka_fixture import LIMIT_S, KafkaFixture
from tests.kproto_client.test_aio_rebalance import join_while_a_record_is_processed, take
from tests.oracle.cluster import NEWEST, real_kafka

pytestmark = [pytest.mark.oracle, pytest.mark.anyio]


@pytest.fixture(scope="module")
def real() -> Iterator[KafkaFixture]:
    with real_kafka(NEWEST, props={"group.initial.rebalance.delay.ms": "0"}) as cluster:
        yield KafkaFixture(cluster.bootstrap)


@pytest.fixture(params=["trio", "asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
async def test_a_member_joins_while_a_record_is_processed(real: KafkaFixture, strategy: str) -> None:
    await join_while_a_record_is_processed(real, strategy)


async def test_offsets_of_delivered_records_in_a_transaction(real: KafkaFixture) -> None:
    topic, group = await anyio.to_thread.run_sync(behind, real, 0, 30)
    producer: Producer = await anyio.to_thread.run_sync(transactional_producer, real)
    async with Consumer(real.config(group, enable_auto_commit=False)) as consumer:
        await consumer.subscribe([topic])
        for _ in range(10):
            await take(consumer)
        producer.begin_transaction()
        positions = await consumer.position(await consumer.assignment())
        metadata = await consumer.consumer_group_metadata()
        await anyio.to_thread.run_sync(producer.send_offsets_to_transaction, positions, metadata, LIMIT_S)
        await anyio.to_thread.run_sync(producer.commit_transaction, LIMIT_S)
        assert [each.offset for each in await consumer.committed([TopicPartition(topic, 0)], LIMIT_S)] == [10]
