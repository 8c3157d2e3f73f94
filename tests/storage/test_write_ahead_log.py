"""The write-ahead log by itself: the reader returns the written batches, whatever frame is torn (server/FORMAT.md)."""

from __future__ import annotations

import pytest

from kproto_server.storage.checkpoints import LogPosition
from kproto_server.storage.disk import read_all
from kproto_server.storage.open_segments import OpenSegments
from kproto_server.storage.partition_log import PartitionLog
from kproto_server.storage.write_ahead_log import NAMES, WriteAheadLog
from kproto_server.storage.write_ahead_log_reader import WriteAheadLogContent, read_write_ahead_log
from kproto_server.testing.simulated_disk import SimulatedDisk
from tests.storage.log_data import batch_of, batch_values, flip_bits, write_file

SIZE_BYTES = 1000


def partition_log(disk: SimulatedDisk, partition: int = 0) -> PartitionLog:
    return PartitionLog(
        disk, "t", partition,
        closed=[], active=None, next_offset=0, epoch=0, segment_bytes=1000, recovery_point=LogPosition(0),
        unsynced_paths=(), open_segments=OpenSegments(),
    )  # fmt: skip


def batches(disk: SimulatedDisk, *values: bytes) -> list[tuple[PartitionLog, bytes]]:
    """Return the batches of one group commit: one for each value, in partitions 0, 1, ..."""
    return [(partition_log(disk, partition), batch_of(value)[0]) for partition, value in enumerate(values)]


def open_wal(disk: SimulatedDisk, content: WriteAheadLogContent | None = None) -> WriteAheadLog:
    if content is None:
        return WriteAheadLog(disk, size_bytes=SIZE_BYTES)
    return WriteAheadLog(disk, cycle=content.next_cycle, file_number=content.next_file_number, size_bytes=SIZE_BYTES)


def read(disk: SimulatedDisk) -> list[tuple[str, bytes | None]]:
    """Return directory and value of each batch in the write-ahead log."""
    return [(logged.directory, batch_values(logged.batch)[0][0]) for logged in read_write_ahead_log(disk).batches]


def test_batches_are_read_in_written_order_with_their_directories() -> None:
    disk = SimulatedDisk()
    wal = open_wal(disk)
    wal.write(batches(disk, b"a", b"b"))
    wal.write(batches(disk, b"c"))
    assert read(disk) == [("t-0", b"a"), ("t-1", b"b"), ("t-0", b"c")]
    assert read_write_ahead_log(disk).batches[0].next_offset == 1


def test_a_missing_and_a_new_write_ahead_log_are_empty() -> None:
    disk = SimulatedDisk()
    assert read_write_ahead_log(disk) == WriteAheadLogContent(
        exists=False, batches=[], next_cycle=1, next_file_number=1
    )
    open_wal(disk)
    assert read_write_ahead_log(disk).exists
    assert read(disk) == []


def test_frames_of_the_other_file_are_needed_until_they_are_released() -> None:
    disk = SimulatedDisk()
    wal = open_wal(disk)
    wal.write(batches(disk, b"a"))
    wal.turn(is_needed=True)
    wal.write(batches(disk, b"b"))
    assert read(disk) == [("t-0", b"a"), ("t-0", b"b")]
    assert not wal.is_other_free
    wal.release(wal.cycle)
    assert wal.is_other_free
    wal.write(batches(disk, b"c"))
    assert read(disk) == [("t-0", b"b"), ("t-0", b"c")]


def test_a_late_release_keeps_the_frames_of_later_cycles() -> None:
    disk = SimulatedDisk()
    wal = open_wal(disk)
    wal.write(batches(disk, b"a"))
    wal.turn(is_needed=True)
    late_cycle = wal.cycle
    wal.write(batches(disk, b"b"))
    wal.turn(is_needed=False)
    wal.write(batches(disk, b"c"))
    wal.turn(is_needed=True)
    wal.release(late_cycle)
    assert not wal.is_other_free
    wal.write(batches(disk, b"d"))
    assert read(disk) == [("t-0", b"c"), ("t-0", b"d")]


def test_a_voided_write_ahead_log_stays_empty_if_the_next_frame_is_torn() -> None:
    disk = SimulatedDisk()
    wal = open_wal(disk)
    for value in (b"a", b"b"):
        wal.write(batches(disk, value))
        wal.turn(is_needed=True)
        wal.release(wal.cycle)
    wal.write(batches(disk, b"c"))
    wal.void()
    assert read(disk) == []
    for _ in range(2):  # without a write in between
        wal.turn(is_needed=False)
    before = {name: read_all(disk, name) for name in NAMES}
    wal.write(batches(disk, b"d"))
    after = {name: read_all(disk, name) for name in NAMES}
    (changed,) = (name for name in NAMES if before[name] != after[name])
    for size in range(1, 120):
        write_file(disk, changed, after[changed][:size] + before[changed][size:])
        assert read(disk) in ([], [("t-0", b"d")])


@pytest.mark.parametrize("group_commits", [1, 2, 3])
def test_a_reopened_write_ahead_log_does_not_overwrite_the_newest_frames(group_commits: int) -> None:
    disk = SimulatedDisk()
    wal = open_wal(disk)
    for number in range(group_commits):
        wal.write(batches(disk, b"old %d" % number))
        if number == 1:
            wal.turn(is_needed=False)
    before = read(disk)
    content = read_write_ahead_log(disk)
    reopened = open_wal(disk, content)
    assert reopened.file.size == SIZE_BYTES
    name = NAMES[content.next_file_number]
    old = read_all(disk, name)
    reopened.write(batches(disk, b"new"))
    new = read_all(disk, name)
    assert read(disk) == [("t-0", b"new")]
    write_file(disk, name, new[:30] + old[30:])
    assert read(disk) == before, "the new frame is torn"
    third = read_write_ahead_log(disk)
    assert third.next_cycle > reopened.cycle - 1
    assert third.next_file_number == content.next_file_number


def test_a_corrupt_frame_does_not_hide_the_valid_frames_after_it() -> None:
    disk = SimulatedDisk()
    wal = open_wal(disk)
    for value in (b"a", b"b", b"c"):
        wal.write(batches(disk, value))
    frame_size = wal.last_position // 2
    flip_bits(disk, NAMES[0], frame_size + 60)
    assert read(disk) == [("t-0", b"a"), ("t-0", b"c")]
    flip_bits(disk, NAMES[0], 2 * frame_size + 60)
    assert read(disk) == [("t-0", b"a")]


def test_a_discarded_frame_is_not_read() -> None:
    disk = SimulatedDisk()
    wal = open_wal(disk)
    wal.write(batches(disk, b"a"))
    wal.write(batches(disk, b"b"))
    wal.discard_last()
    assert read(disk) == [("t-0", b"a")]
    wal.write(batches(disk, b"c"))
    assert read(disk) == [("t-0", b"a"), ("t-0", b"c")]


def test_close_removes_the_files_unless_they_are_needed() -> None:
    for is_needed in (True, False):
        disk = SimulatedDisk()
        wal = open_wal(disk)
        wal.write(batches(disk, b"a"))
        wal.close(is_needed=is_needed)
        assert [disk.exists(name) for name in NAMES] == [is_needed] * 2
