"""Busy polling: poll some more times before sleeping, as the next request is mostly a few microseconds away.

A client with one request in flight sends the next one within microseconds of the response. Sleeping until then and
being woken costs the server more than that: with busy polling, one such client gets 70,000 responses a second instead
of 50,000. So after an iteration that found something, the loop polls without sleeping for about as long as a sleep
costs.

That helps only a process of its own on a machine with several processors. With one processor, or with a client in the
same process, polling keeps the client from running.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Ready = list[tuple[int, int]]
    """(file descriptor, readiness bits)"""

POLLS = 20
"""About 15 microseconds."""


def useful_polls() -> int:
    """Return how many polls before a sleep are worth their time on this machine: `POLLS` or 0."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return POLLS if usable > 1 else 0


class BusyPoll:
    """Waits by a poll function, whose argument is the timeout in seconds: 0.0 returns at once, None waits forever."""

    def __init__(self, poll: Callable[[float | None], Ready], polls: int = 0) -> None:
        self.polls = polls
        """How many times to poll before a sleep."""
        self._poll = poll
        self._was_ready = False
        """Whether the last wait found something."""

    def wait(self, timeout_s: float | None) -> Ready:
        """Return what is ready, as soon as something is or the timeout is over."""
        poll = self._poll
        if self._was_ready and timeout_s != 0.0:
            for _ in range(self.polls):
                if ready := poll(0.0):
                    return ready
        ready = poll(timeout_s)
        self._was_ready = bool(ready)
        return ready
