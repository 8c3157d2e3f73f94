"""Failed writes and syncs, full disks, and full write-ahead logs (OC-35, OS-24, OS-25)."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy

import pytest

from kproto.codes import ErrorCode
from kproto.records.batch_header import CHECKED_FROM
from kproto_server.storage.disk import read_all
from kproto_server.storage.log_dir import LogDir
from kproto_server.storage.log_writer import Durability
from kproto_server.storage.write_ahead_log import NAMES
from kproto_server.testing.simulated_disk import Operation, PowerLost, SimulatedDisk
from tests.storage.log_data import TOPIC, append, batch_of, log_values, new_log_dir, run_group_commit

STORAGE_ERROR, TOO_LARGE = ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.MESSAGE_TOO_LARGE
WAL_SIZE_BYTES = 4096


@pytest.fixture(params=["os", "fsync"])
def durability(request: pytest.FixtureRequest) -> Durability:
    value: Durability = request.param
    return value


def new(durability: Durability, *, capacity_bytes: int | None = None, partitions: int = 2, **options: int) -> LogDir:
    disk = SimulatedDisk(capacity_bytes=capacity_bytes)
    return new_log_dir(disk, partitions, durability=durability, **{"wal_size_bytes": WAL_SIZE_BYTES, **options})


def disk_of(log_dir: LogDir) -> SimulatedDisk:
    assert isinstance(log_dir.disk, SimulatedDisk)
    return log_dir.disk


def fail(log_dir: LogDir, kinds: tuple[str, ...], matches: Callable[[str], bool] = lambda path: True) -> None:
    """Let these kinds of operations fail, on paths that match."""

    def fails(operation: Operation) -> bool:
        return operation.kind in kinds and matches(operation.path)

    disk_of(log_dir).fails = fails


def is_segment(path: str) -> bool:
    return path.endswith(".log")


def values(log_dir: LogDir, partition: int = 0) -> list[list[bytes | None]]:
    return log_values(log_dir.disk, log_dir.logs[TOPIC, partition])


def reopen(disk: SimulatedDisk, durability: Durability) -> LogDir:
    return LogDir(disk, durability=durability, wal_size_bytes=WAL_SIZE_BYTES)


def after_kill(log_dir: LogDir, durability: Durability) -> LogDir:
    return reopen(disk_of(log_dir).kill(), durability)


def after_power_loss(log_dir: LogDir) -> LogDir:
    """Open a copy of the disk after a power loss that loses every unsynced change."""
    return reopen(deepcopy(disk_of(log_dir)).crash(None), "fsync")


def test_a_failed_write_changes_nothing(durability: Durability) -> None:
    log_dir = new(durability)
    assert append(log_dir, 0, b"before") == 0
    fail(log_dir, ("write",), lambda path: path.startswith(f"{TOPIC}-0"))
    log = log_dir.logs[TOPIC, 0]
    for number in range(2):
        assert log_dir.writer.append(log, *batch_of(b"failed %d" % number), None) == 0
        assert log_dir.writer.append(log_dir.logs[TOPIC, 1], *batch_of(b"other"), None) == 0
    assert run_group_commit(log_dir) == [STORAGE_ERROR, 0, STORAGE_ERROR, 0]
    assert log.next_offset == 1
    fail(log_dir, ())
    assert append(log_dir, 0, b"after") == 0
    assert values(log_dir) == [[b"before"], [b"after"]]
    assert values(log_dir, 1) == [[b"other"], [b"other"]]
    assert values(after_kill(log_dir, durability)) == [[b"before"], [b"after"]]


def test_a_failed_truncation_is_repeated_before_the_next_write(durability: Durability) -> None:
    log_dir = new(durability)
    path = f"{TOPIC}-0/{0:020}.log"
    assert append(log_dir, 0, b"before") == 0
    size = len(read_all(disk_of(log_dir), path))
    fail(log_dir, ("write", "truncate"), is_segment)
    for value in (b"failed", b"failed"):
        log_dir.writer.append(log_dir.logs[TOPIC, 0], *batch_of(value), None)
    assert run_group_commit(log_dir) == [STORAGE_ERROR, STORAGE_ERROR]
    assert len(read_all(disk_of(log_dir), path)) > size
    assert append(log_dir, 0, b"failed too") == STORAGE_ERROR
    fail(log_dir, ())
    assert append(log_dir, 0, b"x") == 0
    assert values(log_dir) == [[b"before"], [b"x"]]
    assert values(after_kill(log_dir, durability)) == [[b"before"], [b"x"]]


def test_writes_fail_on_a_full_disk_and_succeed_after_it_has_space(durability: Durability) -> None:
    log_dir = new(durability, capacity_bytes=2 * WAL_SIZE_BYTES + 2500, partitions=1)
    appended: list[list[bytes]] = []
    while append(log_dir, 0, b"%d" % len(appended) * 40) == 0:
        appended.append([b"%d" % len(appended) * 40])
    assert appended
    assert append(log_dir, 0, b"x" * 200) == STORAGE_ERROR
    assert values(log_dir) == appended
    reopened = after_kill(log_dir, durability)
    assert values(reopened) == appended
    disk_of(reopened).capacity_bytes = None
    assert append(reopened, 0, b"there is space again") == 0
    assert values(reopened) == [*appended, [b"there is space again"]]


def test_os_mode_needs_no_sync() -> None:
    log_dir = new("os")
    fail(log_dir, ("sync",))
    assert append(log_dir, 0, b"not synced") == 0


def test_a_failed_sync_fails_its_group_commit_and_all_later_writes() -> None:
    log_dir = new("fsync")
    assert append(log_dir, 0, b"before") == 0
    fail(log_dir, ("sync",))
    writer, log = log_dir.writer, log_dir.logs[TOPIC, 0]
    reported: list[str] = []
    writer.on_failure = reported.append
    assert writer.append(log, *batch_of(b"in the group commit"), "in the group commit") == 0
    group_commit = writer.begin()
    assert group_commit is not None
    assert writer.append(log, *batch_of(b"queued"), "queued") == 0
    group_commit.sync()
    assert writer.finish(group_commit) == [("in the group commit", STORAGE_ERROR)]
    fail(log_dir, ())
    assert reported == [writer.failure] == [f"sync failed: [Errno 5] Input/output error: {NAMES[1]!r}"]
    second = writer.begin()
    assert second is not None
    assert not second.needs_sync
    assert writer.finish(second) == [("queued", STORAGE_ERROR)]
    assert writer.append(log, *batch_of(b"more"), "more") == STORAGE_ERROR
    assert writer.begin_background_sync() is None
    log_dir.close()
    reopened = after_kill(log_dir, "fsync")
    assert values(reopened) == [[b"before"]]
    assert append(reopened, 0, b"after") == 0
    assert values(reopened) == [[b"before"], [b"after"]]


def test_a_group_commit_fails_if_the_write_ahead_log_cannot_be_written() -> None:
    log_dir = new("fsync")
    assert append(log_dir, 0, b"before") == 0
    fail(log_dir, ("write",), lambda path: path in NAMES)
    assert append(log_dir, 0, b"without") == STORAGE_ERROR
    fail(log_dir, ())
    assert append(log_dir, 0, b"after") == 0
    assert values(after_power_loss(log_dir)) == [[b"before"], [b"after"]]


@pytest.mark.parametrize("has_background_syncs", [True, False])
def test_write_ahead_log_files_take_turns(has_background_syncs: bool) -> None:
    log_dir = new("fsync")
    expected = []
    sync_count = 0
    for number in range(200):
        expected.append([b"%d" % number * 20])
        assert append(log_dir, number % 2, *expected[-1]) == 0
        sync = log_dir.writer.begin_background_sync() if has_background_syncs else None
        if sync is not None:
            sync_count += 1
            sync.run()
            log_dir.writer.end_background_sync()
        if number % 7 == 0:
            recovered = after_power_loss(log_dir)
            assert values(recovered) == expected[::2]
            assert values(recovered, 1) == expected[1::2]
    assert (sync_count > 3) == has_background_syncs


def test_a_group_commit_can_be_larger_than_the_write_ahead_log() -> None:
    log_dir = new("fsync")
    for number in range(3):
        assert append(log_dir, 0, b"small") == 0
        assert append(log_dir, 0, b"%d" % number * WAL_SIZE_BYTES) == 0
    assert len(values(after_power_loss(log_dir))) == 6


def test_a_failed_background_sync_fails_all_later_writes() -> None:
    log_dir = new("fsync")
    sync = None
    while sync is None:
        assert append(log_dir, 0, b"x" * 200) == 0
        sync = log_dir.writer.begin_background_sync()
    fail(log_dir, ("sync",), is_segment)
    sync.run()
    log_dir.writer.end_background_sync()
    assert append(log_dir, 0, b"y") == STORAGE_ERROR
    found = values(after_power_loss(log_dir))
    assert found
    assert {tuple(each) for each in found} == {(b"x" * 200,)}


def test_os_mode_syncs_in_the_background_after_a_number_of_bytes() -> None:
    log_dir = new("os", unsynced_max_bytes=1000)
    log = log_dir.logs[TOPIC, 0]
    while (sync := log_dir.writer.begin_background_sync()) is None:
        assert log_dir.writer.write(log, *batch_of(b"x" * 50)) == 0
    assert 1000 <= log.size < 1300
    sync.run()
    log_dir.writer.end_background_sync()
    assert log.recovery_point.offset == log.next_offset
    assert log_dir.writer.begin_background_sync() is None
    assert after_kill(log_dir, "os").logs[TOPIC, 0].recovery_point.offset == log.next_offset


def test_a_batch_written_by_its_checked_part_is_the_same_batch() -> None:
    """D13: also if the log first opens a file, rolls a segment, or truncates a failed write."""
    by_part, whole = new("os", partitions=1), new("os", partitions=1)
    for number in range(60):
        data, count = batch_of(*(b"%d" % number * (number % 7 + 1) for _ in range(number % 3 + 1)))
        fails = number % 10 == 4
        errors = []
        for log_dir in (by_part, whole):
            writer, log = log_dir.writer, log_dir.logs[TOPIC, 0]
            log.segment_bytes = 700
            fail(log_dir, ("write", "truncate") if fails else (), is_segment)
            checked = data[CHECKED_FROM:]
            is_whole = log_dir is whole
            errors.append(writer.write(log, data, count) if is_whole else writer.write_checked(log, checked, count))
            if number % 13 == 0 and (sync := writer.begin_sync(log)) is not None:
                sync.run()
                writer.end_sync(sync)
        assert errors == [STORAGE_ERROR if fails else 0] * 2
    assert values(by_part) == values(whole)
    assert len(by_part.logs[TOPIC, 0].segments()) > 5
    assert by_part.writer.write_checked(by_part.logs[TOPIC, 0], bytes(1 << 21), 1) == TOO_LARGE
    for segment in by_part.logs[TOPIC, 0].segments():
        assert read_all(disk_of(by_part), segment.path) == read_all(disk_of(whole), segment.path)


def test_a_small_disk_gets_a_small_write_ahead_log() -> None:
    log_dir = new("fsync", capacity_bytes=1_200_000, wal_size_bytes=4 << 20)
    assert disk_of(log_dir).size_of(NAMES[0]) == 524288
    assert append(log_dir, 0, b"x") == 0


def test_a_power_loss_leaves_a_whole_group_commit_or_nothing_of_it() -> None:
    """It may take any part of what was not synced, at any operation of the disk."""
    counts = set()
    for operations in range(8):
        for seed in range(20):
            log_dir = new("fsync")
            assert append(log_dir, 0, b"before") == append(log_dir, 1, b"before") == 0
            disk = disk_of(log_dir)
            disk.operations_left = operations
            with suppress(PowerLost):
                for partition in range(2):
                    log_dir.writer.append(log_dir.logs[TOPIC, partition], *batch_of(b"together"), None)
                run_group_commit(log_dir)
            chance = random.Random(seed)  # noqa: S311 - reproducible
            recovered = reopen(disk.crash(chance), "fsync")
            found = values(recovered)
            assert found == values(recovered, 1)
            counts.add(len(found))
    assert counts == {1, 2}


def test_batches_fail_with_those_that_they_may_rely_on() -> None:
    """A batch that is queued behind one that fails; all batches, if a log fails that others rely on."""
    for writes_first in (False, True):
        log_dir = new("fsync", partitions=3)
        logs = [log_dir.logs[TOPIC, partition] for partition in range(3)]
        logs[2].writes_first = writes_first
        fail(log_dir, ("write",), lambda path, name=logs[2].directory: path.startswith(name))  # type: ignore[misc]
        writer = log_dir.writer
        for log in logs:
            assert writer.append(log, *batch_of(b"first"), f"first {log.partition}") == 0
        group_commit = writer.begin()
        assert group_commit is not None
        for log in logs:
            assert writer.append(log, *batch_of(b"behind"), f"behind {log.partition}") == 0
        settled = None
        while settled is None:
            group_commit.sync()
            settled = writer.finish(group_commit)
        others = STORAGE_ERROR if writes_first else 0
        expected = {"first 0": others, "first 1": others, "first 2": STORAGE_ERROR, "behind 2": STORAGE_ERROR}
        if writes_first:
            expected |= {"behind 0": STORAGE_ERROR, "behind 1": STORAGE_ERROR}
        assert dict(settled) == expected
        fail(log_dir, ())
        assert append(log_dir, 2, b"after") == 0
        after = [b"first"], [b"behind"]
        for found in (log_dir, after_power_loss(log_dir)):
            assert values(found, 2) == [[b"after"]]
            assert values(found, 0) == values(found, 1) == ([] if writes_first else list(after))


def test_a_synced_log_has_a_durable_directory_although_its_recovery_point_cannot_be_saved() -> None:
    log_dir = new("fsync")
    log_dir.create_log("new", 0)
    log = log_dir.logs["new", 0]
    fail(log_dir, ("write",), lambda path: path.startswith("kproto.recovery"))
    assert log_dir.writer.append(log, *batch_of(b"x"), None) == 0
    assert run_group_commit(log_dir) == [0]
    log_dir.writer.sync_everything()
    after = deepcopy(disk_of(log_dir)).crash(None)
    assert read_all(after, log.active_path) == read_all(disk_of(log_dir), log.active_path)


def test_a_failed_sync_of_the_emptied_write_ahead_log_stops_all_writes() -> None:
    """Later frames may be behind one that the disk has lost: a batch in them must not be acknowledged (OC-35)."""
    log_dir = new("fsync")
    log_dir.create_log("deleted", 0)
    assert append(log_dir, 0, b"before") == 0
    fail(log_dir, ("sync",), lambda path: path in NAMES)
    with pytest.raises(OSError, match="sync failed"):
        log_dir.remove_logs(["deleted"])
    fail(log_dir, ())
    assert log_dir.writer.failure is not None
    assert append(log_dir, 0, b"after") == STORAGE_ERROR
    assert values(after_power_loss(log_dir)) == [[b"before"]]


def test_a_group_commit_has_as_many_batches_as_fit_into_the_write_ahead_log() -> None:
    log_dir = new("fsync")
    writer, log = log_dir.writer, log_dir.logs[TOPIC, 0]
    expected = [[b"%d" % number * 500] for number in range(10)]
    for (value,) in expected:
        assert writer.append(log, *batch_of(value), None) == 0
    counts = []
    while writer.queued:
        counts.append(len(run_group_commit(log_dir)))
    assert len(counts) > 2
    assert sum(counts) == 10
    assert values(after_power_loss(log_dir)) == expected
