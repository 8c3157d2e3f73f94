"""The writer of all logs of a data directory: group commit, background syncs of segments, and failures."""

# Theory of operation. `append` gives a batch its offset in the log of its partition and queues it. `begin` takes the
# queue and returns the `GroupCommit` of those batches; `GroupCommit.sync` makes it durable, in any thread; `finish`
# returns the result of each batch. One group commit is in flight at a time. Batches appended meanwhile wait for the
# next one, so groups grow with the latency of the disk, and one sync serves all of them (OS-27).
#
# How a group commit becomes durable:
#
# - ``os`` mode, without a write-ahead log: not at all, the write is enough.
# - ``fsync`` mode: its batches are one frame of the write-ahead log. Only that file is synced (`write_ahead_log` has
#   the figures), and only after its sync the batches are written to their segments.
# - If the write-ahead log has no room, all segments are synced first: then none of its frames is needed.
# - A batch that is larger than the write-ahead log is a group commit of its own, written to its segment and synced
#   there.
#
# So a group commit is atomic over all logs: after a crash either none of its batches is there, or recovery finds its
# frame and restores those that the segments lack. Changes that depend on each other (the record of a transaction and
# its batches, a decision and its markers) need no sync between them if they are appended in their order.
#
# *Background syncs.* A file of the write-ahead log can be used again when the segments with its batches are synced. In
# ``os`` mode the segments are synced after a number of written bytes, which bounds the work of the next start. The
# caller takes this work with `begin_background_sync`, runs it in a thread beside the group commits, and hands it to
# `end_background_sync`. If the caller is too slow, the group commit that finds no room syncs all segments itself.
#
# *Failures.* A failed write affects only the batches of its log: those of the group commit, and those that are queued
# behind them until it ends, which may rely on them. If the log `writes_first`, batches of all other logs may rely on
# it, too, and fail. A frame with a failed batch must not be read again: all segments are synced, and a frame without
# content takes its place. After a failed sync it is unknown what is on the disk, and the operating system can report a
# later sync of the same pages as successful although they were never written. So after one failed sync the writer
# refuses all batches until the data directory is opened again.

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from kproto.codes import ErrorCode
from kproto.records.batch_header import CHECKED_FROM
from kproto_server.storage.group_commit import FileSync, GroupCommit, forget_placed
from kproto_server.storage.segment_sync import SegmentSync, begin_log_syncs
from kproto_server.storage.write_ahead_log import frame_size_max

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kproto_server.storage.disk import Disk
    from kproto_server.storage.group_commit import Entry, Sync
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


def _write_order(log: PartitionLog) -> bool:
    """Sort logs that are written first to the front."""
    return not log.writes_first


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
        self._queue: list[Entry[Item]] = []
        self._queued_size = 0
        self._in_flight = False
        self._due_log_syncs: list[LogSync] | None = None
        """The syncs that free the other file of the write-ahead log, until a background sync takes them."""
        self._background_sync: SegmentSync | None = None
        """The background sync in progress."""

    @property
    def queued(self) -> list[Entry[Item]]:
        """What waits for the next group commit, in append order."""
        return self._queue

    def append(self, log: PartitionLog, batch: bytes, record_count: int, item: Item) -> int:
        """Queue a batch for the next group commit; return 0 or an error code. `finish` returns the item."""
        if self.failure is not None:
            return STORAGE_ERROR
        if len(batch) > self._batch_size_max_bytes and not log.skips_size_check:
            return TOO_LARGE
        placed = log.place(batch, record_count)
        self._queue.append((log, item, placed, log.next_offset))
        self._queued_size += len(batch)
        return 0

    def write(self, log: PartitionLog, batch: bytes, record_count: int) -> int:
        """Write a batch without a group commit, in ``os`` mode; return 0 or an error code."""
        if self.failure is not None:
            return STORAGE_ERROR
        size = len(batch)
        if size > self._batch_size_max_bytes and not log.skips_size_check:
            return TOO_LARGE
        placed = log.place(batch, record_count)
        try:
            log.write(placed, log.next_offset)
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
        """Return the group commit of queued batches; None if there are none, or one is in flight."""
        if not self._queue or self._in_flight:
            return None
        self._in_flight = True
        wal = self._wal
        if self.failure is not None:
            # Queued before the failure was known.
            group_commit: GroupCommit[Item] = GroupCommit([])
            group_commit.refused = self._take(len(self._queue))
            forget_placed(group_commit.refused)
        elif wal is None:
            group_commit = GroupCommit(self._take(len(self._queue)))
            self._unsynced_bytes += self._write(group_commit)
        elif wal.fits(self._queued_size, len(self._queue)):
            group_commit = GroupCommit(self._take(len(self._queue)))
            group_commit.steps = self._commit(group_commit, wal)
        else:
            group_commit = self._group_commit_with_room(wal)
        group_commit.pending_sync = next(group_commit.steps, None)
        return group_commit

    def _group_commit_with_room(self, wal: WriteAheadLog) -> GroupCommit[Item]:
        """Return the group commit of as many queued batches as the write-ahead log has room for."""
        count = self._count_within(wal.room)
        if count:
            group_commit = GroupCommit(self._take(count))
            group_commit.steps = self._commit(group_commit, wal)
            return group_commit
        count = self._count_within(wal.size_bytes)
        group_commit = GroupCommit(self._take(max(1, count)))
        if not count:
            group_commit.steps = self._commit_too_large(group_commit, wal)
        elif wal.is_other_free:
            # All batches of the full file are in their segments: they were written when their group commits ended.
            self._due_log_syncs = begin_log_syncs(self._logs.values())
            wal.turn(is_needed=True)
            group_commit.steps = self._commit(group_commit, wal)
        else:
            group_commit.steps = self._commit_after_sync(group_commit, wal)
        return group_commit

    def _count_within(self, room: int) -> int:
        """Return how many of the queued batches fit into one frame."""
        size = 0
        for count, (_, _, batch, _) in enumerate(self._queue):
            size += len(batch)
            if frame_size_max(size, count + 1) > room:
                return count
        return len(self._queue)

    def _take(self, count: int) -> list[Entry[Item]]:
        """Take the first batches from the queue."""
        taken, self._queue, self._queued_size = self._queue, [], 0
        if count < len(taken):
            self._queue = taken[count:]
            self._queued_size = sum(len(batch) for _, _, batch, _ in self._queue)
            del taken[count:]
        return taken

    # The steps of a group commit. They yield each sync, which is run before the next step.

    def _commit(self, group_commit: GroupCommit[Item], wal: WriteAheadLog) -> Iterator[Sync]:
        """Write a frame; once it is synced, write its batches to their segments."""
        try:
            wal.write([(log, batch) for log, _, batch, _ in group_commit.entries])
        except OSError:
            wal.discard_last()
            group_commit.failed_logs.update(log for log, _, _, _ in group_commit.entries)
            self._refuse_followers(group_commit)
            return
        yield from self._sync_frame(group_commit, wal)
        if group_commit.failure is not None:
            wal.discard_last()
            forget_placed(group_commit.entries)
            return
        self._write(group_commit)
        if group_commit.failed_logs:
            # The frame must not be read again.
            yield from self._sync_segments(group_commit, wal)
            if group_commit.failure is None:
                yield from self._void(group_commit, wal)

    def _commit_after_sync(self, group_commit: GroupCommit[Item], wal: WriteAheadLog) -> Iterator[Sync]:
        """Sync all segments first: the write-ahead log has no room before."""
        yield from self._sync_segments(group_commit, wal)
        if group_commit.failure is None:
            yield from self._commit(group_commit, wal)

    def _commit_too_large(self, group_commit: GroupCommit[Item], wal: WriteAheadLog) -> Iterator[Sync]:
        """Write one batch to its segment, and sync it there. If the write fails, its truncation is synced."""
        self._write(group_commit)
        yield from self._sync_segments(group_commit, wal)

    def _sync_segments(self, group_commit: GroupCommit[Item], wal: WriteAheadLog) -> Iterator[Sync]:
        """Sync all segments; then no frame is needed, and a new cycle begins."""
        segment_sync = self._sync_of_everything()
        yield segment_sync
        group_commit.failure = segment_sync.failure
        if self.end_sync(segment_sync):
            wal.turn(is_needed=False)

    def _sync_frame(self, group_commit: GroupCommit[Item], wal: WriteAheadLog) -> Iterator[Sync]:
        """Sync the last frame."""
        file_sync = FileSync(wal.file)
        yield file_sync
        group_commit.failure = file_sync.failure
        self._fail(file_sync.failure)

    def _void(self, group_commit: GroupCommit[Item], wal: WriteAheadLog) -> Iterator[Sync]:
        """Write a frame without content, which names its cycle as the oldest needed."""
        try:
            wal.write(())
        except OSError as error:
            group_commit.failure = f"write failed: {error}"
            self._fail(group_commit.failure)
            return
        yield from self._sync_frame(group_commit, wal)

    def _write(self, group_commit: GroupCommit[Item]) -> int:
        """Write the batches to their segments, one write for each log; return the number of bytes.

        If a log that `writes_first` cannot be written, the logs after it are not, either.
        """
        batches: dict[PartitionLog, list[bytes]] = {}
        next_offsets: dict[PartitionLog, int] = {}
        for log, _, batch, next_offset in group_commit.entries:
            batches.setdefault(log, []).append(batch)
            next_offsets[log] = next_offset
        size, failed_logs = 0, group_commit.failed_logs
        for log in sorted(batches, key=_write_order) if len(batches) > 1 else batches:
            data = b"".join(batches[log])
            if failed_logs and any(failed.writes_first for failed in failed_logs):
                failed_logs.add(log)
                continue
            try:
                log.write(data, next_offsets[log])
                size += len(data)
            except OSError:
                failed_logs.add(log)
        if failed_logs:
            self._refuse_followers(group_commit)
        return size

    def _refuse_followers(self, group_commit: GroupCommit[Item]) -> None:
        """Take the batches from the queue that may rely on a batch of a failed log: all, if that `writes_first`."""
        failed_logs = group_commit.failed_logs
        fails_all = any(log.writes_first for log in failed_logs)
        queue = self._take(len(self._queue))
        for entry in queue:
            log, _, batch, _ = entry
            if fails_all or log in failed_logs:
                group_commit.refused.append(entry)
            else:
                self._queue.append(entry)
                self._queued_size += len(batch)
        for log in failed_logs:
            log.forget_placed()
        forget_placed(group_commit.refused)

    def _sync_of_everything(self) -> SegmentSync:
        """Return the sync after which no batch written so far is needed in the write-ahead log."""
        self._due_log_syncs = None
        return SegmentSync(self._disk, self.points, begin_log_syncs(self._logs.values()))

    def finish(self, group_commit: GroupCommit[Item]) -> list[tuple[Item, int]] | None:
        """Go on with a synced group commit.

        Returns:
            its items in append order, each with 0 or an error code; None if it has to be synced once more.
        """
        if group_commit.pending_sync is not None:
            group_commit.pending_sync = next(group_commit.steps, None)
            if group_commit.pending_sync is not None:
                return None
        self._in_flight = False
        failed_logs = group_commit.failed_logs
        if failed_logs:
            self._refuse_followers(group_commit)  # those that were queued since the write has failed
        if group_commit.failure is not None:
            failed_logs.update(log for log, _, _, _ in group_commit.entries)
        settled = [(item, STORAGE_ERROR if log in failed_logs else 0) for log, item, _, _ in group_commit.entries]
        return settled + [(item, STORAGE_ERROR) for _, item, _, _ in group_commit.refused]

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

    def begin_sync(self, *logs: PartitionLog) -> SegmentSync | None:
        """Return the sync of some logs, for the caller to run and to give to `end_sync`; None if they are durable."""
        log_syncs = begin_log_syncs(logs)
        return SegmentSync(self._disk, self.points, log_syncs) if log_syncs else None

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
            OSError: after a failed sync it is unknown what is on the disk, and all later batches are refused; after a
                failed write, nothing has changed.
        """
        segment_sync = self._sync_of_everything()
        segment_sync.run()
        if not self.end_sync(segment_sync):
            raise OSError(segment_sync.failure)
        if self._wal is not None:
            self._wal.void()
            file_sync = FileSync(self._wal.file)
            file_sync.run()
            self._fail(file_sync.failure)
            if file_sync.failure is not None:
                raise OSError(file_sync.failure)
