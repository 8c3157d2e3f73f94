"""Positions of consumer 2 that are out of range, and the events of their resets; the commit at the end of a range."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import TopicPartition

from kproto.client import Event, PositionReset, ResetReason
from kproto.client.assignment import Assignment
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
        self.is_closed = False
        self.bounds: Future[dict[Any, LogBounds]] = Future()
        self.bounds.set_result({PARTITION: bounds})

    def in_thread(self, *_: object) -> Future[dict[Any, LogBounds]]:
        return self.bounds


class Consumer2WithRejection(FakeConsumer2):
    """Reads a part of the range; then its position is out of range."""

    def __init__(self, error: str) -> None:
        records: Any = [ModelRecord(offset) for offset in range(READ_BY_CONSUMER2)]
        rejection: Any = SimpleNamespace(offset=lambda: 2 * END, error=lambda: error)
        super().__init__(Fetched(runs=[(PARTITION, records)]), Fetched(rejected={PARTITION: rejection}))


def catching_up(consumer2: FakeConsumer2, bounds: LogBounds) -> tuple[ParallelCatchUp, list[Event]]:
    """Start the catch-up of the range up to `END`; a query of the log bounds finds `bounds`."""
    events: list[Event] = []
    queries = cast("BrokerQueries", FakeQueries(bounds))
    consumer1: Any = None
    configuration, assignment = read_configuration(CONFIG), Assignment(consumer1, lambda _: None)
    parallel = ParallelCatchUp(consumer1, assignment, configuration, queries, lambda partitions: None, events.append)
    parallel._consumer2 = consumer2  # type: ignore[assignment]
    parallel.start({PARTITION: TopicPartition(*PARTITION, 0)}, {PARTITION: LogBounds(start=0, end=END)})
    return parallel, events


def reset(bounds: LogBounds, *, delivered: int, error: str = "out of range") -> tuple[ParallelCatchUp, list[Event]]:
    """Let consumer 2 read up to 60, deliver some of the records, and reject consumer 2's next fetch."""
    parallel, events = catching_up(Consumer2WithRejection(error), bounds)
    parallel.fetch(READ_BY_CONSUMER2, 0)
    assert len(parallel.take(delivered)) == delivered
    parallel.fetch(READ_BY_CONSUMER2, 0)
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


def test_an_error_of_an_earlier_position_changes_nothing() -> None:
    """CK-36: librdkafka does not drop the error if it waits behind records of another partition."""
    parallel, events = reset(LogBounds(start=0, end=END), delivered=10)
    assert not [event for event in events if isinstance(event, PositionReset)]
    assert (parallel.diverged, parallel.out_of_range) == ({}, [])
    assert parallel.catch_ups[PARTITION].consumer2_position == READ_BY_CONSUMER2


def test_an_error_that_waits_for_log_bounds_ends_with_the_catch_up() -> None:
    """The range may be complete before the bounds are known."""
    records: Any = [ModelRecord(offset) for offset in range(READ_BY_CONSUMER2, END)]
    consumer2 = Consumer2WithRejection("out of range")
    parallel, _ = catching_up(consumer2, LogBounds(start=0, end=END))
    consumer2.fetches[1].runs.append((PARTITION, records))
    parallel._queries.bounds = Future()  # type: ignore[attr-defined]
    parallel.fetch(READ_BY_CONSUMER2, 0)
    parallel.fetch(END, 0)
    assert len(parallel.take(END)) == END
    assert not parallel.take(1)
    assert PARTITION not in parallel.catch_ups
    parallel.fetch(1, 0)


def test_a_commit_before_the_end_of_the_catch_up_deletes_all_checkpoints() -> None:
    """CK-74: the last commit may succeed after the last record, and before the next call ends the catch-up."""
    records: Any = [ModelRecord(offset) for offset in range(END)]
    parallel, _ = catching_up(FakeConsumer2(Fetched(runs=[(PARTITION, records)])), LogBounds(start=0, end=END))
    parallel.fetch(END, 0)
    assert len(parallel.take(END)) == END
    parallel.committed(PARTITION, END)
    catch_up = parallel.catch_ups[PARTITION]
    assert not parallel.take(1)
    assert PARTITION not in parallel.catch_ups
    assert catch_up.checkpoints() == {}
