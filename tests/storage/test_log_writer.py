"""Writing that fails, syncing that fails, disks that are full, journals that are (OC-35, OS-24, OS-25)."""

from __future__ import annotations

import pytest

from kproto.records.record_batch import CHECKED_FROM
from kproto_server.storage.disk import read_all
from kproto_server.storage.log_dir import LogDir
from kproto_server.storage.log_writer import Durability
from kproto_server.storage.write_ahead_log import NAMES
from tests.storage.faulty_disk import FaultyDisk, Inode
from tests.storage.log_data import TOPIC, append, batch, log_values, new_log_dir, settle

STORAGE_ERROR, TOO_LARGE = 56, 10
WAL_SIZE = 4096


@pytest.fixture(params=["os", "fsync"])
def durability(request: pytest.FixtureRequest) -> Durability:
    made: Durability = request.param
    return made


def made(durability: Durability, *, capacity: int | None = None, partitions: int = 2, **options: int) -> LogDir:
    disk = FaultyDisk(capacity)
    return new_log_dir(disk, partitions, durability=durability, **{"wal_size_bytes": WAL_SIZE, **options})


def disk_of(log_dir: LogDir) -> FaultyDisk:
    assert isinstance(log_dir.disk, FaultyDisk)
    return log_dir.disk


def content(log_dir: LogDir, partition: int = 0) -> list[list[bytes | None]]:
    return log_values(log_dir.disk, log_dir.logs[TOPIC, partition])


def reopened(log_dir: LogDir, durability: Durability) -> LogDir:
    return LogDir(disk_of(log_dir).after_kill(), durability=durability, wal_size_bytes=WAL_SIZE)


def test_a_failed_write_changes_nothing(durability: Durability) -> None:
    log_dir = made(durability)
    assert append(log_dir, 0, b"before") == 0
    disk_of(log_dir).fault = lambda operation, path: operation == "write" and path.startswith(f"{TOPIC}-0")
    log = log_dir.logs[TOPIC, 0]
    for number in range(2):
        assert log_dir.writer.append(log, *batch(b"refused %d" % number), None) == 0
        assert log_dir.writer.append(log_dir.logs[TOPIC, 1], *batch(b"other"), None) == 0
    assert settle(log_dir) == [STORAGE_ERROR, 0, STORAGE_ERROR, 0]
    assert log.next_offset == 1
    disk_of(log_dir).fault = lambda operation, path: False
    assert append(log_dir, 0, b"after") == 0
    assert content(log_dir) == content(reopened(log_dir, durability)) == [[b"before"], [b"after"]]
    assert content(log_dir, 1) == [[b"other"], [b"other"]]


def test_what_could_not_be_cut_off_is_cut_off_before_the_next_write(durability: Durability) -> None:
    log_dir = made(durability)
    assert append(log_dir, 0, b"before") == 0
    whole = batch(b"refused")[0]
    disk_of(log_dir).fault = lambda operation, path: operation in ("write", "truncate") and path.endswith(".log")
    for content_ in (b"refused", b"refused"):
        log_dir.writer.append(log_dir.logs[TOPIC, 0], *batch(content_), None)
    assert settle(log_dir) == [STORAGE_ERROR, STORAGE_ERROR]
    assert len(read_all(disk_of(log_dir), f"{TOPIC}-0/{0:020}.log")) > len(whole)
    assert append(log_dir, 0, b"refused too") == STORAGE_ERROR
    disk_of(log_dir).fault = lambda operation, path: False
    assert append(log_dir, 0, b"x") == 0
    assert content(log_dir) == content(reopened(log_dir, durability)) == [[b"before"], [b"x"]]


def test_a_full_disk_refuses_and_recovers(durability: Durability) -> None:
    log_dir = made(durability, capacity=2 * WAL_SIZE + 2500, partitions=1)
    appended: list[list[bytes]] = []
    while append(log_dir, 0, b"%d" % len(appended) * 40) == 0:
        appended.append([b"%d" % len(appended) * 40])
    assert appended
    assert append(log_dir, 0, b"x" * 200) == STORAGE_ERROR
    assert content(log_dir) == appended
    again = reopened(log_dir, durability)
    assert content(again) == appended
    disk_of(again).capacity = None
    assert append(again, 0, b"there is space again") == 0
    assert content(again) == [*appended, [b"there is space again"]]


def test_a_failed_sync_refuses_the_round_and_all_that_comes(durability: Durability) -> None:
    if durability == "os":
        log_dir = made("os")
        disk_of(log_dir).fault = lambda operation, path: operation == "sync"
        assert append(log_dir, 0, b"needs none") == 0
        return
    log_dir = made("fsync")
    assert append(log_dir, 0, b"before") == 0
    disk_of(log_dir).fault = lambda operation, path: operation == "sync"
    writer, log = log_dir.writer, log_dir.logs[TOPIC, 0]
    told: list[str] = []
    writer.on_failure = told.append
    assert writer.append(log, *batch(b"in the round"), "in the round") == 0
    begun = writer.begin()
    assert begun is not None
    assert writer.append(log, *batch(b"meanwhile"), "meanwhile") == 0
    begun.sync()
    assert writer.finish(begun) == [("in the round", STORAGE_ERROR)]
    disk_of(log_dir).fault = lambda operation, path: False
    assert told == [writer.failure] == ["sync failed: [Errno 5] Input/output error"]
    behind = writer.begin()
    assert behind is not None
    assert not behind.needs_sync
    assert writer.finish(behind) == [("meanwhile", STORAGE_ERROR)]
    assert writer.append(log, *batch(b"more"), "more") == STORAGE_ERROR
    assert writer.begin_background_sync() is None
    log_dir.close()
    again = reopened(log_dir, "fsync")
    assert content(again) == [[b"before"]]
    assert append(again, 0, b"after") == 0
    assert content(again) == [[b"before"], [b"after"]]


def test_where_the_journal_cant_be_written_the_segments_are_synced() -> None:
    log_dir = made("fsync")
    assert append(log_dir, 0, b"before") == 0
    disk_of(log_dir).fault = lambda operation, path: operation == "write" and path in NAMES
    assert append(log_dir, 0, b"meanwhile") == 0
    disk_of(log_dir).fault = lambda operation, path: False
    assert append(log_dir, 0, b"after") == 0
    disk = disk_of(log_dir)
    disk.files = {name: Inode(bytes(inode.on_disk)) for name, inode in disk.files.items()}
    assert content(reopened(log_dir, "fsync")) == [[b"before"], [b"meanwhile"], [b"after"]]


@pytest.mark.parametrize("helps", [True, False])
def test_journal_files_take_turns(helps: bool) -> None:
    """With somebody who syncs in the background, and without."""
    log_dir = made("fsync")
    writer = log_dir.writer
    expected = []
    syncs = 0
    for number in range(200):
        expected.append([b"%d" % number * 20])
        assert append(log_dir, number % 2, *expected[-1]) == 0
        work = writer.begin_background_sync() if helps else None
        if work is not None:
            syncs += 1
            work.run()
            writer.end_background_sync()
        if number % 7 == 0:
            disk = FaultyDisk()
            mine = disk_of(log_dir)
            disk.directories = mine.directories
            disk.files = {name: Inode(bytes(inode.on_disk)) for name, inode in mine._names_on_disk.items()}
            found = LogDir(disk, durability="fsync", wal_size_bytes=WAL_SIZE)
            assert content(found) == expected[::2]
            assert content(found, 1) == expected[1::2]
    assert (syncs > 3) == helps


def test_a_round_may_be_larger_than_the_journal() -> None:
    log_dir = made("fsync")
    for number in range(3):
        assert append(log_dir, 0, b"small") == 0
        assert append(log_dir, 0, b"%d" % number * WAL_SIZE) == 0
    disk = disk_of(log_dir)
    disk.files = {name: Inode(bytes(inode.on_disk)) for name, inode in disk.files.items()}
    assert len(content(reopened(log_dir, "fsync"))) == 6


def test_a_sync_that_fails_in_the_background_fails_the_log() -> None:
    log_dir = made("fsync")
    work = None
    while work is None:
        assert append(log_dir, 0, b"x" * 200) == 0
        work = log_dir.writer.begin_background_sync()
    disk_of(log_dir).fault = lambda operation, path: operation == "sync" and path.endswith(".log")
    work.run()
    log_dir.writer.end_background_sync()
    assert append(log_dir, 0, b"y") == STORAGE_ERROR
    disk = disk_of(log_dir)
    disk.files = {name: Inode(bytes(inode.on_disk)) for name, inode in disk.files.items()}
    found = content(reopened(log_dir, "fsync"))
    assert found
    assert {tuple(values) for values in found} == {(b"x" * 200,)}


def test_in_os_mode_so_much_is_written_before_it_is_synced() -> None:
    log_dir = made("os", unsynced_max_bytes=1000)
    log = log_dir.logs[TOPIC, 0]
    while (work := log_dir.writer.begin_background_sync()) is None:
        assert log_dir.writer.write(log, *batch(b"x" * 50)) == 0
    assert 1000 <= log.size < 1300
    work.run()
    log_dir.writer.end_background_sync()
    assert log.synced_offset == log.next_offset
    assert log_dir.writer.begin_background_sync() is None
    assert reopened(log_dir, "os").logs[TOPIC, 0].synced_offset == log.next_offset


def test_a_batch_that_is_written_by_its_checked_part_is_the_same_batch() -> None:
    """D13: whatever the log has to do first: open a file, begin a segment, cut off what a failed write has left."""

    def broken(operation: str, path: str) -> bool:
        return operation in ("write", "truncate") and path.endswith(".log")

    def sound(operation: str, path: str) -> bool:
        return False

    by_part, whole = made("os", partitions=1), made("os", partitions=1)
    for number in range(60):
        octets, count = batch(*(b"%d" % number * (number % 7 + 1) for _ in range(number % 3 + 1)))
        fails = number % 10 == 4
        errors = []
        for log_dir in (by_part, whole):
            writer, log = log_dir.writer, log_dir.logs[TOPIC, 0]
            log.segment_bytes = 700
            disk_of(log_dir).fault = broken if fails else sound
            checked = octets[CHECKED_FROM:]
            is_whole = log_dir is whole
            errors.append(writer.write(log, octets, count) if is_whole else writer.write_checked(log, checked, count))
            if number % 13 == 0 and (work := writer.begin_sync(log)) is not None:
                work.run()
                writer.end_sync(work)
        assert errors == [STORAGE_ERROR if fails else 0] * 2
    assert content(by_part) == content(whole)
    assert len(by_part.logs[TOPIC, 0].segments()) > 5
    assert by_part.writer.write_checked(by_part.logs[TOPIC, 0], bytes(1 << 21), 1) == TOO_LARGE
    for segment in by_part.logs[TOPIC, 0].segments():
        assert read_all(disk_of(by_part), segment.path) == read_all(disk_of(whole), segment.path)


def test_a_small_disk_gets_a_small_journal() -> None:
    log_dir = made("fsync", capacity=1_200_000, wal_size_bytes=4 << 20)
    assert disk_of(log_dir).size_of(NAMES[0]) == 524288
    assert append(log_dir, 0, b"x") == 0
