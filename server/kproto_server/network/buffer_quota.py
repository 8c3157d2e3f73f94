"""What clients make a broker hold for them: all connections together have a bound, and who is slowest goes first.

Theory of operation. One connection holds little that it could do without: a read of requests, a few answers. But a
request may have 100 MB, an answer half of that, and a client may take for ever to send the one or to read the other,
as may a thousand clients. So the octets of requests that have not come to their end, and of answers that are not sent,
are counted over all connections, each in a `Burden`. When they are too many, whoever holds some for the longest time is
closed, until the rest fits. Nobody else notices: nobody is read later for it, and no memory is taken in advance.

What a client that is not slow holds is gone with its next read or write; it is counted only if something is left over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kproto_server.configuration.settings import Settings

UNFINISHED_MAX_BYTES = 512 << 20
"""Of requests, unless `queued.max.request.bytes` says: 500 producers with a MB each on its way, or five requests of
the largest size. Kafka has no bound by default, and takes memory for what was announced."""
UNSENT_MAX_BYTES = 512 << 20
"""Of answers: ten of the size that a fetch may have at most. Kafka's are in files until they are sent."""


class Holder(Protocol):
    """A connection."""

    def give_up(self, reason: str) -> None:
        """Close, as it holds too much for too long; `Burden.forget` is called before this returns."""
        ...


class Burden:
    """Octets that are held for connections, by connection; who holds some for the longest time comes first."""

    def __init__(self, what: str, max_bytes: int) -> None:
        """``what`` is held, as reasons tell it."""
        self.max_bytes = max_bytes
        self.total_bytes = 0
        self._what = what
        self._held: dict[Holder, int] = {}

    def hold(self, holder: Holder, size: int, *, anew: bool) -> None:
        """Note that a connection holds so much now; ``anew``: it has moved on, and is the last to go."""
        held = self._held
        self.total_bytes += size - (held.pop(holder, 0) if anew else held.get(holder, 0))
        held[holder] = size
        while self.total_bytes > self.max_bytes and len(held) > 1:  # one alone may have what one may have
            slowest = next(iter(held))
            slowest.give_up(f"{self._what}: {held[slowest]} bytes, and {self.total_bytes} in all, which is too much")

    def forget(self, holder: Holder) -> None:
        """A connection holds nothing any more."""
        self.total_bytes -= self._held.pop(holder, 0)


class Burdens:
    """All that is held for connections."""

    def __init__(self) -> None:
        self.unfinished = Burden("unfinished requests", UNFINISHED_MAX_BYTES)
        self.unsent = Burden("unsent answers", UNSENT_MAX_BYTES)

    def take_limits(self, settings: Settings) -> None:
        """Have a user's limit instead of ours."""
        asked = settings.int("queued.max.request.bytes")
        if asked > 0:
            self.unfinished.max_bytes = asked
