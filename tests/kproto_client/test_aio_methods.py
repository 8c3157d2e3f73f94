"""`kproto.client.aio` has each method of the blocking consumer, and it does the same."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from kproto.client import Consumer as BlockingConsumer
from kproto.client.aio import Consumer
from tests.kproto_client.catch_up_cases import behind
from tests.kproto_client.kafka_fixture import LIMIT_S, KafkaFixture, unique_name
from tests.waiting import wait_until

ASYNC_NAMES = {"close": "aclose"}
"""Methods with another name: async programs call `aclose`."""
ONLY_ASYNC = {"next_record"}
ONLY_ASYNC_PARAMETERS = {"subscribe": {"finish_record"}}
POSITIONAL_ONLY = {"partition", "partitions", "topics", "topic", "timeout", "num_messages", "message", "offsets"}


@pytest.fixture(params=["trio", "asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def public_methods(of: type) -> set[str]:
    return {name for name in dir(of) if not name.startswith("_") and callable(getattr(of, name))}


def test_no_method_of_the_blocking_consumer_is_missing() -> None:
    assert public_methods(Consumer) - ONLY_ASYNC == {
        ASYNC_NAMES.get(name, name) for name in public_methods(BlockingConsumer)
    }


@pytest.mark.parametrize("name", sorted(public_methods(BlockingConsumer) - ASYNC_NAMES.keys()))
def test_each_method_is_async_and_has_the_parameters_of_the_blocking_one(name: str) -> None:
    """As far as the blocking one shows them: confluent-kafka's own methods have no signature."""
    method = getattr(Consumer, name)
    assert inspect.iscoroutinefunction(method)
    try:
        blocking = inspect.signature(getattr(BlockingConsumer, name))
    except ValueError:
        return
    named = [each for each in blocking.parameters.values() if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    own = [each for each in inspect.signature(method).parameters if each not in ONLY_ASYNC_PARAMETERS.get(name, ())]
    assert own[: len(named)] == [each.name for each in named]


async def offsets_of(consumer: Consumer, count: int) -> list[int | None]:
    with anyio.fail_after(LIMIT_S):
        records: list[Message] = []
        while len(records) < count:
            records += await consumer.consume(count - len(records), 1.0)
        return [each.offset() for each in records]


@pytest.mark.anyio
async def test_consume_and_poll(kafka: KafkaFixture) -> None:
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 3000)
    async with Consumer(kafka.config(group)) as consumer:
        assert await consumer.poll(0) is None
        assert await consumer.consume(5, 0.01) == []
        await consumer.subscribe([topic])
        with anyio.fail_after(LIMIT_S):
            assert len(await consumer.consume(2500)) == 2500
            record = await consumer.poll()
            assert record is not None
            assert record.offset() == 2500
            await anyio.to_thread.run_sync(
                wait_until, lambda: len(consumer._polls.records) == 499, "the records that are fetched ahead"
            )
            rest = await consumer.consume(1000, 0.1)
        assert [each.offset() for each in rest] == list(range(2501, 3000))
        assert await consumer.poll(0.01) is None
        with pytest.raises(ValueError, match="num_messages"):
            await consumer.consume(-1)
        cancelled = False
        with anyio.move_on_after(0.05) as scope:
            await consumer.consume(10)
        cancelled = scope.cancelled_caught
        assert cancelled
        await anyio.to_thread.run_sync(kafka.write, topic, 2)
        assert await offsets_of(consumer, 2) == [3000, 3001]
    assert kafka.committed(group, topic) == 3002


@pytest.mark.anyio
async def test_a_partition_that_is_paused_before_its_assignment_is_read(kafka: KafkaFixture) -> None:
    """As of confluent-kafka: librdkafka does not know the partition yet, and the pause has no effect."""
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 5)
    async with Consumer(kafka.config(group)) as consumer:
        await consumer.pause([TopicPartition(topic, 0)])
        await consumer.subscribe([topic])
        assert await offsets_of(consumer, 5) == list(range(5))
        await consumer.pause([TopicPartition(topic, 0)])
        await anyio.to_thread.run_sync(kafka.write, topic, 1)
        assert await consumer.consume(1, 0.3) == []


@pytest.mark.anyio
async def test_a_cancelled_consume_loses_no_record(kafka: KafkaFixture) -> None:
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 100)
    offsets: list[int | None] = []
    async with Consumer(kafka.config(group)) as consumer:
        await consumer.subscribe([topic])
        for attempt in range(10_000):
            with anyio.move_on_after((attempt % 7) * 0.0005):
                while True:
                    offsets += [each.offset() for each in await consumer.consume(30, 0.0001)]
            if len(offsets) == 100:
                break
    assert offsets == list(range(100))


@pytest.mark.anyio
async def test_the_forms_of_commit(kafka: KafkaFixture) -> None:
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 100)
    responses: list[int] = []

    def on_commit(error: Any, partitions: list[TopicPartition]) -> None:
        responses.extend(each.offset for each in partitions)

    async with Consumer(kafka.config(group, enable_auto_commit=False, on_commit=on_commit)) as consumer:
        assert await consumer.commit() == []
        await consumer.subscribe([topic])
        records = await consumer.consume(10)
        assert [each.offset for each in await consumer.commit(records[4])] == [5]
        assert [each.offset for each in await consumer.commit(message=records[5])] == [6]
        assert [each.offset for each in await consumer.commit(offsets=[TopicPartition(topic, 0, 8)])] == [8]
        assert [each.offset for each in await consumer.commit()] == [10]
        assert await consumer.commit(offsets=[TopicPartition(topic, 0, 77)], asynchronous=True) == []
        with anyio.fail_after(LIMIT_S):
            while 77 not in responses:
                await consumer.poll(0.01)
        with pytest.raises(ValueError, match="mutually exclusive"):
            await consumer.commit(records[0], [TopicPartition(topic, 0, 1)])
        with pytest.raises(KafkaException) as raised:
            await consumer.store_offsets(records[0])
        assert raised.value.args[0].code() == KafkaError._INVALID_ARG


@pytest.mark.anyio
async def test_stored_offsets_are_what_commit_commits(kafka: KafkaFixture) -> None:
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 100)
    config = kafka.config(group, enable_auto_commit=False, enable_auto_offset_store=False)
    async with Consumer(config) as consumer:
        await consumer.subscribe([topic])
        records = await consumer.consume(10)
        assert await consumer.commit() == []
        await consumer.store_offsets(records[2])
        assert [each.offset for each in await consumer.commit()] == [3]
        await consumer.store_offsets(offsets=[TopicPartition(topic, 0, 7)])
        assert [each.offset for each in await consumer.commit()] == [7]
    assert kafka.committed(group, topic) == 7


@pytest.mark.anyio
async def test_assignments(kafka: KafkaFixture) -> None:
    topic = await anyio.to_thread.run_sync(kafka.topic, 3)
    for partition in range(3):
        await anyio.to_thread.run_sync(kafka.write, topic, 5, partition)
    zero, one, two = (TopicPartition(topic, partition, partition) for partition in range(3))
    async with Consumer(kafka.config(unique_name("group"))) as consumer:
        await consumer.assign([zero])
        assert await offsets_of(consumer, 5) == [0, 1, 2, 3, 4]
        await consumer.assign([one])
        assert await offsets_of(consumer, 4) == [1, 2, 3, 4]
        await consumer.unassign()
        assert await consumer.assignment() == []
        await consumer.incremental_assign([one])
        assert await offsets_of(consumer, 4) == [1, 2, 3, 4]
        await consumer.incremental_assign([two])
        assert await offsets_of(consumer, 3) == [2, 3, 4]
        assert [each.offset for each in await consumer.position([one, two])] == [5, 5]
        await consumer.incremental_unassign([one])
        assert [each.partition for each in await consumer.assignment()] == [2]
        await consumer.seek(TopicPartition(topic, 2, 4))
        assert await offsets_of(consumer, 1) == [4]


@pytest.mark.anyio
async def test_queries(kafka: KafkaFixture) -> None:
    topic = await anyio.to_thread.run_sync(kafka.topic)
    for timestamp in range(1000, 6000, 1000):
        await anyio.to_thread.run_sync(partial(kafka.write, topic, 1, timestamp=timestamp))
    at = [TopicPartition(topic, 0, 2500)]
    async with Consumer(kafka.config(unique_name("group"), auto_offset_reset="earliest")) as consumer:
        assert [each.offset for each in await consumer.offsets_for_times(at, LIMIT_S)] == [2]
        assert [each.offset for each in await consumer.committed(at, timeout=LIMIT_S)] == [-1001]
        assert await consumer.get_watermark_offsets(at[0], timeout=LIMIT_S) == (0, 5)
        assert topic in (await consumer.list_topics(timeout=LIMIT_S)).topics
        assert list((await consumer.list_topics(topic, LIMIT_S)).topics) == [topic]
        assert await consumer.cluster_id(LIMIT_S)
        assert await consumer.set_sasl_credentials("user", "password") is None  # type: ignore[func-returns-value]
        await consumer.subscribe([topic])
        await offsets_of(consumer, 5)
        assert (await consumer.get_watermark_offsets(at[0], cached=True))[1] == 5
        assert await consumer.memberid()
        assert await consumer.consumer_group_metadata()
