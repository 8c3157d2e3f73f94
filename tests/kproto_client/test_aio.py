"""`kproto.client.aio` on trio and on asyncio: records, commits, and cancellation that loses no record."""

import anyio
import pytest
from confluent_kafka import TopicPartition

from kproto.client import ConfigError, NoOffsetForPartition
from kproto.client.aio import Consumer
from tests.kproto_client.catch_up_cases import behind
from tests.kproto_client.kafka_fixture import LIMIT_S, KafkaFixture, unique_name

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["trio", "asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def topic_and_group(kafka: KafkaFixture) -> tuple[str, str]:
    return behind(kafka, 0, 100)


async def read(consumer: Consumer, count: int) -> list[int | None]:
    with anyio.fail_after(LIMIT_S):
        return [(await anext(consumer)).offset() for _ in range(count)]


async def test_async_for_delivers_records_for_commits(kafka: KafkaFixture, topic_and_group: tuple[str, str]) -> None:
    topic, group = topic_and_group
    offsets = []
    async with Consumer(kafka.config(group, enable_auto_commit=False)) as consumer:
        await consumer.subscribe([topic])
        async for record in consumer:
            offsets.append(record.offset())
            if record.offset() == 41:
                (result,) = await consumer.commit()
                assert result.offset == 42
            if len(offsets) == 100:
                break
        at = [TopicPartition(topic, 0)]
        assert [each.offset for each in await consumer.committed(at)] == [42]
        assert [each.offset for each in await consumer.position(at)] == [100]
        assert await consumer.get_watermark_offsets(at[0]) == (0, 100)
        assert [each.partition for each in await consumer.assignment()] == [0]
    assert offsets == list(range(100))
    assert kafka.committed(group, topic) == 42


async def test_a_cancelled_wait_loses_no_record(kafka: KafkaFixture, topic_and_group: tuple[str, str]) -> None:
    """Cancelled many times, at any point of the wait; each record is delivered once."""
    topic, group = topic_and_group
    offsets: list[int | None] = []
    async with Consumer(kafka.config(group)) as consumer:
        await consumer.subscribe([topic])
        for attempt in range(10_000):
            with anyio.move_on_after((attempt % 7) * 0.0005):
                while True:
                    offsets.append((await anext(consumer)).offset())
            if len(offsets) == 100:
                break
    assert offsets == list(range(100))


async def test_a_record_whose_processing_is_cancelled_is_delivered_again(
    kafka: KafkaFixture, topic_and_group: tuple[str, str]
) -> None:
    """CK-75 for automatic commits: only processed records are committed."""
    topic, group = topic_and_group

    async def work(scope: anyio.CancelScope) -> None:
        async with Consumer(kafka.config(group)) as consumer:
            await consumer.subscribe([topic])
            async for record in consumer:
                if record.offset() == 30:
                    scope.cancel()
                await anyio.lowlevel.checkpoint()

    with anyio.CancelScope() as scope:
        await work(scope)
    assert kafka.committed(group, topic) == 30
    async with Consumer(kafka.config(group)) as consumer:
        await consumer.subscribe([topic])
        assert await read(consumer, 70) == list(range(30, 100))
    assert kafka.committed(group, topic) == 100


async def test_other_tasks_run_while_one_waits(kafka: KafkaFixture, topic_and_group: tuple[str, str]) -> None:
    topic, group = topic_and_group
    async with Consumer(kafka.config(group)) as consumer, anyio.create_task_group() as tasks:
        await consumer.subscribe([topic])
        assert await read(consumer, 100) == list(range(100))
        more: list[int | None] = []

        async def wait() -> None:
            more.extend(await read(consumer, 1))

        tasks.start_soon(wait)
        await consumer.commit(offsets=[TopicPartition(topic, 0, 7)])
        assert more == []
        await anyio.to_thread.run_sync(kafka.write, topic, 1)
    assert more == [100]


async def test_pause_resume_and_seek(kafka: KafkaFixture) -> None:
    """CK-67: also of fetched records that are not delivered yet."""
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 50, 2)
    first = TopicPartition(topic, 0)
    async with Consumer(kafka.config(group)) as consumer:
        await consumer.subscribe([topic])
        seen = [(await anext(consumer)).partition() for _ in range(5)]
        await consumer.pause([first])
        rest = [(await anext(consumer)).partition() for _ in range(50 - seen.count(1))]
        assert set(rest) == {1}
        await consumer.resume([first])
        assert await read(consumer, 50 - seen.count(0)) == list(range(seen.count(0), 50))
        await consumer.seek(TopicPartition(topic, 0, 45))
        assert await read(consumer, 5) == [45, 46, 47, 48, 49]


async def test_parallel_catch_up(kafka: KafkaFixture, topic_and_group: tuple[str, str]) -> None:
    """CK-60, CK-73."""
    topic, group = topic_and_group
    async with Consumer(kafka.config(group, enable_parallel_rebalance=True)) as consumer:
        await consumer.subscribe([topic])
        offsets = await read(consumer, 50)
        await anyio.to_thread.run_sync(kafka.write, topic, 20)
        offsets += await read(consumer, 70)
    assert offsets == list(range(120))
    assert kafka.committed(group, topic) == 120


async def test_errors_are_raised(kafka: KafkaFixture, topic_and_group: tuple[str, str]) -> None:
    """CK-24, CK-4."""
    topic, _ = topic_and_group
    settings = {"auto_offset_reset": "none", "auto_offset_reset_on_invalid_offset": "nearest"}
    async with Consumer(kafka.config(unique_name("group"), **settings)) as consumer:
        await consumer.subscribe([topic])
        with pytest.raises(NoOffsetForPartition):
            await read(consumer, 1)
        await consumer.seek(TopicPartition(topic, 0, 98))
        assert await read(consumer, 2) == [98, 99]
    with pytest.raises(ConfigError, match="enable"):
        Consumer(kafka.config("g", enable_parallel_rebalance="perhaps"))
