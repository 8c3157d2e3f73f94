"""The deferred responses of one connection, in request order."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

PENDING_MAX = 4096
"""Deferred responses of one connection. Beyond that the connection is not read until the log is synced."""
PENDING_SIZE_MAX_BYTES = 1 << 20
"""Size of the requests of these responses: while the disk is slow, their changes are in memory, too."""


class PendingResponse(Protocol):
    """A response that waits for the log, in the queue of responses."""

    response: bytes | None
    """Its frame; None: the log is not synced yet; empty: there is none, as the connection is to be closed."""
    on_settled: Callable[[], object] | None
    """To be called when `response` is set."""


class Deferred:
    """The place of a deferred response of the reference path. `shares_sync`: as `Dispatcher.shares_sync`."""

    __slots__ = ("on_settled", "response", "shares_sync")

    def __init__(self, *, shares_sync: bool) -> None:
        self.response: bytes | None = None
        self.on_settled: Callable[[], object] | None = None
        self.shares_sync: bool = shares_sync


class DeferredQueue(deque[bytes | PendingResponse]):
    """Deferred responses, and responses that are ready but behind one that is not.

    A deque itself: a method around each of its own would cost 1 % of a commit.
    """

    __slots__ = ("size_bytes",)

    def __init__(self) -> None:
        super().__init__()
        self.size_bytes: int = 0
        """Size of the requests since the queue was empty. It is not reduced response by response: a connection that is
        read on with the queue half empty gains nothing, as the log settles all changes of a sync together."""

    def is_full(self) -> bool:
        """Whether the connection is not to be read before the log is synced."""
        return len(self) >= PENDING_MAX or self.size_bytes >= PENDING_SIZE_MAX_BYTES

    def take_settled(self) -> list[bytes]:
        """Remove and return the responses that wait for nothing any more.

        The log settles changes in its order, but a refused write settles at once: a later response may be ready before
        an earlier one, and then waits for it.
        """
        responses: list[bytes] = []
        while self:
            first = self[0]
            response = first if isinstance(first, bytes) else first.response
            if response is None:
                return responses
            responses.append(response)
            self.popleft()
        self.size_bytes = 0
        return responses
