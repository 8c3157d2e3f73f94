"""The scan of a range's keys when consumer and range fail; order by key itself is in `catch_up_cases`."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from kproto.client.consumer2 import Consumer2Failed, Fetched
from kproto.client.decisions.buffer1 import KeyedBuffer1, RangeKeys
from kproto.client.key_scan import KeyScan
from tests.kproto_client.catch_up_model import ModelRecord

PARTITION = ("orders", 0)
RANGE = [ModelRecord(offset, key_number=offset) for offset in range(70, 120)]


class FakeConsumer2:
    """A consumer whose fetches a test gives."""

    def __init__(self, *fetches: Any) -> None:
        self.fetches = list(fetches)
        self.unassigned: list[tuple[str, int]] = []

    def assign(self, positions: object) -> None: ...

    def pause(self, partitions: object) -> None: ...

    def unassign(self, partitions: Any) -> None:
        self.unassigned += partitions

    def fetch(self, count: int, wait_s: float) -> Fetched:
        assert wait_s == 0, "a scan never waits"
        fetched = self.fetches.pop(0) if self.fetches else Fetched()
        if isinstance(fetched, Exception):
            raise fetched
        assert isinstance(fetched, Fetched)
        return fetched


def no_consumer() -> Consumer:
    raise AssertionError("the fake is used")


def scan_of(*fetches: Any) -> tuple[KeyScan, RangeKeys, FakeConsumer2]:
    scan, keys, consumer = KeyScan(no_consumer), RangeKeys(70, 120), FakeConsumer2(*fetches)
    scan._consumer = consumer  # type: ignore[assignment]
    scan.start({PARTITION: keys}, {PARTITION: TopicPartition(*PARTITION, 70)})
    return scan, keys, consumer


def run(start: int, end: int) -> Any:
    return Fetched(runs=[(PARTITION, RANGE[start - 70 : end - 70])])  # type: ignore[list-item]


def test_a_scan_ends_with_its_range() -> None:
    """CK-61: by its position; the last offsets may have no records."""
    for last in (run(100, 120), Fetched(ends={PARTITION: 120})):
        scan, keys, consumer = scan_of(run(70, 100), last)
        scan.serve()
        scan.serve()
        assert keys.is_complete
        assert not scan.is_open
        assert consumer.unassigned == [PARTITION]


@pytest.mark.parametrize("failure", [Consumer2Failed("closed"), Fetched(rejected={PARTITION: ModelRecord(70)})])  # type: ignore[dict-item]
def test_records_wait_for_the_range_if_its_scan_fails(failure: object, caplog: pytest.LogCaptureFixture) -> None:
    """CK-86: retention has passed the range, or the consumer is lost. Order is kept, and the log has a warning."""
    scan, keys, _ = scan_of(run(70, 100), failure)
    scan.serve()
    scan.serve()
    assert not scan.is_open
    assert "orders [0]: cannot read the keys of the catch-up range" in caplog.text
    buffer1 = KeyedBuffer1[ModelRecord](keys)
    buffer1.add([ModelRecord(120, key_number=1), ModelRecord(121, key_number=2)])
    assert not buffer1.has_free(119)
    assert [record.offset() for record in buffer1.take(2)] == [120, 121]
