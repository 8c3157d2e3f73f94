"""kproto.client's async consumer beside aiokafka's, on asyncio: messages per second and the time of a rebalance."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any, TypeVar

from bench.model import KPROTO, BenchError
from bench.own_process import Clock, Speed
from bench.peers.server import HOST
from bench.records import PATIENCE_SECONDS, Load, Topic

T = TypeVar("T")
AIOKAFKA = "aiokafka"
CONSUME_COUNT = 500
RECORD_S = 0.05
"""How long the members of a rebalance process each message."""
STABLE_S = 1.0
"""How long the group is stable before the second member joins: librdkafka delays a second rebalance within a second."""


async def _one_by_one(consumer: Any) -> AsyncIterator[Sequence[Any]]:
    async for record in consumer:
        yield (record,)


async def _polled(consumer: Any) -> AsyncIterator[Sequence[Any]]:
    poll = consumer.poll if hasattr(consumer, "poll") else consumer.getone
    while True:
        record = await poll()
        yield (record,)


async def _in_batches(consumer: Any) -> AsyncIterator[Sequence[Any]]:
    while True:
        if hasattr(consumer, "consume"):
            yield await consumer.consume(CONSUME_COUNT, 1.0)
        else:
            batches = await consumer.getmany(timeout_ms=1000, max_records=CONSUME_COUNT)
            yield [record for batch in batches.values() for record in batch]


CALLS = {"async for": _one_by_one, "poll()": _polled, f"consume({CONSUME_COUNT})": _in_batches}
"""aiokafka's `getmany` is its `consume`, and `getone` its `poll`."""


@asynccontextmanager
async def _connected(kind: str, topic: Topic, group: str) -> AsyncIterator[Any]:
    """Connect a consumer that starts at the log start in a new group; leave the group after the block."""
    if kind == KPROTO:
        from confluent_kafka import TopicPartition

        from kproto.client.aio import Consumer

        config = {**topic.server, "enable.auto.commit": False, "group.id": group, "auto.offset.reset": "earliest"}
        async with Consumer(config) as consumer:
            # librdkafka looks for the coordinator twice a second, from its start on.
            await consumer.committed([TopicPartition(topic.name, 0)], PATIENCE_SECONDS)
            yield consumer
    else:
        from aiokafka import AIOKafkaConsumer

        consumer = AIOKafkaConsumer(
            bootstrap_servers=f"{HOST}:{topic.port}",
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            yield consumer
        finally:
            await consumer.stop()


async def _subscribe(consumer: Any, topic: Topic) -> None:
    subscribed = consumer.subscribe([topic.name])
    if subscribed is not None:  # aiokafka's method is not async
        await subscribed


def read(kind: str, topic: Topic, load: Load, call: str, group: str) -> Speed:
    """Read the whole topic; return the speed from the first message on."""

    async def run() -> Speed:
        received, clock = 0, Clock()
        async with asyncio.timeout(PATIENCE_SECONDS), _connected(kind, topic, group) as consumer:
            await _subscribe(consumer, topic)
            async for records in CALLS[call](consumer):
                if records and not received:
                    clock = Clock()
                received += len(records)
                if received >= load.messages:
                    break
            return clock.speed(received)

    return _run(run())


def rebalance_ms(kind: str, topic: Topic, group: str) -> float:
    """Let a connected consumer join while another one processes messages; return the time until its first message."""

    async def process(consumer: Any, has_begun: asyncio.Event) -> None:
        async for _ in consumer:
            has_begun.set()
            await asyncio.sleep(RECORD_S)

    async def run() -> float:
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            _connected(kind, topic, group) as first,
            _connected(kind, topic, group) as second,
        ):
            await _subscribe(first, topic)
            has_begun = asyncio.Event()
            processing = asyncio.create_task(process(first, has_begun))
            await has_begun.wait()
            await asyncio.sleep(STABLE_S)
            started_at = perf_counter()
            await _subscribe(second, topic)
            await anext(second)
            taken_ms = (perf_counter() - started_at) * 1000
            processing.cancel()
            await asyncio.gather(processing, return_exceptions=True)
            return taken_ms

    return _run(run())


def _run(measurement: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(measurement)
    except TimeoutError as error:
        raise BenchError(f"an async consumer has not finished after {PATIENCE_SECONDS:.0f} s") from error
