"""Limits on the memory that all connections together hold: incomplete requests and unsent responses."""

# Theory of operation
# ===================
#
# One connection holds little: a read of requests and the responses to it. But a request may have 100 MB and a response
# half of that, a client may take any time to send the one or to read the other, and there may be a thousand such
# clients. So incomplete requests and unsent responses are counted over all connections, each kind by a `BufferQuota`.
# When the sum exceeds the limit, connections are closed until it fits, the one first that has made no progress for the
# longest time. Other connections notice nothing: no reading is delayed, and no memory is reserved in advance.
#
# A connection is counted only while something is left over at the end of a read or a write, so clients that are not
# slow cost nothing here.

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kproto_server.configuration.settings import Settings

INCOMPLETE_REQUESTS_MAX_BYTES = 512 << 20
"""Unless `queued.max.request.bytes` is set: 500 producers that each send a megabyte, or five requests of the largest
size. Kafka has no limit by default, and reserves the memory of a request when its size has arrived."""
UNSENT_RESPONSES_MAX_BYTES = 512 << 20
"""Ten responses of the largest size that a fetch may have. Kafka sends the records of a fetch from files."""


class Holder(Protocol):
    """A transport."""

    def give_up(self, reason: str) -> None:
        """Close, since all transports together hold too much. Calls `BufferQuota.remove` before it returns."""
        ...


class BufferQuota:
    """The bytes that connections hold, by connection; the connection without progress for the longest time is first."""

    def __init__(self, name: str, max_bytes: int) -> None:
        """``name``: of what is held, for the reason of a closed connection."""
        self.max_bytes = max_bytes
        self.total_bytes: int = 0
        self._name = name
        self._sizes: dict[Holder, int] = {}

    def note(self, holder: Holder, size: int, *, made_progress: bool) -> None:
        """Note how much a connection holds; after progress it is the last to be closed."""
        sizes = self._sizes
        self.total_bytes += size - (sizes.pop(holder, 0) if made_progress else sizes.get(holder, 0))
        sizes[holder] = size
        while self.total_bytes > self.max_bytes and len(sizes) > 1:  # a single connection may exceed the limit
            slowest = next(iter(sizes))
            slowest.give_up(
                f"{self._name}: {sizes[slowest]} bytes of this connection and {self.total_bytes} of all connections, "
                f"more than {self.max_bytes}"
            )

    def remove(self, holder: Holder) -> None:
        """Note that a connection holds nothing."""
        self.total_bytes -= self._sizes.pop(holder, 0)


class BufferQuotas:
    """The quotas of an event loop."""

    def __init__(self) -> None:
        self.incomplete_requests: BufferQuota = BufferQuota("incomplete requests", INCOMPLETE_REQUESTS_MAX_BYTES)
        self.unsent_responses: BufferQuota = BufferQuota("unsent responses", UNSENT_RESPONSES_MAX_BYTES)

    def configure(self, settings: Settings) -> None:
        """Take the limit of the settings, if they have one."""
        limit = settings.int("queued.max.request.bytes")
        if limit > 0:
            self.incomplete_requests.max_bytes = limit
