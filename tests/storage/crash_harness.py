"""A data directory in use, on the simulated disk: what a broker does with it, and what happens to it."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Sequence

from kproto.errors import CorruptLog
from kproto_server.storage.compaction import Compaction, CompactionSettings
from kproto_server.storage.log_dir import LogDir
from kproto_server.storage.log_writer import Durability, GroupCommit
from kproto_server.storage.partition_log import PartitionLog
from kproto_server.storage.segment_sync import SegmentSync
from kproto_server.storage.topics_file import StoredTopic
from tests.storage.crash_model import PARTITIONS, TOPIC, Commit, LogModel, read_log
from tests.storage.simulated_disk import SimulatedDisk

TERMS = CompactionSettings(delete_retention_ms=1000, min_dirty_ratio=0.0)


class CrashHarness:
    """A data directory in use."""

    def __init__(self, durability: Durability, *, segment_bytes: int, wal_size_bytes: int, seed: int = 0) -> None:
        self.durability: Durability = durability
        self.segment_bytes = segment_bytes
        self.wal_size_bytes = wal_size_bytes
        self.disk = SimulatedDisk(seed=seed)
        self.models = [LogModel() for _ in range(PARTITIONS)]
        self.now_ms = 1_000_000
        self.crashes = 0
        self.commits = 0
        self.trace: list[str] = []
        self._round: GroupCommit[Commit] | None = None
        self._segment_sync: SegmentSync | None = None
        self._is_segment_sync_done = False
        self._is_synced = False
        self._compaction: Iterator[Callable[[], object] | None] | None = None
        self._work: Callable[[], object] | None = None
        """What the compaction wants to have done in a thread."""
        self._may_lose = False
        """Whether the power has failed in ``os`` mode: what was not synced may be lost, and nobody can tell."""
        log_dir = self._opened()
        log_dir.create_logs(TOPIC, PARTITIONS)
        log_dir.save_topics([StoredTopic(TOPIC, bytes(16), ((0,),) * PARTITIONS, {}, PARTITIONS)])
        self.log_dir: LogDir = log_dir

    def _opened(self, *, repair: bool = False) -> LogDir:
        return LogDir(
            self.disk,
            durability=self.durability,
            repair=repair,
            unsynced_max_bytes=self.wal_size_bytes,
            segment_bytes=self.segment_bytes,
            wal_size_bytes=self.wal_size_bytes,
        )

    def log(self, partition: int) -> PartitionLog:
        return self.log_dir.logs[TOPIC, partition]

    # What the broker does.

    def commit(self, partition: int, keys: Sequence[bytes], size: int, *, is_tombstone: bool = False) -> None:
        """Append a commit, of as many records as there are keys; tombstones: as the expiry does it."""
        self.commits += 1
        number = self.commits
        value = None if is_tombstone else b"%d:" % number + b"v" * size
        commit = Commit(number, partition, {key: value and key + value for key in keys})
        self.trace.append(f"commit {number} to {partition}: {list(keys)} {'gone' if is_tombstone else size}")
        model = self.models[partition]
        writer = self.log_dir.writer
        model.sent.append(commit)
        model.appended.append(commit)
        if self.durability == "os":
            error = writer.write(self.log(partition), commit.batch(), len(keys))
            self._settle(commit, error)
        else:
            error = writer.append(self.log(partition), commit.batch(), len(keys), commit)
            if error:
                self._settle(commit, error)

    def _settle(self, commit: Commit, error: int, *, in_doubt: bool = False) -> None:
        model = self.models[commit.partition]
        if not error:
            model.acknowledge(commit)
        elif not in_doubt:
            model.appended.remove(commit)
            model.refused |= {value for value in commit.entries.values() if value is not None}
        self.trace.append(f"commit {commit.number}: {error}{' in doubt' if in_doubt else ''}")

    def begin(self) -> None:
        """Begin a round, unless one is under way."""
        if self._round is None and self.durability == "fsync":
            self._round = self.log_dir.writer.begin()
            self._is_synced = False
            self.trace.append("begin" if self._round else "nothing to begin")

    def sync(self) -> None:
        """What the thread does."""
        if self._round is not None and not self._is_synced:
            if self._round.needs_sync:
                self._round.sync()
            self._is_synced = True
            self.trace.append(f"sync: {self._round.failure}")

    def finish(self) -> None:
        """Answer those whose round was synced."""
        if self._round is None or not self._is_synced:
            return
        in_doubt = self._round.needs_sync
        done, self._round = self._round, None
        for commit, error in self.log_dir.writer.finish(done):
            self._settle(commit, error, in_doubt=in_doubt and done.failure is not None)

    def round(self) -> None:
        """Write, sync and answer all that waits."""
        for _ in range(2):  # one may be under way
            self.begin()
            self.sync()
            self.finish()

    def sync_segments(self) -> None:
        """Go on with what is to be done beside the rounds: begin it, do it in the thread, take note of its end."""
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
        """Go on with the compaction that is under way, or begin one of this log."""
        if self.log_dir.writer.failure is not None:
            return
        if self._compaction is None:
            writer = self.log_dir.writer
            self._compaction = Compaction(self.disk, self.log(partition), writer, TERMS, self.now_ms).run()
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

    # What happens to it.

    def crash(self, chance: random.Random) -> None:
        """The power fails."""
        self._drop()
        self.crashes += 1
        self._may_lose = self._may_lose or self.durability == "os"
        self.trace.append("crash")
        self.disk = self.disk.crash(chance)

    def kill(self) -> None:
        """The process is killed: kill -9."""
        self._drop()
        self.crashes += 1
        self.trace.append("kill")
        self.disk = self.disk.kill()

    def close(self) -> None:
        """An orderly end; that may fail too."""
        self.round()
        while self._segment_sync is not None:
            self.sync_segments()
        self._drop()
        self.trace.append("close")
        try:
            self.log_dir.close()
        except OSError as error:
            self.trace.append(f"close: {error}")
        else:
            assert self.disk.open_files == 0, f"{self.disk.open_files} files are left open"

    def _drop(self) -> None:
        if isinstance(self._compaction, Generator):
            self._compaction.close()
        self._round = self._segment_sync = self._compaction = self._work = None

    def open(self) -> None:
        """Open it again and look at what is there."""
        self.trace.append("open")
        try:
            self.log_dir = self._opened()
        except CorruptLog as error:
            if not self._may_lose:
                raise
            self.trace.append(f"repair: {error}")
            self.log_dir = self._opened(repair=True)
        self.trace += self.log_dir.report
        self.check()
        self._may_lose = False

    def check(self) -> None:
        """What is there has to be what must be there, and perhaps what may be."""
        for partition, model in enumerate(self.models):
            found, offsets = read_log(self.disk, partition)
            if self._may_lose:
                problem = model.problem(found)
                assert problem is None, f"log {partition} has {problem}: {found}"
            else:
                back = model.refused & set(found.values())
                assert not back, f"log {partition}: refused, and back: {back}"
                assert model.explains(found), (
                    f"log {partition} has {found}\nsurely written: {model.settled}\nand perhaps: {model.appended}"
                )
            model.take(found)
            assert self.log(partition).next_offset > max(offsets, default=-1)
