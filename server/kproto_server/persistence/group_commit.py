"""Changes on their way to disk: queued by the handlers, written at the end of a round of the loop, synced together.

Theory of operation. However many changes a round of the loop has brought, they are written at its end, with a write a
partition, and one sync serves them all (OS-27). A sync may take as long as a disk likes, so it is done in a thread of
its own; what comes meanwhile queues for the next one, and so batches form by themselves, the larger the slower the
disk. Only this class and the thread's one function know that there is a thread: the changes are settled in the loop.
"""

from __future__ import annotations

import itertools
import threading
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from kproto_server.coordinator.change_log import Change
from kproto_server.requests.deferred import DeferredResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kproto.message import Response
    from kproto_server.partition_log.stored_data import TopicAppend
    from kproto_server.storage.log_writer import GroupCommit, LogWriter
    from kproto_server.storage.partition_log import PartitionLog

    Item = Change | TopicAppend
    """What is settled when the log has it."""

Answer = TypeVar("Answer", bound="Response | DeferredResponse")


class WorkerThread:
    """One thread that does blocking work, one piece after the other, and says in the loop's thread when it is done."""

    def __init__(self, post: Callable[[Callable[[], object]], object]) -> None:
        self._post = post
        self._work: SimpleQueue[tuple[Callable[[], object], Callable[[], object]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self, work: Callable[[], object], done: Callable[[], object]) -> None:
        """Have ``work`` done in the thread, and ``done`` called in the loop after it. Work does not raise."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._main, name="kproto-sync", daemon=True)
            self._thread.start()
        self._work.put((work, done))

    def wait(self) -> None:
        """Wait until all work given so far is done."""
        if self._thread is not None:
            done = threading.Event()
            self._work.put((done.set, _nothing))
            done.wait()

    def stop(self) -> None:
        """Wait until all work is done, and end the thread; what was to be called after it may not be called."""
        if self._thread is not None:
            self._work.put(None)
            self._thread.join()
            self._thread = None

    def _main(self) -> None:
        while (item := self._work.get()) is not None:
            work, done = item
            work()
            self._post(done)


def _nothing() -> None:
    """What is to be called after work that nobody waits for in the loop."""


class GroupCommitLog:
    """A `ChangeLog` on a disk that is synced. `flush` is called at the end of each round of the loop."""

    keeps = True
    settles_immediately = False

    def __init__(self, writer: LogWriter[Item], worker: WorkerThread) -> None:
        self.writer = writer
        self.partitions: Mapping[int, PartitionLog] = {}
        """The logs of the offsets partitions, by number; `Persistence` sets it."""
        self._sync_thread = worker
        self._answers: list[DeferredResponse] = []
        """Those that wait for what is queued."""
        self._round: GroupCommit[Item] | None = None
        self._round_answers: list[DeferredResponse] = []

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        """Queue a change; one that can't be written is settled at once."""
        error = self.writer.append(self.partitions[partition], batch, record_count, change)
        if error:
            change.settle(error)

    def append_to(self, log: PartitionLog, item: TopicAppend, batch: bytes, record_count: int) -> None:
        """Queue a batch of a topic; one that can't be written is settled at once."""
        error = self.writer.append(log, batch, record_count, item)
        if error:
            item.settle(error)

    def then(self, answer: Callable[[], Answer]) -> Answer | DeferredResponse:
        if self.writer.queued:
            answers = self._answers
        elif self._round is not None:
            answers = self._round_answers
        else:
            return answer()
        after = DeferredResponse(answer)
        answers.append(after)
        return after

    def in_flight(self) -> Iterable[Change]:
        in_round = () if self._round is None else self._round.entries
        queued = itertools.chain(in_round, self.writer.queued)
        return (item for _, item in queued if isinstance(item, Change))

    def flush(self) -> None:
        """Write what is queued and have it synced, unless a sync is under way; its end comes back here."""
        writer = self.writer
        while writer.queued and self._round is None:
            answers, self._answers = self._answers, []
            begun = writer.begin()
            if begun is None:
                return
            self._round, self._round_answers = begun, answers
            if begun.needs_sync:
                self._sync_thread.run(begun.sync, partial(self._synced, begun))
                return
            self._finish()

    def _synced(self, begun: GroupCommit[Item]) -> None:
        if begun is self._round:  # else `drain` was quicker
            self._finish()
            self.flush()

    def _finish(self) -> None:
        assert self._round is not None, "a round was begun"
        settled = self.writer.finish(self._round)
        answers, self._round_answers = self._round_answers, []
        self._round = None
        for change, error in settled:
            change.settle(error)
        for after in answers:
            after.synced()

    def drain(self) -> None:
        """Have everything that is queued settled before this returns, however long the disk takes."""
        while self.writer.queued or self._round is not None:
            if self._round is None:
                self.flush()
            else:
                self._sync_thread.wait()
                self._finish()
