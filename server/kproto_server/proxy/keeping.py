"""The requests that a proxy keeps for tests, in the log of a broker (`kproto_server.observation.request_log`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.observation.request_log import Entry, RequestLog
    from kproto_server.requests.context import ConnectionInfo

UNKNOWN_NODE = -1
"""The node id of each request: the proxy knows the addresses of brokers only."""


class KeptRequests:
    """The log of requests of one proxy, with the clock for it."""

    def __init__(self, log: RequestLog, now_ms: Callable[[], int]) -> None:
        """``now_ms``: returns the time since the epoch."""
        self.log: RequestLog = log
        self._now_ms = now_ms

    def add(self, info: ConnectionInfo, frame: bytes, *, is_whole: bool) -> Entry | None:
        """Add a request, or its beginning; None: the log keeps none yet."""
        if not self.log.is_on:
            return None
        entry = self.log.add(info, UNKNOWN_NODE, frame, self._now_ms())
        entry.is_whole = entry.is_whole and is_whole
        return entry

    def responded(self, entry: Entry, response: bytes, *, is_whole: bool) -> None:
        """Add a response, without its size, or its beginning."""
        self.log.responded(entry, response, self._now_ms())
        entry.has_whole_response = entry.has_whole_response and is_whole
