"""A line to a coordinator of ours: sessions without sockets, and time that passes when it is told to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kproto.framing import FrameReader
from kproto.headers import read_response, request_frame
from kproto.message import Request
from kproto_server.observation.observe import Observations
from kproto_server.requests.connection import Session
from kproto_server.requests.context import ConnectionInfo
from kproto_server.requests.dispatcher import Dispatcher
from kproto_server.state import BrokerState
from tests.coordinator.broker_state import new_state


class SessionLine:
    """Connections to one broker's state."""

    def __init__(self, state: BrokerState) -> None:
        self.state = state
        self._dispatcher = Dispatcher(state, Observations())
        self._sessions: dict[str, Session] = {}
        self._asked: dict[str, list[tuple[type[Request], int]]] = {}
        self._answers: list[tuple[str, Any]] = []
        self._correlation_id = 0

    @classmethod
    def of(cls, kafka_version: str, settings: Mapping[str, str] | None = None) -> SessionLine:
        return cls(new_state(kafka_version, settings=settings))

    def send(self, name: str, request: Request, version: int) -> None:
        session = self._sessions.get(name)
        if session is None:
            session = self._sessions[name] = Session(
                self._dispatcher, self.state.cluster.nodes[1], ConnectionInfo("/127.0.0.1")
            )
        self._asked.setdefault(name, []).append((type(request), version))
        self._correlation_id += 1
        frame = request_frame(request, version, correlation_id=self._correlation_id, client_id=name)
        self._take(name, session.receive(frame, self.state.clock.now_ms()))

    def answers(self) -> list[tuple[str, Any]]:
        self.state.clock.run_due()
        self._settle()
        answers, self._answers = self._answers, []
        return answers

    def pass_time(self, duration_ms: int) -> None:
        self.state.clock.advance(duration_ms)

    @property
    def waiting(self) -> list[str]:
        """The connections whose requests are not answered."""
        return [name for name, asked in self._asked.items() if asked]

    def _settle(self) -> None:
        """Give every session that was woken its turn, as the shell does at the end of a round."""
        while released := self._dispatcher.take_released():
            for session in released:
                name = next(name for name, known in self._sessions.items() if known is session)
                if session.parked is not None:
                    self._take(name, session.resume(self.state.clock.now_ms()))

    def _take(self, name: str, data: bytes) -> None:
        reader = FrameReader()
        reader.feed(data)
        for frame in reader.frames():
            api, version = self._asked[name].pop(0)
            self._answers.append((name, read_response(frame, api, version)[1]))
        assert self._sessions[name].closed is None, self._sessions[name].closed
