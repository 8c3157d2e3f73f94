"""A connection whose requests and responses are kept in the request log.

The rest of the broker does not know the request log: a `LoggedConnection` cuts the bytes that come in into requests,
and the bytes that go out into responses, and matches them by correlation id. Responses come in the order of their
requests, so a request that a later one's response passes over gets none (Produce with acks=0).
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING
from weakref import ref

from kproto.errors import FrameTooLarge
from kproto.framing import FrameReader
from kproto_server.connection.connection import Connection
from kproto_server.connection.connection_state import READY
from kproto_server.deferred import Shaped

if TYPE_CHECKING:
    from kproto_server.cluster.cluster import Node
    from kproto_server.connection.dispatcher import Dispatcher
    from kproto_server.connection.response_encoder import Exchange
    from kproto_server.deferred import Piece
    from kproto_server.observation.request_log import Entry, RequestLog
    from kproto_server.requests.context import ConnectionInfo

SIZE_AND_ID = Struct(">ii")
CORRELATION_ID = slice(4, 8)
OLD_HANDSHAKE = b"\0\x11\0\0"
"""API key and version of SaslHandshake v0."""
OPEN_REQUESTS_MAX = 16_384
"""Requests without a response so far: more than one connection can have in flight (one read, and `PENDING_MAX`)."""


class LoggedConnection(Connection):
    """A `Connection` that logs its requests and responses."""

    __slots__ = (
        "_has_tokens", "_is_logged", "_log", "_open_requests", "_piece_bytes", "_request_reader", "_whole_response",
    )  # fmt: skip

    def __init__(self, dispatcher: Dispatcher, node: Node, info: ConnectionInfo, log: RequestLog) -> None:
        super().__init__(dispatcher, node, info)
        self._log = log
        self._is_logged: bool = False
        """Whether the log was on at a read before which no request was in progress: it has all requests from there."""
        self._has_tokens = False
        """Whether the client has sent a SaslHandshake after which tokens come without headers: they have passwords."""
        self._request_reader = FrameReader(dispatcher.frame_size_max_bytes)
        self._open_requests: deque[tuple[bytes, ref[Entry]]] = deque(maxlen=OPEN_REQUESTS_MAX)
        """Correlation ids and entries. What the log has dropped is not kept here either: Produce with acks=0 gets no
        response, so its requests stay until `OPEN_REQUESTS_MAX` later ones have come."""
        self._piece_bytes: int = 0
        """Bytes at the beginning of what `resume` returns that are no whole response (`Piece`)."""
        self._whole_response: tuple[int, bytes] | None = None
        """The correlation id and the response to which they belong; None: the client does not receive all of it."""

    def receive(self, data: bytes, now_ms: int) -> bytes:
        if not self._is_logged:
            is_on = self._log.is_on and not self._has_tokens
            if not is_on or self.state is not READY or self.backlog or self.incomplete_bytes:
                return Connection.receive(self, data, now_ms)
            self._is_logged = True
        self._request_reader.feed(data)
        with suppress(FrameTooLarge):  # the connection closes for it
            for frame in self._request_reader.frames():
                entry = self._log.add(self.info, self.node.node_id, frame, now_ms)
                self._open_requests.append((frame[CORRELATION_ID], ref(entry)))
                if frame.startswith(OLD_HANDSHAKE):
                    self._has_tokens, self._is_logged = True, False
                    break
        return self._logged(super().receive(data, now_ms), now_ms)

    def proceed(self, now_ms: int) -> bytes:
        return self._logged(super().proceed(now_ms), now_ms)

    def resume(self, now_ms: int) -> bytes:
        return self._logged(super().resume(now_ms), now_ms)

    def _shaped(self, result: Piece | Shaped, exchange: Exchange) -> Piece:
        if not self._is_logged:
            return super()._shaped(result, exchange)
        frames: list[bytes] = []
        if isinstance(result, Shaped):
            shape = result.shape

            def remembered(frame: bytes) -> Piece:
                frames.append(frame)
                return shape(frame)

            result = result._replace(shape=remembered)
        piece = super()._shaped(result, exchange)
        self._piece_bytes = len(piece.data)
        for frame in frames:
            if frame.startswith(piece.data) and piece.close_reason is None:  # the client receives all of it in time
                self._whole_response = exchange.correlation_id, frame[4:]
        return piece

    def _logged(self, responses: bytes, now_ms: int) -> bytes:
        if not self._is_logged:
            return responses
        position, self._piece_bytes = self._piece_bytes, 0
        if self._whole_response is not None:
            self._log_response(*self._whole_response, now_ms)
            self._whole_response = None
        while position < len(responses):
            size, correlation_id = SIZE_AND_ID.unpack_from(responses, position)
            end = position + 4 + size
            self._log_response(correlation_id, responses[position + 4 : end], now_ms)
            position = end
        return responses

    def _log_response(self, correlation_id: int, response: bytes, now_ms: int) -> None:
        wanted = correlation_id.to_bytes(4, "big", signed=True)
        while self._open_requests:
            found, entry_ref = self._open_requests.popleft()
            if found == wanted:
                entry = entry_ref()
                if entry is not None:
                    self._log.responded(entry, response, now_ms)
                return
