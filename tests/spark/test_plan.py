"""Logs are cut into tasks of about equal size, and the end of a growing log is found."""

from __future__ import annotations

import gc
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pytest

from kproto.arrow.decoding import View
from kproto.arrow.reading import RangeReader
from kproto.logs.ranges import OffsetRange
from kproto.records.control import ControlType
from kproto.spark.source.batch import KprotoReader
from kproto.spark.source.options import Options
from kproto.spark.source.plan import parts_of
from kproto.spark.source.scan_rows import BATCH_ROWS, combined
from kproto.spark.source.stream import KprotoStreamReader
from kproto.spark.source.tail import LogTail
from kproto.spark.source.task import keep_modules, tasks_of
from tests.arrow.living_log import LivingLog


@pytest.fixture
def log(tmp_path: Path) -> LivingLog:
    return LivingLog(tmp_path / "__consumer_offsets-7")


def test_the_stable_end_is_before_the_first_open_transaction(log: LivingLog) -> None:
    tail = LogTail(log.partition, 0)
    log.append()
    assert tail.end(stable=True) == 10
    log.append(producer_id=1)
    log.append(producer_id=2)
    assert (tail.end(stable=True), tail.end(stable=False)) == (10, 30)
    log.end(1, ControlType.COMMIT)
    assert tail.end(stable=True) == 20
    log.roll()
    log.end(2, ControlType.ABORT)
    log.append(size=70)
    assert tail.end(stable=True) == 32
    assert LogTail(log.partition, 10).end(stable=True) == 32


def counted(wanted: OffsetRange) -> tuple[int, int]:
    """Return the batches and the bytes of a range."""
    reader = RangeReader(wanted, View.NOTHING)
    for _ in reader:
        pass
    return reader.counts.batches, reader.blocks.size


def test_parts_cover_a_range_once_and_have_about_equal_size(log: LivingLog) -> None:
    log.filled(3, batches=40)
    size = log.path(0).stat().st_size
    for start, end in ((0, None), (15, 777), (400, 800)):
        parts = list(parts_of(OffsetRange(log.partition, start, end), size // 4))
        found = [offset for part in parts for offset in log.all_offsets(*part.range[1:])]
        assert found == list(range(start, end or 1200))
        read = [counted(part.range) for part in parts]
        assert tuple(map(sum, zip(*read, strict=True))) == counted(OffsetRange(log.partition, start, end))
    assert counted(OffsetRange(log.partition, 15, 777)) == (77, 77 * size // 40)
    assert len(list(parts_of(OffsetRange(log.partition, 0, None), size // 4))) >= 9
    assert all(part.size <= size * 3 // 5 for part in parts_of(OffsetRange(log.partition, 0, None), size // 4))


def test_a_damaged_index_is_not_used(log: LivingLog) -> None:
    log.filled(2, batches=40)
    for segment in log.partition.segments():
        log.path(segment.base_offset, ".index").write_bytes(b"\xff" * 64)
    parts = list(parts_of(OffsetRange(log.partition, 300, 700), log.path(0).stat().st_size // 4))
    assert [offset for part in parts for offset in log.all_offsets(*part.range[1:])] == list(range(300, 700))


def test_small_parts_are_combined(log: LivingLog) -> None:
    log.filled(10)
    parts = list(parts_of(OffsetRange(log.partition, 0, None), 10**6))
    size = parts[0].size
    tasks = tasks_of(parts, 4 * size)
    assert [len(task.ranges) for task in tasks] == [4, 4, 2]
    assert [one for task in tasks for one in task.ranges] == [part.range for part in parts]


def test_a_worker_does_not_collect_its_modules_after_each_task(log: LivingLog) -> None:
    log.append()
    (task,) = tasks_of(parts_of(OffsetRange(log.partition, 0, None), 10**6), 10**6)
    for reader in (KprotoReader, KprotoStreamReader):
        keep_modules.cache_clear()
        gc.unfreeze()
        assert sum(map(len, reader(Options(path=str(log.partition.path))).read(task))) == 10
        visited, kept = len(gc.get_objects()), gc.get_freeze_count()
        gc.unfreeze()
        assert kept > 10 * visited


def test_small_batches_of_a_scan_are_combined_in_order() -> None:
    sizes = [1, 2, BATCH_ROWS, 3, BATCH_ROWS + 5, *[1] * BATCH_ROWS, 4]
    ends = list(accumulate(sizes))
    batches = [
        pa.record_batch({"n": pa.array(range(end - size, end)), "s": pa.nulls(size, pa.struct({"x": pa.int32()}))})
        for size, end in zip(sizes, ends, strict=True)
    ]
    found = list(combined(iter(batches)))
    assert [len(batch) for batch in found] == [3, BATCH_ROWS, 3, BATCH_ROWS + 5, BATCH_ROWS, 4]
    assert [number for batch in found for number in batch["n"].to_pylist()] == list(range(ends[-1]))
