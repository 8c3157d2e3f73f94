"""The client's end of a connection, without sockets: request values in and bytes out, bytes in and response values out.

Theory of operation. A response does not say of which API and version it is: `ClientConnection` remembers those of each
request and decodes the response accordingly. A broker responds to the requests of a connection in their order (BA-8),
so the response that arrives belongs to the oldest request, and its correlation id must say so. A request without a
response (Produce with acks=0, BA-9) is not remembered.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import DecodeError, FrameTooLarge
from kproto.framing import FRAME_SIZE_MAX, FrameReader
from kproto.headers import read_response, request_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto.message import Request, Response

PRODUCE = 0
CORRELATION_IDS = 1 << 31
"""Count of correlation ids, which are int32: a client counts from 0 and starts again after the largest."""


class ReceivedResponse(NamedTuple):
    """A response, and the request to which it belongs."""

    correlation_id: int
    api_key: int
    api_version: int
    """The request's version."""
    response: Response


class ClientConnection:
    """The client's end of one connection.

    After a RemoteProtocolError the stream has lost its frames: the owner closes the connection.
    """

    def __init__(self, client_id: str | None = "", *, frame_size_max: int = FRAME_SIZE_MAX) -> None:
        self.client_id = client_id
        self._reader = FrameReader(frame_size_max)
        self._frames: deque[bytes] = deque()
        """Frames whose responses the caller has not taken."""
        self._failure: FrameTooLarge | None = None
        self._next_correlation_id = 0
        self._expected: deque[tuple[int, int, int]] = deque()

    @property
    def in_flight(self) -> int:
        """The number of requests whose response has not arrived."""
        return len(self._expected)

    def send(self, request: Request, version: int) -> bytes:
        """Return the bytes of a request; the caller sends them in the order of the calls.

        Raises:
            EncodeError: a field's value cannot be written in this version.
            UnsupportedVersion: the version is not declared.
        """
        correlation_id = self._next_correlation_id
        data = request_frame(request, version, correlation_id=correlation_id, client_id=self.client_id)
        self._next_correlation_id = (correlation_id + 1) % CORRELATION_IDS
        if expects_response(request):
            self._expected.append((correlation_id, type(request)._api_key, version))
        return data

    def receive(self, data: bytes) -> Iterator[ReceivedResponse]:
        """Accept the bytes of one read; return an iterator of the responses that they complete.

        Responses that the caller does not take come with the next call.

        Raises:
            DecodeError: while iterating: a response without a request, out of order, or not in its layout.
            FrameTooLarge: while iterating: a frame announces a negative size or one above the limit.
        """
        self._reader.feed(data)
        try:
            self._frames.extend(self._reader.frames())
        except FrameTooLarge as error:  # the frames before it are whole
            self._failure = error
        return self._responses()

    def _responses(self) -> Iterator[ReceivedResponse]:
        while self._frames:
            frame = self._frames.popleft()
            if not self._expected:
                raise DecodeError("ResponseHeader", 0, "a response, but no request expects one")
            expected, api_key, version = self._expected[0]
            correlation_id, response = read_response(frame, api_key, version)
            if correlation_id != expected:
                raise DecodeError("ResponseHeader.correlation_id", 0, f"{correlation_id}, but {expected} is next")
            self._expected.popleft()
            yield ReceivedResponse(correlation_id, api_key, version, response)
        if self._failure is not None:
            raise self._failure


def expects_response(request: Request) -> bool:
    """Whether a broker responds to this request: always, except to Produce with acks=0 (BA-9)."""
    return not (type(request)._api_key == PRODUCE and getattr(request, "acks", None) == 0)
