"""safe_latest in partitions and topics that are added: the first record comes at once, and none is skipped.

Each case is a function of a `KafkaFixture`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import confluent_kafka
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from kproto.client import Consumer
from tests.kproto_client.decision_tables import END, START
from tests.kproto_client.kafka_fixture import (
    Case,
    KafkaFixture,
    cases,
    read,
    start_position,
    unique_name,
    wait_for_assignment,
)
from tests.kproto_client.reset_cases import HOUR_MS, resets, start_of
from tests.waiting import LIMIT_S, wait_until

SAFE_LATEST = resets("safe_latest", "latest")
FIRST_RECORD_LIMIT_S = 2.0
"""From the assignment of an added partition to its first record."""
COOPERATIVE: dict[str, Any] = {"partition_assignment_strategy": "cooperative-sticky"}
CONSUMER_PROTOCOL: dict[str, Any] = {"group_protocol": "consumer"}


class TimedConsumer:
    """A consumer that notes when a partition was assigned and when each partition's first record came."""

    def __init__(self, kafka: KafkaFixture, group: str, topic: str, **settings: Any) -> None:
        self.consumer = Consumer(kafka.config(group, **SAFE_LATEST, **settings))
        self.assigned_at: dict[int, float] = {}
        self.first: dict[int, tuple[float, int | None]] = {}
        """By partition, the time and the offset of the first record."""
        self.is_assigned = False
        self.consumer.subscribe([topic], on_assign=self._on_assign)

    def poll(self) -> None:
        message = self.consumer.poll(0.02)
        if message is not None and message.error() is None:
            partition = message.partition()
            assert partition is not None
            self.first.setdefault(partition, (time.monotonic(), message.offset()))

    def _on_assign(self, _: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        self.is_assigned = True
        self.assigned_at.update((each.partition, time.monotonic()) for each in partitions)


def partition_added_while_running(kafka: KafkaFixture, settings: dict[str, Any]) -> None:
    """CK-22: its first record comes at once, and the other partition's records do not wait."""
    topic, group = kafka.log(), unique_name("group")
    timed = TimedConsumer(kafka, group, topic, **settings)
    try:
        assert start_position(timed.consumer) == END
        kafka.expand(topic, 2)
        kafka.write(topic, 3, partition=1)

        def both_read() -> bool:
            kafka.write(topic, 1)
            timed.poll()
            return len(timed.first) == 2

        wait_until(both_read, "the first record of both partitions")
        first_at, offset = timed.first[1]
        assert offset == 0
        assert first_at - timed.assigned_at[1] < FIRST_RECORD_LIMIT_S
    finally:
        timed.consumer.close()


def partition_added_to_a_member_that_has_not_heard_of_it(kafka: KafkaFixture) -> None:
    """CK-22: only the group leader refreshes its metadata; the partition goes to the other member."""
    topic, group = kafka.log(), unique_name("group")
    with ExitStack() as stack:
        leader = TimedConsumer(kafka, group, topic, client_id="a")
        stack.callback(leader.consumer.close)
        wait_for_assignment(leader.consumer, 1)
        member = TimedConsumer(kafka, group, topic, client_id="b", topic_metadata_refresh_interval_ms=300_000)
        stack.callback(member.consumer.close)

        def poll_until(condition: Callable[[], bool], what: str) -> None:
            def met() -> bool:
                leader.poll()
                member.poll()
                return condition()

            wait_until(met, what)

        poll_until(lambda: member.is_assigned, "an assignment without partitions")
        kafka.expand(topic, 2)
        kafka.write(topic, 3, partition=1)
        poll_until(lambda: 1 in member.first, "the first record")
        first_at, offset = member.first[1]
        assert offset == 0
        assert first_at - member.assigned_at[1] < FIRST_RECORD_LIMIT_S


def read_and_commit(kafka: KafkaFixture, group: str, topic: str, metadata: str = "") -> None:
    """Read the topic's new records with safe_latest and commit."""
    with kafka.consumer(group, **SAFE_LATEST) as consumer:
        consumer.subscribe([topic])
        assert start_position(consumer) == END
        kafka.write(topic, 2)
        read(consumer, 2)
        consumer.commit(offsets=[TopicPartition(topic, 0, END + 2, metadata)], asynchronous=False)


def assert_added_partition_is_read(
    kafka: KafkaFixture, group: str, topic: str, *, timestamp: int | None = None
) -> None:
    kafka.expand(topic, 2)
    kafka.write(topic, 3, partition=1, timestamp=timestamp)  # before the next member starts
    with kafka.consumer(group, **SAFE_LATEST) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 3, partition=1) == [0, 1, 2]


def offsets_with_metadata_of_the_user(kafka: KafkaFixture) -> None:
    """CK-16: the user's metadata is kept as it is, without the start time of the group."""
    topic, group = kafka.log(), unique_name("group")
    read_and_commit(kafka, group, topic, metadata="host-1")
    assert kafka.committed_with_metadata(group, topic).metadata == "host-1"
    assert_added_partition_is_read(kafka, group, topic)


def metadata_of_the_user_stays(kafka: KafkaFixture) -> None:
    """CK-16: also if the result of an earlier commit comes after the user's commit, in `poll` or in `close`."""
    for polls in (False, True):
        topic, group = kafka.log(), unique_name("group")
        with kafka.consumer(group, **SAFE_LATEST) as consumer:
            consumer.subscribe([topic])
            assert start_position(consumer) == END
            kafka.write(topic, 2)
            read(consumer, 2)
            consumer.commit(offsets=[TopicPartition(topic, 0, END + 1)], asynchronous=True)
            consumer.commit(offsets=[TopicPartition(topic, 0, END + 2, "host-1")], asynchronous=False)
            for _ in range(10 if polls else 0):  # automatic commits come in the time of four polls
                consumer.poll(0.05)
        committed = kafka.committed_with_metadata(group, topic)
        assert (committed.offset, committed.metadata) == (END + 2, "host-1")


def offsets_rewritten_by_a_plain_client(kafka: KafkaFixture) -> None:
    """CK-16."""
    topic, group = kafka.log(), unique_name("group")
    read_and_commit(kafka, group, topic)
    kafka.commit(group, topic, END + 1)
    assert_added_partition_is_read(kafka, group, topic)


def offsets_rewritten_by_an_admin_tool(kafka: KafkaFixture) -> None:
    """CK-16."""
    topic, group = kafka.log(), unique_name("group")
    read_and_commit(kafka, group, topic)
    rewritten = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, END)])
    for future in kafka.admin.alter_consumer_group_offsets([rewritten]).values():
        future.result(LIMIT_S)
    assert_added_partition_is_read(kafka, group, topic)


def group_of_a_plain_client(kafka: KafkaFixture) -> None:
    """CK-16: the group is older than its first kproto.client."""
    topic, group = kafka.log(), unique_name("group")
    kafka.commit(group, topic, END)
    assert_added_partition_is_read(kafka, group, topic)


def records_with_older_timestamps(kafka: KafkaFixture) -> None:
    """CK-22: event time and mirrors; the partition is added, so its records are new to the group."""
    topic, group = kafka.log(), unique_name("group")
    read_and_commit(kafka, group, topic)
    assert_added_partition_is_read(kafka, group, topic, timestamp=int(time.time() * 1000) - 24 * HOUR_MS)


def topic_that_is_new_to_a_group(kafka: KafkaFixture) -> None:
    """CK-16, CK-22: the start time of the group decides; without it, no record counts as older."""
    now_ms = int(time.time() * 1000)
    for metadata, first_ms, expected in (
        (f"t0={now_ms - HOUR_MS}", now_ms - 2 * HOUR_MS, END),
        (f"t0={now_ms - HOUR_MS}", now_ms - HOUR_MS, START),
        ("", now_ms - 2 * HOUR_MS, START),
    ):
        other, topic, group = kafka.topic(), kafka.log(timestamp=first_ms), unique_name("group")
        kafka.commit(group, other, 0, metadata=metadata)
        assert start_of(kafka, topic, group, SAFE_LATEST) == expected


CASES: dict[str, Case] = {
    "partition added while running: eager": (partition_added_while_running, ({},)),
    "partition added while running: cooperative": (partition_added_while_running, (COOPERATIVE,)),
    **cases(
        partition_added_to_a_member_that_has_not_heard_of_it,
        offsets_with_metadata_of_the_user,
        metadata_of_the_user_stays,
        offsets_rewritten_by_a_plain_client,
        offsets_rewritten_by_an_admin_tool,
        group_of_a_plain_client,
        records_with_older_timestamps,
        topic_that_is_new_to_a_group,
    ),
}
CASES_WITH_CONSUMER_PROTOCOL: dict[str, Case] = {
    "partition added while running: consumer protocol": (partition_added_while_running, (CONSUMER_PROTOCOL,))
}
"""For brokers with KIP-848's groups: kproto and Kafka 4.0 and newer."""
