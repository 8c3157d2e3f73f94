"""All logs of a data directory, written and synced by the round: however many batches wait, one sync serves them.

Theory of operation. `append` queues a batch in its partition's log. `begin` writes what is queued, a write a log, and
makes a round of it; in ``fsync`` mode it also writes all of the round's batches to the journal, whose one sync stands
for those of all the logs (`Journal` says why). `Round.sync` may be run in a thread; `finish` says of each batch, in the
order in which they were appended, whether it is in the log, and what is not is as if it never had been.

After a failed sync nobody knows what has reached the disk, and a page that could not be written once may be taken for
written the next time. So the log takes nothing any more until it is opened again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from kproto.codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.storage.disk import Disk
    from kproto_server.storage.journal import Journal
    from kproto_server.storage.partition_log import PartitionLog, SyncWork

Durability = Literal["os", "fsync"]
Item = TypeVar("Item")

STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)
TOO_LARGE = int(ErrorCode.MESSAGE_TOO_LARGE)


class Round(Generic[Item]):
    """Batches that are written together."""

    __slots__ = ("_disk", "_journal", "checkpoint", "entries", "failure", "needs_sync", "places", "refused")

    def __init__(self, entries: list[tuple[PartitionLog, Item]], disk: Disk, journal: Journal | None) -> None:
        self.entries = entries
        """Log and item of each batch, in the order in which they were appended."""
        self.places: dict[PartitionLog, tuple[int, int, int]] = {}
        """Where each log ended before."""
        self.refused: set[PartitionLog] = set()
        """Logs that could not be written."""
        self.failure: str | None = None
        """Why nothing of it counts."""
        self.needs_sync = False
        self.checkpoint: list[SyncWork] | None = None
        """Where the journal had no room: what is synced in its place, which is everything."""
        self._disk = disk
        self._journal = journal

    def sync(self) -> None:
        """Have the round survive power loss; a failure is noted. For any thread."""
        try:
            if self.checkpoint is not None:
                for work in self.checkpoint:
                    work.run(self._disk)
            elif self._journal is not None:
                self._journal.sync()
        except OSError as error:
            self.failure = f"sync failed: {error}"


class DurableLog(Generic[Item]):
    """The writing side of a data directory."""

    def __init__(
        self,
        disk: Disk,
        journal: Journal | None,
        logs: Mapping[tuple[str, int], PartitionLog],
        *,
        batch_size_max_bytes: int,
    ) -> None:
        """``journal``: that of ``fsync`` mode; None: the operating system's memory is safe enough."""
        self.failed: str | None = None
        """Why nothing can be written any more, until the directory is opened again."""
        self._disk = disk
        self._journal = journal
        self._logs = logs
        self._batch_size_max_bytes = batch_size_max_bytes
        self._queue: list[tuple[PartitionLog, Item]] = []
        self._in_flight = False

    @property
    def needs_syncs(self) -> bool:
        """Whether a round has to be synced before it counts."""
        return self._journal is not None

    @property
    def waiting(self) -> bool:
        """Whether something is queued."""
        return bool(self._queue)

    def append(self, log: PartitionLog, batch: bytes, record_count: int, item: Item) -> int:
        """Queue a batch; return 0, or Kafka's error if it is refused. The item comes back from `finish`."""
        if self.failed is not None:
            return STORAGE_ERROR
        if len(batch) > self._batch_size_max_bytes:
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
        if len(batch) > self._batch_size_max_bytes:
            return TOO_LARGE
        log.append(batch, record_count)
        try:
            log.write()
        except OSError:
            return STORAGE_ERROR
        return 0

    def begin(self) -> Round[Item] | None:
        """Write what is queued; None if there is nothing, or a round is under way."""
        if not self._queue or self._in_flight:
            return None
        entries, self._queue = self._queue, []
        made = Round(entries, self._disk, self._journal)
        self._in_flight = True
        if self.failed is not None:
            made.failure = self.failed
            for log, _ in entries:
                log.drop_queue()
            return made
        batches = self._write(made)
        if self._journal is not None and batches:
            self._note(made, self._journal, batches)
        return made

    def _write(self, made: Round[Item]) -> list[tuple[PartitionLog, bytes]]:
        """Write each log's queue; return the batches that are written."""
        batches: list[tuple[PartitionLog, bytes]] = []
        for log in dict.fromkeys(log for log, _ in made.entries):
            made.places[log] = log.place()
            queued = [(log, batch) for batch in log.queued]
            try:
                log.write()
            except OSError:
                made.refused.add(log)
            else:
                batches += queued
        return batches

    def _note(self, made: Round[Item], journal: Journal, batches: list[tuple[PartitionLog, bytes]]) -> None:
        """Write the round to the journal, or, where that is full, have all logs synced instead."""
        made.needs_sync = True
        if not journal.fits(sum(len(batch) for _, batch in batches), len(batches)):
            works = (log.begin_sync() for log in self._logs.values())
            made.checkpoint = [work for work in works if work is not None]
            return
        try:
            journal.write(batches)
        except OSError as error:
            made.failure = f"write failed: {error}"
            made.needs_sync = False

    def finish(self, made: Round[Item]) -> list[tuple[Item, int]]:
        """Return the items of a round that was synced, in their order, with 0 or an error."""
        self._in_flight = False
        if made.failure is not None:
            self._take_back(made)
            return [(item, STORAGE_ERROR) for _, item in made.entries]
        if made.checkpoint is not None and self._journal is not None:
            for work in made.checkpoint:
                work.log.end_sync(work)
            self._journal.begin_anew()
        refused = made.refused
        return [(item, STORAGE_ERROR if log in refused else 0) for log, item in made.entries]

    def _take_back(self, made: Round[Item]) -> None:
        """Nothing of a failed round counts. What was queued meanwhile has offsets behind it, and is refused with it."""
        if made.needs_sync:
            self.failed = made.failure
        for log, place in made.places.items():
            if log not in made.refused:
                log.undo_to(place)
