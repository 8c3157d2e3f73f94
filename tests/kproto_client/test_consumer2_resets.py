"""Positions of consumer 2 that are out of range, and the events of their resets; no record is skipped without need."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import TopicPartition

from kproto.client import Event, PositionReset, ResetReason
from kproto.client.broker_queries import BrokerQueries
from kproto.client.configuration import read as read_configuration
from kproto.client.consumer2 import Fetched
from kproto.client.decisions.resets import LogBounds
from kproto.client.parallel_catch_up import ParallelCatchUp
from tests.kproto_client.catch_up_model import ModelRecord
from tests.kproto_client.test_checkpoint_topic import FakeAdmin
from tests.kproto_client.test_key_scan import FakeConsumer2

PARTITION = ("orders", 0)
END = 100
READ_BY_CONSUMER2 = 60
CONFIG = {
    "group.id": "billing",
    "bootstrap.servers": "127.0.0.1:1",
    "enable.parallel.rebalance": True,
    "auto.offset.reset.on.invalid.offset": "nearest",
}


class FakeQueries:
    """Broker queries whose response is known."""

    def __init__(self, bounds: LogBounds) -> None:
        self.admin = FakeAdmin()
        self.bounds: Future[dict[Any, LogBounds]] = Future()
        self.bounds.set_result({PARTITION: bounds})

    def in_thread(self, *_: object) -> Future[dict[Any, LogBounds]]:
        return self.bounds


class Consumer2WithRejection(FakeConsumer2):
    """Reads a part of the range; then its position is out of range."""

    def __init__(self, error: str) -> None:
        records: Any = [ModelRecord(offset) for offset in range(READ_BY_CONSUMER2)]
        rejection: Any = SimpleNamespace(offset=lambda: READ_BY_CONSUMER2, error=lambda: error)
        super().__init__(Fetched(runs=[(PARTITION, records)]), Fetched(rejected={PARTITION: rejection}))


def reset(bounds: LogBounds, *, delivered: int, error: str = "out of range") -> tuple[ParallelCatchUp, list[Event]]:
    """Let consumer 2 read up to 60, deliver some of the records, and reject consumer 2's next fetch."""
    events: list[Event] = []
    queries = cast("BrokerQueries", FakeQueries(bounds))
    consumer1: Any = None
    parallel = ParallelCatchUp(consumer1, read_configuration(CONFIG), queries, lambda partitions: None, events.append)
    parallel._consumer2 = Consumer2WithRejection(error)  # type: ignore[assignment]
    parallel.start({PARTITION: TopicPartition(*PARTITION, 0)}, {PARTITION: LogBounds(start=0, end=END)})
    parallel.fetch(0)
    assert len(parallel.take(delivered)) == delivered
    parallel.fetch(0)
    return parallel, events


@pytest.mark.parametrize(
    ("delivered", "target", "again"),
    [(50, 40, 10), (40, 40, 0), (10, 10, 0)],
    ids=["behind the user", "at the user", "ahead of the user"],
)
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("out of range", ResetReason.OUT_OF_RANGE),
        (
            "log truncation detected at offset 60 (leader epoch 0): broker end offset is 40 (offset leader epoch 0)",
            ResetReason.TRUNCATION,
        ),
    ],
)
def test_fetched_records_before_a_truncation_are_not_skipped(
    delivered: int, target: int, again: int, error: str, reason: ResetReason
) -> None:
    """CK-86: the log ends at 40 by now; the user continues there, or before it where records wait in buffer 2."""
    parallel, events = reset(LogBounds(start=0, end=40), delivered=delivered, error=error)
    assert parallel.diverged == {PARTITION: target}
    resets = [event for event in events if isinstance(event, PositionReset)]
    found = [(each.from_offset, each.to_offset, each.reason, each.records_read_again) for each in resets]
    assert found == ([(delivered, target, reason, again)] if again else [])


@pytest.mark.parametrize(("log_start", "to_offset"), [(80, 80), (500, END)])
def test_records_that_retention_has_deleted_are_skipped(log_start: int, to_offset: int) -> None:
    """CK-86: as far as the range goes; consumer 1 has read the records after it."""
    parallel, events = reset(LogBounds(start=log_start, end=600), delivered=10)
    (found,) = (event for event in events if isinstance(event, PositionReset))
    assert (found.from_offset, found.to_offset, found.records_skipped) == (60, to_offset, to_offset - 60)
    assert parallel.diverged == {}
    assert parallel.catch_ups[PARTITION].consumer2_position == to_offset
