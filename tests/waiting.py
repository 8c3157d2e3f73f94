"""Waiting for what another thread or process will do: bounded, in small steps."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT_S = 60.0
"""What takes longer hangs."""
STEP_S = 0.01


def wait_until(true: Callable[[], bool], what: str) -> None:
    """Return once it is true; fail the test if that takes too long."""
    limit = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < limit, f"{what} did not come about in {LIMIT_S} s"
        time.sleep(STEP_S)
