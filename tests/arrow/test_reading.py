"""A range of offsets is read exactly, whatever a broker does to the files meanwhile.

The tests change the files between two blocks. Blocks have one batch each here, so that there are many.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from kproto.arrow.decoding import View
from kproto.arrow.reading import RangeReader
from kproto.errors import NoLog
from kproto.logs import blocks as blocks_module
from kproto.logs.batches import batch_at
from kproto.logs.blocks import SegmentBlocks
from kproto.logs.errors import BadSize
from kproto.logs.files import PartitionDirectory, SegmentFile, find_partitions, survey
from kproto.logs.index import OffsetIndex, position_of
from kproto.logs.locations import listings_kept, open_file
from kproto.logs.ranges import OffsetRange, RangeBlocks
from kproto.records.batches import read_batches
from kproto.records.control import ControlType
from kproto.records.segment import BATCH_SIZE_MAX
from kproto.records.segment_files import segment_name
from tests.arrow.living_log import LivingLog
from tests.fixture_files import golden_log


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_module, "BLOCK_SIZE", 1)


@pytest.fixture
def log(tmp_path: Path) -> LivingLog:
    return LivingLog(tmp_path / "__consumer_offsets-7")


@pytest.mark.parametrize("block_size", [1, 11, 100, 1 << 20])
def test_reads_of_any_size_find_the_same_batches(monkeypatch: pytest.MonkeyPatch, block_size: int) -> None:
    monkeypatch.setattr(blocks_module, "BLOCK_SIZE", block_size)
    data = (golden_log("4.4.0") / "__consumer_offsets-0" / segment_name(0)).read_bytes()
    blocks = SegmentBlocks(io.BytesIO(data), "log", base_offset=0, is_newest=True)
    found = [batch_at(block, start) for block in blocks for start in block.starts]
    assert [placed.batch for placed in found] == list(read_batches(data))
    assert [placed.position for placed in found] == [0, *(placed.end for placed in found[:-1])]
    assert (blocks.position, blocks.torn) == (len(data), None)


@pytest.mark.parametrize("size", [-1, 13, BATCH_SIZE_MAX + 1])
def test_an_impossible_size_is_refused_before_the_batch_is_read(size: int) -> None:
    data = bytes(8) + size.to_bytes(4, "big", signed=True)
    with pytest.raises(BadSize, match=f"size {size}"):
        list(SegmentBlocks(io.BytesIO(data), "log", base_offset=0, is_newest=True))


def test_a_range_has_exactly_its_offsets(log: LivingLog) -> None:
    log.filled(4)
    for start, end in ((0, None), (0, 35), (29, 31), (30, 60), (45, 119), (119, 120), (60, 60), (200, None)):
        assert log.all_offsets(start, end) == list(range(start, min(120, end or 120)))


def test_merging_segments_during_reading_loses_and_repeats_nothing(log: LivingLog, small_blocks: None) -> None:
    """The reader is in the first of three segments when they become one."""
    log.filled(4)
    found = []
    for number, offsets in enumerate(log.offsets()):
        found += offsets
        if number == 1:
            log.clean(0, 30, 60)
    assert found == list(range(120))


def test_a_segment_deleted_while_open_is_read_to_its_end(log: LivingLog, small_blocks: None) -> None:
    log.filled(3)
    found = []
    for number, offsets in enumerate(log.offsets()):
        found += offsets
        if number == 0:
            log.path(0).unlink()
    assert found == list(range(90))


def test_a_segment_deleted_before_opening_is_left_out(log: LivingLog, small_blocks: None) -> None:
    log.filled(3)
    found = []
    for number, offsets in enumerate(log.offsets()):
        found += offsets
        if number == 0:
            log.path(30).unlink()
    assert found == [*range(30), *range(60, 90)]


def test_batches_appended_before_a_roll_are_read(log: LivingLog, small_blocks: None) -> None:
    """The reader saw a torn tail; at its next look the batch is whole and the segment is no longer the newest."""
    log.filled(1)
    log.append(size=50)
    reader = RangeBlocks(OffsetRange(log.partition, 0, None))
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


def test_batches_appended_behind_the_end_that_a_listing_shows_are_not_skipped(
    log: LivingLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of the log, a broker appends and rolls just after the reader has listed the directory."""
    log.filled(1)
    listings = []
    segments = PartitionDirectory.segments

    def listed(partition: PartitionDirectory) -> list[SegmentFile]:
        listings.append(segments(partition))
        if len(listings) == 2:
            log.append()
            log.roll()
            log.append()
        return listings[-1]

    monkeypatch.setattr(PartitionDirectory, "segments", listed)
    found = log.all_offsets()
    assert found == list(range(len(found)))
    assert len(listings) >= 2


def test_a_listing_that_is_kept_may_be_old(log: LivingLog, small_blocks: None) -> None:
    """A command has listed the directory; then the broker appends, rolls and cleans; the command reads."""
    log.filled(3)
    with listings_kept():
        assert len(log.partition.segments()) == 3
        log.append()
        log.roll()
        log.append()
        log.clean(0, 30)
        assert len(log.partition.segments()) == 3
        assert log.all_offsets() == list(range(110))
        assert len(log.partition.segments()) == 3, "0, 60 and 100: the reader has listed it again"


def test_a_segment_that_exists_as_swap_only_is_read(log: LivingLog) -> None:
    """LF-63: between two renames of the cleaner, or after a crash there."""
    log.filled(3)
    log.path(0, ".swap").write_bytes(log.path(0).read_bytes() + log.path(30).read_bytes())
    log.path(0).rename(log.path(0, ".deleted"))
    assert log.all_offsets() == list(range(90))
    log.path(30).rename(log.path(30, ".deleted"))
    assert log.all_offsets() == list(range(90))


@pytest.mark.parametrize("preallocated", [False, True])
def test_the_index_gives_a_position_near_an_offset(log: LivingLog, preallocated: bool) -> None:
    log.filled(1, batches=50)
    index = log.path(0).with_suffix(".index")
    if preallocated:
        index.write_bytes(index.read_bytes() + bytes(8 * 1000))
    (segment,) = log.partition.segments()
    size = segment.path.stat().st_size
    with open_file(segment.path) as file:
        positions = [position_of(segment, file, offset) for offset in range(0, 500, 25)]
        for offset in range(0, 500, 13):
            assert log.all_offsets(offset, offset + 1) == [offset]
    assert positions[0] == 0
    assert positions == sorted(positions)
    assert positions[-1] > size * 0.9


@pytest.mark.parametrize("index", [b"", bytes(8), b"\0\0\0\5\0\0\0\7" * 3, b"\0\0\0\1\0\0\0\1", b"\x7f" * 80, b"odd"])
def test_a_wrong_index_changes_no_result(log: LivingLog, index: bytes) -> None:
    log.filled(1, batches=10)
    log.path(0).with_suffix(".index").write_bytes(index)
    assert log.all_offsets(55, 77) == list(range(55, 77))


@pytest.mark.parametrize("size", [-(2**31), -13, 13, BATCH_SIZE_MAX + 1])
def test_no_position_is_that_of_a_batch_with_an_impossible_size(log: LivingLog, size: int) -> None:
    log.filled(1, batches=2)
    (segment,) = log.partition.segments()
    with open_file(segment.path) as file:
        position = position_of(segment, file, 19)
    assert position > 0
    damaged = bytearray(log.path(0).read_bytes())
    damaged[position + 8 : position + 12] = size.to_bytes(4, "big", signed=True)
    log.path(0).write_bytes(damaged)
    with open_file(segment.path) as file:
        assert position_of(segment, file, 19) == 0


def test_an_index_from_before_cleaning_is_not_trusted(log: LivingLog) -> None:
    log.filled(1, batches=10)
    kept = log.path(0).read_bytes()
    size = len(kept) // 10
    log.path(0).write_bytes(kept[: 2 * size] + kept[7 * size :])
    assert log.all_offsets(55, 100) == list(range(70, 100))


def states(log: LivingLog, start: int = 0, end: int | None = None, decoder: str = "fast") -> dict[int, str]:
    """Return the state of each batch, by its first offset rounded down."""
    found: dict[int, str] = {}
    for decoded in RangeReader(OffsetRange(log.partition, start, end), View.COMMITS, decoder=decoder):
        assert decoded.rows is not None
        for row in decoded.rows.to_pylist():
            found.setdefault(row["log_offset"] // 10 * 10, row["txn_state"])
    return found


@pytest.mark.parametrize("decoder", ["fast", "reference"])
def test_a_transaction_ends_with_the_next_marker_of_its_producer(log: LivingLog, decoder: str) -> None:
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


def test_partitions_are_found_by_log_dir_directory_segment_and_url(log: LivingLog, tmp_path: Path) -> None:
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
        ("orders-3/leader-epoch-checkpoint", "not a segment"),
        (".", "no directories like __consumer_offsets-0; it holds partitions of orders"),
        ("orders-3/empty", "it holds no partition directories"),
    ],
)
def test_a_path_without_a_log_is_an_error_in_one_line(tmp_path: Path, path: str, reason: str) -> None:
    (tmp_path / "orders-3" / "empty").mkdir(parents=True)
    (tmp_path / "orders-3" / "leader-epoch-checkpoint").touch()
    with pytest.raises(NoLog, match=reason):
        find_partitions(str(tmp_path / path))


def test_a_number_that_is_no_int32_is_of_no_partition(tmp_path: Path) -> None:
    greatest, beyond = (tmp_path / f"__consumer_offsets-{number}" for number in (2**31 - 1, 2**31))
    for path in (greatest, beyond):
        path.mkdir()
        (path / segment_name(0)).write_bytes(b"")
    assert find_partitions(str(tmp_path)) == [PartitionDirectory("__consumer_offsets", 2**31 - 1, greatest)]
    assert find_partitions(str(beyond)) == [PartitionDirectory("__consumer_offsets", None, beyond)]


def test_a_missing_index_has_no_entries(log: LivingLog) -> None:
    log.filled(1)
    log.path(0).with_suffix(".index").unlink()
    with OffsetIndex(log.partition.segments()[0]) as index:
        assert index.last_up_to(10, column=0) is None
