"""Logs as crashes and damaged disks leave them: truncated, restored, or refused (LF-60 to LF-64)."""

from __future__ import annotations

import pytest

from kproto.errors import CorruptBatch, CorruptLog
from kproto.records.batches import read_batches
from kproto_server.storage.disk import read_all
from kproto_server.storage.log_dir import LogDir
from kproto_server.storage.log_writer import Durability
from kproto_server.storage.write_ahead_log import NAMES
from kproto_server.testing.simulated_disk import SimulatedDisk
from tests.storage.log_data import TOPIC, append, flip_bits, log_values, new_log_dir, write_file

OLD = [b"old %d" % number for number in range(5)]
NEW = [b"new %d" % number for number in range(5)]
DIRECTORY = f"{TOPIC}-0"
FIRST_SEGMENT = f"{DIRECTORY}/00000000000000000000.log"
EPOCHS = f"{DIRECTORY}/leader-epoch-checkpoint"
INCOMPLETE = "incomplete batch"


def disk_with(durability: Durability, *commits: list[bytes], **options: int) -> SimulatedDisk:
    """Return a disk with a log of these commits, after SIGKILL."""
    disk = SimulatedDisk()
    log_dir = new_log_dir(disk, 1, durability=durability, wal_size_bytes=4096, **options)
    for commit in commits:
        assert append(log_dir, 0, *commit) == 0
    return disk.kill()


def segment_with(*commits: list[bytes]) -> bytes:
    """Return the content of the first segment of a log with these commits."""
    return read_all(disk_with("os", *commits), FIRST_SEGMENT)


def reopen(disk: SimulatedDisk, durability: Durability, *, repair: bool = False, segment_bytes: int = 10_000) -> LogDir:
    return LogDir(disk, durability=durability, repair=repair, wal_size_bytes=4096, segment_bytes=segment_bytes)


def values(log_dir: LogDir) -> list[list[bytes | None]]:
    return log_values(log_dir.disk, log_dir.logs[TOPIC, 0])


def with_segment(disk: SimulatedDisk, content: bytes, path: str = FIRST_SEGMENT) -> SimulatedDisk:
    """Return the disk with other content of a segment."""
    write_file(disk, path, content)
    return disk


def segment_paths(disk: SimulatedDisk) -> list[str]:
    return [f"{DIRECTORY}/{name}" for name in disk.names(DIRECTORY) if name.endswith(".log")]


def test_a_commit_truncated_at_any_byte_is_complete_or_missing() -> None:  # OS-21, LF-64
    segment = segment_with(OLD, NEW)
    begin = len(segment_with(OLD))
    for size in range(begin, len(segment) + 1):
        log_dir = reopen(with_segment(disk_with("os", OLD, NEW), segment[:size]), "os")
        assert values(log_dir) == ([OLD, NEW] if size == len(segment) else [OLD])
        if begin < size < len(segment):
            tail = "zeros" if size - begin < 8 else INCOMPLETE
            assert log_dir.report == [f"{FIRST_SEGMENT} at byte {begin}: truncated {size - begin} bytes: {tail}"]
        else:
            assert log_dir.report == []
        assert append(log_dir, 0, b"next") == 0
        assert values(log_dir)[-1] == [b"next"]


def test_a_segment_truncated_at_any_byte_is_restored_from_the_write_ahead_log() -> None:  # OS-11
    segment = read_all(disk_with("fsync", OLD, NEW), FIRST_SEGMENT)
    for size in range(len(segment) + 1):
        log_dir = reopen(with_segment(disk_with("fsync", OLD, NEW), segment[:size]), "fsync")
        assert values(log_dir) == [OLD, NEW]


def test_a_write_ahead_log_truncated_at_any_byte_has_all_earlier_group_commits() -> None:
    commits = [[b"commit %d" % number] for number in range(4)]
    (name,) = (name for name in NAMES if any(read_all(disk_with("fsync", *commits), name)))
    wal = read_all(disk_with("fsync", *commits), name)
    end = len(wal.rstrip(b"\0"))
    counts = []
    for size in range(end + 1):
        disk = with_segment(disk_with("fsync", *commits), b"")
        write_file(disk, name, wal[:size] + bytes(len(wal) - size))
        found = values(reopen(disk, "fsync"))
        assert found == commits[: len(found)]
        counts.append(len(found))
    assert counts == sorted(counts)
    assert set(counts) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("position", [8, 17, 30, 75])
def test_damage_before_valid_batches_is_refused(position: int) -> None:
    begin = len(segment_with(OLD))
    disk = disk_with("os", OLD, NEW, OLD)
    flip_bits(disk, FIRST_SEGMENT, begin + position, 0x40)
    with pytest.raises(CorruptLog, match=rf"{FIRST_SEGMENT} at byte {begin}: .*--repair"):
        reopen(disk, "os")


def test_repair_truncates_at_the_damage_and_reports_the_lost_bytes() -> None:
    size, begin = len(segment_with(OLD, NEW, OLD)), len(segment_with(OLD))
    disk = disk_with("os", OLD, NEW, OLD)
    flip_bits(disk, FIRST_SEGMENT, begin + 70)
    log_dir = reopen(disk, "os", repair=True)
    assert values(log_dir) == [OLD]
    (line,) = log_dir.report
    assert line.startswith(f"{FIRST_SEGMENT} at byte {begin}: the checksum does not match the content; repaired: ")
    assert f"the log now ends with offset 4, {size - begin} bytes are lost" in line
    assert append(log_dir, 0, *NEW) == 0
    assert values(reopen(disk.kill(), "os")) == [OLD, NEW]


def test_repair_removes_the_segments_after_the_damage() -> None:
    disk = disk_with("os", OLD, NEW, OLD, NEW, segment_bytes=200)
    paths = segment_paths(disk)
    assert len(paths) == 4
    flip_bits(disk, paths[1], 80)
    with pytest.raises(CorruptLog):
        reopen(disk, "os")
    log_dir = reopen(disk, "os", repair=True)
    assert values(log_dir) == [OLD]
    remaining = {f"{DIRECTORY}/{name}" for name in disk.names(DIRECTORY) if name.endswith((".log", ".index"))}
    assert remaining == {name for path in paths[:2] for name in (path, path.replace(".log", ".index"))}


def test_zeros_at_the_end_are_truncated() -> None:
    segment = segment_with(OLD)
    log_dir = reopen(with_segment(disk_with("os", OLD), segment + bytes(5000)), "os")
    assert values(log_dir) == [OLD]
    assert log_dir.report == [f"{FIRST_SEGMENT} at byte {len(segment)}: truncated 5000 bytes: zeros"]


def test_a_missing_page_in_the_middle_is_restored_from_the_write_ahead_log() -> None:
    """A later page reached the disk before the power failed."""
    segment = bytearray(read_all(disk_with("fsync", OLD, NEW, OLD), FIRST_SEGMENT))
    begin = len(segment_with(OLD))
    segment[begin : begin + 100] = bytes(100)
    log_dir = reopen(with_segment(disk_with("fsync", OLD, NEW, OLD), bytes(segment)), "fsync")
    assert values(log_dir) == [OLD, NEW, OLD]
    assert "the write-ahead log has the batches that belong there" in log_dir.report[0]
    assert log_dir.report[1] == f"{DIRECTORY}: restored 2 batches from the write-ahead log"


def test_a_missing_end_of_a_closed_segment_is_restored_from_the_write_ahead_log() -> None:
    disk = disk_with("fsync", OLD, NEW, OLD, segment_bytes=320)
    paths = segment_paths(disk)
    assert len(paths) == 2
    write_file(disk, paths[0], segment_with(OLD))
    log_dir = reopen(disk, "fsync", segment_bytes=320)
    assert values(log_dir) == [OLD, NEW, OLD]


def test_a_tail_that_is_not_in_the_write_ahead_log_was_never_acknowledged() -> None:
    """A group commit that was not synced can leave its second batch and not its first."""
    segment = segment_with(OLD, NEW, OLD)
    begin = len(segment_with(OLD))
    torn = segment[:begin] + bytes(100) + segment[begin + 100 :]
    log_dir = reopen(with_segment(disk_with("fsync", OLD), torn), "fsync")
    assert values(log_dir) == [OLD]
    assert "that were never acknowledged" in log_dir.report[0]


def test_a_kill_and_then_a_power_loss_lose_nothing() -> None:
    disk = disk_with("fsync", OLD, NEW)
    reopen(disk, "fsync")  # begins a new write-ahead log
    assert values(reopen(disk.crash(None), "fsync")) == [OLD, NEW]


def test_synced_batches_survive_a_change_of_the_durability() -> None:
    disk = disk_with("fsync", OLD, NEW)
    log_dir = reopen(disk, "os")
    assert not any(disk.exists(name) for name in NAMES)
    assert values(reopen(disk.crash(None), "os")) == [OLD, NEW]
    assert log_dir.report == []


def test_a_start_checks_no_batch_before_the_recovery_point() -> None:
    disk = disk_with("fsync", OLD)
    log_dir = reopen(disk, "fsync")
    assert append(log_dir, 0, *NEW) == 0
    flip_bits(disk, FIRST_SEGMENT, 70)
    reopened = reopen(disk.kill(), "fsync")
    assert reopened.logs[TOPIC, 0].next_offset == 10
    with pytest.raises(CorruptBatch):
        values(reopened)


def test_a_recovery_point_that_is_not_at_a_batch_is_ignored() -> None:
    disk = disk_with("fsync", OLD)
    reopen(disk, "fsync")
    commits = [[b"x"] * 3, [b"y"] * 3, [b"z"] * 3]
    write_file(disk, FIRST_SEGMENT, segment_with(*commits))
    for name in NAMES:
        write_file(disk, name, bytes(4096))
    assert values(reopen(disk.kill(), "fsync")) == commits


@pytest.mark.parametrize(
    ("suffixes", "is_replaced"),
    [
        ([".log.deleted"], False),
        ([".log.cleaned"], False),
        ([".log.swap"], True),
        ([".log.swap", ".log.cleaned"], False),
    ],
)
def test_an_interrupted_compaction_is_finished_or_removed(suffixes: list[str], is_replaced: bool) -> None:  # LF-63
    disk = disk_with("os", OLD, NEW)
    for suffix in suffixes:
        write_file(disk, FIRST_SEGMENT.removesuffix(".log") + suffix, segment_with(OLD, OLD))
    assert values(reopen(disk, "os")) == ([OLD, OLD] if is_replaced else [OLD, NEW])
    base = FIRST_SEGMENT.rpartition("/")[2].removesuffix(".log")
    assert disk.names(DIRECTORY) == [f"{base}.index", f"{base}.log", "leader-epoch-checkpoint"]


def test_new_batches_get_the_newest_epoch_of_the_checkpoint() -> None:  # LF-53
    disk = disk_with("os", OLD)
    write_file(disk, EPOCHS, b"0\n2\n0 0\n7 5\n")
    log_dir = reopen(disk, "os")
    assert append(log_dir, 0, *NEW) == 0
    segment = read_all(disk, FIRST_SEGMENT)
    half = len(segment) // 2
    assert segment[half + 12 : half + 16] == (7).to_bytes(4, "big")
    assert read_all(disk, EPOCHS) == b"0\n2\n0 0\n7 5\n"


def test_the_newest_epoch_begins_at_the_end_at_the_latest() -> None:
    disk = disk_with("os", OLD)
    write_file(disk, EPOCHS, b"0\n4\n0 0\n3 5\n6 6\n7 8\n")
    assert reopen(disk, "os").logs[TOPIC, 0].epoch == 7
    assert read_all(disk, EPOCHS) == b"0\n2\n0 0\n7 5\n"


def test_an_epoch_of_a_new_log_is_durable() -> None:
    """The write-ahead log restores the batches of a log whose directory was lost, and has no epoch without batches."""
    disk = SimulatedDisk()
    log_dir = new_log_dir(disk, 1, durability="fsync", wal_size_bytes=4096)
    log_dir.create_log("new", 0)
    log_dir.logs["new", 0].begin_epoch(2)
    disk = disk.crash(None)
    assert read_all(disk, "new-0/leader-epoch-checkpoint") == b"0\n2\n0 0\n2 0\n"


@pytest.mark.parametrize("loses_checkpoint", [False, True])
def test_batches_of_the_write_ahead_log_keep_their_epochs(loses_checkpoint: bool) -> None:
    """The segment has lost them, and the checkpoint, which is synced, says where their epochs begin."""
    disk = SimulatedDisk()
    log_dir = new_log_dir(disk, 1, durability="fsync", wal_size_bytes=4096)
    assert append(log_dir, 0, *OLD) == 0
    for epoch in (1, 3):
        log_dir.logs[TOPIC, 0].begin_epoch(epoch)
        assert append(log_dir, 0, *NEW) == 0
    disk = disk.crash(None)
    if loses_checkpoint:
        disk.remove(EPOCHS)
    log_dir = reopen(disk, "fsync")
    assert values(log_dir) == [OLD, NEW, NEW]
    batches = read_batches(read_all(disk, FIRST_SEGMENT))
    assert [batch.header.partition_leader_epoch for batch in batches] == [0, 1, 3]  # type: ignore[union-attr]
    assert log_dir.logs[TOPIC, 0].epoch == 3
    assert read_all(disk, EPOCHS) == b"0\n3\n0 0\n1 5\n3 10\n"


@pytest.mark.parametrize("checkpoint", [None, b"9\n1\n5 0\n"], ids=["missing", "of another version"])
def test_epochs_come_from_the_batches_without_a_readable_checkpoint(checkpoint: bytes | None) -> None:
    disk = disk_with("os", OLD)
    write_file(disk, EPOCHS, b"0\n1\n4 0\n")
    assert append(reopen(disk, "os"), 0, *NEW) == 0
    if checkpoint is None:
        disk.remove(EPOCHS)
    else:
        write_file(disk, EPOCHS, checkpoint)
    disk = disk.kill()
    assert reopen(disk, "os").logs[TOPIC, 0].epoch == 4
    assert read_all(disk, EPOCHS) == b"0\n2\n0 0\n4 5\n"


def test_the_write_ahead_log_decides_over_a_segment_with_another_batch() -> None:
    """The truncation of a failed group commit may not be durable; the next group commit has the same offsets."""
    failed = segment_with(OLD, NEW)
    acknowledged = [b"acknowledged"] * 5
    log_dir = reopen(with_segment(disk_with("fsync", OLD, acknowledged), failed), "fsync")
    assert values(log_dir) == [OLD, acknowledged]
