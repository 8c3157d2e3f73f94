"""Endpoints: how a broker serves one API in one version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from kproto.errors import StringTooLong
from kproto_server.cluster.topics import TopicsNotStored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto.message import Response
    from kproto.message_codec import Encode
    from kproto_server.deferred import DeferredResponse, DelayedOperation, LargeResponse, NoResponse
    from kproto_server.requests.context import RequestContext


T = TypeVar("T")


def _no_response(request: Any, error: StringTooLong | TopicsNotStored) -> Response:
    raise error


def perform(
    handle: Callable[[Any, RequestContext], T],
    fail: Callable[[Any, StringTooLong | TopicsNotStored], Response],
    request: Any,
    context: RequestContext,
) -> T | Response:
    """Handle a request, save what it has changed, and return its result; as in `Connection`, where this is inlined.

    ``handle``, ``fail``: as in `Endpoint`.
    """
    cluster = context.cluster
    try:
        result = handle(request, context)
        if cluster.unsaved:
            cluster.save()
    except (StringTooLong, TopicsNotStored) as error:  # the string is in a record of the offsets log
        return fail(request, error)
    return result


REQUEST_CPU_MAX_US = 60_000
"""CPU time that the elements of one request may take, on a machine of 2020, for `elements_max`."""
ELEMENT_CPU_US = 6
"""CPU time of one element of a request: to decode it, to handle it, and to encode what the response has for it."""
ELEMENT_CPU_US_BY_KEY = dict.fromkeys((15, 20, 42, 49, 51, 57), 8) | dict.fromkeys((83, 84, 86, 87), 10)
ELEMENT_CPU_US_BY_KEY |= {0: 9, 8: 4, 9: 5, 19: 24, 24: 12, 27: 60, 28: 12, 32: 30, 33: 12, 44: 12}
"""The same, by API key, of APIs that differ: of partitions, which are half of a request's elements at most or cost
less than topics, of topics whose response lists their configs, and of states of share partitions."""


TURN_SIZE_BYTES = 4096
"""Size of requests that wait for their turn: as many elements of one byte each take 25 ms."""
TURN_SIZE_BYTES_OF_RECORDS = 1 << 16
"""The same for Produce, whose bytes are records."""


RECORDS_IN_RESPONSES = (1, 78)
"""The API keys of Fetch and ShareFetch."""


def turn_size_bytes(api_key: int) -> int:
    """Return the size from which requests of an API wait for their turn."""
    return TURN_SIZE_BYTES if api_key else TURN_SIZE_BYTES_OF_RECORDS


def elements_max(api_key: int) -> int:
    """Return how many elements all arrays and tag sections of a request may have together.

    An element may have one byte. So the size of a request does not limit what it costs, but this number does.
    DEVIATION: a real broker has no such limit, and takes seconds for requests that exceed it.
    """
    return REQUEST_CPU_MAX_US // ELEMENT_CPU_US_BY_KEY.get(api_key, ELEMENT_CPU_US)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Endpoint:
    """How one API is served in one version.

    `Dispatcher` makes endpoints from the codec and the handler of the API. An API with a version that needs more than
    that makes the endpoint of this version itself (`kproto_server.handlers.own_endpoint`).

    It is no tuple: each request reads eight attributes, and that of a tuple takes five times as long.
    """

    api_version: int
    """The version that handlers see: the requested one, except in Kafka 0.8, which does not check versions."""
    decode: Callable[[bytes, int, int], tuple[Any, ...]]
    """Returns the request whose body begins at a position of a frame, and what `on_decoded` needs; given the frame, the
    position and `elements_max`."""
    handle: Callable[[Any, RequestContext], Response | LargeResponse | DelayedOperation | DeferredResponse | NoResponse]
    encode: Encode
    """Returns the body of a response."""
    response_header_version: int
    error_codes: Callable[[Any], list[int]]
    """Returns the error codes of a response that are reported (`Observations`)."""
    elements_max: int = 0
    """How many elements `decode` accepts."""
    on_decoded: Callable[[Any, RequestContext], object] | None = None
    """Called with the result of `decode` before `handle`."""
    is_learned: bool = False
    """Whether the commit cache may learn from a request and its response."""
    encode_slices: Callable[[Any], Iterator[bytes]] | None = None
    """Yields the body of a `LargeResponse` in pieces; None: the handler returns none."""
    has_records: bool = False
    """Whether responses have records. Megabytes of them are copied once less, for 0.4 us of each response."""
    turn_size_bytes: int = TURN_SIZE_BYTES
    """Requests of this size or more wait for their turn (`kproto_server.deferred.Turn`)."""
    fail: Callable[[Any, StringTooLong | TopicsNotStored], Response] = _no_response
    """Returns the response to a request whose result cannot be encoded, or whose changes cannot be stored; raises the
    error if there is none."""
