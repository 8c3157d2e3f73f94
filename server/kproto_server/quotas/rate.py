"""The rate of a client over the windows of quotas, and how long a client that exceeds its quota is throttled.

Theory of operation. A rate has the sums of samples, each of one window, of which `Window.samples` are kept and one more
that overlaps the oldest. It is the sum of all of them divided by the time since the oldest began, which counts as
`Window.samples` - 1 windows at least: a client that has just begun may send all that its quota allows in that time at
once. A client that exceeds its quota is throttled for as long as its rate takes to come down to the quota, if it sends
nothing meanwhile. The arithmetic is that of Kafka's ``Rate``, ``SampledStat`` and ``QuotaUtils.throttleTime``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

LONGEST_MS = 2**31 - 1
"""The longest throttle time. A quota may be 0 or close to 0, for which the arithmetic would give years."""


class Window(NamedTuple):
    """The settings ``quota.window.num`` and ``quota.window.size.seconds``."""

    samples: int
    size_ms: int


RateKey = tuple[int, str, str | None, str | None]
"""Identifies a rate: the node, the key of the quota, and the user and the client id of the group."""


class _Sample:
    """What was recorded in one window."""

    __slots__ = ("began_ms", "last_ms", "sum")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        """Begin a new window without values."""
        self.began_ms = now_ms
        self.last_ms = now_ms
        self.sum = 0.0


class Rate:
    """What a group of clients has sent, or was sent, in the latest windows."""

    def __init__(self, now_ms: int) -> None:
        self._samples = [_Sample(now_ms)]
        self._current = 0

    @property
    def last_ms(self) -> int:
        """When a value was recorded last."""
        return self._samples[self._current].last_ms

    def record(self, value: float, window: Window, now_ms: int) -> None:
        """Add a value; a negative one takes a value back."""
        sample = self._samples[self._current]
        if now_ms - sample.began_ms >= window.size_ms:
            sample = self._advance(window, now_ms)
        sample.sum += value
        sample.last_ms = now_ms

    def _advance(self, window: Window, now_ms: int) -> _Sample:
        self._current = (self._current + 1) % (window.samples + 1)
        if self._current >= len(self._samples):
            self._current = len(self._samples)
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def throttle_ms(self, quota: float, window: Window, now_ms: int) -> int:
        """Return how long a client is throttled; 0: its rate is within the quota, in units per second."""
        for sample in self._samples:
            if now_ms - sample.last_ms >= window.samples * window.size_ms:
                sample.reset(now_ms)
        elapsed_ms = now_ms - min(sample.began_ms for sample in self._samples)
        missing = window.samples - 1 - elapsed_ms // window.size_ms
        elapsed_ms = max(1, elapsed_ms + max(0, missing) * window.size_ms)
        rate = sum(sample.sum for sample in self._samples) / (elapsed_ms / 1000)
        if not rate > quota:
            return 0
        return whole_ms((rate - quota) * elapsed_ms, quota)


def whole_ms(product: float, quota: float) -> int:
    """Return a product divided by a quota, rounded, at most `LONGEST_MS`."""
    return math.floor(product / quota + 0.5) if product < quota * LONGEST_MS else LONGEST_MS
