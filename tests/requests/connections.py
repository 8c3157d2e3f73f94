"""Connections without a socket: a test passes the bytes of requests and gets the bytes of responses."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from kproto.framing import FrameReader
from kproto.headers import request_frame
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k03_metadata import MetadataRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto_server.connection.connection import Connection
from kproto_server.connection.dispatcher import Dispatcher
from kproto_server.observation.observe import Observations
from kproto_server.requests.context import ConnectionInfo
from tests.coordinator.broker_state import NOW_MS, new_state

if TYPE_CHECKING:
    from kproto_server.observation.observed import ClosedSeen


METADATA, DESCRIBE_GROUPS, LIST_GROUPS, API_VERSIONS = 3, 15, 16, 18
"""API keys."""
MAX_WAIT_MS = 500
HTTP = b"GET / HTTP/1.1\r\nHost: localhost:9092\r\n\r\n"


def new_connection(
    kafka_version: str = "latest", settings: dict[str, str] | None = None, topics: int | None = None
) -> Connection:
    names = None if topics is None else {f"topic-{number}": 1 for number in range(topics)}
    state = new_state(kafka_version, settings=settings, topics=names)
    return Connection(Dispatcher(state, Observations()), state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))


def receive(connection: Connection, data: bytes, now_ms: int = NOW_MS) -> list[bytes]:
    return frames(connection.receive(data, now_ms))


def frames(data: bytes) -> list[bytes]:
    """Return the responses in these bytes, which must end with a whole response."""
    reader = FrameReader()
    reader.feed(data)
    found = list(reader.frames())
    assert reader.buffered == 0, "the last response is incomplete"
    return found


def ids(responses: list[bytes]) -> list[int]:
    return [int.from_bytes(response[:4], "big", signed=True) for response in responses]


def metadata(correlation_id: int, version: int = 1, **fields: Any) -> bytes:
    return request_frame(MetadataRequest(topics=None, **fields), version, correlation_id=correlation_id, client_id="c")


def list_groups(correlation_id: int, version: int = 0, client_id: str | None = "c") -> bytes:
    return request_frame(ListGroupsRequest(), version, correlation_id=correlation_id, client_id=client_id)


def long_poll(correlation_id: int, max_wait_ms: int = MAX_WAIT_MS) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic="t", partitions=(partition,))
    request = FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=(topic,))
    return request_frame(request, 4, correlation_id=correlation_id, client_id="c")


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def raw(api_key: int, version: int, correlation_id: int, body: bytes = b"") -> bytes:
    """Return a request with header v1 and a null client id."""
    return framed(struct.pack(">hhih", api_key, version, correlation_id, -1) + body)


def closed(connection: Connection) -> ClosedSeen:
    """Return the observation of the only frame that closed the connection."""
    clients = connection.dispatcher.observations.snapshot().clients
    (seen,) = (seen for client in clients for seen in client.closed)
    return seen
