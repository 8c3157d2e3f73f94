"""What a handler is told beside the request, and the answers that are not a response yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.declaration import Response
    from kproto_server.cluster.cluster import Node
    from kproto_server.state import BrokerState


@dataclass(slots=True)
class ConnectionInfo:
    """Who is at the other end; one per connection, filled in as the client tells."""

    client_host: str
    """As Kafka prints a peer: ``/127.0.0.1``."""
    software_name: str = ""
    """From ApiVersions v3 and later; empty until then."""
    software_version: str = ""


@dataclass(slots=True)
class Call:
    """One request's circumstances. Handlers read no clock: ``now_ms`` is the broker's time of arrival."""

    state: BrokerState
    node: Node
    """The broker whose listener the request came in by."""
    connection: ConnectionInfo
    api_key: int
    api_version: int
    client_id: str
    now_ms: int


class Waker:
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


class Wait(NamedTuple):
    """A parked request: answered at a broker time or when it is woken, and nothing behind it before (BA-8).

    At the deadline as much real time may have passed on a clock that stands: a client is never frozen (D7).
    """

    deadline_ms: int | None
    """None: only what wakes it ends the wait."""
    answer: Callable[[], Response | AfterSync | NoAnswer]
    waker: Waker | None = None


class AfterSync:
    """An answer that waits for the log: made when all that was appended before it is synced, in that order (OS-25)."""

    __slots__ = ("_answer", "deliver")

    def __init__(self, answer: Callable[[], Response | AfterSync | NoAnswer]) -> None:
        self._answer = answer
        self.deliver: Callable[[Response | AfterSync | NoAnswer], object] | None = None
        """Set by the session that holds the answer's place; None where nobody waits for it any more."""

    def synced(self) -> None:
        """The log is that far: make the answer."""
        answer = self._answer()
        if self.deliver is not None:
            self.deliver(answer)


class NoAnswer:
    """What a handler returns where the protocol has no answer: Produce with acks 0."""


NO_ANSWER = NoAnswer()


class CloseConnection(Exception):
    """The answer is no answer: the connection is closed, as a real broker does (BA-6, BA-13)."""
