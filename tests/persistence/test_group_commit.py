"""Group commits of the event loop: which changes and responses follow a write that fails."""

from __future__ import annotations

from functools import partial

import pytest

from kproto_server.coordinator.change_log import STORAGE_ERROR, Change
from kproto_server.deferred import NO_RESPONSE, NoResponse
from kproto_server.persistence.group_commit import GroupCommitLog
from kproto_server.testing.simulated_disk import SimulatedDisk
from tests.persistence.held_worker import HeldWorker
from tests.storage.log_data import TOPIC, batch_of, new_log_dir


def new_log(partitions: int) -> tuple[GroupCommitLog, HeldWorker, SimulatedDisk]:
    disk, worker = SimulatedDisk(), HeldWorker()
    log_dir = new_log_dir(disk, partitions, durability="fsync", wal_size_bytes=4096)
    log = GroupCommitLog(log_dir.writer, worker)
    log.partitions = {number: log_dir.logs[TOPIC, number] for number in range(partitions)}
    return log, worker, disk


def append(log: GroupCommitLog, partition: int, name: str, found: list[tuple[str, int]]) -> None:
    log.append(partition, Change(name, lambda error: found.append((name, error))), *batch_of(name.encode()))


def respond(name: str, found: list[tuple[str, int]]) -> NoResponse:
    found.append((f"response {name}", 0))
    return NO_RESPONSE


def test_changes_behind_a_failed_one_fail_with_it_and_their_responses_follow() -> None:
    log, worker, disk = new_log(1)
    found: list[tuple[str, int]] = []
    disk.fails = lambda operation: operation.kind == "write" and operation.path.startswith(TOPIC)
    append(log, 0, "first", found)
    log.then(partial(respond, "first", found))
    log.flush()
    append(log, 0, "behind", found)
    log.then(partial(respond, "behind", found))
    for _ in range(3):  # the frame, the segments, and the frame that takes its place
        assert not found
        worker.run_one()
    assert found == [("first", STORAGE_ERROR), ("behind", STORAGE_ERROR), ("response first", 0), ("response behind", 0)]
    disk.fails = lambda operation: False
    append(log, 0, "after", found)
    log.flush()
    worker.run_one()
    assert found[4:] == [("after", 0)]


def test_changes_that_are_appended_before_a_failure_is_reported_fail_with_it() -> None:
    """They may have been decided on what the failed change said."""
    log, worker, disk = new_log(2)
    found: list[tuple[str, int]] = []
    disk.fails = lambda operation: operation.kind == "write" and operation.path.startswith(f"{TOPIC}-0")
    append(log, 0, "first", found)
    log.flush()
    worker.run_one()  # the frame is durable, the segment cannot be written
    disk.fails = lambda operation: False
    for partition, name in enumerate(("behind", "other")):
        append(log, partition, name, found)
    while worker.held:
        worker.run_one()
    assert found == [("first", STORAGE_ERROR), ("behind", STORAGE_ERROR), ("other", 0)]
    append(log, 0, "after", found)
    log.flush()
    worker.run_one()
    assert found[3:] == [("after", 0)]


def test_drain_ends_a_group_commit_that_needs_several_syncs() -> None:
    log, worker, disk = new_log(2)
    found: list[tuple[str, int]] = []
    disk.fails = lambda operation: operation.kind == "write" and operation.path.startswith(f"{TOPIC}-0")
    append(log, 0, "fails", found)
    append(log, 1, "succeeds", found)
    log.flush()
    append(log, 1, "next", found)
    log.drain()
    assert not worker.held
    assert found == [("fails", STORAGE_ERROR), ("succeeds", 0), ("next", 0)]


def test_responses_wait_for_what_did_not_fit_into_the_write_ahead_log() -> None:
    log, worker, _ = new_log(1)
    found: list[tuple[str, int]] = []
    for number in range(100):
        append(log, 0, str(number), found)
    log.then(partial(respond, "last", found))
    log.flush()
    while worker.held:
        worker.run_one()
    assert found == [*((str(number), 0) for number in range(100)), ("response last", 0)]


def test_a_defect_behind_a_sync_that_no_client_waits_for_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    log, worker, _ = new_log(1)

    def fail() -> NoResponse:
        raise RuntimeError("a defect")

    append(log, 0, "x", [])
    log.then(fail)
    log.flush()
    worker.run_one()
    assert "RuntimeError: a defect" in caplog.text
