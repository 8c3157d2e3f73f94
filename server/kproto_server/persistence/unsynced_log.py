"""The logs of the offsets partitions in a data directory, and the change log of ``os`` mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from kproto_server.coordinator.change_log import STORAGE_ERROR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kproto.message import Response
    from kproto_server.coordinator.change_log import Change
    from kproto_server.deferred import DeferredResponse, NoResponse
    from kproto_server.partition_log.stored_data import PendingAppend
    from kproto_server.storage.log_writer import LogWriter
    from kproto_server.storage.partition_log import PartitionLog

ResponseT = TypeVar("ResponseT", bound="Response | DeferredResponse | NoResponse")


class OffsetsLogs:
    """The logs of the offsets partitions in a data directory.

    A program can create the offsets topic, or partitions of it, without a request that saves them. So a log that is
    missing is created by its first append. Appends look into `partitions` themselves: a call would cost more than the
    look-up.
    """

    def __init__(self) -> None:
        self.partitions: dict[int, PartitionLog] = {}
        """The logs that exist, by number; `Persistence` sets it."""
        self.create_missing: Callable[[], object] = lambda: None
        """Saves the topics and adds their logs to `partitions`, as far as the disk allows; `Persistence` sets it."""

    def created(self, partition: int) -> PartitionLog | None:
        """Return a log that was missing; None if it cannot be created."""
        self.create_missing()
        return self.partitions.get(partition)


class UnsyncedChangeLog(OffsetsLogs):
    """A log that is written and not synced: changes survive the end of this process, but not a power loss."""

    keeps = True

    def __init__(self, writer: LogWriter[object]) -> None:
        super().__init__()
        self.writer = writer

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        try:
            log: PartitionLog | None = self.partitions[partition]
        except KeyError:
            log = self.created(partition)
        change.settle(STORAGE_ERROR if log is None else self.writer.write(log, batch, record_count))

    def write_now(self, partition: int, checked: bytes, record_count: int) -> int:
        try:
            log = self.partitions[partition]
        except KeyError:
            created = self.created(partition)
            return STORAGE_ERROR if created is None else self.writer.write_checked(created, checked, record_count)
        return self.writer.write_checked(log, checked, record_count)

    def append_to(self, log: PartitionLog, item: PendingAppend, batch: bytes, record_count: int) -> None:
        """Write a batch to the log of another topic."""
        item.settle(self.writer.write(log, batch, record_count))

    def then(self, respond: Callable[[], ResponseT]) -> ResponseT:
        return respond()

    def in_flight(self) -> Iterable[Change]:
        return ()

    def without_topic(self) -> UnsyncedChangeLog:
        self.partitions.clear()
        return self
