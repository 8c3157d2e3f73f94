"""KIP-333 with real clients: the proposal's example, and the rules of each call.

Each case is a function of a `KafkaFixture`.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, Message, TopicPartition

from kproto.client import Consumer, OffsetOutOfRange
from kproto.client.decisions.buffer1 import RECORD_BYTES
from kproto.client.decisions.catch_up_ranges import OPEN_END, OffsetRange
from kproto.client.decisions.checkpoints import CHECKPOINT_TOPIC, GroupCheckpoints, checkpoint_partition
from kproto.client.parallel_catch_up import ParallelCatchUp
from kproto.client.topic_partitions import offset_of
from tests.kproto_client.kafka_fixture import LIMIT_S, Case, KafkaFixture, cases, read, unique_name
from tests.waiting import wait_until

ON: dict[str, Any] = {"enable_parallel_rebalance": True, "enable_auto_commit": False}
NEAREST: dict[str, Any] = {"auto_offset_reset_on_invalid_offset": "nearest", "auto_offset_reset": "none"}


def behind(kafka: KafkaFixture, committed: int = 70, end: int = 120, partitions: int = 1) -> tuple[str, str]:
    """Create a topic with records in each partition, and a group that is behind in each partition."""
    topic, group = kafka.topic(partitions), unique_name("group")
    for partition in range(partitions):
        kafka.write(topic, end, partition=partition)
        kafka.commit(group, topic, committed, partition=partition)
    return topic, group


def parallel_of(consumer: Consumer) -> ParallelCatchUp:
    assert consumer._delegate is not None
    assert consumer._delegate._parallel is not None
    return consumer._delegate._parallel


def checkpoints(kafka: KafkaFixture, group: str, topic: str, partition: int = 0) -> dict[int, OffsetRange]:
    """Return the ranges of a partition in the topic `__parallel_checkpoints`."""
    count = len(kafka.admin.list_topics(timeout=LIMIT_S).topics[CHECKPOINT_TOPIC].partitions)
    consumer = confluent_kafka.Consumer(kafka.config(unique_name("group")))
    found = GroupCheckpoints(group)
    consumer.assign([TopicPartition(CHECKPOINT_TOPIC, checkpoint_partition(group, count), 0)])
    while (message := consumer.poll(LIMIT_S)) is not None and message.error() is None:
        found.add(offset_of(message), message.key(), message.value())
    consumer.close()
    by_number = found.by_partition().get((topic, partition), {})
    return {number: each.range for number, each in sorted(by_number.items())}


def wait_for_checkpoints(kafka: KafkaFixture, group: str, topic: str, expected: dict[int, OffsetRange]) -> None:
    """Wait until the ranges of partition 0 are written."""
    wait_until(lambda: checkpoints(kafka, group, topic) == expected, f"the checkpoints {expected}")


def serve(consumer: Consumer) -> None:
    """Wait until the consumer has written its checkpoints; it delivers nothing meanwhile."""
    parallel = parallel_of(consumer)

    def served() -> bool:
        parallel.serve()
        return not parallel.is_busy

    wait_until(served, "the checkpoints")


def worked_example(kafka: KafkaFixture) -> None:
    """CK-91, CK-51, CK-60, CK-63, CK-70 to CK-74: committed 70, log end 120."""
    topic, group = behind(kafka)
    at = [TopicPartition(topic, 0)]
    with kafka.consumer(group, **ON) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 1) == [70]
        serve(consumer)
        wait_for_checkpoints(kafka, group, topic, {0: OffsetRange(70, 120), 1: OffsetRange(120, OPEN_END)})
        kafka.write(topic, 10)
        wait_until(lambda: consumer.get_watermark_offsets(at[0], cached=True)[1] == 130, "a Fetch up to 130")
        for offset in range(71, 120):
            assert read(consumer, 1) == [offset]
            assert consumer.position(at)[0].offset == offset + 1
            if offset % 10 == 0:
                consumer.commit(asynchronous=False)
                assert consumer.committed(at, timeout=LIMIT_S)[0].offset == offset + 1
        assert parallel_of(consumer).catch_ups[topic, 0].buffer1_bytes > 0
        consumer.commit(asynchronous=False)
        assert read(consumer, 10) == list(range(120, 130))
        assert not parallel_of(consumer).consumer2_is_open
        consumer.commit(asynchronous=False)
        assert consumer.committed(at, timeout=LIMIT_S)[0].offset == 130
        kafka.write(topic, 1)
        assert read(consumer, 1) == [130]
    assert checkpoints(kafka, group, topic) == {}


def automatic_commits_follow_the_user(kafka: KafkaFixture) -> None:
    """CK-70, CK-73, CK-74: consumer 1's position is not committed before its records are delivered."""
    topic, group = behind(kafka, 0, 300)
    with kafka.consumer(group, enable_parallel_rebalance=True, auto_commit_interval_ms=10) as consumer:
        consumer.subscribe([topic])
        last = -1
        while last < 299:
            (last,) = read(consumer, 1)
            committed = kafka_committed(consumer, topic)
            assert committed is None or committed <= last + 1
        consumer.poll(0.1)
        wait_until(lambda: consumer.poll(0.02) is None and kafka_committed(consumer, topic) == 300, "the last commit")
    assert kafka.committed(group, topic) == 300
    assert checkpoints(kafka, group, topic) == {}


def kafka_committed(consumer: Consumer, topic: str) -> int | None:
    (result,) = consumer.committed([TopicPartition(topic, 0)], timeout=LIMIT_S)
    return result.offset if result.offset >= 0 else None


def close_commits_the_delivered_records(kafka: KafkaFixture) -> None:
    """CK-84: with automatic commits; the next owner finds the checkpoints."""
    topic, group = behind(kafka)
    with kafka.consumer(group, enable_parallel_rebalance=True, auto_commit_interval_ms=60_000) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 20)[-1] == 89
        serve(consumer)
    assert kafka.committed(group, topic) == 90
    assert checkpoints(kafka, group, topic) == {0: OffsetRange(70, 120), 1: OffsetRange(120, OPEN_END)}


def plain_consumer_takes_over(kafka: KafkaFixture) -> None:
    """CK-76: it continues at the committed offset; a parallel consumer after it clips stale ranges (CK-85)."""
    topic, group = behind(kafka)
    with kafka.consumer(group, **ON) as consumer:
        consumer.subscribe([topic])
        read(consumer, 20)
        serve(consumer)
        consumer.commit(asynchronous=False)
    plain = confluent_kafka.Consumer({**kafka.config(group), "enable.auto.commit": False})
    plain.subscribe([topic])
    assert read(plain, 15) == list(range(90, 105))
    plain.commit(asynchronous=False)
    plain.close()
    kafka.write(topic, 5)
    with kafka.consumer(group, **ON, parallel_rebalance_merge=False) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 1) == [105]
        serve(consumer)
        divided = {0: OffsetRange(106, 120), 1: OffsetRange(120, 125), 2: OffsetRange(125, OPEN_END)}
        wait_for_checkpoints(kafka, group, topic, divided)
        assert read(consumer, 19) == list(range(106, 125))


def no_catch_up_range(kafka: KafkaFixture) -> None:
    """CK-52: C = L, and no committed offset, for which KIP-842 decides."""
    for committed, expected in ((120, []), (None, list(range(120)))):
        topic, group = kafka.topic(), unique_name("group")
        kafka.write(topic, 120)
        if committed is not None:
            kafka.commit(group, topic, committed)
        with kafka.consumer(group, **ON, auto_offset_reset="earliest") as consumer:
            consumer.subscribe([topic])
            assert read(consumer, len(expected)) == expected
            wait_until(lambda: consumer.poll(0.02) is None and bool(consumer.assignment()), "an assignment")
            assert not parallel_of(consumer).catch_ups
            assert not parallel_of(consumer).consumer2_is_open


def pause_resume_and_seek(kafka: KafkaFixture) -> None:
    """CK-67, CK-55: the catch-up of the other partition continues independently."""
    topic, group = behind(kafka, 10, 120, partitions=2)
    first = TopicPartition(topic, 0)
    with kafka.consumer(group, **ON) as consumer:
        consumer.subscribe([topic])
        read(consumer, 1, partition=0)
        consumer.pause([first])
        rest = read(consumer, 110, partition=1)
        assert rest == list(range(10, 120))
        wait_until(
            lambda: consumer.poll(0.01) is None and set(parallel_of(consumer).catch_ups) == {(topic, 0)},
            "the end of the other catch-up",
        )
        assert all(m is None or m.partition() == 1 for m in (consumer.poll(0.01) for _ in range(5)))
        consumer.resume([first])
        assert read(consumer, 5, partition=0) == list(range(11, 16))
        consumer.seek(TopicPartition(topic, 0, 100))
        assert read(consumer, 20, partition=0) == list(range(100, 120))
        kafka.write(topic, 2)
        assert read(consumer, 2, partition=0) == [120, 121]
        assert not parallel_of(consumer).consumer2_is_open
    assert checkpoints(kafka, group, topic) == {}


def new_owner_continues(kafka: KafkaFixture) -> None:
    """CK-84, CK-75: eager and cooperative members share partitions during the catch-up; no record is skipped."""
    for strategy in ("range", "cooperative-sticky"):
        topic, group = behind(kafka, 0, 60, partitions=2)
        settings = {**ON, "enable_auto_commit": True, "partition_assignment_strategy": strategy}
        with kafka.consumer(group, **settings) as first, kafka.consumer(group, **settings) as second:
            assert share(first, second, topic) == {(partition, offset) for partition in (0, 1) for offset in range(60)}


def share(first: Consumer, second: Consumer, topic: str) -> set[tuple[int | None, int | None]]:
    """Let the second consumer join during the first one's catch-up; return the records of both."""
    seen: set[tuple[int | None, int | None]] = set()

    def note(consumer: Consumer) -> None:
        message = consumer.poll(0.02)
        if message is not None and message.error() is None:
            seen.add((message.partition(), message.offset()))

    first.subscribe([topic])
    while len(seen) < 20:
        note(first)
    second.subscribe([topic])
    limit = time.monotonic() + LIMIT_S
    while len(seen) < 120:
        assert time.monotonic() < limit
        note(first)
        note(second)
    return seen


def retention_passes_the_range(kafka: KafkaFixture) -> None:
    """CK-86, CK-52: before the start and during the catch-up; the rule for invalid offsets decides."""
    topic, group = behind(kafka, 10, 100)
    for _ in range(10):
        kafka.write(topic, 30)
    kafka.delete_records_before(topic, 50)
    small = {"queued_min_messages": 1, "max_partition_fetch_bytes": 1000}
    with kafka.consumer(group, **ON, **NEAREST, **small) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 1) == [50]
        assert parallel_of(consumer).catch_ups[topic, 0].ranges[0].end == 400
        kafka.write(topic, 3)
        parallel_of(consumer)._consumer2.pause([(topic, 0)])
        kafka.delete_records_before(topic, 398)
        parallel_of(consumer)._consumer2.resume([(topic, 0)])
        offsets = [50]
        while offsets[-1] < 402:
            offsets += read(consumer, 1)
        assert offsets == sorted(set(offsets))
        assert offsets[-5:] == [398, 399, 400, 401, 402]


def range_deleted_and_no_policy(kafka: KafkaFixture) -> None:
    """CK-86, CK-24: an exception if no setting names a reset position."""
    topic, group = behind(kafka, 10, 120)
    kafka.delete_records_before(topic, 50)
    with kafka.consumer(group, **ON, auto_offset_reset="none") as consumer:
        consumer.subscribe([topic])
        with pytest.raises(OffsetOutOfRange, match=rf"{topic} \[0\]"):
            read(consumer, 1)
        consumer.seek(TopicPartition(topic, 0, 60))
        assert read(consumer, 2) == [60, 61]


def topic_recreated(kafka: KafkaFixture) -> None:
    """CK-87: the ranges of the deleted topic do not apply to the new one."""
    topic, group = behind(kafka)
    settings = {**ON, "parallel_rebalance_merge": False}
    with kafka.consumer(group, **settings) as consumer:
        consumer.subscribe([topic])
        read(consumer, 1)
        serve(consumer)
    kafka.recreate(topic)
    kafka.write(topic, 150)
    kafka.commit(group, topic, 80)
    with kafka.consumer(group, **settings) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 1) == [80]
        serve(consumer)
        wait_for_checkpoints(kafka, group, topic, {0: OffsetRange(81, 150), 1: OffsetRange(150, OPEN_END)})


def lost_consumer2(kafka: KafkaFixture) -> None:
    """CK-81: the next consumer 2 continues in the same range."""
    topic, group = behind(kafka, 0, 2000)
    with kafka.consumer(group, **ON) as consumer:
        consumer.subscribe([topic])
        offsets = read(consumer, 5)
        serve(consumer)
        consumer2 = parallel_of(consumer)._consumer2._consumer
        assert consumer2 is not None
        consumer2.close()
        offsets += read(consumer, 1995)
        assert offsets == list(range(2000))
    assert checkpoints(kafka, group, topic) == {0: OffsetRange(0, 2000), 1: OffsetRange(2000, OPEN_END)}


def bounded_buffer1(kafka: KafkaFixture) -> None:
    """CK-65: a full buffer 1 pauses consumer 1 and drops nothing."""
    topic, group = behind(kafka, 0, 3000)
    with kafka.consumer(group, **ON, parallel_rebalance_buffer_bytes=100 * (RECORD_BYTES + 1)) as consumer:
        consumer.subscribe([topic])
        offsets = read(consumer, 1)
        kafka.write(topic, 2000)
        catch_up = parallel_of(consumer).catch_ups[topic, 0]

        def is_full_after_one_more() -> bool:
            offsets.extend(read(consumer, 1))
            return catch_up.buffer1_is_full

        wait_until(is_full_after_one_more, "a full buffer 1")
        assert catch_up.buffer1_bytes <= 101 * (RECORD_BYTES + 1)
        offsets += read(consumer, 5000 - len(offsets))
        assert offsets == list(range(5000))


def batches(kafka: KafkaFixture) -> None:
    """CK-60, CK-62, CK-64: `consume` delivers the same as `poll`, and no delivered record is kept in memory."""
    topic, group = behind(kafka, 0, 700, partitions=3)
    with kafka.consumer(group, **ON) as consumer:
        consumer.subscribe([topic])
        found: dict[int | None, list[int | None]] = {0: [], 1: [], 2: []}
        limit = time.monotonic() + LIMIT_S
        while sum(map(len, found.values())) < 2100:
            assert time.monotonic() < limit
            messages = consumer.consume(64, 0.5)
            assert len(messages) <= 64
            records = [message for message in messages if message.error() is None]
            for message in records:
                found[message.partition()].append(message.offset())
            del messages
            while records:
                message = records.pop()
                assert sys.getrefcount(message) == 2
        assert all(offsets == list(range(700)) for offsets in found.values())


def commits_of_the_user(kafka: KafkaFixture) -> None:
    """CK-70, CK-72: of a message, of offsets and of stored offsets; on_commit is called."""
    topic, group = behind(kafka, 0, 50)
    committed: list[int] = []

    def on_commit(error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        assert error is None
        committed.extend(each.offset for each in partitions)

    with kafka.consumer(group, **ON, enable_auto_offset_store=False, on_commit=on_commit) as consumer:
        consumer.subscribe([topic])
        messages = consume_records(consumer, 10)
        consumer.commit(message=messages[2], asynchronous=False)
        assert kafka_committed(consumer, topic) == 3
        consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
        assert kafka_committed(consumer, topic) == 5
        consumer.store_offsets(message=messages[6])
        consumer.commit()
        wait_until(lambda: (consumer.poll(0), 7 in committed)[1], "on_commit")
        assert kafka_committed(consumer, topic) == 7
        with pytest.raises(confluent_kafka.KafkaException, match="_NO_OFFSET"):
            consumer.commit(asynchronous=False)


def consume_records(consumer: Consumer, count: int) -> list[Message]:
    found: list[Message] = []
    while len(found) < count:
        message = consumer.poll(LIMIT_S)
        assert message is not None
        assert message.error() is None
        found.append(message)
    return found


def partition_end_follows_its_records(kafka: KafkaFixture) -> None:
    """CK-60: the end-of-partition event comes after the records of the partition."""
    topic, group = behind(kafka, 0, 30)
    with kafka.consumer(group, **ON) as consumer:
        consumer.subscribe([topic])
        events: list[int | None] = []
        while len(events) < 31:
            message = consumer.poll(LIMIT_S)
            assert message is not None
            events.append(message.offset() if message.error() is None else -1)
        assert events == [*range(30), -1]


CASES: dict[str, Case] = cases(
    worked_example,
    automatic_commits_follow_the_user,
    close_commits_the_delivered_records,
    plain_consumer_takes_over,
    no_catch_up_range,
    pause_resume_and_seek,
    new_owner_continues,
    retention_passes_the_range,
    range_deleted_and_no_policy,
    topic_recreated,
    lost_consumer2,
    bounded_buffer1,
    batches,
    commits_of_the_user,
    partition_end_follows_its_records,
)
