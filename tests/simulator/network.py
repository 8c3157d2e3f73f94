"""The network between clients and nodes: connections with latency, whose messages faults delay and lose.

A connection delivers bytes in order, or breaks. Messages of different connections overtake each other: a client that
has given up a request and sends another one on a new connection does not know which of them arrives first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.client_connection import ClientConnection

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.testing import BrokerEnd
    from tests.simulator.broker import BrokerProcess
    from tests.simulator.history import Exchange
    from tests.simulator.script import Line

    Schedule = Callable[[int, Callable[[], object]], object]

DISK_FAULTS = frozenset({"disk_error", "disk_full"})
BROKER_FAULTS = ("kill", "power", *sorted(DISK_FAULTS))
RESET_MS = 2
"""When a client learns that its connection is broken."""


class Faults:
    """The faults of messages, by client and number of the request."""

    def __init__(self, lines: tuple[Line, ...], seed: int) -> None:
        self._lines = {
            (line.kind, line.text("client"), line.number("call")): line
            for line in lines
            if line.get("call") is not None
        }
        self._seed = seed

    def latency_ms(self, kind: str, exchange: Exchange) -> int:
        """Return how long a request or response takes: 1 to 4 ms, or more."""
        usual = 1 + (self._seed * 31 + exchange.number * 17 + sum(exchange.client.encode()) + len(kind)) % 7 % 4
        line = self._lines.get((f"slow_{kind}", exchange.client, exchange.number))
        return usual + (0 if line is None else line.number("ms"))

    def of_broker_at(self, exchange: Exchange) -> Line | None:
        """Return the fault of the broker that begins when a request arrives."""
        lines = (self._lines.get((kind, exchange.client, exchange.number)) for kind in BROKER_FAULTS)
        return next((line for line in lines if line is not None), None)

    def loses(self, kind: str, exchange: Exchange) -> bool:
        return (f"lose_{kind}", exchange.client, exchange.number) in self._lines


class Link:
    """One connection of a client to a node. It carries one request at a time."""

    def __init__(
        self,
        node_id: int,
        faults: Faults,
        schedule: Schedule,
        find_process: Callable[[], BrokerProcess | None],
        note_closed: Callable[[str], object],
        cause: Callable[[Line], object],
    ) -> None:
        """``note_closed``: called with the reason for which the broker closes the connection.

        ``cause``: causes a fault of the broker.
        """
        self.node_id = node_id
        self.is_open = True
        """Whether the client may use it."""
        self._drops = False
        """Whether what has not arrived yet is lost."""
        self._faults = faults
        self._schedule = schedule
        self._find_process = find_process
        self._note_closed = note_closed
        self._cause = cause
        self._client_end = ClientConnection("simulated")
        self._process: BrokerProcess | None = None
        self._end: BrokerEnd | None = None
        self._exchange: Exchange | None = None
        self._on_response: Callable[[object], object] = lambda response: None
        self._busy_ms = 0
        """How long from the latest send the latest request takes to arrive."""

    def send(self, exchange: Exchange, on_response: Callable[[object], object], delay_ms: int = 0) -> None:
        """Send a request; ``on_response`` is called with its response, or with None when the connection breaks.

        ``delay_ms``: what the request takes in addition to its latency.
        """
        self._exchange, self._on_response = exchange, on_response
        data = self._client_end.send(exchange.request, exchange.version)
        if self._faults.loses("request", exchange):
            self._schedule(RESET_MS, self._break)
            return
        self._busy_ms = delay_ms + self._faults.latency_ms("request", exchange)
        self._schedule(self._busy_ms, lambda: self._arrive(data, exchange))

    def _arrive(self, data: bytes, exchange: Exchange) -> None:
        """The request is at the node."""
        if self._drops:
            return
        fault = self._faults.of_broker_at(exchange)
        if fault is not None:
            self._cause(fault)
        process = self._find_process()
        if self._process is None and process is not None:
            self._process = process
            self._end = process.connect(self.node_id, self._send_back)
        if process is None or process is not self._process or self._end is None or not process.is_connected(self._end):
            self._schedule(RESET_MS, self._break)
            return
        self._end.receive(data)
        if self._end.close_reason is not None:
            self._note_closed(self._end.close_reason)
            process.close(self._end)
            self._schedule(RESET_MS, self._break)

    def _send_back(self, data: bytes) -> None:
        exchange = self._exchange
        if exchange is None or not self.is_open:
            return
        if self._faults.loses("response", exchange):
            self._schedule(RESET_MS, self._break)
            return
        self._schedule(self._faults.latency_ms("response", exchange), lambda: self._take(data))

    def _take(self, data: bytes) -> None:
        """The response is at the client."""
        if self.is_open:
            for received in self._client_end.receive(data):
                self._exchange = None  # before the client sends its next request
                self._on_response(received.response)

    def reset(self) -> None:
        """The node, or the broker, has gone."""
        self._schedule(RESET_MS, self._break)

    def _break(self) -> None:
        if self.is_open:
            self.is_open = False
            self._close_end()
            if self._exchange is not None:
                self._exchange = None
                self._on_response(None)

    def close(self, *, drops: bool = False) -> None:
        """Close the connection from the client's side; ``drops``: what has not arrived yet is lost.

        Otherwise a request that is under way still arrives, and the end of the connection behind it.
        """
        if self.is_open:
            self.is_open = False
            self._drops = drops
            self._schedule(self._busy_ms + 1, self._close_end)

    def _close_end(self) -> None:
        process = self._find_process()
        if process is not None and process is self._process and self._end is not None:
            process.close(self._end)

    @property
    def end(self) -> BrokerEnd | None:
        return self._end
