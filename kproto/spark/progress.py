"""Say what a command is doing while it takes long, so that neither a terminal nor the log of a CI job looks dead."""

from __future__ import annotations

import time
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

EVERY_S = 8.0
"""Seconds from line to line."""


def nothing() -> str | None:
    """Say nothing."""
    return None


class Progress:
    """What a command is doing, said in lines until it ends."""

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        wait: Callable[[float], bool] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin a command.

        Args:
            say: prints a line.
            wait: waits for some seconds, and returns whether the command has ended; by default in real time.
            now: returns the time in seconds.
        """
        self._doing: Callable[[], str | None] = nothing
        self._lock: Lock = Lock()
        self._say = say
        self._ended: Event = Event()
        self._wait = self._ended.wait if wait is None else wait
        self._now = now
        self._start: float = now()

    def doing(self, what: Callable[[], str | None]) -> None:
        """Set what returns, from now on, what is being done; None: nothing worth a line.

        The function before is not running any more then, and never called again.
        """
        with self._lock:
            self._doing = what

    def watch(self) -> None:
        """Say every `EVERY_S` seconds what is being done, until the command ends."""
        while not self._wait(EVERY_S):
            with self._lock:
                doing = self._doing()
            if doing is not None:
                self._say(f"{self._now() - self._start:.0f} s: {doing}")

    def end(self) -> None:
        """End `watch`."""
        self._ended.set()


@contextmanager
def watched(say: Callable[[str], None]) -> Iterator[Progress]:
    """Yield the progress of a command, which a thread watches until the end of the block."""
    progress = Progress(say)
    thread = Thread(target=progress.watch, daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        progress.end()
        thread.join()


def tasks_of(spark: SparkSession) -> str | None:
    """Return how many tasks of the running stages have ended; None: no stage is running."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types

    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    except (Py4JError, OSError):  # Java has ended: the command itself gets the error
        return None
    running = [stage for stage in stages if stage is not None]
    if not running:
        return None
    ended, count = sum(one.numCompletedTasks for one in running), sum(one.numTasks for one in running)
    return f"{ended:,} of {count:,} tasks have ended"
