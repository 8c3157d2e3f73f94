"""KIP-842 with real clients: each row of tables A3 and A4, and the failure scenarios of the proposal.

Each case is a function of a `KafkaFixture`.
"""

from __future__ import annotations

import time

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from kproto.client import Consumer, NoOffsetForPartition
from tests.kproto_client.decision_tables import ABOVE, BELOW, END, OUT_OF_RANGE, RESETS, START, WITHOUT_OFFSET
from tests.kproto_client.kafka_fixture import Case, KafkaFixture, cases, read, start_position, unique_name
from tests.waiting import wait_until

HOUR_MS = 3_600_000
LIBRDKAFKA_ERRORS = {("none", "none"): "error"}
"""Without a new setting, librdkafka returns the error as a message; otherwise it is raised."""


def resets(initial: str, reset: str, invalid: str = "none") -> dict[str, str]:
    return {
        "auto_offset_reset": reset,
        "auto_offset_reset_on_no_initial_offset": initial,
        "auto_offset_reset_on_invalid_offset": invalid,
    }


def start_of(kafka: KafkaFixture, topic: str, group: str, settings: dict[str, str], partition: int = 0) -> int | str:
    with kafka.consumer(group, **settings) as consumer:
        consumer.subscribe([topic])
        return start_position(consumer, partition)


def row_without_offset(kafka: KafkaFixture, initial: str, reset: str) -> None:
    """CK-20: a row of table A3, both columns, with records and empty."""
    for topic, is_empty in ((kafka.log(2), False), (kafka.empty_log(2), True)):
        for expanded in (False, True):
            group = unique_name("group")
            if expanded:  # the group has a committed offset of another partition
                kafka.commit(group, topic, 0, partition=1)
            expected = WITHOUT_OFFSET[initial, reset][expanded]
            found = start_of(kafka, topic, group, resets(initial, reset))
            if expected is None:
                assert found == LIBRDKAFKA_ERRORS.get((initial, reset), "NoOffsetForPartition")
            else:
                assert found == (START if is_empty else expected), (is_empty, expanded, found)


def row_safe_latest(kafka: KafkaFixture, reset: str) -> None:
    """CK-20, CK-22: T1 < T0 and T1 >= T0, both columns; an empty partition."""
    settings = resets("safe_latest", reset)
    now = int(time.time() * 1000)
    for first_ms, expected in ((now - HOUR_MS, END), (now + HOUR_MS, START)):
        topic = kafka.log(2, timestamp=first_ms)
        assert start_of(kafka, topic, unique_name("group"), settings) == expected
        group = unique_name("group")
        kafka.commit(group, topic, 0, partition=1, metadata=f"t0={now}")
        assert start_of(kafka, topic, group, settings) == START
    assert start_of(kafka, kafka.empty_log(), unique_name("group"), settings) == START


def row_out_of_range(kafka: KafkaFixture, invalid: str, reset: str) -> None:
    """CK-30, CK-13, CK-32: a row of table A4, for committed offsets, with records and empty."""
    for topic, is_empty in ((kafka.log(), False), (kafka.empty_log(), True)):
        for position, expected in zip((BELOW, ABOVE), OUT_OF_RANGE[invalid, reset], strict=True):
            group = unique_name("group")
            kafka.commit(group, topic, position)
            found = start_of(kafka, topic, group, resets("none", reset, invalid))
            if expected is None:
                assert found == "error"
            else:
                assert found == (START if is_empty else expected), (is_empty, position, found)


def sought_position_out_of_range(kafka: KafkaFixture) -> None:
    """CK-12: of a position by seek as of a committed one; the other partition continues at its position."""
    topic = kafka.log(2)
    kafka.write(topic, 50, partition=1)
    with kafka.consumer(unique_name("group"), **resets("earliest", "none", "nearest")) as consumer:
        consumer.subscribe([topic])
        read(consumer, 500 - START + 50)
        for position, expected in ((BELOW, START), (ABOVE, END)):
            consumer.seek(TopicPartition(topic, 0, position))
            assert start_position(consumer) == expected
        kafka.write(topic, 1, partition=1)
        assert read(consumer, 1, partition=1) == [50]


def reset_of_an_invalid_offset_is_not_committed_at_once(kafka: KafkaFixture) -> None:
    """CK-33: the user's next commit has the position after the reset."""
    topic, group = kafka.log(), unique_name("group")
    kafka.commit(group, topic, BELOW)
    settings = {**resets("earliest_on_start", "latest", "nearest"), "enable_auto_commit": False}
    with kafka.consumer(group, **settings) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 1) == [START]
        assert kafka.committed(group, topic) == BELOW
        consumer.commit(asynchronous=False)
        assert kafka.committed(group, topic) == START + 1


def seek_cancels_a_pending_reset(kafka: KafkaFixture) -> None:
    """CK-36: between OFFSET_OUT_OF_RANGE and the decision."""
    topic = kafka.log()
    with kafka.consumer(unique_name("group"), **resets("earliest", "none", "nearest")) as consumer:
        consumer.subscribe([topic])
        read(consumer, 1)
        consumer.seek(TopicPartition(topic, 0, ABOVE))
        delegate = consumer._delegate
        assert delegate is not None
        wait_until(lambda: consumer.poll(0) is None and bool(delegate._pending._awaiting_reset), "OFFSET_OUT_OF_RANGE")
        consumer.seek(TopicPartition(topic, 0, 200))
        assert read(consumer, 2) == [200, 201]


def wait_for_rejection(consumer: Consumer, topic: str) -> None:
    """Seek partition 0 out of range, and wait without a poll until librdkafka has rejected that: then it cannot seek.

    The error waits in librdkafka's queue, behind records of partition 1 if there are any.
    """

    def is_rejected() -> bool:
        try:
            confluent_kafka.Consumer.seek(consumer, TopicPartition(topic, 0, BELOW))
        except KafkaException as error:
            return bool(error.args[0].code() == KafkaError._STATE)
        return False

    wait_until(is_rejected, "OFFSET_OUT_OF_RANGE")


def seek_overrides_an_error_behind_other_records(kafka: KafkaFixture) -> None:
    """CK-36: librdkafka's error of an earlier position says nothing about the sought one."""
    topic = kafka.log(2)
    kafka.write(topic, 50, partition=1)
    for settings in (resets("earliest", "none", "nearest"), resets("earliest", "latest")):
        with kafka.consumer(unique_name("group"), **settings) as consumer:
            consumer.assign([TopicPartition(topic, 0, 499), TopicPartition(topic, 1, 0)])
            assert read(consumer, 1, partition=1) == [0]
            wait_for_rejection(consumer, topic)
            consumer.seek(TopicPartition(topic, 0, 200))
            assert read(consumer, 300, partition=0) == list(range(200, 500)), settings


def partition_added_while_running(kafka: KafkaFixture) -> None:
    """CK-21, CK-14: latest_on_start with earliest skips older records, but no record of a new partition."""
    topic, group = kafka.log(), unique_name("group")
    with kafka.consumer(group, **resets("latest_on_start", "earliest")) as consumer:
        consumer.subscribe([topic])
        assert start_position(consumer) == END
        kafka.expand(topic, 2)
        kafka.write(topic, 3, partition=1)
        assert read(consumer, 3, partition=1) == [0, 1, 2]


def partition_added_while_down(kafka: KafkaFixture) -> None:
    """CK-14: the start of the group counts, not the start of the application."""
    topic, group = kafka.log(), unique_name("group")
    settings = resets("latest_on_start", "earliest")
    assert start_of(kafka, topic, group, settings) == END
    kafka.expand(topic, 2)
    kafka.write(topic, 3, partition=1)
    with kafka.consumer(group, **settings) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 3) == [0, 1, 2]


def safe_latest_keeps_the_group_start_time(kafka: KafkaFixture) -> None:
    """CK-16: T0 is kept over later commits and members, so that older records of a new partition are read."""
    topic, group = kafka.log(timestamp=int(time.time() * 1000) - HOUR_MS), unique_name("group")
    settings = resets("safe_latest", "latest")
    with kafka.consumer(group, **settings) as consumer:
        consumer.subscribe([topic])
        assert start_position(consumer) == END
        kafka.write(topic, 2)
        read(consumer, 2)
        consumer.commit(asynchronous=False)
    committed = kafka.committed_with_metadata(group, topic)
    assert committed.offset == END + 2
    assert str(committed.metadata).startswith("t0=")
    kafka.expand(topic, 2)
    kafka.write(topic, 3, partition=1)  # before the next member starts
    assert start_of(kafka, topic, group, settings, partition=1) == 0


def automatic_commits_keep_metadata_and_leader_epoch(kafka: KafkaFixture) -> None:
    """CK-16: those of librdkafka's timer and of a revocation, and of a position that a seek moved back."""
    topic, group = kafka.log(), unique_name("group")

    def assert_committed(offset: int) -> None:
        committed = kafka.committed_with_metadata(group, topic)
        assert (committed.offset, str(committed.metadata)[:3]) == (offset, "t0=")
        assert committed.leader_epoch is not None

    with kafka.consumer(group, **resets("safe_latest", "latest")) as consumer:

        def commits(offset: int) -> bool:
            consumer.poll(0.05)
            return kafka.committed(group, topic) == offset

        consumer.subscribe([topic])
        assert start_position(consumer) == END
        kafka.write(topic, 4)
        read(consumer, 4)
        wait_until(lambda: commits(END + 4), "a commit of the timer")
        assert_committed(END + 4)
        consumer.pause(consumer.assignment())
        consumer.seek(TopicPartition(topic, 0, END))
        consumer.resume(consumer.assignment())
        assert read(consumer, 1) == [END]
        consumer.pause(consumer.assignment())
        wait_until(lambda: commits(END + 1), "a commit of the position after the seek")
        assert_committed(END + 1)
        consumer.resume(consumer.assignment())
        assert read(consumer, 2) == [END + 1, END + 2]
    assert_committed(END + 3)


def reset_is_committed_at_once(kafka: KafkaFixture) -> None:
    """CK-15: also without automatic commits, and for all partitions of the topic, unless switched off."""
    for commits, expected in ((True, END), (False, None)):
        topic, group = kafka.log(2), unique_name("group")
        settings = {**resets("latest_on_start", "earliest"), "enable_auto_commit": False}
        with kafka.consumer(group, **settings, commit_reset_position=commits) as consumer:
            consumer.subscribe([topic])
            start_position(consumer)
        assert kafka.committed(group, topic) == expected


def members_that_start_together_agree(kafka: KafkaFixture) -> None:
    """CK-14, CK-15: the second member's partitions do not count as added later."""
    topic, group = kafka.topic(2), unique_name("group")
    for partition in (0, 1):
        kafka.write(topic, 20, partition=partition)
    settings = resets("latest_on_start", "earliest")
    with kafka.consumer(group, **settings) as first, kafka.consumer(group, **settings) as second:
        for consumer in (first, second):
            consumer.subscribe([topic])
        assigned: dict[int, int] = {}

        def have_one_each() -> bool:
            for each, consumer in enumerate((first, second)):
                message = consumer.poll(0.02)
                assert message is None or message.error() is not None, "an older record"
                assigned[each] = len(consumer.assignment())
            return sorted(assigned.values()) == [1, 1]

        wait_until(have_one_each, "a partition for each member")


def retention_overtakes_a_paused_consumer(kafka: KafkaFixture) -> None:
    """CK-12, CK-34: nearest is the first retained record."""
    topic, group = kafka.log(), unique_name("group")
    with kafka.consumer(group, **resets("earliest", "latest", "nearest"), queued_min_messages=1) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 1) == [START]
        at = TopicPartition(topic, 0)
        consumer.pause([at])
        kafka.delete_records_before(topic, 300)
        consumer.resume([at])
        assert start_position(consumer) == 300


def deleted_group_starts_again(kafka: KafkaFixture) -> None:
    """CK-11: its offsets look the same as offsets that were never committed."""
    topic, group = kafka.log(), unique_name("group")
    settings = resets("latest_on_start", "earliest")
    kafka.commit(group, topic, 200)
    assert start_of(kafka, topic, group, settings) == 200
    kafka.delete_group(group)
    assert start_of(kafka, topic, group, settings) == END


def error_does_not_stop_the_other_partitions(kafka: KafkaFixture) -> None:
    """CK-24, CK-36: the exception is raised once and names the partition, and a seek sets its position."""
    topic, group = kafka.topic(2), unique_name("group")
    for partition in (0, 1):
        kafka.write(topic, 10, partition=partition)
    kafka.commit(group, topic, 4, partition=1)
    with kafka.consumer(group, **resets("latest_on_start", "none")) as consumer:
        consumer.subscribe([topic])
        raised, offsets = list[NoOffsetForPartition](), list[int]()
        while len(offsets) < 6 or not raised:
            try:
                offsets += read(consumer, 1)
            except NoOffsetForPartition as error:
                raised.append(error)
        assert offsets == [4, 5, 6, 7, 8, 9]
        assert [(each.topic, each.partition) for each in raised[0].partitions] == [(topic, 0)]
        assert f"{topic} [0]" in str(raised[0])
        assert len(raised) == 1
        consumer.resume([TopicPartition(topic, 0)])
        consumer.seek(TopicPartition(topic, 0, 7))
        assert read(consumer, 3) == [7, 8, 9]


def positions_assigned_by_the_user_are_kept(kafka: KafkaFixture) -> None:
    """CK-11: on_assign assigns at a position."""
    topic, group = kafka.log(), unique_name("group")
    with kafka.consumer(group, **resets("latest", "none")) as consumer:

        def start(member: object, partitions: list[TopicPartition]) -> None:
            assert member is consumer
            for each in partitions:
                each.offset = 123
            consumer.assign(partitions)

        consumer.subscribe([topic], on_assign=start)
        assert start_position(consumer) == 123


CASES: dict[str, Case] = {
    **{f"without offset: {row}": (row_without_offset, row) for row in WITHOUT_OFFSET},
    **{f"safe_latest: {reset}": (row_safe_latest, (reset,)) for reset in RESETS},
    **{f"out of range: {row}": (row_out_of_range, row) for row in OUT_OF_RANGE},
    **cases(
        sought_position_out_of_range,
        reset_of_an_invalid_offset_is_not_committed_at_once,
        seek_cancels_a_pending_reset,
        seek_overrides_an_error_behind_other_records,
        partition_added_while_running,
        partition_added_while_down,
        safe_latest_keeps_the_group_start_time,
        automatic_commits_keep_metadata_and_leader_epoch,
        reset_is_committed_at_once,
        members_that_start_together_agree,
        retention_overtakes_a_paused_consumer,
        deleted_group_starts_again,
        error_does_not_stop_the_other_partitions,
        positions_assigned_by_the_user_are_kept,
    ),
}
