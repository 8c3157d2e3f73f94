"""`kproto.client.aio` in the event loop's thread: records that librdkafka has, and rebalances within such a fetch."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import anyio.to_thread
import pytest
from confluent_kafka import Message, TopicPartition

from kproto.client import background_polls
from kproto.client.aio import Consumer
from kproto_server import Broker
from tests.kproto_client.aio_cases import BACKENDS, place, take
from tests.kproto_client.catch_up_cases import behind
from tests.kproto_client.kafka_fixture import LIMIT_S, KafkaFixture
from tests.kproto_client.parity import MODES
from tests.kproto_client.pending_revocation import wait_for_revocation

pytestmark = pytest.mark.anyio


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def no_polls_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread polls for calls and for requests that wait."""
    monkeypatch.setattr(background_polls, "TICK_S", LIMIT_S)


def noted_fetches(consumer: Consumer, monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """Return a list that gets the thread of each fetch."""
    threads: list[threading.Thread] = []
    consume = consumer._consumer.consume

    def noted(*args: Any) -> list[Message]:
        threads.append(threading.current_thread())
        return consume(*args)

    monkeypatch.setattr(consumer._consumer, "consume", noted)
    return threads


def nothing(*_: object) -> None: ...


SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a callback of the configuration": ({"stats_cb": nothing, "statistics.interval.ms": 60_000}, {}),
    "a callback of the subscription": ({}, {"on_revoke": nothing}),
    "a revocation that waits": ({}, {"finish_record": True}),
    "the proposals": (MODES["all"], {}),
}


async def test_records_that_librdkafka_has_are_fetched_without_the_thread(
    kafka: KafkaFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 30)
    async with Consumer(kafka.config(group)) as consumer:
        await consumer.subscribe([topic])
        offsets = [(await take(consumer))[1]]
        monkeypatch.setattr(consumer._polls, "waiting", None)  # a wait fails
        monkeypatch.setattr(consumer._polls, "_poll", nothing)  # the thread polls after each call, such as the seek
        threads = noted_fetches(consumer, monkeypatch)
        await consumer.seek(TopicPartition(topic, 0, 1))
        with anyio.fail_after(LIMIT_S):
            while len(offsets) < 30:
                records = await consumer.consume(7, 0)
                offsets += [place(each)[1] for each in records]
                await anyio.sleep(0)
    assert offsets == list(range(30))
    assert set(threads) == {threading.current_thread()}


@pytest.mark.parametrize("case", SETTINGS)
async def test_functions_of_the_user_are_called_in_the_thread(
    kafka: KafkaFixture, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """So nothing is fetched in the event loop if a poll may call one."""
    config, subscription = SETTINGS[case]
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 30)
    async with Consumer({**kafka.config(group), **config}) as consumer:
        threads = noted_fetches(consumer, monkeypatch)
        await consumer.subscribe([topic], **subscription)
        with anyio.fail_after(LIMIT_S):
            records = await consumer.consume(30)
            assert await consumer.consume(1, 0) == []
            assert await consumer.poll(0) is None
    assert [place(each)[1] for each in records] == list(range(30))
    assert threading.current_thread() not in threads


async def test_a_revocation_within_a_fetch_drops_the_fetched_records(kafka: KafkaFixture, broker: Broker) -> None:
    """The finished records are committed before; the others come again."""
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 30)
    async with Consumer(kafka.config(group, partition_assignment_strategy="range")) as consumer:
        await consumer.subscribe([topic])
        assert [await take(consumer) for _ in range(3)] == [(0, 0), (0, 1), (0, 2)]
        await consumer.assignment()
        with consumer._polls._turn:  # the thread's poll behind this call has ended: it would take the revocation
            pass
        await anyio.to_thread.run_sync(wait_for_revocation, broker, group)
        consumer._polls.fetch_now(1000)
        # On a busy machine the partition is assigned again within the call, and read from the third record on.
        assert len(consumer._polls.records) in (0, 28)
        assert [await take(consumer) for _ in range(28)] == [(0, offset) for offset in range(2, 30)]
    assert kafka.committed(group, topic) == 30
