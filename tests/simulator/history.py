"""The history of a simulation: what clients sent and received, and what the environment did.

It is all that `invariants` knows. Times are those of the simulation, in ms; clocks of brokers and clients differ from
them. Events that have the same time are still in an order: the stamps of two events are never equal.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, NamedTuple

NEVER = float("inf")


@dataclass(slots=True)
class Exchange:
    """A request, and its response if one has arrived."""

    client: str
    incarnation: int
    """Rises when the client is restarted without its memory."""
    number: int
    """Counts the requests of the client."""
    node_id: int
    version: int
    request: Any
    sent: int
    """The stamp of the moment at which the client sent the request."""
    sent_ms: int
    response: Any = None
    received: float = NEVER
    """The stamp of the moment at which the response arrived."""
    received_ms: int = -1


class Event(NamedTuple):
    """Something that happened to the broker or a client."""

    stamp: int
    at_ms: int
    kind: str
    """``crash``, ``start``, ``stop node``, ``settled``, ``client stops``, ``closed``, ``defect`` ..."""
    detail: str = ""


@dataclass(slots=True)
class History:
    """All exchanges in the order in which they were sent, and all events."""

    partition_count: int
    """Partitions of the topic that all clients use."""
    retention_ms: int
    session_timeout_ms: int
    """Of members whose broker decides on it."""
    exchanges: list[Exchange] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    running: dict[str, str] = field(default_factory=dict)
    """The clients that run when the faults have stopped and the groups had time to converge, with their kinds."""
    stamp: int = 0
    _found: dict[tuple[type, ...], tuple[list[Exchange], int]] = field(default_factory=dict, repr=False, compare=False)
    """What `of` has returned, and how many exchanges there were."""

    def next_stamp(self) -> int:
        self.stamp += 1
        return self.stamp

    def note(self, at_ms: int, kind: str, detail: str = "") -> None:
        """Add an event."""
        self.events.append(Event(self.next_stamp(), at_ms, kind, detail))

    def of(self, *request_types: type) -> list[Exchange]:
        """Return the exchanges with requests of these types."""
        found, seen = self._found.get(request_types, ([], 0))
        found += [one for one in self.exchanges[seen:] if isinstance(one.request, request_types)]
        self._found[request_types] = found, len(self.exchanges)
        return found

    def stamps(self, kind: str) -> list[int]:
        """Return the stamps of all events of a kind."""
        return [event.stamp for event in self.events if event.kind == kind]

    def lines(self) -> list[str]:
        """Return the history as text, in the order of the events."""
        found: list[tuple[float, str]] = []
        for one in self.exchanges:
            name = f"{one.client}.{one.incarnation} #{one.number}"
            found.append((one.sent, f"{one.sent_ms:6} {name} -> node {one.node_id}: {one.request}"))
            if one.response is not None:
                found.append((one.received, f"{one.received_ms:6} {name} <- {one.response}"))
        found += [(event.stamp, f"{event.at_ms:6} {event.kind} {event.detail}") for event in self.events]
        return [text for _, text in sorted(found)]

    def digest(self) -> str:
        """Return a hash of everything in the history."""
        return hashlib.sha256("\n".join(self.lines()).encode()).hexdigest()
