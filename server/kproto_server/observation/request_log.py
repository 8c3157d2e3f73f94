"""The newest requests and their responses, as bytes, for tests that look at what a client did.

Theory of operation. The log keeps each request as its frame and decodes it only when a test reads it (`logged`), so
that logging costs a few references on the hot path. Both the number and the size of the kept requests are limited;
beyond the limits the log drops the oldest requests and counts them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kproto_server.requests.context import ConnectionInfo

REQUESTS_MAX = 10_000
"""Requests kept by default: enough for a long test, a few megabytes."""
SIZE_MAX_BYTES = 32 << 20
"""Limit on all kept frames, requests and responses, with their overhead."""
FRAME_KEPT_MAX_BYTES = 1 << 20
"""The log keeps only the beginning of a larger frame: the header; its records are in the topic."""
HEAD_SIZE_BYTES = 1024
"""Size of that beginning: longer than any real client id."""
DELETED_TOPICS_MAX = 1000
"""Deleted topics whose names the log keeps, the newest ones: requests name topics by id."""
OVERHEAD_BYTES = 400
"""Approximate memory of an entry beside its frames."""


class Entry:
    """One request, and its response once it is sent."""

    __slots__ = (
        "__weakref__", "connection", "frame", "has_whole_response", "is_kept", "is_whole", "node_id", "number",
        "responded_ms", "response", "time_ms",
    )  # fmt: skip

    def __init__(self, number: int, connection: ConnectionInfo, node_id: int, frame: bytes, now_ms: int) -> None:
        self.number: int = number
        self.connection: ConnectionInfo = connection
        self.node_id: int = node_id
        self.is_whole: bool = len(frame) <= FRAME_KEPT_MAX_BYTES
        self.frame: bytes = frame if self.is_whole else frame[:HEAD_SIZE_BYTES]
        self.time_ms: int = now_ms
        self.response: bytes | None = None
        """The response frame without its size."""
        self.has_whole_response: bool = True
        self.responded_ms: int | None = None
        self.is_kept: bool = True

    @property
    def size_bytes(self) -> int:
        return len(self.frame) + len(self.response or b"") + OVERHEAD_BYTES


class RequestLog:
    """The newest requests of a broker process. Only the broker's thread calls it."""

    def __init__(self, count_max: int = REQUESTS_MAX) -> None:
        self._count_max = count_max
        self._entries: deque[Entry] = deque()
        self._size_bytes = 0
        self._taken = 0
        self.dropped: int = 0
        """Number of requests dropped because of the limits."""
        self.deleted_topics: dict[bytes, str] = {}
        """Topic id -> name of the topics that were deleted, for requests that have their ids."""

    def entries(self) -> list[Entry]:
        """Return the entries, oldest first."""
        return list(self._entries)

    def add(self, connection: ConnectionInfo, node_id: int, frame: bytes, now_ms: int) -> Entry:
        """Add a request and return its entry."""
        self._taken += 1
        entry = Entry(self._taken, connection, node_id, frame, now_ms)
        self._entries.append(entry)
        self._size_bytes += entry.size_bytes
        self._drop_oldest()
        return entry

    def responded(self, entry: Entry, response: bytes, now_ms: int) -> None:
        """Add the response to a request's entry."""
        entry.responded_ms = now_ms
        entry.has_whole_response = len(response) <= FRAME_KEPT_MAX_BYTES
        entry.response = response if entry.has_whole_response else response[:HEAD_SIZE_BYTES]
        if entry.is_kept:
            self._size_bytes += len(entry.response)
            self._drop_oldest()

    def topic_deleted(self, topic_id: bytes, name: str) -> None:
        """Keep the name of a deleted topic."""
        self.deleted_topics[topic_id] = name
        if len(self.deleted_topics) > DELETED_TOPICS_MAX:
            del self.deleted_topics[next(iter(self.deleted_topics))]

    def clear(self) -> None:
        """Delete all entries and reset `dropped`."""
        for entry in self._entries:
            entry.is_kept = False
        self._entries.clear()
        self.deleted_topics.clear()
        self._size_bytes = self.dropped = 0

    def _drop_oldest(self) -> None:
        entries = self._entries
        while len(entries) > self._count_max or self._size_bytes > SIZE_MAX_BYTES:
            oldest = entries.popleft()
            oldest.is_kept = False
            self._size_bytes -= oldest.size_bytes
            self.dropped += 1
