"""The requests that came, as bytes, with their answers: the newest ones, for tests that ask what a client did.

Theory of operation. A request is kept as the frame that it is, and read only when somebody asks (`logged`): keeping it
costs a few references on its way. Both the number and the size of what is kept have a bound; beyond them the oldest
requests go, and are counted.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kproto_server.requests.context import ConnectionInfo

REQUESTS_MAX = 10_000
"""How many requests are kept unless told otherwise: those of a long test, and a few megabytes."""
SIZE_MAX_BYTES = 32 << 20
"""Of all frames kept, requests and answers, and what is kept beside them."""
FRAME_KEPT_MAX_BYTES = 1 << 20
"""Of a larger frame only the beginning is kept: it says who asked for what, and its records are in the topic."""
HEAD_SIZE_BYTES = 1024
"""That beginning: more than any client id that is not made up to be long."""
OVERHEAD_BYTES = 400
"""What a request takes beside its frames, about."""


class Entry:
    """One request, and its answer once there is one."""

    __slots__ = (
        "answer", "answered_ms", "connection", "frame", "has_whole_answer", "is_kept", "is_whole", "node_id", "number",
        "time_ms",
    )  # fmt: skip

    def __init__(self, number: int, connection: ConnectionInfo, node_id: int, frame: bytes, now_ms: int) -> None:
        self.number = number
        self.connection = connection
        self.node_id = node_id
        self.is_whole = len(frame) <= FRAME_KEPT_MAX_BYTES
        self.frame = frame if self.is_whole else frame[:HEAD_SIZE_BYTES]
        self.time_ms = now_ms
        self.answer: bytes | None = None
        """Without its size."""
        self.has_whole_answer = True
        self.answered_ms: int | None = None
        self.is_kept = True

    @property
    def size_bytes(self) -> int:
        return len(self.frame) + len(self.answer or b"") + OVERHEAD_BYTES


class RequestLog:
    """The newest requests of a broker process. One thread feeds it."""

    def __init__(self, count_max: int = REQUESTS_MAX) -> None:
        self._count_max = count_max
        self._entries: deque[Entry] = deque()
        self._size_bytes = 0
        self._taken = 0
        self.dropped = 0
        """Requests that are not kept any more, as there were too many."""

    def entries(self) -> list[Entry]:
        """Return what is kept, the oldest first."""
        return list(self._entries)

    def take(self, connection: ConnectionInfo, node_id: int, frame: bytes, now_ms: int) -> Entry:
        """Keep a request."""
        self._taken += 1
        entry = Entry(self._taken, connection, node_id, frame, now_ms)
        self._entries.append(entry)
        self._size_bytes += entry.size_bytes
        self._keep_bounds()
        return entry

    def answered(self, entry: Entry, answer: bytes, now_ms: int) -> None:
        """Keep a request's answer with it."""
        entry.answered_ms = now_ms
        entry.has_whole_answer = len(answer) <= FRAME_KEPT_MAX_BYTES
        entry.answer = answer if entry.has_whole_answer else answer[:HEAD_SIZE_BYTES]
        if entry.is_kept:
            self._size_bytes += len(entry.answer)
            self._keep_bounds()

    def clear(self) -> None:
        """Forget all requests, and how many were dropped."""
        for entry in self._entries:
            entry.is_kept = False
        self._entries.clear()
        self._size_bytes = self.dropped = 0

    def _keep_bounds(self) -> None:
        entries = self._entries
        while len(entries) > self._count_max or self._size_bytes > SIZE_MAX_BYTES:
            oldest = entries.popleft()
            oldest.is_kept = False
            self._size_bytes -= oldest.size_bytes
            self.dropped += 1
