"""All logs of a data directory, written and synced by the round: however many batches wait, one sync serves them.

Theory of operation. `append` queues a batch in its partition's log. `begin` writes what is queued, a write a log, and
makes a round of it; in ``fsync`` mode it also writes all of the round's batches to the journal, whose one sync stands
for those of all the logs (`Journal` says why). `Round.sync` may be run in a thread; `finish` says of each batch, in the
order in which they were appended, whether it is in the log, and what is not is as if it never had been.

Segments are synced now and then, so that a journal file is free when it has its turn again, and a start after a crash
has little to look at. That takes long: whoever has a thread to spare asks for the work (`background`) after each round
and runs it there, beside the rounds. If nobody does, the round that finds no room in the journal does it.

After a failed sync nobody knows what has reached the disk, and a page that could not be written once may be taken for
written the next time. So the log takes nothing any more until it is opened again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from kproto.codes import ErrorCode
from kproto.records.record_batch import CHECKED_FROM
from kproto_server.storage.segment_sync import SegmentSync, begin_syncs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kproto_server.storage.disk import Disk, File
    from kproto_server.storage.partition_log import LogSync, PartitionLog
    from kproto_server.storage.segment_sync import RecoveryPoints
    from kproto_server.storage.write_ahead_log import WriteAheadLog

Durability = Literal["os", "fsync"]
Item = TypeVar("Item")

STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)
TOO_LARGE = int(ErrorCode.MESSAGE_TOO_LARGE)
UNSYNCED_MAX_BYTES = 64 << 20
"""Written and not synced in ``os`` mode, until the background syncs it: a second's work for a start after a crash."""


def _tell_nobody(reason: str) -> None:
    """Nobody has asked."""


class GroupCommit(Generic[Item]):
    """Batches that are written together."""

    __slots__ = ("checkpoint", "entries", "failure", "file", "places", "refused")

    def __init__(self, entries: list[tuple[PartitionLog, Item]]) -> None:
        self.entries = entries
        """Log and item of each batch, in the order in which they were appended."""
        self.places: dict[PartitionLog, tuple[int, int, int]] = {}
        """Where each log ended before."""
        self.refused: set[PartitionLog] = set()
        """Logs that could not be written."""
        self.failure: str | None = None
        """Why nothing of it counts."""
        self.file: File | None = None
        """That of the journal in which it stands."""
        self.checkpoint: SegmentSync | None = None
        """What is synced in place of the journal, which is everything: where that has no room or can't be written, and
        where a segment can't: what was cut off there may come back after a power loss until it is synced."""

    @property
    def needs_sync(self) -> bool:
        """Whether it has to be synced before it counts."""
        return self.file is not None or self.checkpoint is not None

    def sync(self) -> None:
        """Have the round survive power loss; a failure is noted. For any thread."""
        if self.checkpoint is not None:
            self.checkpoint.run()
            self.failure = self.checkpoint.failure
        elif self.file is not None:
            try:
                self.file.sync()
            except OSError as error:
                self.failure = f"sync failed: {error}"


class LogWriter(Generic[Item]):
    """The writing side of a data directory."""

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
        """``journal``: that of ``fsync`` mode; None: the operating system's memory is safe enough."""
        self.failure: str | None = None
        """Why nothing can be written any more, until the directory is opened again."""
        self.on_failure: Callable[[str], object] = _tell_nobody
        """Told that, once."""
        self._disk = disk
        self._wal = wal
        self.points = points
        self._logs = logs
        self._batch_size_max_bytes = batch_size_max_bytes
        self._unsynced_max_bytes = unsynced_max_bytes
        self._unsynced_bytes = 0
        self._queue: list[tuple[PartitionLog, Item]] = []
        self._in_flight = False
        self._held: list[LogSync] | None = None
        """What has to be synced for the journal's other file to be free; nobody does it yet."""
        self._background: SegmentSync | None = None
        """What somebody is syncing."""

    @property
    def needs_syncs(self) -> bool:
        """Whether a round has to be synced before it counts."""
        return self._wal is not None

    @property
    def waiting(self) -> bool:
        """Whether something is queued."""
        return bool(self._queue)

    def append(self, log: PartitionLog, batch: bytes, record_count: int, item: Item) -> int:
        """Queue a batch; return 0, or Kafka's error if it is refused. The item comes back from `finish`."""
        if self.failure is not None:
            return STORAGE_ERROR
        if len(batch) > self._batch_size_max_bytes and not log.skips_size_check:
            return TOO_LARGE
        log.append(batch, record_count)
        self._queue.append((log, item))
        return 0

    @property
    def queued(self) -> list[tuple[PartitionLog, Item]]:
        """What waits for the next round, in its order."""
        return self._queue

    def write(self, log: PartitionLog, batch: bytes, record_count: int) -> int:
        """Write a batch at once, where the operating system's memory is safe enough; return 0, or Kafka's error."""
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
        """As `write`, for a batch of which this is what the checksum covers."""
        if self.failure is not None:
            return STORAGE_ERROR
        if CHECKED_FROM + len(checked) > self._batch_size_max_bytes and not log.skips_size_check:
            return TOO_LARGE
        try:
            self._unsynced_bytes += log.write_now(checked, record_count)
        except OSError:
            return STORAGE_ERROR
        return 0

    def begin(self) -> GroupCommit[Item] | None:
        """Write what is queued; None if there is nothing, or a round is under way."""
        if not self._queue or self._in_flight:
            return None
        entries, self._queue = self._queue, []
        made = GroupCommit(entries)
        self._in_flight = True
        logs = dict.fromkeys(log for log, _ in entries)
        if self.failure is not None:
            made.failure = self.failure
            for log in logs:
                log.drop_queue()
            return made
        has_room = self._wal is None or self._make_room(self._wal, logs, len(entries))
        batches = self._write(made, logs)
        if self._wal is None:
            self._unsynced_bytes += sum(len(batch) for _, batch in batches)
        elif made.refused or not has_room or not self._note(made, self._wal, batches):
            made.checkpoint = self._everything()
        return made

    def _make_room(self, wal: WriteAheadLog, logs: Mapping[PartitionLog, None], count: int) -> bool:
        """Have the journal take a round, if it can. Before the round is written: what its turn holds was synced."""
        size = sum(log.queued_size for log in logs)
        if wal.fits(size, count):
            return True
        if not wal.can_turn(size, count):
            return False
        self._held = begin_syncs(self._logs.values())
        wal.turn(is_needed=True)
        return True

    def _everything(self) -> SegmentSync:
        """Return what to sync so that nothing written so far is needed in the journal."""
        self._held = None
        return SegmentSync(self._disk, self.points, begin_syncs(self._logs.values()))

    def _write(self, made: GroupCommit[Item], logs: Mapping[PartitionLog, None]) -> list[tuple[PartitionLog, bytes]]:
        """Write each log's queue; return the batches that are written."""
        batches: list[tuple[PartitionLog, bytes]] = []
        for log in logs:
            made.places[log] = log.place()
            queued = [(log, batch) for batch in log.queued]
            try:
                log.write()
            except OSError:
                made.refused.add(log)
            else:
                batches += queued
        return batches

    def _note(self, made: GroupCommit[Item], wal: WriteAheadLog, batches: list[tuple[PartitionLog, bytes]]) -> bool:
        """Write the round to the journal; return whether it stands there."""
        try:
            wal.write(batches)
        except OSError:
            wal.take_back()
            return False
        made.file = wal.file
        return True

    def finish(self, made: GroupCommit[Item]) -> list[tuple[Item, int]]:
        """Return the items of a round that was synced, in their order, with 0 or an error."""
        self._in_flight = False
        if made.failure is not None:
            self._take_back(made)
            return [(item, STORAGE_ERROR) for _, item in made.entries]
        if made.checkpoint is not None and self._wal is not None:
            made.checkpoint.end()
            self._wal.turn(is_needed=False)
        refused = made.refused
        return [(item, STORAGE_ERROR if log in refused else 0) for log, item in made.entries]

    def _take_back(self, made: GroupCommit[Item]) -> None:
        """Nothing of a failed round counts. What was queued meanwhile has offsets behind it, and is refused with it."""
        if made.needs_sync:
            self._fail(made.failure)
        if made.file is not None and self._wal is not None:
            self._wal.take_back()
        for log, place in made.places.items():
            if log not in made.refused:
                log.truncate_to(place)

    def _fail(self, reason: str | None) -> None:
        if self.failure is None and reason is not None:
            self.failure = reason
            self.on_failure(reason)

    def begin_background_sync(self) -> SegmentSync | None:
        """Return work that is due; None: nothing is, or it is under way.

        It is run in a thread, beside rounds, and then comes back to `end_background`.
        """
        if self._background is not None or self.failure is not None:
            return None
        if self._held is not None and self._wal is not None:
            works, self._held = self._held, None
            self._background = SegmentSync(self._disk, self.points, works, self._wal.cycle)
        elif self._unsynced_bytes >= self._unsynced_max_bytes:
            self._unsynced_bytes = 0
            self._background = SegmentSync(self._disk, self.points, begin_syncs(self._logs.values()))
        return self._background

    def end_background_sync(self) -> None:
        """Take note of the end of the work that `background` returned."""
        done, self._background = self._background, None
        assert done is not None, "work was given out"
        if self.end_sync(done) and self._wal is not None:
            self._wal.release(done.cycle)

    def begin_sync(self, log: PartitionLog) -> SegmentSync | None:
        """Return what is to be synced of one log, to be run and to come back to `end_sync`; None: nothing."""
        work = log.begin_sync()
        return None if work is None else SegmentSync(self._disk, self.points, [work])

    def end_sync(self, done: SegmentSync) -> bool:
        """Take note of the end of a sync; return whether it has succeeded. If not, nothing can be written any more."""
        if done.failure is not None:
            self._fail(done.failure)
            return False
        done.end()
        return True

    def sync_everything(self) -> None:
        """Sync all logs, and begin the journal anew; takes long.

        Raises:
            OSError: nobody knows what has reached the disk; the log takes nothing any more.
        """
        done = self._everything()
        done.run()
        if not self.end_sync(done):
            raise OSError(done.failure)
        if self._wal is not None:
            self._wal.void()
