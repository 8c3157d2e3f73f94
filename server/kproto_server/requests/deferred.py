"""What a handler returns when there is no response yet, or none at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import KprotoError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.message import Response


class Completion:
    """What ends a wait before its deadline; `wake` may be called from any handler or timer, and more than once."""

    __slots__ = ("on_abandon", "on_wake", "woken")

    def __init__(self, on_abandon: Callable[[], object] | None = None) -> None:
        """``on_abandon``: called if the connection ends while the request waits; nobody is answered then."""
        self.woken = False
        self.on_abandon = on_abandon
        self.on_wake: Callable[[], object] | None = None
        """Set by the session that parks the request."""

    def wake(self) -> None:
        """Have the request answered soon: when whatever calls this has come to its end."""
        if not self.woken:
            self.woken = True
            if self.on_wake is not None:
                self.on_wake()


class DelayedOperation(NamedTuple):
    """A parked request: answered at a broker time or when it is woken, and nothing behind it before (BA-8).

    At the deadline as much real time may have passed on a clock that stands: a client is never frozen (D7).
    """

    deadline_ms: int | None
    """None: only what wakes it ends the wait."""
    answer: Callable[[], Response | DeferredResponse | NoResponse]
    completion: Completion | None = None


class DeferredResponse:
    """An answer that waits for the log: made when all that was appended before it is synced, in that order (OS-25)."""

    __slots__ = ("_answer", "deliver")

    def __init__(self, answer: Callable[[], Response | DeferredResponse | NoResponse]) -> None:
        self._answer = answer
        self.deliver: Callable[[Response | DeferredResponse | NoResponse], object] | None = None
        """Set by the session that holds the answer's place; None where nobody waits for it any more."""

    def synced(self) -> None:
        """The log is that far: make the answer."""
        answer = self._answer()
        if self.deliver is not None:
            self.deliver(answer)


class NoResponse:
    """What a handler returns where the protocol has no answer: Produce with acks 0."""


NO_RESPONSE = NoResponse()


class CloseConnection(KprotoError):
    """The answer is no answer: the connection is closed, as a real broker does (BA-6, BA-13)."""
