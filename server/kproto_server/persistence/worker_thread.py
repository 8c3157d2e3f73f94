"""A thread for blocking work of the event loop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Protocol

logger = logging.getLogger("kproto")

Post = Callable[[Callable[[], object]], object]
"""Runs a function in the event loop, soon; any thread may call it."""


class Worker(Protocol):
    """Runs blocking work in order; a test has one without a thread."""

    def run(self, work: Callable[[], object], done: Callable[[], object]) -> None:
        """Run ``work``, and then ``done`` in the event loop. ``work`` must not raise."""
        ...

    def wait(self) -> None:
        """Wait until all work given so far was run."""
        ...

    def stop(self) -> None:
        """Wait for all work; no more is given."""
        ...


class WorkerThread:
    """Runs functions in one thread, in order, and reports in the event loop. The owner calls `stop`."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._queue: SimpleQueue[tuple[Callable[[], object], Callable[[], object]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self, work: Callable[[], object], done: Callable[[], object]) -> None:
        """Run ``work`` in the thread, and then ``done`` in the event loop. ``work`` must not raise."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._main, name="kproto-sync", daemon=True)
            self._thread.start()
        self._queue.put((work, done))

    def wait(self) -> None:
        """Wait until the thread has run all work given so far. Blocks."""
        if self._thread is not None:
            is_done = threading.Event()
            self._queue.put((is_done.set, _do_nothing))
            is_done.wait()

    def stop(self) -> None:
        """Wait for all work and end the thread. Functions posted to the event loop may never run."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _main(self) -> None:
        while (item := self._queue.get()) is not None:
            work, done = item
            try:
                work()
            except Exception:  # a thread that ends would leave `wait`, and the event loop with it, without an end
                logger.exception("defect in blocking work")
            self._post(done)


def _do_nothing() -> None:
    """Posted to the event loop when `wait` needs no callback."""
