"""Both ends of a connection as machines without sockets: bytes in, events out; values in, bytes out.

Theory of operation. Requests carry a correlation id that the answer repeats, but nobody has to look it up: a broker
answers a connection's requests in the order in which they came (BA-8), even when it has finished a later one first.
`ServerConnection` keeps that promise: it numbers requests as they come and holds an answer back until all earlier ones
are out. It bounds nothing but the size of a frame; who drives it stops reading while `in_flight` is too high. (A real
broker reads the next request only after the answer; so does ours. The order matters to whoever does not.)

An answer has no layout of its own: `ClientConnection` remembers the API and version of each request and decodes the
answer by that. A request without an answer (Produce with acks=0, BA-9) is not remembered.

Both raise RemoteProtocolError for bytes that make no sense, after the events that stand before them; the connection is
of no use then and should be closed, as a real broker does without a word (BA-6).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from kproto import registry
from kproto.errors import DecodeError, LocalProtocolError
from kproto.framing import FRAME_SIZE_MAX, FrameReader
from kproto.headers import ReceivedHeader, read_request_header, read_response, request_frame, response_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto.message import Request, Response

PRODUCE = 0
CORRELATION_IDS = 1 << 31
"""Correlation ids are int32; a client counts from 0 and begins again."""


class ReceivedRequest(NamedTuple):
    """A request came; ``number`` is its place in the connection, from 0 on."""

    number: int
    header: ReceivedHeader
    frame: bytes

    @property
    def body(self) -> bytes:
        return self.frame[self.header.body_position :]

    def decode(self) -> Request:
        """Return the request's values; bytes after them are ignored, as real brokers do (BA-7).

        Raises:
            DecodeError: the body does not have the declared layout.
            UnsupportedVersion: the version is not declared.
        """
        decode = registry.codec(self.header.api_key, self.header.api_version).decode_request
        request: Request = decode(self.frame, self.header.body_position)[0]
        return request


class ServerConnection:
    """A broker's end of one connection."""

    def __init__(self, frame_size_max: int = FRAME_SIZE_MAX) -> None:
        self._reader = FrameReader(frame_size_max)
        self._received = 0
        self._sent = 0
        self._finished: dict[int, bytes] = {}

    @property
    def in_flight(self) -> int:
        """How many requests were received whose answers are not out yet."""
        return self._received - self._sent

    def receive(self, data: bytes) -> Iterator[ReceivedRequest]:
        """Take what one read gave; yield the requests that are whole with it.

        Raises:
            RemoteProtocolError: while iterating: a frame too large, no header, or an unknown API key.
        """
        self._reader.feed(data)
        for frame in self._reader.frames():
            request = ReceivedRequest(self._received, read_request_header(frame), frame)
            self._received += 1
            yield request

    def send(self, request: ReceivedRequest, response: Response | None, *, version: int | None = None) -> bytes:
        """Answer a request; return what has to go out now: nothing while an earlier request is unanswered.

        ``response`` None ends a request that has no answer (BA-9). ``version`` is the response's, when that is not the
        request's (ApiVersions of an unknown version is answered in v0, BA-21).

        Raises:
            EncodeError: a field's value has no form in this version; the request is still unanswered.
            LocalProtocolError: the request was answered already, or is not of this connection.
            UnsupportedVersion: the version is not declared.
        """
        number, header, _ = request
        if not self._sent <= number < self._received or number in self._finished:
            raise LocalProtocolError(f"request {number} of this connection is not waiting for an answer")
        self._finished[number] = b"" if response is None else _answer(header, response, version)
        ready = []
        while self._sent in self._finished:
            ready.append(self._finished.pop(self._sent))
            self._sent += 1
        return b"".join(ready)


def _answer(header: ReceivedHeader, response: Response, version: int | None) -> bytes:
    if type(response)._api_key != header.api_key:
        raise LocalProtocolError(f"{type(response).__name__} is no answer to API key {header.api_key}")
    if version is None:
        version = header.api_version
    header_version = registry.header_versions(header.api_key, version)[1]
    return response_frame(header.correlation_id, header_version, response.encode(version))


class ReceivedResponse(NamedTuple):
    """The answer to a request came."""

    correlation_id: int
    api_key: int
    api_version: int
    """The request's version."""
    response: Response


class ClientConnection:
    """A client's end of one connection; enough for tests and for looking at what a broker says."""

    def __init__(self, client_id: str | None = "", *, frame_size_max: int = FRAME_SIZE_MAX) -> None:
        self.client_id = client_id
        self._reader = FrameReader(frame_size_max)
        self._next_correlation_id = 0
        self._expected: deque[tuple[int, int, int]] = deque()

    @property
    def in_flight(self) -> int:
        """How many requests have not been answered yet."""
        return len(self._expected)

    def send(self, request: Request, version: int) -> bytes:
        """Return the bytes of a request; they have to go out in the order of the calls.

        Raises:
            EncodeError: a field's value has no form in this version.
            UnsupportedVersion: the version is not declared.
        """
        correlation_id = self._next_correlation_id
        data = request_frame(request, version, correlation_id=correlation_id, client_id=self.client_id)
        self._next_correlation_id = (correlation_id + 1) % CORRELATION_IDS
        if is_answered(request):
            self._expected.append((correlation_id, type(request)._api_key, version))
        return data

    def receive(self, data: bytes) -> Iterator[ReceivedResponse]:
        """Take what one read gave; yield the answers that are whole with it.

        Raises:
            RemoteProtocolError: while iterating: a frame too large, an answer to nothing or to another request than
                the oldest, or one that does not have its layout.
        """
        self._reader.feed(data)
        for frame in self._reader.frames():
            if not self._expected:
                raise DecodeError("ResponseHeader", 0, "an answer, but no request is waiting for one")
            expected, api_key, version = self._expected[0]
            correlation_id, response = read_response(frame, api_key, version)
            if correlation_id != expected:
                raise DecodeError("ResponseHeader.correlation_id", 0, f"{correlation_id}, but {expected} is next")
            self._expected.popleft()
            yield ReceivedResponse(correlation_id, api_key, version, response)


def is_answered(request: Request) -> bool:
    """Whether a broker answers this request: always, but for Produce with acks=0 (BA-9)."""
    return not (type(request)._api_key == PRODUCE and getattr(request, "acks", None) == 0)
