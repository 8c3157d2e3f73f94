"""Clients with quotas: what they send and receive is recorded, and a client that exceeds its quota is throttled.

From 2.0 on the response goes out at once, and the broker reads no further request of the connection for the throttle
time (KIP-219); before, the response itself waits. A Fetch or ShareFetch that exceeds the quota returns no records, and
does not count; what a ShareFetch has acquired stays acquired. For a quota of handler time (KIP-124), the running time
of a request's handler counts, and the throttle time is one window at most. If several quotas throttle a request, the
longest throttle time counts; the handler of a change of topics (KIP-599) puts its throttle time into its response.
Source: measured on 2.8.2 and 4.4.0 (tests/throttling).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.codes import ErrorCode
from kproto.headers import request_frame
from kproto.message import Response
from kproto.messages.k01_fetch import FetchResponse
from kproto.messages.k78_share_fetch import ShareFetchResponse
from kproto_server.deferred import NO_RESPONSE, DelayedOperation, LargeResponse, NoResponse, then
from kproto_server.quotas.entities import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from kproto_server.quotas.groups import QuotaGroup, group_of
from kproto_server.quotas.rate import Window
from kproto_server.throttling.responses import ThrottlingBehavior, throttled

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.connection.dispatcher import Dispatcher
    from kproto_server.deferred import Result
    from kproto_server.quotas.rate import RateKey
    from kproto_server.requests.context import RequestContext
    from kproto_server.requests.endpoint import Endpoint

PRODUCE, FETCH, SASL_HANDSHAKE, SHARE_FETCH = 0, 1, 17, 78
KEYS_OF_BYTES = {PRODUCE: PRODUCER_BYTE_RATE, FETCH: CONSUMER_BYTE_RATE, SHARE_FETCH: CONSUMER_BYTE_RATE}
FETCHES = (FetchResponse, ShareFetchResponse)
CHANGES_OF_TOPICS = (19, 20, 37)
"""CreateTopics, DeleteTopics, CreatePartitions."""
SIZE_BYTES = 4
"""Bytes of the size field in front of a frame."""
PERCENT = 100
INT_MIN, INT_MAX = -(2**31), 2**31 - 1
NO_SESSION = 0


class _Quota(NamedTuple):
    """A quota of a client, and what it shares with others."""

    key: RateKey
    value: float


class _HandlerTime:
    """The time that the handler of one request has taken."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self.spent_s: float = 0.0

    def of(self, call: Callable[[], Result]) -> Result:
        """Return the result of a call and count its time, and later the time of the delayed operation that it may
        return."""
        began_s = self._monotonic_s()
        result = call()
        self.spent_s += self._monotonic_s() - began_s
        if isinstance(result, DelayedOperation):
            respond = result.respond
            return result._replace(respond=lambda: self.of(respond))
        return result


class Throttles:
    """Throttles the clients of all nodes."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._clock = dispatcher.state.clock
        self._settings = dispatcher.state.settings
        self._cluster = dispatcher.state.cluster
        self._dispatcher = dispatcher

    @property
    def _window(self) -> Window:
        current = self._settings.current
        return Window(current.int("quota.window.num"), current.int("quota.window.size.seconds") * 1000)

    def handle(self, own: Endpoint, request: Any, context: RequestContext) -> Result:
        """Handle the request of a client that may have quotas; one that leads to its authentication has none."""
        authentication = context.connection.authentication
        if authentication is not None and (
            not authentication.is_complete
            or (
                context.api_key == SASL_HANDSHAKE
                and authentication.may_begin_again(context.now_ms, self._clock.real_ms)
            )
        ):
            return own.handle(request, context)
        of_bytes = _quota(KEYS_OF_BYTES[context.api_key], context) if context.api_key in KEYS_OF_BYTES else None
        of_time = _quota(REQUEST_PERCENTAGE, context) if context.cluster.limits_handler_time else None
        if of_bytes is None and of_time is None and context.api_key not in CHANGES_OF_TOPICS:
            return own.handle(request, context)
        asked = request
        if of_bytes is not None and context.api_key in (FETCH, SHARE_FETCH):
            asked = self._limited(request, of_bytes.value)
        time = None if of_time is None else _HandlerTime(self._dispatcher.monotonic_s)
        result = own.handle(asked, context) if time is None else time.of(lambda: own.handle(asked, context))

        def finish(result: Result) -> Result:
            is_response = isinstance(result, (Response, LargeResponse))
            if not is_response and not (isinstance(result, NoResponse) and of_bytes is not None):
                return result
            size = 0 if of_bytes is None else _size(request, result, own, context)
            of_bytes_ms = 0 if of_bytes is None else self._record(of_bytes, size)
            if isinstance(result, NoResponse):
                ends_ms = self._clock.now_ms() + of_bytes_ms
                return DelayedOperation(ends_ms, lambda: NO_RESPONSE) if of_bytes_ms else result
            of_time_ms = 0
            if of_time is not None and time is not None:
                of_time_ms = min(self._record(of_time, time.spent_s * PERCENT), self._window.size_ms)
            response = result.response if isinstance(result, LargeResponse) else result
            throttle_ms = max(of_bytes_ms, of_time_ms, getattr(response, "throttle_time_ms", 0))
            if not throttle_ms:
                return result
            if isinstance(result, FETCHES) and context.behavior(ThrottlingBehavior).mutes_after_response:
                if of_bytes is not None:  # the empty response below has none of these bytes
                    self._cluster.quota_usage.unrecord(of_bytes.key, size, self._window, self._clock.now_ms())
                result = _empty(result, request)
            return throttled(_with_time(result, throttle_ms), throttle_ms, self._clock.now_ms(), context.kafka_version)

        return then(result, finish)

    def _limited(self, request: Any, quota: float) -> Any:
        """Return a Fetch or ShareFetch with ``max_bytes`` within the quota of the consumer. A larger one would be
        throttled each time, and the consumer would never receive records."""
        window = self._window
        quota_bytes = quota * (window.samples - 1) * window.size_ms / 1000
        most = 0 if math.isnan(quota_bytes) else int(max(INT_MIN, min(quota_bytes, INT_MAX)))  # as Scala's toInt
        return request.replace(max_bytes=min(request.max_bytes, most), min_bytes=min(request.min_bytes, most))

    def _record(self, quota: _Quota, value: float) -> int:
        """Record what a client has used of a quota; return the throttle time."""
        return self._cluster.quota_usage.record(quota.key, value, quota.value, self._window, self._clock.now_ms())


def _quota(key: str, context: RequestContext) -> _Quota | None:
    """Return the quota that the client of a request has for a key."""
    user = context.connection.principal.partition(":")[2]
    group: QuotaGroup | None = group_of(context.cluster.client_quotas, key, user, context.client_id)
    return group and _Quota((context.node.node_id, key, group.user, group.client_id), group.quota)


def _size(request: Any, result: Any, own: Endpoint, context: RequestContext) -> int:
    """Return the bytes that count for the quota: of a Produce request without the size field of its frame, of a
    response to a Fetch or ShareFetch with it; an error of a whole ShareFetch does not count."""
    if isinstance(result, ShareFetchResponse) and result.error_code:
        return 0
    if isinstance(result, FETCHES):
        return SIZE_BYTES + len(own.encode(result))
    frame = request_frame(request, context.api_version, correlation_id=0, client_id=context.client_id)
    return len(frame) - SIZE_BYTES


def _empty(response: FetchResponse | ShareFetchResponse, request: Any) -> FetchResponse | ShareFetchResponse:
    if isinstance(response, ShareFetchResponse):
        return _without_records(response, request)
    session_id = response.session_id if request.session_epoch > 0 else NO_SESSION
    return response.replace(session_id=session_id, responses=(), node_endpoints=())


def _without_records(response: ShareFetchResponse, request: Any) -> ShareFetchResponse:
    """Return a response that has the results of acknowledgements only."""
    acknowledged = {
        (topic.topic_id, one.partition_index)
        for topic in request.topics
        for one in topic.partitions
        if one.acknowledgement_batches
    }
    topics = []
    for topic in response.responses:
        parts = tuple(
            one.replace(error_code=ErrorCode.NONE, error_message=None, records=b"", acquired_records=())
            for one in topic.partitions
            if (topic.topic_id, one.partition_index) in acknowledged
        )
        if parts:
            topics.append(topic.replace(partitions=parts))
    return response.replace(responses=tuple(topics))


def _with_time(result: Any, throttle_ms: int) -> Any:
    """Return a response with a throttle time; some APIs have none in theirs."""
    if isinstance(result, LargeResponse):
        return result._replace(response=_with_time(result.response, throttle_ms))
    return result.replace(throttle_time_ms=min(throttle_ms, INT_MAX)) if hasattr(result, "throttle_time_ms") else result
