"""A session whose requests are kept for whoever asks: the request log's way in.

Theory of operation. Nothing on the way of a request knows of the log. What a `Session` is given is a stream of
requests, what it gives is a run of answers; this one cuts both apart, from outside. Answers come in the order of the
requests, with their correlation ids; a request that is passed over by a later one's answer gets none (Produce with
acks 0).
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING

from kproto.errors import FrameTooLarge
from kproto.framing import FrameReader
from kproto_server.requests.connection import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.cluster.cluster import Node
    from kproto_server.observation.request_log import Entry, RequestLog
    from kproto_server.requests.context import ConnectionInfo
    from kproto_server.requests.dispatcher import Dispatcher

SIZE_AND_ID = Struct(">ii")
CORRELATION_ID = slice(4, 8)
UNANSWERED_MAX = 16_384
"""Requests that may still be answered: more than one connection can have on their way (one read, and `HELD_MAX`)."""


class LoggedSession(Session):
    """One connection without its socket, whose requests and answers are logged."""

    __slots__ = ("_is_inside", "_log", "_requests", "_unanswered")

    def __init__(self, dispatcher: Dispatcher, node: Node, info: ConnectionInfo, log: RequestLog) -> None:
        super().__init__(dispatcher, node, info)
        self._log = log
        self._requests = FrameReader(dispatcher.frame_size_max_bytes)
        self._unanswered: deque[Entry] = deque(maxlen=UNANSWERED_MAX)
        self._is_inside = False
        """Whether a method of the session's is at work: what it calls of its own gives no answers to the outside."""

    def receive(self, data: bytes, now_ms: int) -> bytes:
        self._requests.feed(data)
        with suppress(FrameTooLarge):  # the session closes the connection for it
            for frame in self._requests.frames():
                self._unanswered.append(self._log.add(self.info, self.node.node_id, frame, now_ms))
        return self._noted(lambda: super(LoggedSession, self).receive(data, now_ms), now_ms)

    def proceed(self, now_ms: int) -> bytes:
        return self._noted(lambda: super(LoggedSession, self).proceed(now_ms), now_ms)

    def resume(self, now_ms: int) -> bytes:
        return self._noted(lambda: super(LoggedSession, self).resume(now_ms), now_ms)

    def _noted(self, answer: Callable[[], bytes], now_ms: int) -> bytes:
        """Log the answers that this gives."""
        if self._is_inside:
            return answer()
        self._is_inside = True
        try:
            answers = answer()
        finally:
            self._is_inside = False
        position = 0
        while position < len(answers):
            size, correlation_id = SIZE_AND_ID.unpack_from(answers, position)
            end = position + 4 + size
            self._note(correlation_id, answers[position + 4 : end], now_ms)
            position = end
        return answers

    def _note(self, correlation_id: int, answer: bytes, now_ms: int) -> None:
        wanted = correlation_id.to_bytes(4, "big", signed=True)
        while self._unanswered:
            entry = self._unanswered.popleft()
            if entry.frame[CORRELATION_ID] == wanted:
                self._log.responded(entry, answer, now_ms)
                return
