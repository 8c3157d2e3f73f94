"""Records that expire, by time and by size, and topics that are compacted: on the broker's clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from kproto.records.batches import read_records
from kproto_server.broker.broker import Broker, DataDirectory
from kproto_server.partition_log.partition_data import PartitionData
from kproto_server.partition_log.retention import Limits, MemoryBound, Run, expired_count, runs_of
from tests.partition_log.conversation import Talk
from tests.partition_log.conversation_chapters import batch, fetch, offsets, produce

if TYPE_CHECKING:
    from pathlib import Path

NOW_MS = 1_000_000
RUNS = [Run(10, 100, NOW_MS - 500), Run(20, 100, NOW_MS - 100), Run(30, 100, NOW_MS)]


def test_segments_end_by_size_and_by_time() -> None:
    batches = [(0, 40, 0), (1, 40, 5), (2, 40, 6), (3, 10, 20)]
    assert runs_of(batches, Limits(segment_bytes=100, segment_ms=10)) == [Run(2, 80, 5), Run(3, 40, 6), Run(4, 10, 20)]


@pytest.mark.parametrize(
    ("limits", "start_offset", "expected"),
    [
        (Limits(), 0, 0),
        (Limits(retention_ms=400), 0, 1),
        (Limits(retention_ms=0), 0, 2),
        (Limits(retention_bytes=300), 0, 0),
        (Limits(retention_bytes=201), 0, 0),
        (Limits(retention_bytes=200), 0, 1),
        (Limits(retention_bytes=0), 0, 3),
        (Limits(), 20, 2),
    ],
)
def test_whole_segments_go(limits: Limits, start_offset: int, expected: int) -> None:
    assert expired_count(RUNS, NOW_MS, start_offset, limits) == expected


def test_memory_has_a_bound_and_the_largest_partitions_give() -> None:
    small, large = PartitionData(), PartitionData()
    small.append(batch(1, size=100), 0, 0, 0)
    bound = MemoryBound(10_000)
    for _ in range(100):
        if bound.wrote(large.size_bytes):
            bound.keep([small, large])
        large.append(batch(1, size=500), 0, 0, 0)
    assert small.start_offset == 0
    assert 0 < large.start_offset < large.next_offset == 100
    assert large.size_bytes + small.size_bytes < 12_000


@pytest.mark.parametrize("on_disk", [False, True])
def test_records_expire_and_keys_are_compacted(on_disk: bool, tmp_path: Path) -> None:
    data = DataDirectory(str(tmp_path), "os") if on_disk else None
    settings = {"log.cleaner.backoff.ms": "1000", "log.cleaner.min.cleanable.ratio": "0.1"}
    with Broker(data=data, clock="manual", settings=settings, kafka_version="3.9") as broker:
        talk = Talk(broker.bootstrap_servers)
        talk.create("old", retention_ms="60000")
        talk.create("large", retention_bytes="300", retention_ms="-1", segment_bytes="200")
        talk.create("keys", cleanup_policy="compact", segment_bytes="100")
        now_ms = broker.clock.now_ms()
        for _ in range(6):
            for topic in ("old", "large", "keys"):
                produce(talk, "", topic, batch(2, timestamp=now_ms), 7)
        broker.clock.advance(minutes=6)
        produce(talk, "", "old", batch(1, timestamp=now_ms + 360_000), 7)
        started = {"old": 0, "large": 0}
        kept: list[int] = []
        limit = time.monotonic() + 60
        while (started["old"] < 13 or not started["large"] or not 0 < len(kept) < 6) and time.monotonic() < limit:
            broker.clock.advance(minutes=6)  # on disk, files are synced in a thread before any is removed
            for topic in started:
                started[topic] = offsets(talk, "", {topic: {0: -2}}, 5).topics[0].partitions[0].offset
            read = fetch(talk, "", {"keys": {0: 0}}, 12).responses[0].partitions[0].records
            kept = [record.offset for record in read_records(read)]
        assert started["old"] == 13
        assert 0 < started["large"] < 12
        assert 2 <= len(kept) < 6, kept
        assert kept[-1] == 11


def test_records_expire_by_the_brokers_own_limit() -> None:
    with Broker(clock="manual", settings={"log.retention.minutes": "2"}) as broker:
        talk = Talk(broker.bootstrap_servers)
        talk.create("plain")
        produce(talk, "", "plain", batch(2, timestamp=broker.clock.now_ms()), 7)
        broker.clock.advance(minutes=6)
        assert offsets(talk, "", {"plain": {0: -2}}, 5).topics[0].partitions[0].offset == 2


def test_what_is_compacted_on_disk_does_not_expire(tmp_path: Path) -> None:
    with Broker(data=DataDirectory(str(tmp_path), "os"), clock="manual", kafka_version="3.9") as broker:
        talk = Talk(broker.bootstrap_servers)
        talk.create("both", cleanup_policy="compact,delete", retention_ms="1000")
        produce(talk, "", "both", batch(2, timestamp=broker.clock.now_ms()), 7)
        broker.clock.advance(days=1)
        assert offsets(talk, "", {"both": {0: -2}}, 5).topics[0].partitions[0].offset == 0
