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
from kproto_server.requests.connection import Connection

if TYPE_CHECKING:
    from kproto_server.cluster.cluster import Node
    from kproto_server.observation.request_log import Entry, RequestLog
    from kproto_server.requests.context import ConnectionInfo
    from kproto_server.requests.dispatcher import Dispatcher

SIZE_AND_ID = Struct(">ii")
CORRELATION_ID = slice(4, 8)
OPEN_REQUESTS_MAX = 16_384
"""Requests without a response so far: more than one connection can have in flight (one read, and `PENDING_MAX`)."""


class LoggedConnection(Connection):
    """A `Connection` that logs its requests and responses."""

    __slots__ = ("_log", "_open_requests", "_request_reader")

    def __init__(self, dispatcher: Dispatcher, node: Node, info: ConnectionInfo, log: RequestLog) -> None:
        super().__init__(dispatcher, node, info)
        self._log = log
        self._request_reader = FrameReader(dispatcher.frame_size_max_bytes)
        self._open_requests: deque[tuple[bytes, ref[Entry]]] = deque(maxlen=OPEN_REQUESTS_MAX)
        """Correlation ids and entries. What the log has dropped is not kept here either: Produce with acks=0 gets no
        response, so its requests stay until `OPEN_REQUESTS_MAX` later ones have come."""

    def receive(self, data: bytes, now_ms: int) -> bytes:
        self._request_reader.feed(data)
        with suppress(FrameTooLarge):  # the connection closes for it
            for frame in self._request_reader.frames():
                entry = self._log.add(self.info, self.node.node_id, frame, now_ms)
                self._open_requests.append((frame[CORRELATION_ID], ref(entry)))
        return self._logged(super().receive(data, now_ms), now_ms)

    def proceed(self, now_ms: int) -> bytes:
        return self._logged(super().proceed(now_ms), now_ms)

    def resume(self, now_ms: int) -> bytes:
        return self._logged(super().resume(now_ms), now_ms)

    def _logged(self, responses: bytes, now_ms: int) -> bytes:
        position = 0
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
