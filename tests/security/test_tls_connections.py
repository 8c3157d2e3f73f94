"""TLS on a broker's sockets: what a client says last, and many handshakes at once."""

from __future__ import annotations

import socket
import ssl

import pytest

from kproto.headers import request_frame
from kproto.messages.k03_metadata import MetadataRequest
from kproto_server.broker.broker import Broker
from kproto_server.clock import Clock
from kproto_server.connection.connection import Connection
from kproto_server.connection.dispatcher import LATE_MS, Dispatcher
from kproto_server.deferred import COSTLY
from kproto_server.network.event_loop import EventLoop
from kproto_server.network.poller import READ
from kproto_server.network.tls import TlsSocket, TlsTransport
from kproto_server.observation.observe import Observations
from kproto_server.requests.context import ConnectionInfo
from tests.coordinator.broker_state import NOW_MS, new_state
from tests.security.test_half_open import IDLE_MS, trusting
from tests.security.test_tls_socket import contexts
from tests.waiting import LIMIT_S

REQUEST = request_frame(MetadataRequest(topics=()), 1, correlation_id=1, client_id="c")


class BufferedClient:
    """A client whose messages are sent when it says so."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self.socket = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")

    def send(self) -> None:
        """Send all that TLS has to send, in one piece."""
        self.socket.sendall(self._outgoing.read())

    def shake_hands(self) -> None:
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self.send()
                self._incoming.write(self.socket.recv(65536))
            else:
                self.send()
                return

    def read_to_the_end(self) -> bytes:
        """Return the data before the end of TLS; the broker closes the socket behind it."""
        while piece := self.socket.recv(65536):
            self._incoming.write(piece)
        found = b""
        try:
            while True:
                found += self.tls.read(65536)
        except ssl.SSLZeroReturnError:
            return found


@pytest.mark.parametrize("size", [0, 10, len(REQUEST)], ids=["nothing", "part of a request", "a request"])
def test_the_broker_ends_tls_when_the_client_has(size: int) -> None:
    """The end comes in one piece with the data before it. The client leaves its socket open until the broker ends."""
    with Broker.running(tls="auto") as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        with socket.create_connection((host, int(port)), LIMIT_S) as sock:
            client = BufferedClient(sock, trusting(broker))
            client.shake_hands()
            client.tls.write(REQUEST[:size])
            with pytest.raises(ssl.SSLWantReadError):
                client.tls.unwrap()
            client.send()
            response = client.read_to_the_end()
            assert (int.from_bytes(response[:4], "big") + 4 == len(response)) == (size == len(REQUEST))


def test_a_client_gets_one_ticket_to_resume_its_session() -> None:
    with Broker.running(tls="auto") as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        with socket.create_connection((host, int(port)), LIMIT_S) as sock:
            client = BufferedClient(sock, trusting(broker))
            client.shake_hands()
            with pytest.raises(ssl.SSLWantReadError):
                client.tls.unwrap()
            client.send()
            received = b""
            while piece := sock.recv(65536):
                received += piece
    records = []
    while received:
        end = 5 + int.from_bytes(received[3:5], "big")
        records.append(received[:end])
        received = received[end:]
    ticket_bytes, end_bytes = map(len, records)
    assert ticket_bytes > 100 > end_bytes


def test_after_many_handshakes_in_an_iteration_further_ones_wait_for_their_turn() -> None:
    """Clients whose requests are cheap are first."""
    state, loop = new_state(), EventLoop(Clock(NOW_MS, 0.0))
    dispatcher = Dispatcher(state, Observations(), takes_turns=True)
    server_context, client_context = contexts()
    clients, transports = [], []
    for _ in range(2):
        client, sock = socket.socketpair()
        sock.setblocking(False)
        clients.append(client)
        connection = Connection(dispatcher, state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
        tls = TlsSocket(server_context, sock, connection.give_up)
        transports.append(TlsTransport(loop, tls, connection, lambda _: None, IDLE_MS))
        hello = BufferedClient(client, client_context)
        with pytest.raises(ssl.SSLWantReadError):
            hello.tls.do_handshake()
        hello.send()
        client.setblocking(False)
    now_ms = loop.clock.now_ms()

    transports[0].on_ready(READ, now_ms)
    assert clients[0].recv(1)
    assert not dispatcher.is_late
    dispatcher.monotonic_s = lambda: state.clock.real_ms / 1000 + LATE_MS / 1000 + 1
    transports[0].on_ready(READ, now_ms)
    assert dispatcher.is_late
    transports[1].on_ready(READ, now_ms)
    with pytest.raises(BlockingIOError):
        clients[1].recv(1)
    assert dispatcher.next_turn_rank == COSTLY
    dispatcher.give_turn()
    assert clients[1].recv(1)

    for transport, client in zip(transports, clients, strict=True):
        transport.close()
        client.close()
    loop.poller.close()
