"""A worker without a thread: its work runs when a test says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


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
