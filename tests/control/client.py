"""A broker with a control port, and a client of the control API."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Unpack
from urllib.parse import quote, urlencode, urlsplit

from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto_server import Broker
from kproto_server.broker.broker import BrokerOptions
from kproto_server.control.listening import open_port
from tests.network.raw_client import RawClient
from tests.waiting import LIMIT_S, wait_until


class Reply(NamedTuple):
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Sends requests to a control port, each on a connection of its own."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url
        self._token = token

    def __call__(
        self, method: str, path: str, body: object = None, *, headers: dict[str, str] | None = None, **query: object
    ) -> Reply:
        """Send a request; ``body`` is sent as JSON, unless it is bytes."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        given = {"Content-Type": "application/json"} if data is not None else {}
        if self._token is not None:
            given["Authorization"] = f"Bearer {self._token}"
        connection = http.client.HTTPConnection(*self.address, timeout=LIMIT_S)
        target = path + (f"?{urlencode(query)}" if query else "")
        connection.request(method, target, body=data, headers=given | (headers or {}))
        response = connection.getresponse()
        found = Reply(response.status, {name.lower(): text for name, text in response.getheaders()}, response.read())
        connection.close()
        return found

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def connect(self) -> socket.socket:
        """Return a connection for bytes that need not be HTTP."""
        return socket.create_connection(self.address, timeout=LIMIT_S)

    def raw(self, data: bytes) -> bytes:
        """Send bytes and return all that comes until the broker closes the connection."""
        with self.connect() as sock:
            sock.sendall(data)
            return read_all(sock)


def read_all(sock: socket.socket) -> bytes:
    found = b""
    while chunk := sock.recv(65_536):
        found += chunk
    return found


@contextmanager
def controlled(**options: Unpack[BrokerOptions]) -> Iterator[tuple[Broker, Client]]:
    """Run a broker with a control port."""
    with Broker.running(**options) as broker:
        port = open_port("127.0.0.1", 0)
        broker.run(lambda server: server.start_task(port.serve))
        yield broker, Client(port.url)


def quoted(text: str) -> str:
    """Return a segment of a path."""
    return quote(text, safe="")


def commit(broker: Broker, group: str = "billing", offset: int = 42) -> None:
    """Commit an offset of orders-0 with a raw client, which creates the topic."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=group, topics=(OffsetCommitRequestTopic(name="orders", partitions=(partition,)),)
    )

    def is_committed() -> bool:
        with RawClient(broker.bootstrap_servers) as client:
            client.ask(MetadataRequest(topics=(MetadataRequestTopic(name="orders"),)), 1)
            client.ask(FindCoordinatorRequest(key=group), 0)
            node_id = broker.cluster.coordinator(group=group)
        if node_id is None:
            return False
        with RawClient(broker.bootstrap_servers.split(",")[node_id - 1]) as client:
            return not client.ask(request, 3).topics[0].partitions[0].error_code

    wait_until(is_committed, "the commit")
