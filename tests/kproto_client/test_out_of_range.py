"""Positions out of range while no setting names another one: raised in every mode, and ended by `seek`."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, TopicPartition

from kproto.client import Consumer, OffsetOutOfRange
from tests.kproto_client.decision_tables import ABOVE, BELOW, END, START
from tests.kproto_client.kafka_fixture import LIMIT_S, KafkaFixture, read, unique_name
from tests.kproto_client.parity import MODES
from tests.waiting import wait_until

RAISING_MODES = sorted(name for name, settings in MODES.items() if settings and "nearest" not in settings.values())


def raised(consumer: Consumer, *, by_consume: bool) -> OffsetOutOfRange:
    """Poll until the exception is raised."""
    errors: list[OffsetOutOfRange] = []

    def is_raised() -> bool:
        try:
            messages = consumer.consume(10, 0.1) if by_consume else [consumer.poll(0.1)]
        except OffsetOutOfRange as error:
            errors.append(error)
        else:
            assert all(message is None or is_end(message.error()) for message in messages)
        return bool(errors)

    wait_until(is_raised, "OffsetOutOfRange")
    return errors[0]


def is_end(error: KafkaError | None) -> bool:
    return error is not None and error.code() == KafkaError._PARTITION_EOF


@pytest.mark.parametrize(
    ("mode", "by_consume"), [*((mode, False) for mode in RAISING_MODES), ("latest", True), ("parallel", True)]
)
def test_a_position_out_of_range_is_raised_and_ended_by_seek(kafka: KafkaFixture, mode: str, by_consume: bool) -> None:
    """Of a committed offset and of a sought one, below and above the log."""
    topic, group = kafka.log(), unique_name("group")
    kafka.commit(group, topic, BELOW)
    with Consumer({**kafka.config(group, auto_offset_reset="none"), **MODES[mode]}) as consumer:
        consumer.subscribe([topic])
        for position in (ABOVE, END - 2):
            error = raised(consumer, by_consume=by_consume)
            assert [(each.topic, each.partition) for each in error.partitions] == [(topic, 0)]
            assert len(consumer.assignment()) == 1
            consumer.seek(TopicPartition(topic, 0, position))
        assert read(consumer, 2) == [END - 2, END - 1]
        kafka.delete_records_before(topic, START + 10)
        consumer.seek(TopicPartition(topic, 0, START))
        raised(consumer, by_consume=by_consume)
        consumer.seek(TopicPartition(topic, 0, START + 10))
        assert read(consumer, 1) == [START + 10]


def test_the_other_partitions_are_read_meanwhile(kafka: KafkaFixture) -> None:
    topic, group = kafka.log(2), unique_name("group")
    kafka.write(topic, 10, partition=1)
    kafka.commit(group, topic, 0, partition=1)
    kafka.commit(group, topic, BELOW)
    config = kafka.config(group, auto_offset_reset="none", auto_offset_reset_on_no_initial_offset="latest_on_start")
    offsets: list[int | None] = []
    errors: list[list[int]] = []
    with Consumer(config) as consumer:
        consumer.subscribe([topic])

        def are_read() -> bool:
            try:
                message = consumer.poll(0.1)
            except OffsetOutOfRange as error:
                errors.append([each.partition for each in error.partitions])
                return False
            if message is not None and message.error() is None:
                offsets.append(message.offset())
            return len(offsets) == 10

        wait_until(are_read, "the records of partition 1")
        if not errors:
            raised(consumer, by_consume=False)
    assert offsets == list(range(10))
    assert errors in ([], [[0]])


def test_an_error_that_was_not_raised_yet_ends_with_a_seek(kafka: KafkaFixture) -> None:
    """CK-36: as in on_assign, after `assign`."""
    topic, group = kafka.log(2), unique_name("group")
    settings = {"auto_offset_reset": "none", "auto_offset_reset_on_no_initial_offset": "latest_on_start"}
    kafka.commit(group, topic, START, partition=1)
    with kafka.consumer(group, **settings) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        delegate = consumer._delegate
        assert delegate is not None
        delegate._pending.wait(LIMIT_S)
        assert delegate._pending._errors
        consumer.seek(TopicPartition(topic, 0, START))
        assert read(consumer, 1) == [START]
