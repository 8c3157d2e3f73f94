"""A transport to a real broker: a socket for each name, and real time."""

from __future__ import annotations

import itertools
import select
import socket
import time
from typing import Any

from kproto.framing import FrameReader
from kproto.headers import read_response, request_frame
from kproto.message import Request
from kproto.messages.k11_join_group import JoinGroupRequest
from kproto.messages.k14_sync_group import SyncGroupRequest

QUIET_S = 0.35
"""How long no response has to come until no more are expected, while a request is pending that may have to wait."""
RESPONSE_LIMIT_S = 10.0
"""The same, if every request has a response soon; a busy broker takes seconds for some."""
DEFERRED = (JoinGroupRequest, SyncGroupRequest)
"""Requests that may wait for those of other members."""
DEFERRED_QUIET_S = 0.5
"""How long no response has to come if only such requests are pending."""
LIMIT_S = 20.0


class SocketTransport:
    """Connections to one broker."""

    def __init__(self, address: str, quiet_s: float = QUIET_S) -> None:
        """``quiet_s``: longer where no request waits for others, so that a slow response does not count as none."""
        host, _, port = address.split(",")[0].rpartition(":")
        self._address = host, int(port)
        self._sockets: dict[str, socket.socket] = {}
        self._readers: dict[str, FrameReader] = {}
        self._requests: dict[str, list[tuple[type[Request], int]]] = {}
        self._ids = itertools.count(1)
        self._quiet_s = quiet_s
        self._began_s = time.monotonic()
        self.sent_ms: dict[str, list[int]] = {}
        """When each connection sent its requests."""
        self.received_ms: dict[str, list[int]] = {}
        """When it received the responses."""

    def send(self, name: str, request: Request, version: int) -> None:
        if name not in self._sockets:
            self._sockets[name] = socket.create_connection(self._address, LIMIT_S)
            self._readers[name] = FrameReader()
        self._requests.setdefault(name, []).append((type(request), version))
        self.sent_ms.setdefault(name, []).append(self._now_ms())
        self._sockets[name].sendall(request_frame(request, version, correlation_id=next(self._ids), client_id=name))

    def responses(self) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        while any(self._requests.values()):
            names = {sock: name for name, sock in self._sockets.items()}
            kinds = {kind for requests in self._requests.values() for kind, _ in requests}
            quiet_s = min(self._quiet_s, DEFERRED_QUIET_S) if kinds.issubset(DEFERRED) else self._quiet_s
            ready, _, _ = select.select(list(names), [], [], quiet_s)
            if not ready:
                break
            for sock in ready:
                found += self._read(names[sock], sock)
        return found

    def _read(self, name: str, sock: socket.socket) -> list[tuple[str, Any]]:
        data = sock.recv(1 << 16)
        assert data, f"the broker has closed {name}'s connection"
        self._readers[name].feed(data)
        responses = []
        for frame in self._readers[name].frames():
            api, version = self._requests[name].pop(0)
            self.received_ms.setdefault(name, []).append(self._now_ms())
            responses.append((name, read_response(frame, api, version)[1]))
        return responses

    def _now_ms(self) -> int:
        return round((time.monotonic() - self._began_s) * 1000)

    def pass_time(self, duration_ms: int) -> None:
        time.sleep(duration_ms / 1000)

    def disconnect(self, name: str) -> None:
        self._sockets.pop(name).close()

    @property
    def waiting(self) -> list[str]:
        """The names of connections with a pending request."""
        return [name for name, requests in self._requests.items() if requests]

    def close(self) -> None:
        for sock in self._sockets.values():
            sock.close()
