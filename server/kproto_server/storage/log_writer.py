"""The writer of all logs of a data directory: group commit, background syncs of segments, and failures."""

# Theory of operation. `append` queues a batch in the log of its partition. `begin` writes all queues, one write for
# each log, and returns the `GroupCommit` of those batches; `GroupCommit.sync` makes it durable, in any thread; `finish`
# returns the result of each batch in append order. One group commit is in flight at a time. Batches appended meanwhile
# wait for the next one, so groups grow with the latency of the disk, and one sync serves all of them (OS-27).
#
# How a group commit becomes durable:
#
# - ``os`` mode, without a write-ahead log: not at all, the write is enough.
# - ``fsync`` mode: its batches are written to the segments and once more to the write-ahead log, and only that file is
#   synced (`write_ahead_log` has the figures).
# - If the write-ahead log has no room or cannot be written, or if a log refused its part of the group commit: all
#   segments are synced instead (`GroupCommit.segment_sync`). The refused part matters because its truncation may not be
#   durable: after a power loss the refused batches could come back, unless a sync or the write-ahead log covers the
#   place.
#
# *Background syncs.* A file of the write-ahead log can be used again when the segments with its batches are synced. In
# ``os`` mode the segments are synced after a number of written bytes, which bounds the work of the next start. The
# caller takes this work with `begin_background_sync`, runs it in a thread beside the group commits, and hands it to
# `end_background_sync`. If the caller is too slow, the group commit that finds no room syncs all segments itself.
#
# *Failures.* A failed write affects only the batches of its log. After a failed sync it is unknown what is on the disk,
# and the operating system can report a later sync of the same pages as successful although they were never written. So
# after one failed sync the writer refuses all batches until the data directory is opened again.

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from kproto.codes import ErrorCode
from kproto.records.batch_header import CHECKED_FROM
from kproto_server.storage.segment_sync import SegmentSync, begin_log_syncs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kproto_server.storage.checkpoints import LogPosition
    from kproto_server.storage.disk import Disk, File
    from kproto_server.storage.partition_log import LogSync, PartitionLog
    from kproto_server.storage.segment_sync import RecoveryPoints
    from kproto_server.storage.write_ahead_log import WriteAheadLog

Durability = Literal["os", "fsync"]
Item = TypeVar("Item")

STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)
TOO_LARGE = int(ErrorCode.MESSAGE_TOO_LARGE)
UNSYNCED_MAX_BYTES = 64 << 20
"""Bytes written in ``os`` mode between two background syncs: a start after a crash reads them in a second."""


def _ignore_failure(reason: str) -> None:
    """Default callback: does nothing."""


class GroupCommit(Generic[Item]):
    """Batches that are written and synced together."""

    __slots__ = ("entries", "failed_logs", "failure", "file", "old_ends", "segment_sync")

    def __init__(self, entries: list[tuple[PartitionLog, Item]]) -> None:
        self.entries: list[tuple[PartitionLog, Item]] = entries
        """Log and item of each batch, in append order."""
        self.old_ends: dict[PartitionLog, LogPosition] = {}
        """The end of each log before the group commit."""
        self.failed_logs: set[PartitionLog] = set()
        """Logs that could not be written."""
        self.failure: str | None = None
        """Why the whole group commit failed; None if it did not."""
        self.file: File | None = None
        """The file of the write-ahead log with the batches."""
        self.segment_sync: SegmentSync | None = None
        """The sync of all segments that replaces the sync of `file`."""

    @property
    def needs_sync(self) -> bool:
        """Whether `sync` has to be called before `finish`."""
        return self.file is not None or self.segment_sync is not None

    def sync(self) -> None:
        """Make the group commit durable; store a failure instead of raising. Blocks; any thread may call it."""
        if self.segment_sync is not None:
            self.segment_sync.run()
            self.failure = self.segment_sync.failure
        elif self.file is not None:
            try:
                self.file.sync()
            except OSError as error:
                self.failure = f"sync failed: {error}"


class LogWriter(Generic[Item]):
    """Writes the logs of a data directory. `LogDir` owns it."""

    def __init__(
        self,
        disk: Disk,
        wal: WriteAheadLog | None,
        logs: Mapping[tuple[str, int], PartitionLog],
        points: RecoveryPoints,
        *,
        batch_size_max_bytes: int,
        unsynced_max_bytes: int = UNSYNCED_MAX_BYTES,
    ) -> None:
        """``wal``: the write-ahead log of ``fsync`` mode; None in ``os`` mode."""
        self.failure: str | None = None
        """Why all batches are refused until the data directory is opened again; None while writing is possible."""
        self.on_failure: Callable[[str], object] = _ignore_failure
        """Called once with `failure`."""
        self.points = points
        self._disk = disk
        self._wal = wal
        self._logs = logs
        self._batch_size_max_bytes = batch_size_max_bytes
        self._unsynced_max_bytes = unsynced_max_bytes
        self._unsynced_bytes = 0
        self._queue: list[tuple[PartitionLog, Item]] = []
        self._in_flight = False
        self._due_log_syncs: list[LogSync] | None = None
        """The syncs that free the other file of the write-ahead log, until a background sync takes them."""
        self._background_sync: SegmentSync | None = None
        """The background sync in progress."""

    @property
    def queued(self) -> list[tuple[PartitionLog, Item]]:
        """Log and item of each batch that waits for the next group commit, in append order."""
        return self._queue

    def append(self, log: PartitionLog, batch: bytes, record_count: int, item: Item) -> int:
        """Queue a batch for the next group commit; return 0 or an error code. `finish` returns the item."""
        if self.failure is not None:
            return STORAGE_ERROR
        if len(batch) > self._batch_size_max_bytes and not log.skips_size_check:
            return TOO_LARGE
        log.append(batch, record_count)
        self._queue.append((log, item))
        return 0

    def write(self, log: PartitionLog, batch: bytes, record_count: int) -> int:
        """Write a batch without a group commit, in ``os`` mode; return 0 or an error code."""
        if self.failure is not None:
            return STORAGE_ERROR
        size = len(batch)
        if size > self._batch_size_max_bytes and not log.skips_size_check:
            return TOO_LARGE
        log.append(batch, record_count)
        try:
            log.write()
        except OSError:
            return STORAGE_ERROR
        self._unsynced_bytes += size
        return 0

    def write_checked(self, log: PartitionLog, checked: bytes, record_count: int) -> int:
        """Write a batch given as the bytes that its checksum covers, in ``os`` mode; return 0 or an error code."""
        if self.failure is not None:
            return STORAGE_ERROR
        if CHECKED_FROM + len(checked) > self._batch_size_max_bytes and not log.skips_size_check:
            return TOO_LARGE
        try:
            self._unsynced_bytes += log.write_checked(checked, record_count)
        except OSError:
            return STORAGE_ERROR
        return 0

    def begin(self) -> GroupCommit[Item] | None:
        """Write the queued batches; return their group commit, or None if there are none or one is in flight."""
        if not self._queue or self._in_flight:
            return None
        entries, self._queue = self._queue, []
        group_commit = GroupCommit(entries)
        self._in_flight = True
        logs = dict.fromkeys(log for log, _ in entries)
        if self.failure is not None:
            # Queued before the failure was known.
            group_commit.failure = self.failure
            for log in logs:
                log.drop_queue()
            return group_commit
        # Room first: turning to the other file takes a snapshot of the segments to sync. It must not contain batches
        # of this group commit, which can still fail and be truncated: the recovery point would be past the end.
        has_room = self._wal is None or self._make_room(self._wal, logs, len(entries))
        batches = self._write(group_commit, logs)
        if self._wal is None:
            self._unsynced_bytes += sum(len(batch) for _, batch in batches)
        elif group_commit.failed_logs or not has_room or not self._write_ahead(group_commit, self._wal, batches):
            group_commit.segment_sync = self._sync_of_everything()
        return group_commit

    def _make_room(self, wal: WriteAheadLog, logs: Mapping[PartitionLog, None], count: int) -> bool:
        """Turn to the other file of the write-ahead log if needed; return whether the group commit has room."""
        size = sum(log.queued_size for log in logs)
        if wal.fits(size, count):
            return True
        if not wal.can_turn(size, count):
            return False
        self._due_log_syncs = begin_log_syncs(self._logs.values())
        wal.turn(is_needed=True)
        return True

    def _sync_of_everything(self) -> SegmentSync:
        """Return the sync after which no batch written so far is needed in the write-ahead log."""
        self._due_log_syncs = None
        return SegmentSync(self._disk, self.points, begin_log_syncs(self._logs.values()))

    def _write(
        self, group_commit: GroupCommit[Item], logs: Mapping[PartitionLog, None]
    ) -> list[tuple[PartitionLog, bytes]]:
        """Write the queue of each log; return the written batches."""
        batches: list[tuple[PartitionLog, bytes]] = []
        for log in logs:
            group_commit.old_ends[log] = log.end
            queued = [(log, batch) for batch in log.queued]
            try:
                log.write()
            except OSError:
                group_commit.failed_logs.add(log)
            else:
                batches += queued
        return batches

    def _write_ahead(
        self, group_commit: GroupCommit[Item], wal: WriteAheadLog, batches: list[tuple[PartitionLog, bytes]]
    ) -> bool:
        """Write the batches to the write-ahead log; return whether that succeeded."""
        try:
            wal.write(batches)
        except OSError:
            wal.discard_last()
            return False
        group_commit.file = wal.file
        return True

    def finish(self, group_commit: GroupCommit[Item]) -> list[tuple[Item, int]]:
        """End a synced group commit; return its items in append order, each with 0 or an error code."""
        self._in_flight = False
        if group_commit.failure is not None:
            self._undo(group_commit)
            return [(item, STORAGE_ERROR) for _, item in group_commit.entries]
        if group_commit.segment_sync is not None and self._wal is not None:
            group_commit.segment_sync.end()
            self._wal.turn(is_needed=False)
        failed_logs = group_commit.failed_logs
        return [(item, STORAGE_ERROR if log in failed_logs else 0) for log, item in group_commit.entries]

    def _undo(self, group_commit: GroupCommit[Item]) -> None:
        """Remove the batches of a failed group commit from the logs.

        Batches queued meanwhile have offsets after them. They fail in the next group commit, because the writer has
        failed, and until then they keep their offsets.
        """
        if group_commit.needs_sync:
            self._fail(group_commit.failure)
        if group_commit.file is not None and self._wal is not None:
            self._wal.discard_last()
        for log, end in group_commit.old_ends.items():
            if log not in group_commit.failed_logs:
                log.truncate_to(end)

    def _fail(self, reason: str | None) -> None:
        if self.failure is None and reason is not None:
            self.failure = reason
            self.on_failure(reason)

    def begin_background_sync(self) -> SegmentSync | None:
        """Return a sync to run beside group commits; None if none is needed or one is in progress.

        The caller runs it in a thread and then calls `end_background_sync`.
        """
        if self._background_sync is not None or self.failure is not None:
            return None
        if self._due_log_syncs is not None and self._wal is not None:
            log_syncs, self._due_log_syncs = self._due_log_syncs, None
            self._background_sync = SegmentSync(self._disk, self.points, log_syncs, self._wal.cycle)
        elif self._unsynced_bytes >= self._unsynced_max_bytes:
            self._unsynced_bytes = 0
            self._background_sync = SegmentSync(self._disk, self.points, begin_log_syncs(self._logs.values()))
        return self._background_sync

    def end_background_sync(self) -> None:
        """Take the result of the background sync in progress."""
        segment_sync, self._background_sync = self._background_sync, None
        assert segment_sync is not None, "a background sync is in progress"
        if self.end_sync(segment_sync) and self._wal is not None:
            self._wal.release(segment_sync.cycle)

    def begin_sync(self, log: PartitionLog) -> SegmentSync | None:
        """Return the sync of one log, for the caller to run and to give to `end_sync`; None if the log is durable."""
        log_sync = log.begin_sync()
        return None if log_sync is None else SegmentSync(self._disk, self.points, [log_sync])

    def end_sync(self, segment_sync: SegmentSync) -> bool:
        """Take the result of a sync; return whether it succeeded. If not, all later batches are refused."""
        if segment_sync.failure is not None:
            self._fail(segment_sync.failure)
            return False
        segment_sync.end()
        return True

    def sync_everything(self) -> None:
        """Sync all logs and empty the write-ahead log. Blocks.

        Raises:
            OSError: it is unknown what is on the disk; all later batches are refused.
        """
        segment_sync = self._sync_of_everything()
        segment_sync.run()
        if not self.end_sync(segment_sync):
            raise OSError(segment_sync.failure)
        if self._wal is not None:
            self._wal.void()
