"""Compaction in the background: when it looks, what it does about failures, and when it lets a log be.

The loop is a list of what was posted; the thread does its work at once. Time is the broker's, and stands until it is
moved. The disk is simulated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from kproto.records.batches import read_batches
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.records.record import Record
from kproto.records.record_batch import TRANSACTIONAL, build_record_batch
from kproto_server.persistence.compaction_task import CompactionTask
from kproto_server.storage.disk import read_all
from kproto_server.storage.log_dir import LogDir
from tests.coordinator.broker_state import new_state
from tests.storage.simulated_disk import Operation, SimulatedDisk

BACKOFF_MS = 15_000
SEGMENT_BYTES = 2000
COMMIT = build_record_batch([Record(b"key", b"v" * 100)])
ONE_RECORD = len(COMMIT)


class Loop:
    """Stands for the host and its thread."""

    def __init__(self) -> None:
        self.posted: list[Callable[[], object]] = []
        self.before_work: Callable[[], object] = lambda: None
        """Happens while something is on its way to the thread."""

    def post(self, action: Callable[[], object]) -> None:
        self.posted.append(action)

    def run(self, work: Callable[[], object], done: Callable[[], object]) -> None:
        self.before_work()
        work()
        self.post(done)

    def go(self) -> None:
        while self.posted:
            self.posted.pop(0)()


class Background:
    """Compaction of two partitions' logs."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        self.loop = Loop()
        self.disk = SimulatedDisk()
        self.log_dir = LogDir(self.disk, durability="os", segment_bytes=SEGMENT_BYTES)
        self.log_dir.create_logs(OFFSETS_TOPIC, 2)
        self.state = new_state(settings={"offsets.topic.num.partitions": "2", **(settings or {})})
        loop: Any = self.loop
        state = self.state
        self.compacting = CompactionTask(state.cluster, state.settings, state.clock, loop, loop, self.log_dir)
        self.compacting.start()

    def fill(self, partition: int, *, segments: int = 3) -> None:
        """Write the same key until some segments are closed."""
        log = self.log_dir.logs[OFFSETS_TOPIC, partition]
        closed = len(log.closed_segments())
        while len(log.closed_segments()) < closed + segments:
            assert self.log_dir.writer.write(log, COMMIT, 1) == 0

    def pass_time(self, ms: int = BACKOFF_MS) -> None:
        self.state.clock.advance(ms)
        self.loop.go()

    def closed_size(self, partition: int) -> int:
        return sum(segment.size for segment in self.log_dir.logs[OFFSETS_TOPIC, partition].closed_segments())


def test_all_dirty_logs_are_compacted() -> None:
    """How far is noted for the next start."""
    background = Background()
    for partition in (0, 1):
        background.fill(partition)
    background.loop.go()
    for partition in (0, 1):
        assert background.closed_size(partition) == ONE_RECORD
    log = background.log_dir.logs[OFFSETS_TOPIC, 1]
    assert f"{OFFSETS_TOPIC} 1 {log.base_offset}\n" in read_all(background.disk, "cleaner-offset-checkpoint").decode()


def test_a_segment_that_is_closed_is_looked_at_at_once() -> None:
    """However fast commits come, what stands beside what lives is bounded."""
    background = Background()
    background.loop.go()
    for _ in range(5):
        background.fill(0, segments=1)
        background.loop.go()
        assert background.closed_size(0) == ONE_RECORD


def test_nothing_happens_while_no_segment_is_closed() -> None:
    """So moving the clock by days takes no time."""
    background = Background()
    background.fill(0)
    background.loop.go()
    assert background.state.clock.delay_ms() is None


def test_it_may_be_switched_off() -> None:
    """`log.cleaner.enable`"""
    background = Background({"log.cleaner.enable": "false"})
    background.fill(0)
    background.pass_time()
    assert background.closed_size(0) > SEGMENT_BYTES


@pytest.mark.parametrize("kind", ["create", "write", "sync", "rename", "sync_directory", "remove"])
def test_what_fails_is_tried_again(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """A full disk may have room later. Meanwhile the log says what it said."""
    background = Background()
    background.fill(0)
    is_replacing = False

    def fails(operation: Operation) -> bool:
        nonlocal is_replacing
        is_replacing = is_replacing or operation.path.endswith(".cleaned")
        return is_replacing and operation.kind == kind

    background.disk.fails = fails
    with caplog.at_level(logging.WARNING, "kproto.log"):
        background.pass_time()
    assert "can't be compacted now" in caplog.text
    background.disk.fails = lambda operation: False
    background.pass_time()
    assert background.closed_size(0) == ONE_RECORD
    names = background.disk.names(f"{OFFSETS_TOPIC}-0")
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))]
    assert len([name for name in names if name.endswith(".log")]) == 2


def test_a_damaged_log_is_left_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    """Once; the others are compacted."""
    background = Background()
    for partition in (0, 1):
        background.fill(partition, segments=3 + partition)
    path = background.log_dir.logs[OFFSETS_TOPIC, 1].closed_segments()[0].path
    background.disk.open(path).write_at(400, b"damage")
    before = read_all(background.disk, path)
    with caplog.at_level(logging.ERROR, "kproto.log"):
        background.pass_time()
        background.pass_time()
    assert read_all(background.disk, path) == before
    assert caplog.text.count("can't be compacted: ") == 1
    assert background.closed_size(0) == ONE_RECORD


def test_a_log_that_is_removed_and_made_anew_is_not_touched() -> None:
    background = Background()
    background.fill(0)

    def replace() -> None:
        background.loop.before_work = lambda: None
        background.log_dir.remove_logs(OFFSETS_TOPIC)
        background.log_dir.create_logs(OFFSETS_TOPIC, 2)
        log = background.log_dir.logs[OFFSETS_TOPIC, 0]
        assert background.log_dir.writer.write(log, build_record_batch([Record(b"new", b"new")]), 1) == 0

    background.loop.before_work = replace
    background.pass_time()
    (batch,) = read_batches(read_all(background.disk, f"{OFFSETS_TOPIC}-0/{0:020}.log"))
    assert batch.records()[0].value == b"new"
    assert not [name for name in background.disk.names(f"{OFFSETS_TOPIC}-0") if name.endswith(".cleaned")]


def test_what_a_transaction_holds_up_is_tried_once_until_there_is_more() -> None:
    """LF-70: up to the first offset of a transaction that has not ended."""
    background = Background()
    log = background.log_dir.logs[OFFSETS_TOPIC, 0]
    batch = build_record_batch([Record(b"key", b"v")], producer_id=1, producer_epoch=0, flags=TRANSACTIONAL)
    assert background.log_dir.writer.write(log, batch, 1) == 0
    background.fill(0)
    size = background.closed_size(0)
    background.pass_time()
    assert background.closed_size(0) == size
    operations = background.disk.operation_count
    background.pass_time()
    assert background.disk.operation_count == operations
    background.fill(0, segments=1)
    background.pass_time()
    assert background.disk.operation_count > operations


def test_it_stops() -> None:
    background = Background()
    background.fill(0)
    size = background.closed_size(0)
    background.loop.before_work = background.compacting.stop
    background.pass_time()
    assert background.closed_size(0) == size
    assert background.loop.posted == []
