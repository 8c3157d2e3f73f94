"""The newest requests and their responses, as bytes, for tests that look at what a client did.

Theory of operation. The log keeps each request as its frame and decodes it only when a test reads it (`logged`), so
that logging costs a few references on the hot path. Both the number and the size of the kept requests are limited;
beyond the limits the log drops the oldest requests and counts them."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from kproto.secret_configs import SECRET_CONFIGS

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
SECRET_KEYS = frozenset({36, *range(38, 42), 51})
"""API keys of requests that have secrets, or get them: tokens of SASL, delegation tokens, salted passwords."""
CONFIG_KEYS = frozenset({33, 44})
SECRET_NAMES = tuple(part.encode() for part in SECRET_CONFIGS)
CORRELATION_ID_BYTES = 4
CLIENT_ID_POSITION = 8
NO_TAGGED_FIELDS = b"\0"


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
        kept = _kept(frame)
        self.is_whole: bool = len(kept) == len(frame)
        self.frame: bytes = kept
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

    def __init__(self, count_max: int = REQUESTS_MAX, *, is_on: bool = True) -> None:
        self.is_on: bool = is_on
        """Whether requests are kept; a connection begins with its next request."""
        self._count_max = count_max
        self._entries: deque[Entry] = deque()
        self._size_bytes = 0
        self._taken = 0
        self.dropped: int = 0
        """Number of requests dropped because of the limits."""
        self.deleted_topics: dict[bytes, str] = {}
        """Topic id -> name of the topics that were deleted, for requests that have their ids."""

    def __len__(self) -> int:
        """Return the number of requests kept."""
        return len(self._entries)

    def entries(self) -> list[Entry]:
        """Return the entries, oldest first."""
        return list(self._entries)

    def newest(self, after: int, count_max: int) -> list[Entry]:
        """Return the newest entries with a number above ``after``, oldest first, ``count_max`` at most."""
        count = min(self._taken - after, count_max)
        return list(islice(reversed(self._entries), max(count, 0)))[::-1]

    def numbered(self, number: int) -> Entry | None:
        """Return the entry with a number; None: it is not kept."""
        index = number - self._taken - 1
        return self._entries[index] if -len(self._entries) <= index < 0 else None

    @property
    def taken(self) -> int:
        """The number of the newest request."""
        return self._taken

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
        is_secret = _api_key(entry.frame) in SECRET_KEYS
        entry.has_whole_response = len(response) <= FRAME_KEPT_MAX_BYTES and not is_secret
        kept_bytes = CORRELATION_ID_BYTES if is_secret else HEAD_SIZE_BYTES
        entry.response = response if entry.has_whole_response else response[:kept_bytes]
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


def _api_key(frame: bytes) -> int:
    return int.from_bytes(frame[:2], "big", signed=True)


def _kept(frame: bytes) -> bytes:
    """Return what the log keeps of a request: the whole frame, or its beginning if it is large or has a secret."""
    api_key = _api_key(frame)
    if api_key in SECRET_KEYS or (api_key in CONFIG_KEYS and any(name in frame for name in SECRET_NAMES)):
        client_id_bytes = int.from_bytes(frame[CLIENT_ID_POSITION : CLIENT_ID_POSITION + 2], "big", signed=True)
        return frame[: CLIENT_ID_POSITION + 2 + max(client_id_bytes, 0)] + NO_TAGGED_FIELDS
    return frame if len(frame) <= FRAME_KEPT_MAX_BYTES else frame[:HEAD_SIZE_BYTES]
