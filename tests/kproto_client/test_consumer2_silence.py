"""Consumer 2 fails if it gets no record for long: it may have forgotten all brokers (librdkafka's issue 5301)."""

from __future__ import annotations

import pytest
from confluent_kafka import Message

from kproto.client import consumer2
from kproto.client.consumer2 import SILENCE_MAX_S, Consumer2, Consumer2Failed
from tests.kproto_client.test_consumer2_runs import FakeConsumer, reader, records

PARTITIONS = [("a", 0), ("a", 1)]


class SilentConsumer(FakeConsumer):
    """A librdkafka consumer that returns the records of a fetch, or nothing."""

    def poll(self, timeout: float) -> Message | None:
        del timeout
        return None

    def pause(self, partitions: object) -> None: ...


class Clock:
    """The monotonic clock of consumer 2."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1000.0
        monkeypatch.setattr(consumer2, "monotonic", lambda: self.now_s)

    def fetch_after(self, consumer: Consumer2, seconds: float) -> int:
        """Return the number of records that are fetched after a time."""
        self.now_s += seconds
        return sum(len(run) for _, run in consumer.fetch(500, 0).runs)


def test_a_silent_consumer_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    consumer = reader(SilentConsumer([], [], records(0, 1), [], [], []))
    assert clock.fetch_after(consumer, 0) == 0
    assert clock.fetch_after(consumer, SILENCE_MAX_S - 1) == 0
    assert clock.fetch_after(consumer, 100) == 1, "a record that was fetched in between"
    assert clock.fetch_after(consumer, 100) == 0
    assert clock.fetch_after(consumer, SILENCE_MAX_S - 1) == 0
    with pytest.raises(Consumer2Failed, match="no record for 30 s"):
        clock.fetch_after(consumer, 1)


def test_paused_partitions_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    consumer = reader(SilentConsumer([], [], [], [], []))
    consumer.pause(PARTITIONS)
    assert clock.fetch_after(consumer, 0) == 0
    assert clock.fetch_after(consumer, 100) == 0
    consumer.resume(PARTITIONS[:1])
    assert clock.fetch_after(consumer, SILENCE_MAX_S - 1) == 0
    with pytest.raises(Consumer2Failed):
        clock.fetch_after(consumer, 1)
    consumer.unassign(PARTITIONS, close=False)
    consumer.assign({})
    assert clock.fetch_after(consumer, 100) == 0
