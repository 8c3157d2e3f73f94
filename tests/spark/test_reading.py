"""Ranges of a partition's log are read exactly, whatever the broker does to its files between two steps.

A broker's doings are done to the files between two blocks: blocks are a batch each here, so that there are many.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kproto.errors import NoLog
from kproto.records.control import ControlType
from kproto.spark.decode import blocks as blocks_module
from kproto.spark.decode.files import OffsetIndex, find_partitions, position_of, survey
from kproto.spark.decode.reading import Range, RangeBlocks, RangeReader
from kproto.spark.decode.tables import View
from kproto.spark.source.plan import parts_of, tasks_of
from kproto.spark.source.tail import LogTail
from tests.spark.living_log import LivingLog


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_module, "BLOCK_SIZE", 1)


class Log(LivingLog):
    """With what is read of it."""

    def offsets(self, start: int = 0, end: int | None = None) -> Iterator[list[int]]:
        """Yield the offsets of each block."""
        for decoded in RangeReader(Range(self.partition, start, end), View.COMMITS):
            assert decoded.rows is not None
            yield decoded.rows["log_offset"].to_pylist()

    def all_offsets(self, start: int = 0, end: int | None = None) -> list[int]:
        return [offset for block in self.offsets(start, end) for offset in block]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "__consumer_offsets-7")


def test_a_range_has_its_offsets_and_no_others(log: Log) -> None:
    log.filled(4)
    for start, end in ((0, None), (0, 35), (29, 31), (30, 60), (45, 119), (119, 120), (60, 60), (200, None)):
        assert log.all_offsets(start, end) == list(range(start, min(120, end or 120)))


def test_segments_cleaned_while_they_are_read_lose_and_repeat_nothing(log: Log, small_blocks: None) -> None:
    """The reader is in the first of them when all three become one."""
    log.filled(4)
    found = []
    for number, offsets in enumerate(log.offsets()):
        found += offsets
        if number == 1:
            log.clean(0, 30, 60)
    assert found == list(range(120))


def test_a_segment_deleted_after_it_was_opened_is_read_to_its_end(log: Log, small_blocks: None) -> None:
    log.filled(3)
    found = []
    for number, offsets in enumerate(log.offsets()):
        found += offsets
        if number == 0:
            log.path(0).unlink()
    assert found == list(range(90))


def test_a_segment_deleted_before_it_was_opened_is_gone(log: Log, small_blocks: None) -> None:
    log.filled(3)
    found = []
    for number, offsets in enumerate(log.offsets()):
        found += offsets
        if number == 0:
            log.path(30).unlink()
    assert found == [*range(30), *range(60, 90)]


def test_what_comes_to_the_newest_segment_before_it_is_rolled_is_read(log: Log, small_blocks: None) -> None:
    """The reader has seen a torn tail; when it looks on, the batch is whole and its segment is an older one."""
    log.filled(1)
    log.append(octets=50)
    reader = RangeBlocks(Range(log.partition, 0, None))
    found = []
    for number, block in enumerate(reader):
        found.append(block.position)
        if number == 2:
            size = log.path(0).stat().st_size - 50
            os.truncate(log.path(0), size)
            log.append()
            log.roll()
            log.append()
    assert reader.next_offset == 50


def test_a_segment_that_is_there_as_swap_alone_is_read(log: Log) -> None:
    """LF-63: between two renames of the cleaner, or after a crash there."""
    log.filled(3)
    log.path(0, ".swap").write_bytes(log.path(0).read_bytes() + log.path(30).read_bytes())
    log.path(0).rename(log.path(0, ".deleted"))
    assert log.all_offsets() == list(range(90))
    log.path(30).rename(log.path(30, ".deleted"))
    assert log.all_offsets() == list(range(90))


@pytest.mark.parametrize("preallocated", [False, True])
def test_the_index_leads_near_an_offset(log: Log, preallocated: bool) -> None:
    log.filled(1, batches=50)
    index = log.path(0).with_suffix(".index")
    if preallocated:
        index.write_bytes(index.read_bytes() + bytes(8 * 1000))
    (segment,) = log.partition.segments()
    size = segment.path.stat().st_size
    with segment.path.open("rb") as file:
        places = [position_of(segment, file.fileno(), offset) for offset in range(0, 500, 25)]
        for offset in range(0, 500, 13):
            assert log.all_offsets(offset, offset + 1) == [offset]
    assert places[0] == 0
    assert places == sorted(places)
    assert places[-1] > size * 0.9


@pytest.mark.parametrize("index", [b"", bytes(8), b"\0\0\0\5\0\0\0\7" * 3, b"\0\0\0\1\0\0\0\1", b"\x7f" * 80, b"odd"])
def test_an_index_that_is_wrong_only_costs_time(log: Log, index: bytes) -> None:
    log.filled(1, batches=10)
    log.path(0).with_suffix(".index").write_bytes(index)
    assert log.all_offsets(55, 77) == list(range(55, 77))


def test_an_index_of_the_segment_before_it_was_cleaned_is_not_believed(log: Log) -> None:
    log.filled(1, batches=10)
    kept = log.path(0).read_bytes()
    size = len(kept) // 10
    log.path(0).write_bytes(kept[: 2 * size] + kept[7 * size :])
    assert log.all_offsets(55, 100) == list(range(70, 100))


def states(log: Log, start: int = 0, end: int | None = None, decoder: str = "fast") -> dict[int, str]:
    """The state of each batch's first offset."""
    found: dict[int, str] = {}
    for decoded in RangeReader(Range(log.partition, start, end), View.COMMITS, decoder=decoder):
        assert decoded.rows is not None
        for row in decoded.rows.to_pylist():
            found.setdefault(row["log_offset"] // 10 * 10, row["txn_state"])
    return found


@pytest.mark.parametrize("decoder", ["fast", "plain"])
def test_a_transaction_ends_with_the_first_marker_of_its_producer(log: Log, decoder: str) -> None:
    log.append(producer_id=1)  # 0
    log.append(producer_id=2)  # 10
    log.append()  # 20
    log.append(producer_id=1)  # 30
    log.roll()
    log.append(producer_id=3)  # 40
    log.end(1, ControlType.ABORT)
    log.end(2, ControlType.COMMIT)
    log.next_offset = 60
    log.append(producer_id=1)  # 60, another transaction
    log.end(1, ControlType.COMMIT)
    found = {0: "aborted", 10: "committed", 20: "none", 30: "aborted", 40: "pending", 60: "committed"}
    assert states(log, decoder=decoder) == found
    assert states(log, end=40) == {offset: found[offset] for offset in (0, 10, 20, 30)}
    assert states(log, start=40, end=60) == {40: "pending"}


def test_the_end_that_counts_is_before_the_first_open_transaction(log: Log) -> None:
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
    log.append(octets=70)
    assert tail.end(stable=True) == 32
    assert LogTail(log.partition, 10).end(stable=True) == 32


def test_parts_are_of_about_equal_size_and_cover_the_range_once(log: Log) -> None:
    log.filled(3, batches=40)
    size = log.path(0).stat().st_size
    for start, end in ((0, None), (15, 777), (400, 800)):
        parts = list(parts_of(Range(log.partition, start, end), size // 4))
        found = [offset for part in parts for offset in log.all_offsets(*part.range[1:])]
        assert found == list(range(start, end or 1200))
    assert len(list(parts_of(Range(log.partition, 0, None), size // 4))) >= 9
    assert all(part.size <= size * 3 // 5 for part in parts_of(Range(log.partition, 0, None), size // 4))


def test_small_parts_are_put_together(log: Log) -> None:
    log.filled(10)
    parts = list(parts_of(Range(log.partition, 0, None), 10**6))
    size = parts[0].size
    tasks = tasks_of(parts, 4 * size)
    assert [len(task.ranges) for task in tasks] == [4, 4, 2]
    assert [one for task in tasks for one in task.ranges] == [part.range for part in parts]


def test_directories_are_found_by_what_is_named(log: Log, tmp_path: Path) -> None:
    log.filled(2)
    (tmp_path / "orders-3").mkdir()
    (tmp_path / "__consumer_offsets-7.0123abc-delete").mkdir()
    by_dir, by_partition = find_partitions(str(tmp_path)), find_partitions(str(log.directory))
    assert by_dir == by_partition == [log.partition]
    assert find_partitions(log.directory.as_uri()) == [log.partition]
    assert [one.topic for one in find_partitions(str(tmp_path), None)] == ["__consumer_offsets", "orders"]
    (one,) = find_partitions(str(log.path(30)))
    assert [segment.base_offset for segment in one.segments()] == [30]
    counted = survey(by_dir)
    assert (counted.partitions, counted.files) == (1, 2)
    assert counted.size == sum(path.stat().st_size for path in log.directory.glob("*.log"))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("none", "no such file or directory"),
        ("orders-3/leader-epoch-checkpoint", "no segment"),
        (".", "no directories like __consumer_offsets-0 in it; it has partitions of orders"),
        ("orders-3/empty", "it has no directories like that"),
    ],
)
def test_a_path_without_log_is_told_in_a_line(tmp_path: Path, path: str, reason: str) -> None:
    (tmp_path / "orders-3" / "empty").mkdir(parents=True)
    (tmp_path / "orders-3" / "leader-epoch-checkpoint").touch()
    with pytest.raises(NoLog, match=reason):
        find_partitions(str(tmp_path / path))


def test_other_stores_are_refused() -> None:
    with pytest.raises(NoLog, match="only directories that each worker can open"):
        find_partitions("s3://bucket/logs")


def test_without_index_there_are_no_entries(log: Log) -> None:
    log.filled(1)
    log.path(0).with_suffix(".index").unlink()
    with OffsetIndex(log.partition.segments()[0]) as index:
        assert index.before(10, column=0) is None
