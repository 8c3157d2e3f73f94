"""`kproto.client.aio` and its group: rebalances while a record is processed, programs that hang, full buffers."""

from __future__ import annotations

import gc
from typing import Any

import anyio
import anyio.to_thread
import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from kproto.client import background_polls, fetched_records
from kproto.client.aio import Consumer
from kproto.client.background_polls import BackgroundPolls
from kproto_server import Broker
from tests.kproto_client.aio_cases import (
    BACKENDS,
    REBALANCES_WITH_CONSUMER_PROTOCOL,
    join_while_a_record_is_processed,
    offsets_of_delivered_records_in_a_transaction,
    take,
    until,
)
from tests.kproto_client.catch_up_cases import behind
from tests.kproto_client.kafka_fixture import LIMIT_S, KafkaFixture, unique_name
from tests.kproto_client.parity import MODES
from tests.kproto_client.pending_revocation import wait_for_revocation
from tests.waiting import wait_until

pytestmark = pytest.mark.anyio
MANUAL = {"enable_auto_commit": False}


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("rebalance", REBALANCES_WITH_CONSUMER_PROTOCOL)
async def test_a_member_joins_while_a_record_is_processed(kafka: KafkaFixture, rebalance: str) -> None:
    await join_while_a_record_is_processed(kafka, REBALANCES_WITH_CONSUMER_PROTOCOL[rebalance])


async def test_offsets_of_delivered_records_in_a_transaction(kafka: KafkaFixture) -> None:
    await offsets_of_delivered_records_in_a_transaction(kafka)


async def test_the_record_is_finished_first_if_the_user_says_so(kafka: KafkaFixture) -> None:
    """The program can commit meanwhile, and the new owner does not get the record again."""
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 30)
    revoked: list[str] = []

    def on_revoke(member: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        revoked.append("on_revoke")

    config = kafka.config(group, partition_assignment_strategy="roundrobin", **MANUAL)
    async with Consumer(config) as first:
        await first.subscribe([topic], on_revoke=on_revoke, finish_record=True)
        assert await take(first) == (0, 0)
        async with Consumer(config) as second, anyio.create_task_group() as tasks:
            await second.subscribe([topic])
            await until(lambda: first._polls._waits_for_finish, "the revocation")
            with anyio.fail_after(LIMIT_S):
                (result,) = await first.commit()
                assert result.offset == 1
                assert [each.offset for each in await first.position([TopicPartition(topic, 0)])] == [1]
            assert revoked == []
            tasks.start_soon(swallow, first)
            await until(lambda: revoked == ["on_revoke"], "on_revoke")
            tasks.cancel_scope.cancel()
    assert kafka.committed(group, topic) == 1


async def test_a_request_before_the_revocation_does_not_hide_the_finish(kafka: KafkaFixture) -> None:
    """The thread waits for the finish, also if the last request came after it had begun its poll."""
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 30)
    config = kafka.config(group, partition_assignment_strategy="roundrobin", **MANUAL)
    async with Consumer(config) as first:
        await first.subscribe([topic], finish_record=True)
        assert await take(first) == (0, 0)
        async with Consumer(config) as second:
            await second.subscribe([topic])
            await until(lambda: first._polls._waits_for_finish, "the revocation")
            first._polls._is_requested = True
            first._polls.begin_request()
            await until(lambda: not first._polls._waits_for_finish, "the end of the wait")


async def swallow(consumer: Consumer) -> None:
    async for _ in consumer:
        pass


async def take_after_joins(consumer: Consumer) -> tuple[int, int]:
    """As `take`. A join can meet the end of the former subscription: it is refused, and librdkafka repeats it."""
    while True:
        try:
            return await take(consumer)
        except KafkaException as error:
            assert error.args[0].code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL  # noqa: PT017


async def test_a_program_that_hangs_loses_its_partitions_and_comes_back(kafka: KafkaFixture) -> None:
    """``max.poll.interval.ms``: also while the event loop is blocked."""
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 30, 2)
    async with Consumer(kafka.config(group)) as hanging:
        await hanging.subscribe([topic])
        await take(hanging)
        hanging._polls._max_poll_interval_s = 0.4
        with kafka.consumer(group, **MANUAL) as other:
            other.subscribe([topic])

            def owns_both() -> bool:
                other.poll(0.05)
                return len(other.assignment()) == 2

            wait_until(owns_both, "both partitions, one of them by a rebalance")  # blocks the event loop
            assert kafka.committed(group, topic, 0) == kafka.committed(group, topic, 1) == 0
            with pytest.raises(KafkaException) as raised:
                await take(hanging)
            assert raised.value.args[0].code() == KafkaError._MAX_POLL_EXCEEDED
            hanging._polls._max_poll_interval_s = LIMIT_S
        assert sorted([await take_after_joins(hanging) for _ in range(60)])[-1] == (1, 29)


async def test_a_member_that_waits_for_records_stays(kafka: KafkaFixture) -> None:
    """Waiting for longer than ``max.poll.interval.ms`` is no hang."""
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 1)
    async with Consumer(kafka.config(group)) as consumer:
        await consumer.subscribe([topic])
        await take(consumer)
        member = await consumer.memberid()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(swallow, consumer)
            await until(lambda: bool(consumer._polls._waiting), "a request that waits")
            consumer._polls._max_poll_interval_s = 0.2
            await anyio.sleep(0.5)
            consumer._polls._max_poll_interval_s = LIMIT_S
            tasks.cancel_scope.cancel()
        assert await consumer.memberid() == member
        await anyio.to_thread.run_sync(kafka.write, topic, 1)
        assert await take(consumer) == (0, 1)


async def test_full_buffers_do_not_stop_the_polls(kafka: KafkaFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The partitions are paused meanwhile; a partition that the user has paused stays paused."""
    monkeypatch.setattr(background_polls, "PAUSE_AFTER_S", 0)
    monkeypatch.setattr(fetched_records, "RECORDS_MAX", 10)
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 60, 3)
    paused = TopicPartition(topic, 2, 0)
    config = kafka.config(group, **MANUAL)
    async with Consumer(config) as first, Consumer(config) as second:
        await first.subscribe([topic])
        in_process = await take(first)
        await first.pause([paused])
        await first.seek(paused)
        await until(lambda: first._polls._held == {(topic, 0), (topic, 1)}, "paused partitions")
        assert len(first._polls.records) <= 20
        expected = {(partition, offset) for partition in (0, 1) for offset in range(60)} - {in_process}
        assert {await take(first) for _ in expected} == expected
        await first.resume([paused])
        assert [await take(first) for _ in range(60)] == [(2, offset) for offset in range(60)]
        for partition in range(3):
            await first.seek(TopicPartition(topic, partition, 0))
        await until(lambda: len(first._polls._held) == 3, "paused partitions")
        await second.subscribe([topic])
        await take(second)
        owned = {each.partition for each in await second.assignment()}
        expected = {(partition, offset) for partition in {0, 1, 2} - owned for offset in range(60)}
        assert {await take(first) for _ in expected} == expected


async def test_full_buffers_pause_partitions_only_if_no_record_is_taken_for_long(
    kafka: KafkaFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka drops what it has fetched of a paused partition, and after a resume it may fetch nothing for 1 s."""
    monkeypatch.setattr(background_polls, "FULL_TICK_S", 0.001)
    monkeypatch.setattr(background_polls, "PAUSE_AFTER_S", LIMIT_S)
    monkeypatch.setattr(fetched_records, "RECORDS_MAX", 20)
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 60)
    async with Consumer(kafka.config(group, **MANUAL)) as consumer:
        await consumer.subscribe([topic])
        offsets = [(await take(consumer))[1]]
        await until(lambda: len(consumer._polls.records) > 30, "ten polls with full buffers")
        assert not consumer._polls._held
        monkeypatch.setattr(background_polls, "PAUSE_AFTER_S", 0)
        await until(lambda: bool(consumer._polls._held), "paused partitions")
        offsets += [(await take(consumer))[1] for _ in range(59)]
    assert offsets == list(range(60))


async def test_exceptions_of_callbacks_are_raised_and_lose_no_record(kafka: KafkaFixture) -> None:
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 20)

    offsets: list[int] = []
    failures = 0

    def failing(*_: Any) -> None:
        if len(offsets) < 20 or failures < 2:  # not in `aclose`, which raises it too
            raise ValueError("of the callback")

    config = {**kafka.config(group, statistics_interval_ms=20), "stats_cb": failing}
    async with Consumer(config) as consumer:
        await consumer.subscribe([topic], on_assign=failing)
        while len(offsets) < 20 or failures < 2:
            try:
                offsets += [(await take(consumer))[1]]
            except ValueError:
                failures += 1
    assert offsets == list(range(20))
    with pytest.raises(TypeError, match="on_lost"):
        await consumer.subscribe([topic], on_lost="nothing")  # type: ignore[arg-type]


async def test_unsubscribe_and_revocation_leave_no_record(kafka: KafkaFixture) -> None:
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 50)
    async with Consumer(kafka.config(group)) as consumer:
        await consumer.subscribe([topic])
        assert await take(consumer) == (0, 0)
        await consumer.unsubscribe()
        assert await consumer.consume(1, 0.1) == []
        await consumer.subscribe([topic])
        assert await take(consumer) in ((0, 0), (0, 1))


@pytest.mark.parametrize("mode", ["off", "latest_on_start", "all"])
async def test_close_commits_finished_records_while_a_revocation_waits(
    kafka: KafkaFixture, broker: Broker, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """librdkafka sends LeaveGroup first then, and its commit is refused with UNKNOWN_MEMBER_ID."""
    monkeypatch.setattr(background_polls, "TICK_S", LIMIT_S)
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 5)
    config = {**kafka.config(group, auto_commit_interval_ms=60_000), **MODES[mode]}
    async with Consumer(config) as consumer:
        await consumer.subscribe([topic])
        assert [await take(consumer) for _ in range(5)] == [(0, offset) for offset in range(5)]
        await anyio.to_thread.run_sync(wait_for_revocation, broker, group)
    assert kafka.committed(group, topic) == 5


async def test_a_closed_consumer_ends_the_waits_of_other_tasks(kafka: KafkaFixture) -> None:
    consumer = Consumer(kafka.config(unique_name("group")))
    closed: list[str] = []

    async def wait() -> None:
        with pytest.raises(RuntimeError, match="Consumer closed"):
            await anext(consumer)
        closed.append("next_record")

    with anyio.fail_after(LIMIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.lowlevel.checkpoint()
            await consumer.aclose()
    assert closed == ["next_record"]
    await consumer.aclose()
    for call in (consumer.next_record, consumer.consume, consumer.assignment):
        with pytest.raises(RuntimeError, match="Consumer closed"):
            await call()


async def test_a_consumer_that_is_dropped_leaves_its_group(kafka: KafkaFixture, broker: Broker) -> None:
    topic, group = await anyio.to_thread.run_sync(behind, kafka, 0, 5)
    consumer = Consumer(kafka.config(group))
    await consumer.subscribe([topic])
    await take(consumer)
    assert len(broker.groups.members(group)) == 1
    del consumer
    gc.collect()
    await until(lambda: not broker.groups.members(group), "the member's leave")


def test_a_record_that_was_fetched_before_an_exception_is_kept(
    kafka: KafkaFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic()
    kafka.write(topic, 1)
    polls = BackgroundPolls(kafka.config(unique_name("group")))
    polls.consumer.assign([TopicPartition(topic, 0, 0)])
    has_raised = False

    def consume(*_: object) -> list[Message]:
        nonlocal has_raised
        if not len(polls.records):
            return []
        has_raised = True
        raise ValueError("of a callback")

    monkeypatch.setattr(polls.consumer, "consume", consume)

    def is_raised() -> bool:
        polls._poll(is_waited_for=True)
        return has_raised

    wait_until(is_raised, "a record and the exception after it")
    assert [each.offset() for each in polls.take(1)] == [0]
    with pytest.raises(ValueError, match="of a callback"):
        polls.take(1)
    polls.close()
