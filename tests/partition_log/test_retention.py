"""Retention by time and size, and compaction of topics, on the broker's clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from kproto.records.batches import read_records
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.broker.broker import Broker, DataDirectory
from kproto_server.deferred import at_once
from kproto_server.partition_log.partition_data import TIMES_MAX, PartitionData
from kproto_server.partition_log.retention import (
    STEP_BATCHES,
    MemoryLimit,
    RetentionConfig,
    SegmentBuilder,
    SegmentSummary,
    expired_end,
)
from tests.partition_log.conversation import Talk
from tests.partition_log.conversation_chapters import batch, fetch, message_set, offsets, produce
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

NOW_MS = 1_000_000


def test_segments_in_memory_end_by_size_and_by_time() -> None:
    segments = SegmentBuilder(RetentionConfig(segment_bytes=100, segment_ms=10))
    ended = [segments.add(*batch) for batch in [(0, 40, -1), (1, 40, 5), (2, 40, 6), (3, 10, 16), (4, 10, 17)]]
    assert ended == [None, None, SegmentSummary(2, 80, 5), None, SegmentSummary(4, 50, 16)]
    assert segments.newest == SegmentSummary(5, 10, 17)


def data_of(*timestamps: int) -> PartitionData:
    """Return a partition with batches of ten records and of these greatest timestamps."""
    data = PartitionData()
    for timestamp in timestamps:
        data.append(batch(1), 9, timestamp, 0)
    return data


SIZE = len(batch(1))


def expired(data: PartitionData, now_ms: int = NOW_MS, **config: int) -> int:
    return at_once(expired_end(data, RetentionConfig(segment_bytes=SIZE, **config), now_ms))


@pytest.mark.parametrize(
    ("config", "start_offset", "expected"),
    [
        ({}, 0, 0),
        ({"retention_ms": 400}, 0, 10),
        ({"retention_ms": 0}, 0, 20),
        ({"retention_bytes": 3 * SIZE}, 0, 0),
        ({"retention_bytes": 2 * SIZE + 1}, 0, 0),
        ({"retention_bytes": 2 * SIZE}, 0, 10),
        ({"retention_bytes": 0}, 0, 30),
        ({}, 20, 20),
    ],
)
def test_whole_segments_expire(config: dict[str, int], start_offset: int, expected: int) -> None:
    data = data_of(NOW_MS - 500, NOW_MS - 100, NOW_MS)
    data.start_offset = start_offset  # on disk, batches below it are in the index after a restart
    assert expired(data, **config) == expected


def test_records_without_a_timestamp_expire_after_they_were_first_seen() -> None:
    """Kafka takes the time at which the file was changed (`LogSegment.largestTimestamp`)."""
    data = data_of(-1, -1)
    assert expired(data, retention_ms=100) == 0
    data.append(batch(1), 9, -1, 0)
    assert expired(data, NOW_MS + 50, retention_ms=100) == 0
    assert expired(data, NOW_MS + 101, retention_ms=100) == 20
    assert expired(data, NOW_MS + 151, retention_ms=100) == 30
    data.append(batch(1), 9, NOW_MS, 0)
    assert expired(data, NOW_MS + 100, retention_ms=100, segment_ms=1) == 0
    assert expired(data, NOW_MS + 101, retention_ms=0, retention_bytes=0) == 40


def test_few_times_of_records_without_a_timestamp_are_noted() -> None:
    data = PartitionData()
    for now_ms in range(1000):
        data.append(batch(1), 0, -1, 0)
        data.note_time(now_ms)
    assert len(data.times) <= TIMES_MAX
    found = [data.time_of_append(offset + 1, 1000) for offset in range(1000)]
    assert all(time_ms >= offset for offset, time_ms in enumerate(found))
    assert found == sorted(found)
    assert found[-1] == 999
    data.delete_before(1000)
    data.note_time(1000)
    assert data.times == []


@pytest.mark.parametrize(("max_age_ms", "count"), [(10, 1), (-1, 1), (0, 3 * STEP_BATCHES)])
def test_only_expired_batches_take_time(max_age_ms: int, count: int) -> None:
    """A check of a million batches held all clients for a second, although none of them had expired."""
    data = data_of(*[NOW_MS - 5] * (3 * STEP_BATCHES))
    check = expired_end(data, RetentionConfig(retention_ms=max_age_ms), NOW_MS)
    assert sum(check) == count


@pytest.mark.parametrize("on_disk", [False, True])
def test_records_without_a_timestamp_outlive_the_first_check(on_disk: bool, tmp_path: Path) -> None:
    """BA-61: Produce v0 and v1 have none, and later versions may leave it out. They expired at once."""
    data = DataDirectory(str(tmp_path), "os") if on_disk else None
    with Broker(data=data, clock="manual", kafka_version="3.9") as broker:
        talk = Talk(broker.bootstrap_servers)
        topics = {"set": (message_set(magic=0), 1), "batch": (batch(timestamp=-1), 7)}
        for topic, (encoded, version) in topics.items():
            talk.create(topic)
            produce(talk, "", topic, encoded, version)
        broker.clock.advance(minutes=6)
        assert [broker.topics.expire(topic) for topic in topics] == [{(topic, 0): 0} for topic in topics]
        broker.clock.advance(days=8)
        assert [broker.topics.expire(topic) for topic in topics] == [{(topic, 0): 1} for topic in topics]


def test_memory_is_limited_and_the_largest_partitions_lose_records_first() -> None:
    small, large = PartitionData(), PartitionData()
    small.append(batch(1, size=100), 0, 0, 0)
    limit = MemoryLimit(10_000)
    for _ in range(100):
        if limit.add(large.size_bytes):
            limit.drop_excess([small, large])
        large.append(batch(1, size=500), 0, 0, 0)
    assert small.start_offset == 0
    assert 0 < large.start_offset < large.next_offset == 100
    assert large.size_bytes + small.size_bytes < 12_000


def test_many_partitions_of_one_size_lose_their_records_in_one_pass() -> None:
    """The largest one was looked for among all of them each time."""
    looks = 0

    class Counted(PartitionData):
        def __getattribute__(self, name: str) -> object:
            nonlocal looks
            looks += name == "size_bytes"
            return super().__getattribute__(name)

    partitions = [Counted() for _ in range(1000)]
    for data in partitions:
        for offset in range(2):
            data.append(batch(1, size=100), 0, offset, 0)
    total = sum(data.size_bytes for data in partitions)
    looks = 0
    MemoryLimit(total - 1).drop_excess(partitions)
    assert sum(data.start_offset for data in partitions) == pytest.approx(200, abs=2)
    assert looks < 10_000


@pytest.mark.parametrize("on_disk", [False, True])
def test_records_expire_and_keys_are_compacted(on_disk: bool, tmp_path: Path) -> None:
    data = DataDirectory(str(tmp_path), "os") if on_disk else None
    with Broker(data=data, clock="manual", settings={"log.cleaner.backoff.ms": "1000"}, kafka_version="3.9") as broker:
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
        retained: list[int] = []
        limit = time.monotonic() + 60
        while (started["old"] < 13 or not started["large"] or not 0 < len(retained) < 6) and time.monotonic() < limit:
            broker.clock.advance(minutes=6)  # on disk, a thread syncs files before any is removed
            for topic in started:
                started[topic] = offsets(talk, "", {topic: {0: -2}}, 5).topics[0].partitions[0].offset
            read = fetch(talk, "", {"keys": {0: 0}}, 12).responses[0].partitions[0].records
            retained = [record.offset for record in read_records(read)]
        assert started["old"] == 13
        assert 0 < started["large"] < 12
        assert 2 <= len(retained) < 6, retained
        assert retained[-1] == 11


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_topic_has_its_own_configs_of_compaction(on_disk: bool, tmp_path: Path) -> None:
    """Another key makes less than half of the log dirty; the broker retains tombstones for a day."""
    data = DataDirectory(str(tmp_path), "os") if on_disk else None
    with Broker(data=data, clock="manual", kafka_version="3.9") as broker:
        talk = Talk(broker.bootstrap_servers)
        talk.create("plain", cleanup_policy="compact", segment_bytes="100")
        talk.create(
            "keys",
            cleanup_policy="compact",
            segment_bytes="100",
            min_cleanable_dirty_ratio="0.01",
            delete_retention_ms="1",
        )
        tombstone = build_record_batch([Record(b"k", None, timestamp=broker.clock.now_ms())])
        for topic in ("keys", "plain"):
            for _ in range(3):
                produce(talk, "", topic, batch(), 7)
            produce(talk, "", topic, tombstone, 7)
            produce(talk, "", topic, batch(key=b"other"), 7)

        def is_deleted() -> bool:
            for topic in ("keys", "plain"):
                produce(talk, "", topic, batch(key=b"other"), 7)  # closes a segment
            broker.clock.advance(minutes=1)
            return 3 not in retained_offsets(talk, "keys")

        wait_until(is_deleted, "the compaction of the tombstone: on disk, a thread syncs files in between")
        assert 3 in retained_offsets(talk, "plain")


def retained_offsets(talk: Talk, topic: str) -> list[int]:
    read = fetch(talk, "", {topic: {0: 0}}, 12).responses[0].partitions[0].records
    return [record.offset for record in read_records(read)]


def test_topics_in_memory_are_compacted_by_the_cleaners_interval() -> None:
    """kafka-go's TestReaderReadCompactedMessage waits two minutes for it; a real broker looks every 15 s."""
    with Broker(clock="manual", kafka_version="3.9") as broker:
        talk = Talk(broker.bootstrap_servers)
        talk.create("keys", cleanup_policy="compact", segment_bytes="100")
        talk.create("dirty", cleanup_policy="compact", segment_bytes="100", min_cleanable_dirty_ratio="1")
        now_ms = broker.clock.now_ms()
        for _ in range(4):
            for topic in ("keys", "dirty"):
                produce(talk, "", topic, batch(2, timestamp=now_ms), 7)
        broker.clock.advance(seconds=14)
        assert retained_offsets(talk, "keys") == list(range(8))
        broker.clock.advance(seconds=1)
        assert retained_offsets(talk, "keys") == [5, 6, 7]  # one key, and the active segment
        assert retained_offsets(talk, "dirty") == [5, 6, 7]  # all was dirty
        for topic in ("keys", "dirty"):
            produce(talk, "", topic, batch(2, timestamp=now_ms), 7)
        broker.clock.advance(seconds=15)
        assert retained_offsets(talk, "keys") == [7, 8, 9]
        assert retained_offsets(talk, "dirty") == [5, 6, 7, 8, 9]


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_the_cleaner_may_be_off(enabled: str) -> None:
    with Broker(clock="manual", kafka_version="3.9", settings={"log.cleaner.enable": enabled}) as broker:
        talk = Talk(broker.bootstrap_servers)
        talk.create("keys", cleanup_policy="compact", segment_bytes="100")
        for _ in range(4):
            produce(talk, "", "keys", batch(2, timestamp=broker.clock.now_ms()), 7)
        broker.clock.advance(seconds=15)
        assert len(retained_offsets(talk, "keys")) == {"true": 3, "false": 8}[enabled]


@pytest.mark.parametrize("on_disk", [False, True])
def test_records_expire_by_the_time_between_them(on_disk: bool, tmp_path: Path) -> None:
    """Records of many days that are written at once, as by a backfill, are in segments of `segment.ms` each.

    4.4.0 with these records and settings has the log start offset 3, too.
    """
    day_ms = 86_400_000
    data = DataDirectory(str(tmp_path), "os") if on_disk else None
    with Broker(data=data, clock="manual") as broker:
        talk = Talk(broker.bootstrap_servers)
        talk.create("history", segment_ms=str(day_ms), retention_ms=str(3 * day_ms))
        for days_ago in (10, 9.5, 8, 2.5, 0):
            produce(talk, "", "history", batch(1, timestamp=int(broker.clock.now_ms() - days_ago * day_ms)), 7)
        broker.clock.advance(minutes=6)
        wait_until(lambda: _start_offset(talk, "history") == 3, "the deletion: on disk, a thread syncs the file before")
        read = fetch(talk, "", {"history": {0: 3}}, 12).responses[0].partitions[0].records
        assert [record.offset for record in read_records(read)] == [3, 4]


def _start_offset(talk: Talk, topic: str) -> int:
    return int(offsets(talk, "", {topic: {0: -2}}, 5).topics[0].partitions[0].offset)


def test_broker_retention_setting_applies_to_topics_without_their_own() -> None:
    with Broker(clock="manual", settings={"log.retention.minutes": "2"}) as broker:
        talk = Talk(broker.bootstrap_servers)
        talk.create("plain")
        produce(talk, "", "plain", batch(2, timestamp=broker.clock.now_ms()), 7)
        broker.clock.advance(minutes=6)
        assert offsets(talk, "", {"plain": {0: -2}}, 5).topics[0].partitions[0].offset == 2


def test_compacted_topics_on_disk_do_not_expire(tmp_path: Path) -> None:
    with Broker(data=DataDirectory(str(tmp_path), "os"), clock="manual", kafka_version="3.9") as broker:
        talk = Talk(broker.bootstrap_servers)
        talk.create("both", cleanup_policy="compact,delete", retention_ms="1000")
        produce(talk, "", "both", batch(2, timestamp=broker.clock.now_ms()), 7)
        broker.clock.advance(days=1)
        assert offsets(talk, "", {"both": {0: -2}}, 5).topics[0].partitions[0].offset == 0
