"""The journal by itself: what is read back of what was written, whatever is torn (`journal` tells its form)."""

from __future__ import annotations

import pytest

from kproto_server.storage.checkpoints import LogPosition
from kproto_server.storage.partition_log import PartitionLog
from kproto_server.storage.write_ahead_log import NAMES, WriteAheadLog
from kproto_server.storage.write_ahead_log_reader import WriteAheadLogContent, read_write_ahead_log
from tests.storage.faulty_disk import FaultyDisk, Inode
from tests.storage.log_data import batch, values

SIZE = 1000


def log(disk: FaultyDisk, partition: int = 0) -> PartitionLog:
    return PartitionLog(
        disk, "t", partition,
        closed=[], active=None, next_offset=0, epoch=0, segment_bytes=1000, synced=LogPosition(0), unsynced=(),
    )  # fmt: skip


def round_of(disk: FaultyDisk, *contents: bytes) -> list[tuple[PartitionLog, bytes]]:
    return [(log(disk, partition), batch(content)[0]) for partition, content in enumerate(contents)]


def made(disk: FaultyDisk, content: WriteAheadLogContent | None = None) -> WriteAheadLog:
    if content is None:
        return WriteAheadLog(disk, size_bytes=SIZE)
    return WriteAheadLog(disk, cycle=content.next_cycle, file_number=content.next_file_number, size_bytes=SIZE)


def found(disk: FaultyDisk) -> list[tuple[str, bytes | None]]:
    return [(one.directory, values(one.batch)[0][0]) for one in read_write_ahead_log(disk).batches]


def test_rounds_are_read_in_their_order_with_the_directories_of_their_batches() -> None:
    disk = FaultyDisk()
    wal = made(disk)
    wal.write(round_of(disk, b"a", b"b"))
    wal.write(round_of(disk, b"c"))
    assert found(disk) == [("t-0", b"a"), ("t-1", b"b"), ("t-0", b"c")]
    assert read_write_ahead_log(disk).batches[0].next_offset == 1


def test_no_journal_and_a_new_one_have_nothing() -> None:
    disk = FaultyDisk()
    assert read_write_ahead_log(disk) == WriteAheadLogContent(
        exists=False, batches=[], next_cycle=1, next_file_number=1
    )
    made(disk)
    assert read_write_ahead_log(disk).exists
    assert found(disk) == []


def test_what_the_other_file_has_is_needed_until_it_is_released() -> None:
    disk = FaultyDisk()
    wal = made(disk)
    wal.write(round_of(disk, b"a"))
    wal.turn(is_needed=True)
    wal.write(round_of(disk, b"b"))
    assert found(disk) == [("t-0", b"a"), ("t-0", b"b")]
    assert not wal.can_turn(1, 1)
    wal.release(wal.cycle)
    assert wal.can_turn(1, 1)
    wal.write(round_of(disk, b"c"))
    assert found(disk) == [("t-0", b"b"), ("t-0", b"c")]


def test_a_late_release_frees_nothing_that_is_needed() -> None:
    disk = FaultyDisk()
    wal = made(disk)
    wal.write(round_of(disk, b"a"))
    wal.turn(is_needed=True)
    late = wal.cycle
    wal.write(round_of(disk, b"b"))
    wal.turn(is_needed=False)
    wal.write(round_of(disk, b"c"))
    wal.turn(is_needed=True)
    wal.release(late)
    assert not wal.can_turn(1, 1)
    wal.write(round_of(disk, b"d"))
    assert found(disk) == [("t-0", b"c"), ("t-0", b"d")]


def test_a_voided_journal_has_nothing_even_if_what_follows_is_torn() -> None:
    disk = FaultyDisk()
    wal = made(disk)
    for content in (b"a", b"b"):
        wal.write(round_of(disk, content))
        wal.turn(is_needed=True)
        wal.release(wal.cycle)
    wal.write(round_of(disk, b"c"))
    wal.void()
    assert found(disk) == []
    for _ in range(2):  # nothing is written between
        wal.turn(is_needed=False)
    before = {name: bytes(disk.files[name].data) for name in NAMES}
    wal.write(round_of(disk, b"d"))
    after = {name: bytes(disk.files[name].data) for name in NAMES}
    (changed,) = (name for name in NAMES if before[name] != after[name])
    for size in range(1, 120):
        disk.files[changed] = Inode(after[changed][:size] + before[changed][size:])
        assert found(disk) in ([], [("t-0", b"d")])


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_journal_opened_again_does_not_write_over_the_newest_frames(rounds: int) -> None:
    disk = FaultyDisk()
    wal = made(disk)
    for number in range(rounds):
        wal.write(round_of(disk, b"old %d" % number))
        if number == 1:
            wal.turn(is_needed=False)
    before = found(disk)
    content = read_write_ahead_log(disk)
    again = made(disk, content)
    assert again.file.size == SIZE
    written = bytes(disk.files[NAMES[content.next_file_number]].data)
    again.write(round_of(disk, b"new"))
    new = bytes(disk.files[NAMES[content.next_file_number]].data)
    assert found(disk) == [("t-0", b"new")]
    disk.files[NAMES[content.next_file_number]] = Inode(new[:30] + written[30:])
    assert found(disk) == before, "torn"
    third = read_write_ahead_log(disk)
    assert third.next_cycle > again.cycle - 1
    assert third.next_file_number == content.next_file_number


def test_a_broken_frame_does_not_hide_the_good_ones_behind_it() -> None:
    disk = FaultyDisk()
    wal = made(disk)
    for content in (b"a", b"b", b"c"):
        wal.write(round_of(disk, content))
    size = wal.last_position // 2
    disk.files[NAMES[0]].data[size + 60] ^= 1
    assert found(disk) == [("t-0", b"a"), ("t-0", b"c")]
    disk.files[NAMES[0]].data[2 * size + 60] ^= 1
    assert found(disk) == [("t-0", b"a")]


def test_a_round_that_is_taken_back_is_not_there() -> None:
    disk = FaultyDisk()
    wal = made(disk)
    wal.write(round_of(disk, b"a"))
    wal.write(round_of(disk, b"b"))
    wal.take_back()
    assert found(disk) == [("t-0", b"a")]
    wal.write(round_of(disk, b"c"))
    assert found(disk) == [("t-0", b"a"), ("t-0", b"c")]


def test_a_closed_journal_is_gone_unless_it_is_needed() -> None:
    for is_needed in (True, False):
        disk = FaultyDisk()
        wal = made(disk)
        wal.write(round_of(disk, b"a"))
        wal.close(is_needed=is_needed)
        assert [disk.exists(name) for name in NAMES] == [is_needed] * 2
