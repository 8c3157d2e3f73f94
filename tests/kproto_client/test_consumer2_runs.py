"""Consumer 2 divides its fetches by partition: librdkafka's positions show whether a fetch is of one partition."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, TopicPartition

from kproto.client import consumer2
from kproto.client.consumer2 import Consumer2

START = -1001
"""librdkafka's position of a partition of which no record was returned."""


class FakeConsumer:
    """A librdkafka consumer: each fetch is a list of partitions and offsets, and moves the positions."""

    def __init__(self, *fetches: list[tuple[str, int, int]]) -> None:
        self.fetches = list(fetches)
        self.positions: dict[tuple[str, int], int] = {}

    def incremental_assign(self, partitions: object) -> None: ...

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            self.positions.pop((each.topic, each.partition), None)

    def resume(self, partitions: object) -> None: ...

    def close(self) -> None: ...

    def consume(self, count: int, timeout: float) -> list[Message]:
        del count, timeout
        fetch = self.fetches.pop(0)
        self.positions.update({(topic, partition): offset + 1 for topic, partition, offset in fetch})
        return [Message(topic=topic, partition=partition, offset=offset) for topic, partition, offset in fetch]

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return [
            TopicPartition(each.topic, each.partition, self.positions.get((each.topic, each.partition), START))
            for each in partitions
        ]


def records(partition: int, *offsets: int, topic: str = "a") -> list[tuple[str, int, int]]:
    return [(topic, partition, offset) for offset in offsets]


def reader(fake: Any, partitions: int = 2) -> Consumer2:
    consumer = Consumer2(lambda: fake)
    consumer.assign({("a", number): TopicPartition("a", number, 0) for number in range(partitions)})
    return consumer


def fetch(consumer: Consumer2) -> list[tuple[tuple[str, int], list[int | None]]]:
    return [(partition, [each.offset() for each in run]) for partition, run in consumer.fetch(500, 0).runs]


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the runs whose records were compared one by one."""
    sizes: list[int] = []
    divided = consumer2._divided

    def noted(run: list[Message], key: Any) -> list[list[Message]]:
        sizes.append(len(run))
        return divided(run, key)

    monkeypatch.setattr(consumer2, "_divided", noted)
    return sizes


def test_records_of_one_partition_are_not_compared(passes: list[int]) -> None:
    """CK-92: gaps in the offsets do not matter."""
    consumer = reader(FakeConsumer(records(0, 0, 1, 5), records(1, 0, 2), records(1, 7)))
    assert [fetch(consumer) for _ in range(3)] == [[(("a", 0), [0, 1, 5])], [(("a", 1), [0, 2])], [(("a", 1), [7])]]
    assert passes == []


def test_records_of_several_partitions_are_divided(passes: list[int]) -> None:
    """Also a record whose offset fills a gap of the other partition."""
    consumer = reader(FakeConsumer(records(0, 0) + records(1, 1) + records(0, 2), records(0, 3)))
    assert fetch(consumer) == [(("a", 0), [0]), (("a", 1), [1]), (("a", 0), [2])]
    assert fetch(consumer) == [(("a", 0), [3])]
    assert passes == [3]


def test_a_partition_that_is_added_is_compared(passes: list[int]) -> None:
    fake = FakeConsumer(records(0, 0), records(0, 1) + records(0, 0, topic="b"), records(0, 1, topic="b"))
    consumer = reader(fake, 1)
    assert fetch(consumer) == [(("a", 0), [0])]
    consumer.assign({("b", 0): TopicPartition("b", 0, 0)})
    assert fetch(consumer) == [(("a", 0), [1]), (("b", 0), [0])]
    assert fetch(consumer) == [(("b", 0), [1])]
    assert passes[0] == 2


def test_records_of_a_partition_that_was_unassigned_are_dropped() -> None:
    """librdkafka may have forgotten its position."""
    fake = FakeConsumer(records(0, 0), records(0, 1) + records(1, 0) + records(0, 2))
    consumer = reader(fake)
    assert fetch(consumer) == [(("a", 0), [0])]
    consumer.unassign([("a", 1)])
    fake.position = lambda partitions: [TopicPartition("a", 0, 3)]  # type: ignore[method-assign]
    assert fetch(consumer) == [(("a", 0), [1]), (("a", 0), [2])]


def test_events_of_a_partition_that_was_unassigned_are_dropped() -> None:
    """librdkafka reports the end of the other partition only once."""
    fake, codes = FakeConsumer(), (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET)
    consumer = reader(fake)
    consumer.unassign([("a", 1)])
    fake.consume = lambda *_: [  # type: ignore[method-assign]
        Message(topic="a", partition=partition, offset=7, error=KafkaError(code))
        for partition in (0, 1)
        for code in codes
    ]
    fetched = consumer.fetch(500, 0)
    assert (fetched.ends, list(fetched.rejected)) == ({("a", 0): 7}, [("a", 0)])


def test_many_partitions_are_not_compared(passes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer2, "POSITIONS_MAX", 1)
    consumer = reader(FakeConsumer(records(0, 0, 1)))
    assert fetch(consumer) == [(("a", 0), [0, 1])]
    assert passes == [2]
