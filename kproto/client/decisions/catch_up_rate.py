"""The rate of a catch-up, and the time that is left."""

from __future__ import annotations

from collections import deque

WINDOW = 10
"""Measurements between which the rate is taken, one second apart."""


class CatchUpRate:
    """The rate of one partition's catch-up, from its start on.

    Args:
        now_s: on a monotonic clock.
        records_left: at the start.
    """

    def __init__(self, now_s: float, records_left: int) -> None:
        self.started_s = now_s
        self.records = records_left
        self._measurements = deque([(now_s, records_left)], maxlen=WINDOW + 1)

    def measure(self, now_s: float, records_left: int) -> tuple[float, float | None]:
        """Return the records per second, and the seconds left; None while no record is delivered."""
        self._measurements.append((now_s, records_left))
        first_s, first_left = self._measurements[0]
        elapsed_s, delivered = now_s - first_s, first_left - records_left
        if elapsed_s <= 0 or delivered <= 0:
            return 0.0, None
        per_s = delivered / elapsed_s
        return per_s, records_left / per_s
