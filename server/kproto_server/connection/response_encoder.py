"""The encoding of the responses of one connection: whole, or in slices."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kproto.errors import StringTooLong
from kproto.headers import joined_response_frame, response_frame
from kproto_server.deferred import CloseConnection

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from kproto.message import Response
    from kproto_server.deferred import LargeResponse
    from kproto_server.observation.observe import Observations
    from kproto_server.requests.context import ConnectionInfo, RequestContext
    from kproto_server.requests.endpoint import Endpoint


LARGE_RESPONSE_MAX_BYTES = 48 << 20
"""Of a response that is encoded in slices. A million partitions of three replicas have 42 MB in Metadata. DEVIATION: a
real broker has no limit: a request that names a group or a transaction thousands of times gets all of it as often."""
SIZE_BYTES = 4


class Exchange(NamedTuple):
    """A request that was decoded, and what its response is made from."""

    frame: bytes
    body_position: int
    correlation_id: int
    endpoint: Endpoint
    context: RequestContext
    request: Any


class ResponseEncoder:
    """Encodes the responses of a connection; notes their errors, and gives them to the commit cache."""

    __slots__ = ("_info", "_observations", "learn")

    def __init__(self, observations: Observations, info: ConnectionInfo) -> None:
        self._observations = observations
        self._info = info
        self.learn: Callable[[bytes, int, RequestContext, Any, Response, bytes], object]
        """`CommitCache.learn` of the connection, which sets it."""

    def encode(
        self,
        frame: bytes,
        body_position: int,
        correlation_id: int,
        endpoint: Endpoint,
        context: RequestContext,
        request: Any,
        response: Response,
    ) -> bytes:
        """Return the frame of a response; the commit cache may learn from it."""
        header_version = endpoint.response_header_version
        try:
            if endpoint.has_records:
                encoded = endpoint.encode(response, partial(joined_response_frame, correlation_id, header_version))
            else:
                encoded = response_frame(correlation_id, header_version, endpoint.encode(response))
        except StringTooLong as error:
            response = endpoint.fail(request, error)
            encoded = response_frame(correlation_id, header_version, endpoint.encode(response))
        if codes := endpoint.error_codes(response):
            self._observations.errors(self._info, context.client_id, context.api_key, context.api_version, codes)
        if endpoint.is_learned:
            self.learn(frame, body_position, context, request, response, encoded)
        return encoded

    def encode_slices(self, large: LargeResponse, exchange: Exchange) -> Generator[None, None, bytes]:
        """As `encode`, in slices. The frame grows in place: a copy at the end would double its memory.

        A string that is too long shows when it is encoded; nothing has been sent then.

        Raises:
            CloseConnection: the response is larger than `LARGE_RESPONSE_MAX_BYTES`.
        """
        endpoint, context = exchange.endpoint, exchange.context
        assert endpoint.encode_slices is not None, "the response declares has_slices"
        frame = bytearray(response_frame(exchange.correlation_id, endpoint.response_header_version, b""))
        try:
            for piece in endpoint.encode_slices(large.response):
                frame += piece
                if len(frame) > LARGE_RESPONSE_MAX_BYTES:
                    raise CloseConnection(f"the response is larger than {LARGE_RESPONSE_MAX_BYTES} bytes")
                yield
        except StringTooLong as error:
            return self.encode(*exchange, endpoint.fail(exchange.request, error))
        if large.error_codes:
            self._observations.errors(
                self._info, context.client_id, context.api_key, context.api_version, large.error_codes
            )
        frame[:SIZE_BYTES] = (len(frame) - SIZE_BYTES).to_bytes(SIZE_BYTES, "big")
        return cast("bytes", frame)  # a bytearray, which is sent in the same way
