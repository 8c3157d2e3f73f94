"""What groups of clients have used of their quotas: their rates, and the tokens of those that change topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.quotas.rate import Rate
from kproto_server.quotas.token_bucket import TokenBucket

if TYPE_CHECKING:
    from kproto_server.quotas.rate import RateKey, Window

KEPT_MAX = 10_000
"""The most groups of clients whose rates are kept, and the most whose tokens are kept. Without a limit, clients could
take all memory by new client ids."""


class QuotaUsage:
    """The rates and the tokens of all groups of clients, on all nodes."""

    def __init__(self) -> None:
        self.rates: dict[RateKey, Rate] = {}
        self.buckets: dict[RateKey, TokenBucket] = {}

    def record(self, key: RateKey, value: float, quota: float, window: Window, now_ms: int) -> int:
        """Add a value to a rate; return the throttle time in ms."""
        rate = self.rates.get(key)
        if rate is None:
            _make_room(self.rates)
            rate = self.rates[key] = Rate(now_ms)
        rate.record(value, window, now_ms)
        return rate.throttle_ms(quota, window, now_ms)

    def unrecord(self, key: RateKey, value: float, window: Window, now_ms: int) -> None:
        """Take a value back that was recorded just now."""
        rate = self.rates.get(key)
        if rate is not None:  # otherwise there were too many rates meanwhile
            rate.record(-value, window, now_ms)

    def bucket(self, key: RateKey, quota: float, window: Window, now_ms: int) -> TokenBucket:
        """Return the tokens of a group."""
        bucket = self.buckets.get(key)
        if bucket is None:
            _make_room(self.buckets)
            bucket = self.buckets[key] = TokenBucket(quota, window, now_ms)
        return bucket


def _make_room(kept: dict[RateKey, Rate] | dict[RateKey, TokenBucket]) -> None:
    """Drop a tenth of the groups if there are too many, those that were used longest ago."""
    if len(kept) >= KEPT_MAX:
        for key in sorted(kept, key=lambda one: kept[one].last_ms)[: max(1, KEPT_MAX // 10)]:
            del kept[key]
