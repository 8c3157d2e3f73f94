"""Logs as crashes and broken disks leave them: what is cut off, what is healed, what is refused (LF-60 to LF-64)."""

from __future__ import annotations

import pytest

from kproto.errors import CorruptBatch, CorruptLog
from kproto_server.storage.disk import read_all
from kproto_server.storage.log_dir import LogDir
from kproto_server.storage.log_writer import Durability
from kproto_server.storage.write_ahead_log import NAMES
from tests.storage.faulty_disk import FaultyDisk, Inode
from tests.storage.log_data import TOPIC, append, log_values, new_log_dir

OLD = [b"old %d" % number for number in range(5)]
NEW = [b"new %d" % number for number in range(5)]
FIRST_SEGMENT = f"{TOPIC}-0/00000000000000000000.log"


def written(durability: Durability, *commits: list[bytes], **options: int) -> FaultyDisk:
    """A disk with a log of these commits, after kill -9."""
    disk = FaultyDisk()
    log_dir = new_log_dir(disk, 1, durability=durability, wal_size_bytes=4096, **options)
    for commit in commits:
        assert append(log_dir, 0, *commit) == 0
    return disk.after_kill()


def opened(disk: FaultyDisk, durability: Durability, *, repair: bool = False, segment_bytes: int = 10_000) -> LogDir:
    return LogDir(disk, durability=durability, repair=repair, wal_size_bytes=4096, segment_bytes=segment_bytes)


def content(log_dir: LogDir) -> list[list[bytes | None]]:
    return log_values(log_dir.disk, log_dir.logs[TOPIC, 0])


def with_segment(disk: FaultyDisk, octets: bytes, path: str = FIRST_SEGMENT) -> FaultyDisk:
    """The disk, with other content of a segment."""
    disk.files[path] = Inode(octets)
    return disk


def test_a_commit_that_is_cut_off_anywhere_is_there_whole_or_not_at_all() -> None:  # OS-21, LF-64
    octets = read_all(written("os", OLD, NEW), FIRST_SEGMENT)
    begin = len(read_all(written("os", OLD), FIRST_SEGMENT))
    for size in range(begin, len(octets) + 1):
        log_dir = opened(with_segment(written("os", OLD, NEW), octets[:size]), "os")
        assert content(log_dir) == ([OLD, NEW] if size == len(octets) else [OLD])
        if begin < size < len(octets):
            what = "zeros" if size - begin < 8 else "of a batch that was not written to its end"
            assert log_dir.report == [f"{FIRST_SEGMENT} at byte {begin}: dropped {size - begin} bytes {what}"]
        else:
            assert log_dir.report == []
        assert append(log_dir, 0, b"next") == 0
        assert content(log_dir)[-1] == [b"next"]


def test_the_journal_has_a_commit_that_is_cut_off_anywhere() -> None:  # OS-11
    octets = read_all(written("fsync", OLD, NEW), FIRST_SEGMENT)
    for size in range(len(octets) + 1):
        log_dir = opened(with_segment(written("fsync", OLD, NEW), octets[:size]), "fsync")
        assert content(log_dir) == [OLD, NEW]


def test_a_journal_that_is_cut_off_anywhere_has_all_rounds_before() -> None:
    rounds = [[b"round %d" % number] for number in range(4)]
    (name,) = (name for name in NAMES if any(read_all(written("fsync", *rounds), name)))
    wal = read_all(written("fsync", *rounds), name)
    end = len(wal.rstrip(b"\0"))
    counts = []
    for size in range(end + 1):
        disk = with_segment(written("fsync", *rounds), b"")
        disk.files[name] = Inode(wal[:size] + bytes(len(wal) - size))
        found = content(opened(disk, "fsync"))
        assert found == rounds[: len(found)]
        counts.append(len(found))
    assert counts == sorted(counts)
    assert set(counts) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("position", [8, 17, 30, 75])
def test_damage_with_whole_batches_behind_it_is_refused(position: int) -> None:
    octets = bytearray(read_all(written("os", OLD, NEW, OLD), FIRST_SEGMENT))
    begin = len(read_all(written("os", OLD), FIRST_SEGMENT))
    octets[begin + position] ^= 0x40
    with pytest.raises(CorruptLog, match=rf"{FIRST_SEGMENT} at byte {begin}: .*--repair"):
        opened(with_segment(written("os", OLD, NEW, OLD), bytes(octets)), "os")


def test_repair_cuts_off_at_the_damage_and_says_what_is_lost() -> None:
    octets = bytearray(read_all(written("os", OLD, NEW, OLD), FIRST_SEGMENT))
    begin = len(read_all(written("os", OLD), FIRST_SEGMENT))
    octets[begin + 70] ^= 1
    disk = with_segment(written("os", OLD, NEW, OLD), bytes(octets))
    log_dir = opened(disk, "os", repair=True)
    assert content(log_dir) == [OLD]
    (told,) = log_dir.report
    assert told.startswith(f"{FIRST_SEGMENT} at byte {begin}: its checksum is not that of its content; repaired: ")
    assert f"ends with offset 4 now, {len(octets) - begin} bytes are lost" in told
    assert append(log_dir, 0, *NEW) == 0
    assert content(opened(disk.after_kill(), "os")) == [OLD, NEW]


def test_repair_drops_the_segments_behind_the_damage() -> None:
    disk = written("os", OLD, NEW, OLD, NEW, segment_bytes=200)
    paths = sorted(name for name in disk.files if name.endswith(".log"))
    assert len(paths) == 4
    disk.files[paths[1]].data[80] ^= 1
    with pytest.raises(CorruptLog):
        opened(disk, "os")
    log_dir = opened(disk, "os", repair=True)
    assert content(log_dir) == [OLD]
    left = {name for name in disk.files if name.endswith((".log", ".index"))}
    assert left == {name for path in paths[:2] for name in (path, path.replace(".log", ".index"))}


def test_zeros_at_the_end_are_dropped() -> None:
    octets = read_all(written("os", OLD), FIRST_SEGMENT)
    log_dir = opened(with_segment(written("os", OLD), octets + bytes(5000)), "os")
    assert content(log_dir) == [OLD]
    assert log_dir.report == [f"{FIRST_SEGMENT} at byte {len(octets)}: dropped 5000 bytes zeros"]


def test_the_journal_heals_what_is_broken_in_the_middle() -> None:
    octets = bytearray(read_all(written("fsync", OLD, NEW, OLD), FIRST_SEGMENT))
    begin = len(read_all(written("fsync", OLD), FIRST_SEGMENT))
    octets[begin : begin + 100] = bytes(100)  # a page that did not reach the disk, with a later one that did
    log_dir = opened(with_segment(written("fsync", OLD, NEW, OLD), bytes(octets)), "fsync")
    assert content(log_dir) == [OLD, NEW, OLD]
    assert "are not what was acknowledged; the journal has that" in log_dir.report[0]
    assert log_dir.report[1] == f"{TOPIC}-0: 2 batches came from the journal"


def test_the_journal_heals_a_segment_that_lost_its_end() -> None:
    disk = written("fsync", OLD, NEW, OLD, segment_bytes=320)
    paths = sorted(name for name in disk.files if name.endswith(".log"))
    assert len(paths) == 2
    disk.files[paths[0]] = Inode(read_all(written("fsync", OLD), FIRST_SEGMENT))
    log_dir = opened(disk, "fsync", segment_bytes=320)
    assert content(log_dir) == [OLD, NEW, OLD]


def test_what_the_journal_has_not_was_never_acknowledged() -> None:
    """A round that was not synced may leave its second batch whole and its first one not."""
    octets = read_all(written("os", OLD, NEW, OLD), FIRST_SEGMENT)
    begin = len(read_all(written("os", OLD), FIRST_SEGMENT))
    broken = octets[:begin] + bytes(100) + octets[begin + 100 :]
    log_dir = opened(with_segment(written("fsync", OLD), broken), "fsync")
    assert content(log_dir) == [OLD]
    assert "that were never acknowledged" in log_dir.report[0]


def test_kill_and_then_power_loss_lose_nothing() -> None:
    disk = written("fsync", OLD, NEW)
    opened(disk, "fsync")  # the journal is begun anew
    disk.files = {name: Inode(bytes(inode.on_disk)) for name, inode in disk.files.items()}
    assert content(opened(disk, "fsync")) == [OLD, NEW]


def test_what_was_synced_is_kept_when_the_mode_changes() -> None:
    disk = written("fsync", OLD, NEW)
    log_dir = opened(disk, "os")
    assert not any(disk.exists(name) for name in NAMES)
    disk.files = {name: Inode(bytes(inode.on_disk)) for name, inode in disk.files.items()}
    assert content(opened(disk, "os")) == [OLD, NEW]
    assert log_dir.report == []


def test_a_start_looks_only_behind_the_recovery_point() -> None:
    disk = written("fsync", OLD)
    log_dir = opened(disk, "fsync")
    assert append(log_dir, 0, *NEW) == 0
    disk.files[FIRST_SEGMENT].data[70] ^= 1  # who loads it sees that
    again = opened(disk.after_kill(), "fsync")
    assert again.logs[TOPIC, 0].next_offset == 10
    with pytest.raises(CorruptBatch):
        content(again)


def test_a_recovery_point_that_is_no_place_any_more_is_not_believed() -> None:
    disk = written("fsync", OLD)
    opened(disk, "fsync")
    other = written("os", [b"x"] * 3, [b"y"] * 3, [b"z"] * 3)
    disk.files[FIRST_SEGMENT] = other.files[FIRST_SEGMENT]
    for name in NAMES:
        disk.files[name] = Inode(bytes(4096))
    assert content(opened(disk, "fsync")) == [[b"x"] * 3, [b"y"] * 3, [b"z"] * 3]


@pytest.mark.parametrize(
    ("leftovers", "is_replaced"),
    [
        ([".log.deleted"], False),
        ([".log.cleaned"], False),
        ([".log.swap"], True),
        ([".log.swap", ".log.cleaned"], False),
    ],
)
def test_what_compaction_left_is_finished_or_removed(leftovers: list[str], is_replaced: bool) -> None:  # LF-63
    disk = written("os", OLD, NEW)
    cleaned = read_all(written("os", OLD, OLD), FIRST_SEGMENT)
    for suffix in leftovers:
        disk.files[FIRST_SEGMENT.removesuffix(".log") + suffix] = Inode(cleaned)
    assert content(opened(disk, "os")) == ([OLD, OLD] if is_replaced else [OLD, NEW])
    base = FIRST_SEGMENT.rpartition("/")[2].removesuffix(".log")
    assert disk.names(f"{TOPIC}-0") == [f"{base}.index", f"{base}.log", "leader-epoch-checkpoint"]


def test_the_newest_epoch_is_kept_and_used() -> None:  # LF-53
    disk = written("os", OLD)
    disk.files[f"{TOPIC}-0/leader-epoch-checkpoint"] = Inode(b"0\n2\n0 0\n7 5\n")
    log_dir = opened(disk, "os")
    assert append(log_dir, 0, *NEW) == 0
    octets = read_all(disk, FIRST_SEGMENT)
    half = len(octets) // 2
    assert octets[half + 12 : half + 16] == (7).to_bytes(4, "big")
    assert read_all(disk, f"{TOPIC}-0/leader-epoch-checkpoint") == b"0\n2\n0 0\n7 5\n"


def test_epochs_that_begin_behind_the_end_are_forgotten() -> None:
    disk = written("os", OLD)
    disk.files[f"{TOPIC}-0/leader-epoch-checkpoint"] = Inode(b"0\n3\n0 0\n3 5\n7 6\n")
    assert opened(disk, "os").logs[TOPIC, 0].epoch == 3
    assert read_all(disk, f"{TOPIC}-0/leader-epoch-checkpoint") == b"0\n2\n0 0\n3 5\n"


def test_epochs_are_found_in_batches_where_nothing_tells_them() -> None:
    disk = written("os", OLD)
    disk.files[f"{TOPIC}-0/leader-epoch-checkpoint"] = Inode(b"0\n1\n4 0\n")
    assert append(opened(disk, "os"), 0, *NEW) == 0
    disk.remove(f"{TOPIC}-0/leader-epoch-checkpoint")
    assert opened(disk.after_kill(), "os").logs[TOPIC, 0].epoch == 4
    assert read_all(disk, f"{TOPIC}-0/leader-epoch-checkpoint") == b"0\n2\n0 0\n4 5\n"


def test_where_journal_and_segment_differ_the_journal_is_right() -> None:
    """A round that could not be journaled is cut off, which may not reach the disk; the next one has its offsets."""
    refused = read_all(written("os", OLD, NEW), FIRST_SEGMENT)
    acknowledged = [b"acknowledged"] * 5
    log_dir = opened(with_segment(written("fsync", OLD, acknowledged), refused), "fsync")
    assert content(log_dir) == [OLD, acknowledged]
