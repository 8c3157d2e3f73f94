"""The events of resets, catch-ups and checkpoints, as the callback and the logger get them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import anyio
import pytest

from kproto.client import (
    CatchUpDone,
    CatchUpProgress,
    CatchUpStarted,
    CatchUpStopped,
    CheckpointDeleted,
    CheckpointsRead,
    CheckpointWritten,
    Consumer,
    Event,
    OffsetRange,
    PositionReset,
    ResetReason,
    StopReason,
    aio,
    catch_up_events,
)
from kproto.client.checkpoint_topic import CheckpointTopic
from kproto.client.decisions.catch_up_ranges import OPEN_END
from kproto.client.decisions.catch_up_rate import CatchUpRate
from kproto_server import Broker
from tests.kproto_client.catch_up_cases import behind, parallel_of, serve
from tests.kproto_client.decision_tables import ABOVE, BELOW, END, START
from tests.kproto_client.kafka_fixture import KafkaFixture, read, start_position, unique_name
from tests.kproto_client.reset_cases import resets
from tests.kproto_client.test_reset_expiration_and_truncation import truncate
from tests.waiting import wait_until

PARALLEL: dict[str, Any] = {"enable_parallel_rebalance": True}
E = TypeVar("E", bound=Event)


class Interrupted(Exception):
    """A user's callback fails."""


def of_type(events: list[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def reset_of(kafka: KafkaFixture, topic: str, group: str, settings: dict[str, Any]) -> tuple[Any, ...]:
    """Start a consumer; return the reset's offsets, reason and numbers of records after checking its text."""
    events: list[Event] = []
    with kafka.consumer(group, **settings, event_cb=events.append) as consumer:
        consumer.subscribe([topic])
        position = start_position(consumer)
        wait_until(lambda: (consumer.poll(0.01), bool(events))[1], "the event")
    (reset,) = of_type(events, PositionReset)
    assert (reset.topic, reset.partition, reset.to_offset) == (topic, 0, position)
    assert str(reset).startswith(f"{topic} [0]: ")
    assert reset.why in str(reset)
    return reset.from_offset, reset.to_offset, reset.reason, reset.records_skipped, reset.records_read_again


def resets_of_safe_latest_and_nearest(kafka: KafkaFixture) -> None:
    """Offsets, reasons and numbers of records, also where `auto.offset.reset` decides and of a catch-up."""
    initial = ResetReason.NO_COMMITTED_OFFSET
    old = kafka.log(timestamp=1)
    safe_latest = resets("safe_latest", "earliest")
    assert reset_of(kafka, old, unique_name("group"), safe_latest) == (None, END, initial, END - START, 0)
    new = kafka.log(2)
    group = unique_name("group")
    kafka.commit(group, new, 0, partition=1)
    assert reset_of(kafka, new, group, safe_latest) == (None, START, initial, 0, 0)
    single = kafka.log()
    for committed, settings, to_offset in (
        (BELOW, resets("none", "none", "nearest"), START),
        (ABOVE, resets("none", "none", "nearest"), END),
        (BELOW, resets("safe_latest", "latest"), END),
        (ABOVE, resets("safe_latest", "earliest"), START),
        (ABOVE, {**PARALLEL, "auto_offset_reset": "latest"}, END),
        (BELOW, {**PARALLEL, "auto_offset_reset_on_invalid_offset": "nearest"}, START),
    ):
        group = unique_name("group")
        kafka.commit(group, single, committed)
        skipped, again = max(0, to_offset - committed), max(0, committed - to_offset)
        expected = committed, to_offset, ResetReason.OUT_OF_RANGE, skipped, again
        assert reset_of(kafka, single, group, settings) == expected, settings


def test_each_reset(kafka: KafkaFixture) -> None:
    resets_of_safe_latest_and_nearest(kafka)


def test_a_truncated_log(broker: Broker, kafka: KafkaFixture) -> None:
    """CK-35: the records after the divergence offset are read again, of the new log."""
    topic, events = kafka.topic(), list[Event]()
    for _ in range(10):
        kafka.write(topic, 10)
    settings = {**resets("earliest", "latest"), "event_cb": events.append}
    with kafka.consumer(unique_name("group"), **settings) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 100)[-1] == 99
        broker._call(lambda server: truncate(server, topic, 60))
        kafka.write(topic, 60)
        assert read(consumer, 1) == [60]
    _, reset = of_type(events, PositionReset)
    assert (reset.from_offset, reset.to_offset, reset.reason) == (100, 60, ResetReason.TRUNCATION)
    assert (reset.records_skipped, reset.records_read_again) == (0, 40)
    assert reset.why == "the log was truncated at 60"


def each_event_of_a_catch_up(kafka: KafkaFixture) -> None:
    """From the assignment to the last deleted checkpoint, with the progress of each call."""
    topic, group = behind(kafka)
    events: list[Event] = []
    at: dict[str, Any] = {"topic": topic, "partition": 0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catch_up_events, "PROGRESS_INTERVAL_S", 0.0)
        with kafka.consumer(group, **PARALLEL, event_cb=events.append) as consumer:
            consumer.subscribe([topic])

            def is_read(offset: int) -> bool:
                messages = consumer.consume(10, 0.01)
                return any(message.error() is None and message.offset() == offset for message in messages)

            wait_until(lambda: is_read(79), "offset 79")
            serve(consumer)
            wait_until(lambda: is_read(119), "offset 119")

            def is_complete() -> bool:
                consumer.poll(0.01)
                return len(of_type(events, CheckpointDeleted)) == 2

            wait_until(is_complete, "the deleted checkpoints")
    range_of_2, range_of_1 = OffsetRange(70, 120), OffsetRange(120, OPEN_END)
    assert events[0] == CatchUpStarted(**at, ranges=(range_of_2,), consumer1_start=120, records_left=50)
    progress = of_type(events, CatchUpProgress)
    lefts = [each.records_left for each in progress]
    assert lefts == sorted(lefts, reverse=True)
    assert len(set(lefts)) > 2
    for each in progress:
        assert each.ranges == ((OffsetRange(120 - each.records_left, 120),) if each.records_left else ())
        assert (each.records_per_s > 0) == (each.seconds_left is not None)
    (done,) = of_type(events, CatchUpDone)
    assert done == CatchUpDone(**at, offset=120, records=50, duration_s=done.duration_s)
    assert done.duration_s > 0
    written = of_type(events, CheckpointWritten)
    assert all(70 <= each.position <= 120 for each in written)
    assert {(each.number, each.range) for each in written} == {(0, range_of_2), (1, range_of_1)}
    assert {each.number for each in of_type(events, CheckpointDeleted)} == {0, 1}
    assert of_type(events, CatchUpStopped) == []


def test_each_event_of_a_catch_up(kafka: KafkaFixture) -> None:
    each_event_of_a_catch_up(kafka)


def test_checkpoints_that_are_deleted_at_once(kafka: KafkaFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The callback gets the events also if the response comes before the call that wrote has returned."""
    write = CheckpointTopic.write

    def write_and_wait(self: CheckpointTopic, *arguments: Any) -> None:
        write(self, *arguments)
        if self._producer is not None:
            self._producer.flush()

    monkeypatch.setattr(CheckpointTopic, "write", write_and_wait)
    each_event_of_a_catch_up(kafka)


def test_a_catch_up_that_is_taken_over(kafka: KafkaFixture) -> None:
    """CK-82: the next owner divides the range where the owner before did; a seek cancels it."""
    topic, group = behind(kafka)
    first, second = list[Event](), list[Event]()
    at: dict[str, Any] = {"topic": topic, "partition": 0}
    with kafka.consumer(group, **PARALLEL, event_cb=first.append) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 10)[-1] == 79
        serve(consumer)
    assert of_type(first, CatchUpStopped) == [
        CatchUpStopped(**at, offset=80, records_left=40, reason=StopReason.REVOKED)
    ]
    kafka.write(topic, 5)
    settings = {**PARALLEL, "parallel_rebalance_merge": False, "event_cb": second.append}
    with kafka.consumer(group, **settings) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 1) == [80]
        serve(consumer)
        (position,) = consumer.position(consumer.assignment())
        position.offset = 110
        consumer.seek(position)
        assert read(consumer, 1) == [110]
        assert of_type(second, CheckpointsRead) == [
            CheckpointsRead(**at, ranges=(OffsetRange(81, 120), OffsetRange(120, 125)))
        ]
        assert of_type(second, CatchUpStopped) == [
            CatchUpStopped(**at, offset=81, records_left=44, reason=StopReason.CANCELLED)
        ]


@pytest.mark.parametrize("by_consume", [False, True])
def test_an_exception_of_the_callback_ends_the_call_and_loses_no_record(kafka: KafkaFixture, by_consume: bool) -> None:
    """As of confluent-kafka's callbacks; the events after it come with the next calls."""
    topic, group = behind(kafka)
    events: list[Event] = []
    offsets: list[int | None] = []
    failures = 0

    def fail(event: Event) -> None:
        events.append(event)
        raise Interrupted

    with kafka.consumer(group, **PARALLEL, event_cb=fail, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])

        def is_read() -> bool:
            nonlocal failures
            try:
                messages = consumer.consume(7, 0.05) if by_consume else [consumer.poll(0.05)]
            except Interrupted:
                failures += 1
                assert failures == len(events)
            else:
                offsets.extend(each.offset() for each in messages if each is not None and each.error() is None)
            return len(offsets) == 50 and bool(of_type(events, CatchUpDone))

        wait_until(is_read, "the records")
        consumer.unsubscribe()
        wait_until(lambda: not is_waiting(consumer, events), "the last events")
    assert offsets == list(range(70, 120))
    assert failures >= 2


def is_waiting(consumer: Consumer, events: list[Event]) -> bool:
    """Poll once; return whether an event came, or will come."""
    count = len(events)
    with suppress(Interrupted):
        consumer.poll(0.05)
    assert consumer._delegate is not None
    is_busy = parallel_of(consumer).is_busy or consumer._delegate._events.are_waiting
    return is_busy or len(events) > count


def test_close_calls_the_callback_after_its_work(kafka: KafkaFixture) -> None:
    topic, group = behind(kafka)
    events: list[Event] = []

    def fail_at_the_stop(event: Event) -> None:
        events.append(event)
        if isinstance(event, CatchUpStopped):
            raise Interrupted

    consumer = Consumer(kafka.config(group, **PARALLEL, event_cb=fail_at_the_stop))
    consumer.subscribe([topic])
    assert read(consumer, 10)[-1] == 79
    with pytest.raises(Interrupted):
        consumer.close()
    consumer.close()
    assert kafka.committed(group, topic) == 80
    with pytest.raises(RuntimeError):
        consumer.poll(0)


SETTINGS: tuple[dict[str, Any], ...] = ({}, {"auto.offset.reset.on.invalid.offset": "nearest"})


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("kind", [Consumer, aio.Consumer])
def test_a_callback_that_cannot_be_called_is_refused(kind: Callable[..., Any], settings: dict[str, Any]) -> None:
    for value in (None, 7, "print"):
        with pytest.raises(TypeError, match=r"^expected event_cb property as a callable function$"):
            kind({"group.id": "billing", **settings, "event_cb": value})


def test_without_a_setting_of_the_proposals_there_are_no_events(kafka: KafkaFixture) -> None:
    """librdkafka decides everything itself."""
    topic, events = kafka.log(), list[Event]()
    config = kafka.config(unique_name("group"), auto_offset_reset="earliest")
    with Consumer(config, event_cb=events.append) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 1) == [START]
    assert events == []


@pytest.mark.parametrize("name", ["kproto.client", "billing"])
def test_the_log_has_one_line_for_each_event(kafka: KafkaFixture, caplog: pytest.LogCaptureFixture, name: str) -> None:
    """In the user's logger, if one is given; progress and checkpoints at DEBUG."""
    caplog.set_level(logging.DEBUG)
    topic, group = behind(kafka)
    events: list[Event] = []
    given: dict[str, Any] = {} if name == "kproto.client" else {"logger": logging.getLogger(name)}
    settings = {**PARALLEL, **resets("safe_latest", "none", "nearest"), **given, "event_cb": events.append}
    with kafka.consumer(group, **settings) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 50)[-1] == 119
        serve(consumer)
    new, out = unique_name("group"), unique_name("group")
    kafka.commit(out, topic, 1000)
    for each in (new, out):
        with kafka.consumer(each, **settings) as consumer:
            consumer.subscribe([topic])
            start_position(consumer)
    lines = [(each.levelno, each.getMessage()) for each in caplog.records if each.name == name]
    lines = [line for line in lines if line[1].startswith(topic)]
    assert [text for _, text in lines] == list(map(str, events))
    levels = {type(event): level for (level, _), event in zip(lines, events, strict=True)}
    assert levels[CatchUpStarted] == levels[CatchUpDone] == logging.INFO
    assert levels[CheckpointWritten] == logging.DEBUG
    assert [level for (level, _), event in zip(lines, events, strict=True) if isinstance(event, PositionReset)] == [
        logging.INFO,
        logging.WARNING,
    ]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["trio", "asyncio"])
async def test_events_of_an_async_consumer(kafka: KafkaFixture, anyio_backend: str) -> None:
    """The callback runs in a thread, and the next request raises its exception."""
    topic, group = behind(kafka)
    events: list[Event] = []

    def fail_once(event: Event) -> None:
        events.append(event)
        if len(events) == 1:
            raise Interrupted

    with anyio.fail_after(60):
        async with aio.Consumer(kafka.config(group, **PARALLEL, event_cb=fail_once)) as consumer:
            await consumer.subscribe([topic])
            offsets: list[int | None] = []
            failures = 0
            while len(offsets) < 50:
                try:
                    offsets.append((await consumer.next_record()).offset())
                except Interrupted:
                    failures += 1
            while not of_type(events, CatchUpDone):
                await consumer.poll(0.01)
    assert failures == 1
    assert offsets == list(range(70, 120))
    assert isinstance(events[0], CatchUpStarted)


def test_the_rate_is_that_of_the_last_ten_seconds() -> None:
    rate = CatchUpRate(0.0, 10_000)
    assert rate.measure(0.0, 10_000) == (0.0, None)
    assert rate.measure(1.0, 9_000) == (1000.0, 9.0)
    for second in range(2, 12):
        per_s, seconds_left = rate.measure(float(second), 9_000 - 100 * (second - 1))
    assert (per_s, seconds_left) == (100.0, 80.0)
    for second in range(12, 23):
        per_s, seconds_left = rate.measure(float(second), 8_000)
    assert (per_s, seconds_left) == (0.0, None)
