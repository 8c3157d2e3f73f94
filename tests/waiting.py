"""Waiting for another thread or process: bounded, by polling."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT_S = 60.0
"""A wait that takes longer is a failure."""
STEP_S = 0.01


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Return as soon as the condition is true; fail the test after `LIMIT_S`."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {LIMIT_S} s for {what}"
        time.sleep(STEP_S)
