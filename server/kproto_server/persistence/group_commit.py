"""Group commit of the changes of all requests in ``fsync`` mode."""

# Theory of operation. Handlers append changes during an iteration of the event loop; `flush`, at its end, writes them
# with one write to the write-ahead log and starts one sync for all of them (OS-27). The sync can take milliseconds, so
# the worker thread runs it; then their logs are written. Changes appended meanwhile wait for the next group commit: the
# slower the disk, the larger the groups.
#
# A change is settled in the event loop, in append order, after its sync: only then do tables change, and only then are
# deferred responses sent (OS-25, OS-29). The thread runs nothing but `GroupCommit.sync`.

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from kproto_server.coordinator.change_log import STORAGE_ERROR, Change
from kproto_server.deferred import DeferredResponse
from kproto_server.persistence.unsynced_log import OffsetsLogs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kproto.message import Response
    from kproto_server.deferred import NoResponse
    from kproto_server.partition_log.stored_data import PendingAppend
    from kproto_server.persistence.worker_thread import Worker
    from kproto_server.storage.group_commit import GroupCommit
    from kproto_server.storage.log_writer import LogWriter
    from kproto_server.storage.partition_log import PartitionLog

    Item = Change | PendingAppend
    """What `settle` is called on when its batch is durable."""

AnyResponse = TypeVar("AnyResponse", bound="Response | DeferredResponse | NoResponse")


class GroupCommitLog(OffsetsLogs):
    """The `ChangeLog` of ``fsync`` mode. The event loop calls `flush` at the end of each iteration."""

    keeps = True

    def __init__(self, writer: LogWriter[Item], sync_thread: Worker) -> None:
        super().__init__()
        self.writer = writer
        self._sync_thread = sync_thread
        self._queued_responses: list[DeferredResponse] = []
        """Responses that wait for queued batches."""
        self._group_commit: GroupCommit[Item] | None = None
        """The group commit in flight."""
        self._responses: list[DeferredResponse] = []
        """Responses that wait for the group commit in flight."""

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        """Queue a change of an offsets partition; settle it now if the writer refuses it."""
        try:
            log: PartitionLog | None = self.partitions[partition]
        except KeyError:
            log = self.created(partition)
        error = STORAGE_ERROR if log is None else self.writer.append(log, batch, record_count, change)
        if error:
            change.settle(error)

    def write_now(self, partition: int, checked: bytes, record_count: int) -> None:
        return None

    def append_to(self, log: PartitionLog, item: PendingAppend, batch: bytes, record_count: int) -> None:
        """Queue a batch of a topic; settle it now if the writer refuses it."""
        error = self.writer.append(log, batch, record_count, item)
        if error:
            item.settle(error)

    def then(self, respond: Callable[[], AnyResponse]) -> AnyResponse | DeferredResponse:
        """Return the response, or a deferred one if batches appended before are not durable yet."""
        if self.writer.queued:
            responses = self._queued_responses
        elif self._group_commit is not None:
            responses = self._responses
        else:
            return respond()
        deferred = DeferredResponse(respond)
        responses.append(deferred)
        return deferred

    def in_flight(self) -> Iterable[Change]:
        """Return the changes that are not settled, in append order."""
        in_flight = () if self._group_commit is None else self._group_commit.entries
        entries = itertools.chain(in_flight, self.writer.queued)
        return (item for _, item, _, _ in entries if isinstance(item, Change))

    def without_topic(self) -> GroupCommitLog:
        self.partitions.clear()
        return self

    def flush(self) -> None:
        """Begin a group commit of the queued batches, unless one is in flight; its end calls this again."""
        writer = self.writer
        while writer.queued and self._group_commit is None:
            group_commit = writer.begin()
            if group_commit is None:
                return
            self._group_commit = group_commit
            if not writer.queued:  # otherwise the write-ahead log has no room for all of them
                self._responses, self._queued_responses = self._queued_responses, []
            if group_commit.needs_sync:
                self._sync_thread.run(group_commit.sync, partial(self._end, group_commit))
                return
            self._finish()

    def _end(self, group_commit: GroupCommit[Item]) -> None:
        if group_commit is self._group_commit:  # otherwise `drain` finished it
            self._finish()
            self.flush()

    def _finish(self) -> None:
        group_commit = self._group_commit
        assert group_commit is not None, "a group commit is in flight"
        settled = self.writer.finish(group_commit)
        if settled is None:
            self._sync_thread.run(group_commit.sync, partial(self._end, group_commit))
            return
        responses, self._responses = self._responses, []
        if not self.writer.queued:  # queued batches may have failed with it
            responses += self._queued_responses
            self._queued_responses = []
        self._group_commit = None
        for item, error in settled:
            item.settle(error)
        for response in responses:
            response.complete()

    def drain(self) -> None:
        """Settle everything that is queued or in flight before this returns. Blocks."""
        while self.writer.queued or self._group_commit is not None:
            if self._group_commit is None:
                self.flush()
            else:
                self._sync_thread.wait()
                self._finish()
