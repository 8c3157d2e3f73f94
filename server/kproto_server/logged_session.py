"""A session whose requests are kept for whoever asks: the request log's way in.

Theory of operation. Nothing on the way of a request knows of the log. What a `Session` is about to look at stands in
its backlog, and what it answers is a run of frames; this one looks at both, from outside. Answers come in the order of
the requests, with their correlation ids; a request that is passed over by a later one's answer gets none (Produce with
acks 0).
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING

from kproto_server.session import Session

if TYPE_CHECKING:
    from kproto_server.call import ConnectionInfo
    from kproto_server.cluster.cluster import Node
    from kproto_server.dispatch import Dispatcher
    from kproto_server.observation.request_log import Entry, RequestLog

SIZE_AND_ID = Struct(">ii")
CORRELATION_ID = slice(4, 8)
UNANSWERED_MAX = 16_384
"""Requests that may still be answered: more than one connection can have on their way (one read, and `HELD_MAX`)."""


class LoggedSession(Session):
    """One connection without its socket, whose requests and answers are logged."""

    __slots__ = ("_log", "_noted", "_unanswered")

    def __init__(self, dispatcher: Dispatcher, node: Node, info: ConnectionInfo, log: RequestLog) -> None:
        super().__init__(dispatcher, node, info)
        self._log = log
        self._noted = 0
        """How many frames of the backlog are logged already."""
        self._unanswered: deque[Entry] = deque(maxlen=UNANSWERED_MAX)

    def proceed(self, now_ms: int) -> bytes:
        node_id = self.node.node_id
        for frame in islice(self.backlog, self._noted, None):
            self._unanswered.append(self._log.take(self.info, node_id, frame, now_ms))
        answers = super().proceed(now_ms)
        self._noted = len(self.backlog)
        position = 0
        while position < len(answers):
            size, correlation_id = SIZE_AND_ID.unpack_from(answers, position)
            end = position + 4 + size
            self._answered(correlation_id, answers[position + 4 : end], now_ms)
            position = end
        return answers

    def _answered(self, correlation_id: int, answer: bytes, now_ms: int) -> None:
        wanted = correlation_id.to_bytes(4, "big", signed=True)
        while self._unanswered:
            entry = self._unanswered.popleft()
            if entry.frame[CORRELATION_ID] == wanted:
                self._log.answered(entry, answer, now_ms)
                return
