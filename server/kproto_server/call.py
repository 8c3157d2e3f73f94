"""What a handler is told beside the request, and the two answers that are not a response."""

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


class Wait(NamedTuple):
    """A parked request: answered at ``deadline_ms`` of broker time, and nothing behind it before (BA-8)."""

    deadline_ms: int
    answer: Callable[[], Response]


class CloseConnection(Exception):
    """The answer is no answer: the connection is closed, as a real broker does (BA-6, BA-13)."""
