"""The token bucket of a client whose requests change topics (KIP-599).

Theory of operation. A bucket gets as many tokens per second as the quota has units, and holds those of all windows
(`Window.samples` of them). A change takes a token for each partition, and may take more than there are: the bucket is
below 0 then, and the client is throttled until it is full up to 0 again. The arithmetic is that of Kafka's
``TokenBucket`` and ``ControllerMutationQuotaManager``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.quotas.rate import whole_ms

if TYPE_CHECKING:
    from kproto_server.quotas.rate import Window


class TokenBucket:
    """The tokens of a group of clients. A new bucket is full."""

    __slots__ = ("_tokens", "last_ms")

    def __init__(self, quota: float, window: Window, now_ms: int) -> None:
        self._tokens = _most(quota, window)
        self.last_ms: int = now_ms
        """When tokens were added last."""

    def throttle_ms(self, quota: float, window: Window, now_ms: int) -> int:
        """Return the time until the bucket is at 0 again; 0 if it is not below."""
        self._fill(quota, window, now_ms)
        return whole_ms(-self._tokens * 1000, quota) if self._tokens < 0 else 0

    def take(self, count: float, quota: float, window: Window, now_ms: int) -> None:
        """Take tokens, possibly more than the bucket has."""
        self._fill(quota, window, now_ms)
        self._tokens -= count

    def _fill(self, quota: float, window: Window, now_ms: int) -> None:
        """Add the tokens that are due."""
        due = quota * max(0, now_ms - self.last_ms) / 1000
        self._tokens = min(_most(quota, window), self._tokens + due)
        self.last_ms = now_ms


def _most(quota: float, window: Window) -> float:
    return window.samples * window.size_ms / 1000 * quota
