"""The log of the coordinator's changes: append a change, and continue once the log has it.

Theory of operation. The tables have only what the log has (OS-15), so that no change has to be undone (OS-24). A
decision appends its change, as one record batch, to the log of the group's offsets partition, together with a callback
that applies the change to the tables in one step (OS-26). The log calls it as soon as the batch is as durable as this
log makes batches. A response that reports the change waits for the same moment::

    log.append(partition, Change(group_id, settle), *batch)    # settle(error): 0, or the error code of the write
    return log.then(lambda: response)

Changes are settled in the log's order (OS-28, OS-29), and a response follows all changes that were appended before it.
The log decides how many changes share a sync (OS-27). `MemoryChangeLog` stores nothing: the tables are all there is. It
settles a change before `append` returns; `persistence` has the logs on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from kproto.codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kproto.message import Response
    from kproto_server.coordinator.offsets import CommitEntries
    from kproto_server.deferred import DeferredResponse, NoResponse

    Batch = tuple[bytes, int]
    """A record batch with base offset 0, and the number of its records."""

STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)
NO_BATCH = (b"", 0)
"""The batch for a log that stores nothing."""

ResponseT = TypeVar("ResponseT", bound="Response | DeferredResponse | NoResponse")


class Change:
    """A change of one group, with the callback that applies it."""

    __slots__ = ("_settle", "commits", "group_id")

    def __init__(self, group_id: str, settle: Callable[[int], object], commits: CommitEntries = ()) -> None:
        self.group_id: str = group_id
        self.commits: CommitEntries = commits
        """The offsets that the change commits, for deletions that have to see them before they are applied."""
        self._settle = settle

    def settle(self, error: int) -> None:
        """Apply the change, or drop it if the write failed with an error code. Called once."""
        self._settle(error)


class ChangeLog(Protocol):
    """A log of changes. A batch is written whole or not at all (OS-20)."""

    keeps: bool
    """Whether batches are stored; if not, `NO_BATCH` is enough."""

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        """Append a change to the log of an offsets partition.

        If its write fails, the changes fail with it that were appended to the partition behind it, before it is
        settled: they may rely on it.
        """
        ...

    def write_now(self, partition: int, checked: bytes, record_count: int) -> int | None:
        """Write a batch before this returns; return 0, or the error code of the write.

        ``checked``: the part of the batch that its checksum covers. None: this log does not write before it syncs many
        changes together; use `append`.
        """
        ...

    def then(self, respond: Callable[[], ResponseT]) -> ResponseT | DeferredResponse:
        """Return the response, or a deferred response until all changes appended so far are settled."""
        ...

    def in_flight(self) -> Iterable[Change]:
        """Return the changes that are appended and not settled, in the log's order (EX-23)."""
        ...

    def without_topic(self) -> ChangeLog:
        """Return the log for the next offsets topic: the present one was deleted."""
        ...


class MemoryChangeLog:
    """A log that stores nothing: each write succeeds immediately."""

    keeps = False

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        change.settle(0)

    def write_now(self, partition: int, checked: bytes, record_count: int) -> int:
        return 0

    def then(self, respond: Callable[[], ResponseT]) -> ResponseT:
        return respond()

    def in_flight(self) -> Iterable[Change]:
        return ()

    def without_topic(self) -> MemoryChangeLog:
        return MemoryChangeLog()
