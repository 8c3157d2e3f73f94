"""The log of the coordinator's changes, as those see it who make them: append, and go on once it is synced.

Theory of operation. The tables hold only what the log has (OS-15), so that nothing ever has to be undone (OS-24). Who
decides on a change appends it, as one batch, to the log of the group's offsets partition, with what is to be done once
that batch is as durable as the log makes things: apply it to the tables, in one step (OS-26). An answer that tells of
the change waits for the same::

    log.append(partition, Change(group_id, settle), *batch)    # settle(error): 0, or Kafka's code of the failed write
    return log.then(lambda: response)

Everything that was appended is settled in the log's order (OS-28, OS-29), and an answer comes after all that was
appended before it. How many changes share a sync is the log's business (OS-27). `MemoryChangeLog` keeps nothing: there
the tables are all there is. It and `WrittenChangeLog` settle a change before `append` returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kproto.message import Response
    from kproto_server.coordinator.offsets import CommitEntries
    from kproto_server.partition_log.stored_data import TopicAppend
    from kproto_server.requests.deferred import DeferredResponse
    from kproto_server.storage.log_writer import LogWriter
    from kproto_server.storage.partition_log import PartitionLog

    Batch = tuple[bytes, int]
    """A record batch with base offset 0, and the number of its records."""

NO_BATCH = (b"", 0)
"""What a log that keeps nothing is given."""

Answer = TypeVar("Answer", bound="Response | DeferredResponse")


class Change:
    """A group's change, and what is to be done once the log has it."""

    __slots__ = ("_settle", "commits", "group_id")

    def __init__(self, group_id: str, settle: Callable[[int], object], commits: CommitEntries = ()) -> None:
        self.group_id = group_id
        self.commits = commits
        """The offsets that it brings: of interest to who deletes what is there, or about to be."""
        self._settle = settle

    def settle(self, error: int) -> None:
        """Called once, with 0 or the error of the write: apply the change, or leave everything as it was."""
        self._settle(error)


class ChangeLog(Protocol):
    """Where changes are kept before they are visible. A batch is written whole or not at all (OS-20)."""

    keeps: bool
    """Whether batches are kept at all; if not, an empty one will do."""
    settles_immediately: bool
    """Whether a change is settled before `append` returns."""

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        """Add a change to the log of an offsets partition."""
        ...

    def then(self, answer: Callable[[], Answer]) -> Answer | DeferredResponse:
        """Return the answer, or what stands for it until everything appended before is settled."""
        ...

    def in_flight(self) -> Iterable[Change]:
        """Return what is appended and not settled, in the log's order (EX-23)."""
        ...


class MemoryChangeLog:
    """A log that forgets: writing always succeeds, and at once."""

    keeps = False
    settles_immediately = True

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        change.settle(0)

    def then(self, answer: Callable[[], Answer]) -> Answer:
        return answer()

    def in_flight(self) -> Iterable[Change]:
        return ()


class UnsyncedChangeLog:
    """A log that is written, and not synced: what the operating system has survives the end of this process."""

    keeps = True
    settles_immediately = True

    def __init__(self, writer: LogWriter[object]) -> None:
        self.writer = writer
        self.partitions: Mapping[int, PartitionLog] = {}
        """The logs of the offsets partitions, by number."""

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        change.settle(self.writer.write(self.partitions[partition], batch, record_count))

    def append_to(self, log: PartitionLog, item: TopicAppend, batch: bytes, record_count: int) -> None:
        """Write a batch of a topic."""
        item.settle(self.writer.write(log, batch, record_count))

    def then(self, answer: Callable[[], Answer]) -> Answer:
        return answer()

    def in_flight(self) -> Iterable[Change]:
        return ()
