"""A worker without a thread: its work runs when a test says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.persistence.worker_thread import WorkerThread

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.persistence.worker_thread import Post, Worker


class HeldWorker:
    """Runs blocking work when a test says so."""

    def __init__(self) -> None:
        self.held: list[Callable[[], object]] = []

    def run(self, work: Callable[[], object], done: Callable[[], object]) -> None:
        self.held += [work, done]

    def wait(self) -> None:
        """Run the work, and not what follows it in the event loop."""
        while self.held:
            self.held.pop(0)()
            self.held.pop(0)

    def run_one(self) -> None:
        work, done = self.held[:2]
        del self.held[:2]
        work()
        done()

    def stop(self) -> None:
        """Do nothing: there is no thread."""


def held_in_background(background: HeldWorker) -> Callable[[Post], Worker]:
    """Return what makes the workers of a broker: its sync thread, and this one for all else."""
    made: list[Worker] = []

    def make_worker(post: Post) -> Worker:
        made.append(background if made else WorkerThread(post))  # the first is the sync thread
        return made[-1]

    return make_worker
