"""A data directory on the simulated disk, with the operations of a broker, failures, and a check after each crash."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Sequence

from kproto.errors import CorruptLog
from kproto_server.storage.compaction import Compaction
from kproto_server.storage.group_commit import GroupCommit
from kproto_server.storage.log_dir import LogDir
from kproto_server.storage.log_writer import Durability
from kproto_server.storage.open_segments import OpenSegments
from kproto_server.storage.partition_log import PartitionLog
from kproto_server.storage.segment_sync import SegmentSync
from kproto_server.storage.topics_file import StoredTopic
from kproto_server.testing.simulated_disk import SimulatedDisk
from tests.storage.crash_model import PARTITIONS, TOPIC, Commit, LogModel, read_log

DELETE_RETENTION_MS = 1000


class CrashHarness:
    """A data directory in use, and the models of its logs."""

    def __init__(self, durability: Durability, *, segment_bytes: int, wal_size_bytes: int, seed: int = 0) -> None:
        self.durability: Durability = durability
        self.segment_bytes = segment_bytes
        self.wal_size_bytes = wal_size_bytes
        self.disk = SimulatedDisk(seed=seed)
        self.models = [LogModel() for _ in range(PARTITIONS)]
        self.now_ms = 1_000_000
        self.crash_count = 0
        self.commit_count = 0
        self.trace: list[str] = []
        self._group_commit: GroupCommit[Commit] | None = None
        self._is_synced = False
        self._segment_sync: SegmentSync | None = None
        self._is_segment_sync_done = False
        self._compaction: Iterator[Callable[[], object] | None] | None = None
        self._work: Callable[[], object] | None = None
        """Blocking work of the compaction, not done yet."""
        self._may_have_lost = False
        """Whether the power failed in ``os`` mode: any unsynced batch may be lost."""
        self._has_failed_logs = False
        log_dir = self._open_log_dir()
        log_dir.create_logs(TOPIC, PARTITIONS)
        log_dir.save_topics([StoredTopic(TOPIC, bytes(16), ((0,),) * PARTITIONS, {}, PARTITIONS)])
        self.log_dir: LogDir = log_dir

    def _open_log_dir(self, *, repair: bool = False) -> LogDir:
        return LogDir(
            self.disk,
            durability=self.durability,
            repair=repair,
            unsynced_max_bytes=self.wal_size_bytes,
            segment_bytes=self.segment_bytes,
            wal_size_bytes=self.wal_size_bytes,
            open_segments=OpenSegments(PARTITIONS - 1),
        )

    def log(self, partition: int) -> PartitionLog:
        return self.log_dir.logs[TOPIC, partition]

    # Operations of the broker.

    def commit(self, partition: int, keys: Sequence[bytes], size: int, *, is_tombstone: bool = False) -> None:
        """Append a commit with one record for each key; tombstones as offset expiration writes them."""
        self.commit_count += 1
        number = self.commit_count
        value = None if is_tombstone else b"%d:" % number + b"v" * size
        commit = Commit(number, partition, {key: value and key + value for key in keys})
        self.trace.append(f"commit {number} to {partition}: {list(keys)} {'tombstones' if is_tombstone else size}")
        model = self.models[partition]
        writer = self.log_dir.writer
        model.sent.append(commit)
        model.pending.append(commit)
        if self.durability == "os":
            error = writer.write(self.log(partition), commit.batch(), len(keys))
            self._respond(commit, error)
        else:
            error = writer.append(self.log(partition), commit.batch(), len(keys), commit)
            if error:
                self._respond(commit, error)

    def _respond(self, commit: Commit, error: int, *, in_doubt: bool = False) -> None:
        model = self.models[commit.partition]
        if not error:
            model.acknowledge(commit)
        elif not in_doubt:
            model.pending.remove(commit)
            model.refused |= {value for value in commit.entries.values() if value is not None}
        self.trace.append(f"commit {commit.number}: {error}{' in doubt' if in_doubt else ''}")

    def begin(self) -> None:
        """Begin a group commit, unless one is in flight."""
        if self._group_commit is None and self.durability == "fsync":
            self._group_commit = self.log_dir.writer.begin()
            self._is_synced = False
            self.trace.append("begin" if self._group_commit else "nothing to begin")

    def sync(self) -> None:
        """Sync the group commit, as the thread does."""
        if self._group_commit is not None and not self._is_synced:
            if self._group_commit.needs_sync:
                self._group_commit.sync()
            self._is_synced = True
            self.trace.append(f"sync: {self._group_commit.failure}")

    def finish(self) -> None:
        """Finish the group commit if it is synced."""
        if self._group_commit is None or not self._is_synced:
            return
        settled = self.log_dir.writer.finish(self._group_commit)
        self._is_synced = settled is not None
        if settled is not None:
            finished, self._group_commit = self._group_commit, None
            written = {id(commit) for _, commit, _, _ in finished.entries}
            for commit, error in settled:
                in_doubt = finished.failure is not None and id(commit) in written
                self._respond(commit, error, in_doubt=in_doubt)

    def run_group_commits(self) -> None:
        """Write, sync and finish everything that is queued or in flight."""
        self.begin()
        while self._group_commit is not None:
            self.sync()
            self.finish()
            self.begin()

    def step_background_sync(self) -> None:
        """Begin a background sync, or run the one that was begun, or end the one that was run."""
        writer = self.log_dir.writer
        if self._segment_sync is None:
            self._segment_sync = writer.begin_background_sync()
            self._is_segment_sync_done = False
        elif not self._is_segment_sync_done:
            self._segment_sync.run()
            self._is_segment_sync_done = True
            self.trace.append(f"segments synced: {self._segment_sync.failure}")
        else:
            self._segment_sync = None
            writer.end_background_sync()

    def roll(self, partition: int) -> None:
        """Begin a new segment."""
        self.trace.append(f"roll {partition}")
        try:
            self.log(partition).roll()
        except OSError as error:
            self.trace.append(f"roll: {error}")

    def compact(self, partition: int, steps: int) -> None:
        """Run some steps of the compaction in progress, or of a new one of this log."""
        if self.log_dir.writer.failure is not None:
            return
        if self._compaction is None:
            writer = self.log_dir.writer
            self._compaction = Compaction(
                self.disk, self.log(partition), writer, DELETE_RETENTION_MS, self.now_ms
            ).run()
            self.trace.append(f"compact {partition}")
        self.trace.append(f"compact: {steps} steps")
        try:
            for _ in range(steps):
                work, self._work = self._work, None
                if work is not None:
                    work()
                else:
                    self._work = next(self._compaction)
        except StopIteration:
            self._compaction = None
            self.trace.append("compacted")
        except OSError as error:
            self.trace.append(f"compact: {error}")
            self._compaction = None

    # Ends of the process.

    def crash(self, chance: random.Random) -> None:
        """The power fails."""
        self._drop()
        self.crash_count += 1
        self._may_have_lost = self._may_have_lost or self.durability == "os"
        self.trace.append("crash")
        self.disk = self.disk.crash(chance)

    def kill(self) -> None:
        """The process gets SIGKILL."""
        self._drop()
        self.crash_count += 1
        self.trace.append("kill")
        self.disk = self.disk.kill()

    def close(self) -> None:
        """Shut down cleanly; this can fail too."""
        self.run_group_commits()
        while self._segment_sync is not None:
            self.step_background_sync()
        self._drop()
        self.trace.append("close")
        try:
            self.log_dir.close()
        except OSError as error:
            self.trace.append(f"close: {error}")
        else:
            assert self.disk.open_file_count == 0, f"{self.disk.open_file_count} files are left open"

    def _drop(self) -> None:
        # Of a group commit in flight, the batches of a log that could not be written fail without the others.
        if self._group_commit is not None and self._group_commit.failed_logs:
            self._has_failed_logs = True
        if isinstance(self._compaction, Generator):
            self._compaction.close()
        self._group_commit = self._segment_sync = self._compaction = self._work = None

    def open(self) -> None:
        """Open the directory again, and check its logs."""
        self.trace.append("open")
        try:
            self.log_dir = self._open_log_dir()
        except CorruptLog as error:
            if not self._may_have_lost:
                raise
            self.trace.append(f"repair: {error}")
            self.log_dir = self._open_log_dir(repair=True)
        self.trace += self.log_dir.report
        self.check()
        self._may_have_lost = self._has_failed_logs = False

    def check(self) -> None:
        """Check each log against its model."""
        contents = [read_log(self.disk, partition) for partition in range(PARTITIONS)]
        for partition, model in enumerate(self.models):
            found, offsets = contents[partition]
            if self._may_have_lost:
                problem = model.problem_after_loss(found)
                assert problem is None, f"log {partition} has {problem}: {found}"
            else:
                reappeared = model.refused & set(found.values())
                assert not reappeared, f"log {partition}: values of refused commits: {reappeared}"
                assert model.explains(found), (
                    f"log {partition} has {found}\nacknowledged: {model.acknowledged}\npending: {model.pending}"
                )
            assert self.log(partition).next_offset > max(offsets, default=-1)
        if not self._may_have_lost and not self._has_failed_logs:
            numbers = [0, *(commit.number for model in self.models for commit in model.pending)]
            assert any(
                all(model.explains(found, last) for model, (found, _) in zip(self.models, contents, strict=True))
                for last in numbers
            ), "the logs together do not have the first of the pending commits"
        for model, (found, _) in zip(self.models, contents, strict=True):
            model.adopt(found)
