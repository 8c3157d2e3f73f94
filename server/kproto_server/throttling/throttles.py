"""Clients with quotas: what they send and receive is recorded, and a client that exceeds its quota is throttled.

From 2.0 on the response goes out at once, and the broker reads no further request of the connection for the throttle
time (KIP-219); before, the response itself waits. A Fetch that exceeds the quota returns no records, and does not
count. Source: measured on 2.8.2 and 4.4.0 (tests/throttling/test_rate.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.headers import request_frame
from kproto.message import Response
from kproto.messages.k00_produce import ProduceRequest
from kproto.messages.k01_fetch import FetchResponse
from kproto_server.quotas.entities import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE
from kproto_server.quotas.groups import QuotaGroup, group_of
from kproto_server.quotas.rate import Rate, Window
from kproto_server.releases.release import VersionBehavior
from kproto_server.requests.deferred import NO_RESPONSE, DelayedOperation, NoResponse, Piece, Shaped, soon, then

if TYPE_CHECKING:
    from kproto_server.clock import Clock
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.quotas.rate import RateKey
    from kproto_server.requests.context import RequestContext
    from kproto_server.requests.deferred import Result
    from kproto_server.requests.endpoint import Endpoint

RATES_MAX = 10_000
"""Groups of clients whose rates are kept: clients choose their client ids."""
SIZE_BYTES = 4
"""Of the size in front of a frame."""
INT_MAX = 2**31 - 1
NO_SESSION = 0


class ThrottlingBehavior(VersionBehavior):
    """What Kafka releases do differently when they throttle a client."""

    @property
    def mutes_after_response(self) -> bool:
        """Whether the response goes out at once, and later requests wait: from 2.0 on (KIP-219)."""
        return self.at_least(2, 0)


class Throttles:
    """The rates of groups of clients on all nodes."""

    def __init__(self, clock: Clock, settings: DynamicSettings, rates: dict[RateKey, Rate]) -> None:
        """``rates``: those of the cluster, which a reset removes."""
        self._clock = clock
        self._settings = settings
        self._rates = rates

    @property
    def _window(self) -> Window:
        current = self._settings.current
        return Window(current.int("quota.window.num"), current.int("quota.window.size.seconds") * 1000)

    def handle(self, own: Endpoint, request: Any, context: RequestContext) -> Result:
        """Handle a Produce or Fetch of a client that may have a quota."""
        is_produce = isinstance(request, ProduceRequest)
        key = PRODUCER_BYTE_RATE if is_produce else CONSUMER_BYTE_RATE
        user = context.connection.principal.partition(":")[2]
        group = group_of(context.cluster.client_quotas, key, user, context.client_id)
        if group is None:
            return own.handle(request, context)
        rate_key = (context.node.node_id, key, group.user, group.client_id)
        if is_produce:
            frame = request_frame(request, context.api_version, correlation_id=0, client_id=context.client_id)
            size = len(frame) - SIZE_BYTES
            return then(
                own.handle(request, context), lambda result: self._produced(result, size, rate_key, group, context)
            )
        window = self._window
        # More bytes would always be throttled, and the consumer would never receive them.
        most = int(min(group.quota * (window.samples - 1) * window.size_ms / 1000, INT_MAX))
        limited = request.replace(max_bytes=min(request.max_bytes, most), min_bytes=min(request.min_bytes, most))
        is_incremental = request.session_epoch > 0

        def fetched(result: Result) -> Result:
            return self._fetched(result, own, rate_key, group, context, is_incremental=is_incremental)

        return then(own.handle(limited, context), fetched)

    def _produced(self, result: Result, size: int, key: RateKey, group: QuotaGroup, context: RequestContext) -> Result:
        throttle_ms = self._record(key, size, group.quota)
        if not throttle_ms:
            return result
        if isinstance(result, NoResponse):
            return DelayedOperation(self._clock.now_ms() + throttle_ms, lambda: NO_RESPONSE)
        if not isinstance(result, Response):
            return result
        return self._throttled(_with_time(result, throttle_ms), throttle_ms, context)

    def _fetched(
        self,
        result: Result,
        own: Endpoint,
        key: RateKey,
        group: QuotaGroup,
        context: RequestContext,
        *,
        is_incremental: bool,
    ) -> Result:
        if not isinstance(result, FetchResponse):
            return result
        size = SIZE_BYTES + len(own.encode(result))
        throttle_ms = self._record(key, size, group.quota)
        if not throttle_ms:
            return result
        response: Any = _with_time(result, throttle_ms)
        if context.behavior(ThrottlingBehavior).mutes_after_response:
            self._rates[key].record(-size, self._window, self._clock.now_ms())
            session_id = result.session_id if is_incremental else NO_SESSION
            response = response.replace(session_id=session_id, responses=(), node_endpoints=())
        return self._throttled(response, throttle_ms, context)

    def _record(self, key: RateKey, size: int, quota: float) -> int:
        """Record bytes; return the throttle time."""
        now_ms, window = self._clock.now_ms(), self._window
        rate = self._rates.get(key)
        if rate is None:
            if len(self._rates) >= RATES_MAX:
                self._drop_oldest()
            rate = self._rates[key] = Rate(now_ms)
        rate.record(size, window, now_ms)
        return rate.throttle_ms(quota, window, now_ms)

    def _drop_oldest(self) -> None:
        by_time = sorted(self._rates, key=lambda key: self._rates[key].last_ms)
        for key in by_time[: RATES_MAX // 10]:
            del self._rates[key]

    def _throttled(self, response: Response, throttle_ms: int, context: RequestContext) -> Result:
        now_ms = self._clock.now_ms()
        if not context.behavior(ThrottlingBehavior).mutes_after_response:
            return DelayedOperation(now_ms + throttle_ms, lambda: response)

        def mute(frame: bytes) -> Piece:
            return Piece(frame, DelayedOperation(now_ms + throttle_ms, lambda: NO_RESPONSE))

        return soon(Shaped(response, mute), now_ms)


def _with_time(response: Any, throttle_ms: int) -> Any:
    return response.replace(throttle_time_ms=min(throttle_ms, INT_MAX))
