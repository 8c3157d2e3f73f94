"""Compaction against a model of the retained records (LF-70 to LF-73), interrupted at every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from kproto.records.batch_header import TRANSACTIONAL
from kproto.records.batches import read_batches
from kproto.records.compression import Compression
from kproto.records.control import ControlType, build_end_marker
from kproto.records.record import Record
from kproto.records.record_batch import RecordBatch, build_record_batch
from kproto_server.storage.cleaner import dirtiest
from kproto_server.storage.compaction import Compaction
from kproto_server.storage.disk import RealDisk, read_all
from kproto_server.storage.log_dir import LogDir
from kproto_server.testing.simulated_disk import SimulatedDisk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from kproto_server.storage.partition_log import PartitionLog

TOPIC = "__consumer_offsets"
DELETE_RETENTION_MS = 1000
MIN_DIRTY_RATIO = 0.5
NOW_MS = 1_000_000


def open_log(path: Path, segment_bytes: int = 300) -> tuple[LogDir, PartitionLog]:
    log_dir = LogDir(RealDisk(path), durability="os", segment_bytes=segment_bytes)
    log_dir.create_logs(TOPIC, 1)
    return log_dir, log_dir.logs[TOPIC, 0]


def write(log_dir: LogDir, log: PartitionLog, *records: tuple[str, str | None], compression: int = 0) -> None:
    """Append a batch of keys and values."""
    built = [
        Record(key.encode(), None if value is None else value.encode(), timestamp=NOW_MS, offset=offset)
        for offset, (key, value) in enumerate(records)
    ]
    batch = build_record_batch(built, base_offset=0, compression=Compression(compression))
    assert log_dir.writer.write(log, batch, len(built)) == 0


def batches(log_dir: LogDir, log: PartitionLog) -> list[RecordBatch]:
    found = []
    for segment in log.segments():
        if log_dir.disk.exists(segment.path):
            found += list(read_batches(read_all(log_dir.disk, segment.path)))
    assert all(isinstance(batch, RecordBatch) for batch in found)
    return [batch for batch in found if isinstance(batch, RecordBatch)]


def records(log_dir: LogDir, log: PartitionLog) -> list[Record]:
    return [record for batch in batches(log_dir, log) if not batch.is_control for record in batch.records()]


def compact(log_dir: LogDir, log: PartitionLog, now_ms: int = NOW_MS, steps: int | None = None) -> Compaction:
    """Compact the log, or stop after a number of steps."""
    compaction = Compaction(log_dir.disk, log, log_dir.writer, DELETE_RETENTION_MS, now_ms)
    for number, work in enumerate(compaction.run()):
        if work is not None:
            work()
        if number == steps:
            break
    return compaction


def table_of(found: Iterable[Record]) -> dict[bytes, bytes]:
    """Return the table that a consumer builds from these records."""
    known: dict[bytes, bytes] = {}
    for record in found:
        assert record.key is not None
        if record.value is None:
            known.pop(record.key, None)
        else:
            known[record.key] = record.value
    return known


def test_the_newest_record_of_each_key_is_retained_with_its_offset(tmp_path: Path) -> None:
    """LF-70, LF-72: base offsets, last offsets and timestamps stay; the active segment does not change."""
    log_dir, log = open_log(tmp_path)
    for number in range(12):
        write(log_dir, log, ("a", f"a{number}"), ("b", f"b{number}"))
    write(log_dir, log, ("c", "c"))
    before = records(log_dir, log)
    active = log.segments()[-1]
    compact(log_dir, log)
    after = records(log_dir, log)
    assert log.segments()[-1] == active
    assert set(after) <= set(before)
    old = [record for record in after if record.offset < active.base_offset]
    assert len({record.key for record in old}) == len(old)
    assert table_of(after) == table_of(before)
    assert all(batch.last_offset >= batch.base_offset for batch in batches(log_dir, log))


def test_tombstones_are_retained_until_their_delete_horizon(tmp_path: Path) -> None:
    """LF-70: `delete.retention.ms` after the first compaction that finds them the newest."""
    log_dir, log = open_log(tmp_path)
    write(log_dir, log, ("a", "x" * 100))
    write(log_dir, log, ("a", None))
    for _ in range(4):
        write(log_dir, log, ("b", "y" * 100))
    compact(log_dir, log)
    first = records(log_dir, log)
    assert next((r.key, r.value, r.offset, r.timestamp) for r in first) == (b"a", None, 1, NOW_MS)
    assert batches(log_dir, log)[0].delete_horizon_ms == NOW_MS + 1000
    compact(log_dir, log, NOW_MS + 999)
    assert records(log_dir, log) == first
    compact(log_dir, log, NOW_MS + 1000)
    assert b"a" not in {record.key for record in records(log_dir, log)}


def transactional(key: str, value: str, producer_id: int) -> bytes:
    built = [Record(key.encode(), value.encode(), timestamp=NOW_MS, offset=0)]
    return build_record_batch(built, base_offset=0, producer_id=producer_id, producer_epoch=0, flags=TRANSACTIONAL)


def test_aborted_records_go_markers_follow_and_an_open_transaction_ends_the_compaction(tmp_path: Path) -> None:
    """LF-71."""
    log_dir, log = open_log(tmp_path)

    def marker(kind: ControlType, producer_id: int) -> None:
        batch = build_end_marker(
            kind,
            offset=0,
            timestamp=NOW_MS,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            partition_leader_epoch=0,
        )
        assert log_dir.writer.write(log, batch, 1) == 0

    for kind, producer_id in ((ControlType.ABORT, 7), (ControlType.COMMIT, 8)):
        assert log_dir.writer.write(log, transactional("t", f"of {producer_id}", producer_id), 1) == 0
        marker(kind, producer_id)
    for _ in range(4):
        write(log_dir, log, ("b", "y" * 100))
    compact(log_dir, log)
    assert next(record.value for record in records(log_dir, log)) == b"of 8"
    kinds = [batch.header.producer_id for batch in batches(log_dir, log) if batch.is_control]
    assert kinds == [7, 8]
    compact(log_dir, log, NOW_MS + 1000)
    assert [batch.header.producer_id for batch in batches(log_dir, log) if batch.is_control] == [8]
    assert log_dir.writer.write(log, transactional("t", "open", 9), 1) == 0
    open_from = log.next_offset - 1
    for _ in range(8):
        write(log_dir, log, ("b", "z" * 100))
    assert compact(log_dir, log, NOW_MS + 2000).result is not None
    kept = [record.offset for record in records(log_dir, log) if record.offset >= open_from]
    assert kept == list(range(open_from, log.next_offset))


@pytest.mark.parametrize("compression", [0, 1])
def test_compacted_batches_keep_their_compression(tmp_path: Path, compression: int) -> None:
    log_dir, log = open_log(tmp_path)
    for number in range(6):
        write(log_dir, log, ("a", f"{number}" * 50), ("b", f"{number}" * 50), compression=compression)
    compact(log_dir, log)
    assert {batch.compression for batch in batches(log_dir, log)} == {Compression(compression)}


KEYS = st.sampled_from("abcd")
VALUES = st.one_of(st.none(), st.text("xyz", min_size=1, max_size=30))
HISTORIES = st.lists(
    st.one_of(
        st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4, unique_by=lambda pair: pair[0]),
        st.tuples(st.just("compact"), st.integers(0, 3000), st.integers(0, 30)),
        st.just("reopen"),
    ),
    max_size=40,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(HISTORIES)
def test_the_table_of_a_consumer_stays_the_same(tmp_path_factory: pytest.TempPathFactory, model: list[object]) -> None:
    """LF-70: after any compaction, complete or interrupted at any step."""
    path = tmp_path_factory.mktemp("log")
    log_dir, log = open_log(path, segment_bytes=200)
    expected: dict[bytes, bytes] = {}
    now_ms = NOW_MS
    for event in model:
        if event == "reopen":
            log_dir, log = open_log(path, segment_bytes=200)
        elif isinstance(event, tuple):
            _, pause_ms, steps = event
            now_ms += pause_ms
            compact(log_dir, log, now_ms, steps)
            if steps < 30:  # the compaction may be incomplete, as after SIGKILL
                log_dir, log = open_log(path, segment_bytes=200)
        else:
            assert isinstance(event, list)
            write(log_dir, log, *event)
            expected |= {key.encode(): value.encode() for key, value in event if value is not None}
            for key, value in event:
                if value is None:
                    expected.pop(key.encode(), None)
        found = records(log_dir, log)
        assert table_of(found) == expected
        assert [record.offset for record in found] == sorted({record.offset for record in found})


@pytest.mark.parametrize(("keys", "segment_bytes"), [(300, 100_000), (3000, 100_000), (3000, 400_000)])
def test_a_steady_stream_of_commits_takes_at_most_twice_the_live_data(keys: int, segment_bytes: int) -> None:
    """And one segment, at any moment, including the file that compaction writes.

    Compaction runs one step for each commit of ten partitions.
    """
    disk = SimulatedDisk()
    log_dir = LogDir(disk, durability="os", segment_bytes=segment_bytes)
    log_dir.create_logs(TOPIC, 1)
    log = log_dir.logs[TOPIC, 0]
    commits = [
        build_record_batch([Record(b"key-%06d" % (first + n), b"v" * 70, offset=n) for n in range(10)])
        for first in range(0, keys, 10)
    ]
    live = sum(map(len, commits))
    compaction: Compaction | None = None
    steps: Iterator[Callable[[], object] | None] = iter(())
    compactions = 0
    for _ in range(6 * (live + segment_bytes) // live):
        for commit in commits:
            assert log_dir.writer.write(log, commit, 10) == 0
            if compaction is None and dirtiest([(log, MIN_DIRTY_RATIO)]) is log:
                compaction = Compaction(disk, log, log_dir.writer, DELETE_RETENTION_MS, NOW_MS)
                steps = compaction.run()
            if compaction is not None:
                work = next(steps, compaction)
                if work is compaction:
                    assert compaction.result is not None
                    log.first_dirty_offset = compaction.result.first_dirty_offset
                    compaction = None
                    compactions += 1
                elif callable(work):
                    work()
            used = sum(disk.size_of(f"{log.directory}/{name}") for name in disk.names(log.directory))
            assert used <= 2 * live + segment_bytes
    assert compactions >= 4
    assert len({record.key for record in records(log_dir, log)}) == keys


@pytest.mark.parametrize("segment_bytes", [150, 300])
def test_a_log_begins_where_it_began(tmp_path: Path, segment_bytes: int) -> None:
    """As in Kafka, whose cleaner leaves an empty segment: otherwise consumers at the beginning had OFFSET_OUT_OF_RANGE
    after a restart."""
    log_dir, log = open_log(tmp_path, segment_bytes)
    for number in range(8):
        write(log_dir, log, ("a", f"{number}" + "x" * 100))
    for _ in range(2):
        compact(log_dir, log)
        assert log.segments()[0].base_offset == 0
    found = records(log_dir, log)
    log_dir.close()
    log_dir, log = open_log(tmp_path, segment_bytes)
    assert log.start_offset == 0
    assert records(log_dir, log) == found
    for number in range(4):
        write(log_dir, log, ("b", f"{number}" + "x" * 100))
    compact(log_dir, log)
    assert table_of(records(log_dir, log)).keys() == {b"a", b"b"}
    assert log.start_offset == 0
    log_dir.close()
