"""A group commit: batches of several logs that become durable together, and the syncs that make them so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kproto_server.storage.disk import File
    from kproto_server.storage.partition_log import PartitionLog

Item = TypeVar("Item")

if TYPE_CHECKING:
    Entry = tuple[PartitionLog, Item, bytes, int]
    """Log, item, and content of a batch, and the offset after it."""


class Sync(Protocol):
    """A sync that any thread may run."""

    failure: str | None
    """Why it failed; None if it did not, or was not run."""

    def run(self) -> None:
        """Sync; store a failure instead of raising. Blocks."""
        ...


class FileSync:
    """A sync of the write-ahead log."""

    def __init__(self, file: File) -> None:
        self._file = file
        self.failure: str | None = None

    def run(self) -> None:
        """Sync; store a failure instead of raising."""
        try:
            self._file.sync()
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing is known to be on the disk
            self.failure = f"sync failed: {error}"


class GroupCommit(Generic[Item]):
    """Batches that become durable together, or not at all."""

    __slots__ = ("entries", "failed_logs", "failure", "pending_sync", "refused", "steps")

    def __init__(self, entries: list[Entry[Item]]) -> None:
        self.entries: list[Entry[Item]] = entries
        """In append order."""
        self.failed_logs: set[PartitionLog] = set()
        """Logs that could not be written."""
        self.refused: list[Entry[Item]] = []
        """Batches that fail with it: they were queued behind a batch that failed, or behind a failed sync."""
        self.failure: str | None = None
        """Why a sync failed; None if none did. Then it is unknown whether the batches are on the disk."""
        self.pending_sync: Sync | None = None
        """What `sync` runs."""
        self.steps: Iterator[Sync] = iter(())
        """The syncs to come."""

    @property
    def needs_sync(self) -> bool:
        """Whether `sync` has to be called before `finish`."""
        return self.pending_sync is not None

    def sync(self) -> None:
        """Run the pending sync; store a failure instead of raising. Blocks; any thread may call it."""
        if self.pending_sync is not None:
            self.pending_sync.run()


def forget_placed(entries: Iterable[Entry[Item]]) -> None:
    """Free the offsets of batches that are not written."""
    for log in {log for log, _, _, _ in entries}:
        log.forget_placed()
