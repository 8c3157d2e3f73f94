"""The compaction task: when it starts, how it handles failures, and which logs it leaves alone.

The event loop is a list of posted functions, and the worker thread runs its work immediately. The clock is moved by
hand, and the disk is simulated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from kproto.records.batch_header import TRANSACTIONAL
from kproto.records.batches import read_batches
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.persistence.compaction_task import CompactionTask
from kproto_server.storage.disk import read_all
from kproto_server.storage.log_dir import LogDir
from kproto_server.testing.simulated_disk import Operation, SimulatedDisk
from tests.coordinator.broker_state import new_state

BACKOFF_MS = 15_000
SEGMENT_BYTES = 2000
COMMIT = build_record_batch([Record(b"key", b"v" * 100)])
ONE_RECORD = len(COMMIT)


class Loop:
    """Stands for the event loop and the worker thread."""

    def __init__(self) -> None:
        self.posted: list[Callable[[], object]] = []
        self.before_work: Callable[[], object] = lambda: None
        """Called before blocking work."""

    def post(self, action: Callable[[], object]) -> None:
        self.posted.append(action)

    def run(self, work: Callable[[], object], done: Callable[[], object]) -> None:
        self.before_work()
        try:
            work()
        except Exception as error:  # noqa: BLE001 - no caller catches it in a thread
            pytest.fail(f"work in the thread raised {error!r}")
        self.post(done)

    def run_posted(self) -> None:
        while self.posted:
            self.posted.pop(0)()


class Task:
    """The compaction task of two offsets partitions."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        self.loop = Loop()
        self.disk = SimulatedDisk()
        self.log_dir = LogDir(self.disk, durability="os", segment_bytes=SEGMENT_BYTES)
        self.log_dir.create_logs(OFFSETS_TOPIC, 2)
        self.state = new_state(settings={"offsets.topic.num.partitions": "2", **(settings or {})})
        worker: Any = self.loop
        state = self.state
        self.task = CompactionTask(state.cluster, state.settings, state.clock, self.loop.post, worker, self.log_dir)
        self.task.start()

    def fill(self, partition: int, *, segments: int = 3) -> None:
        """Write the same key until a number of segments are closed."""
        log = self.log_dir.logs[OFFSETS_TOPIC, partition]
        closed = len(log.closed_segments())
        while len(log.closed_segments()) < closed + segments:
            assert self.log_dir.writer.write(log, COMMIT, 1) == 0

    def pass_time(self, ms: int = BACKOFF_MS) -> None:
        self.state.clock.advance(ms)
        self.loop.run_posted()

    def closed_size(self, partition: int) -> int:
        return sum(segment.size for segment in self.log_dir.logs[OFFSETS_TOPIC, partition].closed_segments())


def test_all_dirty_logs_are_compacted() -> None:
    """The first dirty offset of each is saved for the next start."""
    task = Task()
    for partition in (0, 1):
        task.fill(partition)
    task.loop.run_posted()
    for partition in (0, 1):
        assert task.closed_size(partition) == ONE_RECORD
    log = task.log_dir.logs[OFFSETS_TOPIC, 1]
    assert f"{OFFSETS_TOPIC} 1 {log.base_offset}\n" in read_all(task.disk, "cleaner-offset-checkpoint").decode()


def test_a_closed_segment_is_compacted_immediately() -> None:
    """The size of a log is limited by its live data, however fast commits come."""
    task = Task()
    task.loop.run_posted()
    for _ in range(5):
        task.fill(0, segments=1)
        task.loop.run_posted()
        assert task.closed_size(0) == ONE_RECORD


def test_no_timer_is_set_while_no_segment_is_closed() -> None:
    """Moving the clock by days takes no time."""
    task = Task()
    task.fill(0)
    task.loop.run_posted()
    assert task.state.clock.delay_ms() is None


def test_compaction_can_be_disabled() -> None:
    """`log.cleaner.enable`"""
    task = Task({"log.cleaner.enable": "false"})
    task.fill(0)
    task.pass_time()
    assert task.closed_size(0) > SEGMENT_BYTES


@pytest.mark.parametrize("kind", ["create", "write", "sync", "rename", "sync_directory", "remove"])
def test_a_failed_compaction_is_repeated(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """A full disk can have space later. Meanwhile the log has its old content."""
    task = Task()
    task.fill(0)
    is_replacing = False

    def fails(operation: Operation) -> bool:
        nonlocal is_replacing
        is_replacing = is_replacing or operation.path.endswith(".cleaned")
        return is_replacing and operation.kind == kind

    task.disk.fails = fails
    with caplog.at_level(logging.WARNING, "kproto.log"):
        task.pass_time()
    assert "can't be compacted now" in caplog.text
    task.disk.fails = lambda operation: False
    task.pass_time()
    assert task.closed_size(0) == ONE_RECORD
    directory = f"{OFFSETS_TOPIC}-0"
    names = task.disk.names(directory)
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))]
    assert len([name for name in names if name.endswith(".log") and task.disk.size_of(f"{directory}/{name}")]) == 2


def test_a_damaged_log_does_not_change(caplog: pytest.LogCaptureFixture) -> None:
    """It is reported once, and the other logs are compacted."""
    task = Task()
    for partition in (0, 1):
        task.fill(partition, segments=3 + partition)
    path = task.log_dir.logs[OFFSETS_TOPIC, 1].closed_segments()[0].path
    task.disk.open(path).write_at(400, b"damage")
    before = read_all(task.disk, path)
    with caplog.at_level(logging.ERROR, "kproto.log"):
        task.pass_time()
        task.pass_time()
    assert read_all(task.disk, path) == before
    assert caplog.text.count("can't be compacted: ") == 1
    assert task.closed_size(0) == ONE_RECORD


def test_a_file_of_an_earlier_compaction_that_is_damaged_by_now(caplog: pytest.LogCaptureFixture) -> None:
    task = Task()
    task.fill(0)
    task.log_dir.logs[OFFSETS_TOPIC, 0].segment_bytes *= 10  # one segment replaces all
    task.disk.fails = lambda operation: operation.kind == "remove" and operation.path.endswith(".log")
    task.loop.run_posted()
    task.disk.fails = lambda operation: False
    (swap,) = (name for name in task.disk.names(f"{OFFSETS_TOPIC}-0") if name.endswith(".swap"))
    task.disk.open(f"{OFFSETS_TOPIC}-0/{swap}").write_at(0, b"damage" * 10)
    task.pass_time()
    assert f"{OFFSETS_TOPIC}-0 can't be compacted: " in caplog.text


def test_a_log_that_was_removed_and_created_again_is_not_changed() -> None:
    task = Task()
    task.fill(0)

    def replace() -> None:
        task.loop.before_work = lambda: None
        task.log_dir.remove_logs([OFFSETS_TOPIC])
        task.log_dir.create_logs(OFFSETS_TOPIC, 2)
        log = task.log_dir.logs[OFFSETS_TOPIC, 0]
        assert task.log_dir.writer.write(log, build_record_batch([Record(b"new", b"new")]), 1) == 0

    task.loop.before_work = replace
    task.pass_time()
    (batch,) = read_batches(read_all(task.disk, f"{OFFSETS_TOPIC}-0/{0:020}.log"))
    assert batch.records()[0].value == b"new"
    assert not [name for name in task.disk.names(f"{OFFSETS_TOPIC}-0") if name.endswith(".cleaned")]


def test_a_log_whose_policy_has_changed_is_not_compacted_on(caplog: pytest.LogCaptureFixture) -> None:
    """Retention may remove segments of it that the compaction is about to replace."""
    task = Task()
    task.fill(0)
    log = task.log_dir.logs[OFFSETS_TOPIC, 0]
    log.segment_bytes *= 10
    configs: Any = task.state.cluster.topics[OFFSETS_TOPIC].configs

    def change() -> None:
        if task.disk.exists(f"{OFFSETS_TOPIC}-0/{0:020}.log.swap"):
            task.loop.before_work = lambda: None
            configs["cleanup.policy"] = "delete"
            log.drop_oldest()

    task.loop.before_work = change
    with caplog.at_level(logging.ERROR, "kproto.log"):
        task.pass_time()
    assert configs["cleanup.policy"] == "delete"
    assert len(log.closed_segments()) == 2
    configs["cleanup.policy"] = "compact"
    task.fill(0, segments=1)
    task.pass_time()
    assert not caplog.text
    assert task.closed_size(0) == ONE_RECORD


def test_a_log_with_an_open_transaction_is_read_once_for_each_closed_segment() -> None:
    """LF-70: compaction ends at the first offset of an open transaction."""
    task = Task()
    log = task.log_dir.logs[OFFSETS_TOPIC, 0]
    batch = build_record_batch([Record(b"key", b"v")], producer_id=1, producer_epoch=0, flags=TRANSACTIONAL)
    assert task.log_dir.writer.write(log, batch, 1) == 0
    task.fill(0)
    size = task.closed_size(0)
    task.pass_time()
    assert task.closed_size(0) == size
    operations = task.disk.operation_count
    task.pass_time()
    assert task.disk.operation_count == operations
    task.fill(0, segments=1)
    task.pass_time()
    assert task.disk.operation_count > operations


def test_a_stopped_task_ends_its_compaction() -> None:
    task = Task()
    task.fill(0)
    size = task.closed_size(0)
    task.loop.before_work = task.task.stop
    task.pass_time()
    assert task.closed_size(0) == size
    assert task.loop.posted == []
