"""Who paused a partition: the user, kproto for want of a position, and kproto because buffer 1 is full."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import TopicPartition

from kproto.client.assignment import Assignment

FIRST, SECOND = ("orders", 0), ("orders", 1)


class FakeConsumer:
    """A consumer that keeps partitions paused across assignments, as librdkafka does."""

    def __init__(self) -> None:
        self.paused: set[tuple[str, int]] = set()
        self.assigned: list[TopicPartition] = []
        self.paused_at_start: set[tuple[str, int]] = set()
        """The partitions of the last assignment that were paused before it."""
        self.reported: int | None = None
        """The position that librdkafka reports."""

    def pause(self, partitions: list[TopicPartition]) -> None:
        self.paused |= {(each.topic, each.partition) for each in partitions}

    def resume(self, partitions: list[TopicPartition]) -> None:
        self.paused -= {(each.topic, each.partition) for each in partitions}

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        if self.reported is None:
            return partitions
        return [TopicPartition(each.topic, each.partition, self.reported) for each in partitions]

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned = partitions
        self.paused_at_start = self.paused & {(each.topic, each.partition) for each in partitions}

    incremental_assign = assign

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None: ...


@pytest.fixture(params=[False, True], ids=["eager", "cooperative"])
def parts(request: pytest.FixtureRequest) -> tuple[Assignment, FakeConsumer]:
    """Return an assignment of two partitions and its consumer."""
    consumer: Any = FakeConsumer()
    assignment = Assignment(consumer, lambda _: None)
    assignment.is_cooperative = request.param
    assignment.add([at(FIRST), at(SECOND)], [])
    return assignment, consumer


def at(partition: tuple[str, int]) -> TopicPartition:
    return TopicPartition(*partition, 7)


def test_a_partition_is_resumed_when_no_reason_is_left(parts: tuple[Assignment, FakeConsumer]) -> None:
    assignment, consumer = parts
    assignment.hold(FIRST)
    assignment.pause([FIRST, SECOND])
    assignment.resume([FIRST, SECOND])
    assert consumer.paused == {FIRST}, "buffer 1 is full"
    assignment.move([at(SECOND)])
    assert consumer.paused == {FIRST}
    assignment.release(FIRST)
    assert consumer.paused == set()
    assignment.move([at(SECOND)])
    assert consumer.paused == set(), "the user's pause has ended before"


def test_a_full_buffer_ends_while_the_user_pauses(parts: tuple[Assignment, FakeConsumer]) -> None:
    assignment, consumer = parts
    assignment.hold(FIRST)
    assignment.pause([FIRST])
    assignment.release(FIRST)
    assert consumer.paused == {FIRST}
    assignment.resume([FIRST])
    assert consumer.paused == set()


def test_a_moved_partition_stays_paused_while_buffer_1_is_full(parts: tuple[Assignment, FakeConsumer]) -> None:
    assignment, consumer = parts
    assignment.hold(FIRST)
    assignment.move([at(FIRST)])
    assert consumer.paused == {FIRST}


def test_a_revoked_partition_with_a_full_buffer_is_resumed_when_it_comes_back(
    parts: tuple[Assignment, FakeConsumer],
) -> None:
    assignment, consumer = parts
    assignment.hold(FIRST)
    assignment.remove([FIRST])
    assignment.add([at(FIRST)], [])
    assert consumer.paused == set()


def test_a_position_of_the_assignment_before_counts_for_nothing(parts: tuple[Assignment, FakeConsumer]) -> None:
    """librdkafka reports it until it has stopped the partition."""
    assignment, consumer = parts
    consumer.reported = 20
    assert assignment.positions([FIRST])[FIRST].offset == 20
    assignment.move([at(FIRST), at(SECOND)])
    assert assignment.positions([FIRST]) == {}
    assignment.move([at(SECOND)])
    assert {each.offset for each in consumer.assigned} == {7}
    consumer.reported = 8
    assert assignment.positions([FIRST])[FIRST].offset == 8


def test_a_partition_is_resumed_before_it_is_assigned() -> None:
    """librdkafka drops the records of a partition that is resumed while its start is under way."""
    for is_cooperative in (False, True):
        consumer: Any = FakeConsumer()
        assignment = Assignment(consumer, lambda _: None)
        assignment.is_cooperative = is_cooperative
        assign = assignment.add if is_cooperative else assignment.replace
        assign([at(FIRST), at(SECOND)], [FIRST, SECOND])
        assert consumer.paused_at_start == {FIRST, SECOND}
        assignment.move([at(SECOND)])
        assert consumer.paused == {FIRST}
        assert SECOND not in consumer.paused_at_start
        assignment.remove([FIRST, SECOND])
        assign([at(FIRST)], [])
        assert consumer.paused == consumer.paused_at_start == set()
