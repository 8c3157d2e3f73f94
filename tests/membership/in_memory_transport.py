"""A transport to kproto: connections without sockets, and a manual clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kproto.framing import FrameReader
from kproto.headers import read_response, request_frame
from kproto.message import Request
from kproto_server.connection.connection import Connection
from kproto_server.connection.dispatcher import Dispatcher
from kproto_server.observation.observe import Observations
from kproto_server.requests.context import ConnectionInfo
from kproto_server.state import BrokerState
from tests.coordinator.broker_state import new_state


class InMemoryTransport:
    """Connections to the parts of one broker."""

    def __init__(self, state: BrokerState, times_ms: Mapping[str, Sequence[int]] | None = None) -> None:
        """``times_ms``: when each connection had its requests handled by another broker; that time passes here, too."""
        self.state = state
        self._began_ms = state.clock.now_ms()
        self._times_ms = {name: iter(times) for name, times in (times_ms or {}).items()}
        self._dispatcher = Dispatcher(state, Observations())
        self._connections: dict[str, Connection] = {}
        self._requests: dict[str, list[tuple[type[Request], int]]] = {}
        self._responses: list[tuple[str, Any]] = []
        self._correlation_id = 0

    @classmethod
    def of(cls, kafka_version: str, settings: Mapping[str, str] | None = None) -> InMemoryTransport:
        return cls(new_state(kafka_version, settings=settings))

    def send(self, name: str, request: Request, version: int) -> None:
        self._pass_time_until(next(self._times_ms.get(name, iter(())), 0))
        connection = self._connections.get(name)
        if connection is None:
            connection = self._connections[name] = Connection(
                self._dispatcher, self.state.cluster.nodes[1], ConnectionInfo("/127.0.0.1")
            )
        self._requests.setdefault(name, []).append((type(request), version))
        self._correlation_id += 1
        frame = request_frame(request, version, correlation_id=self._correlation_id, client_id=name)
        self._take(name, connection.receive(frame, self.state.clock.now_ms()))

    def responses(self) -> list[tuple[str, Any]]:
        self.state.clock.run_due()
        self._settle()
        for name, connection in self._connections.items():
            deadline_ms = connection.deadline_ms
            if deadline_ms is not None and deadline_ms <= self.state.clock.now_ms():
                self._take(name, connection.resume(self.state.clock.now_ms()))
        responses, self._responses = self._responses, []
        return responses

    def pass_time(self, duration_ms: int) -> None:
        self.state.clock.advance(duration_ms)

    def disconnect(self, name: str) -> None:
        self._connections.pop(name).abandon()

    def _pass_time_until(self, time_ms: int) -> None:
        if (behind_ms := self._began_ms + time_ms - self.state.clock.now_ms()) > 0:
            self.pass_time(behind_ms)

    @property
    def waiting(self) -> list[str]:
        """The names of connections with a pending request."""
        return [name for name, requests in self._requests.items() if requests]

    def _settle(self) -> None:
        """Resume each connection that was woken, as the server does at the end of an iteration."""
        while runnable := self._dispatcher.take_runnable():
            for name, connection in self._connections.items():
                if connection in runnable and connection.delayed is not None:
                    self._take(name, connection.resume(self.state.clock.now_ms()))

    def _take(self, name: str, data: bytes) -> None:
        reader = FrameReader()
        reader.feed(data)
        for frame in reader.frames():
            api, version = self._requests[name].pop(0)
            self._responses.append((name, read_response(frame, api, version)[1]))
        assert self._connections[name].close_reason is None, self._connections[name].close_reason
