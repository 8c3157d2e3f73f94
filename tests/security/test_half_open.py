"""Half-open connections end by the broker's clock; others do not (BA-10).

Method: a client begins a handshake of TLS or SASL, as far as the case says, and the test advances a manual clock.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kproto_server.broker.broker import Broker
from kproto_server.clock import Clock, ClockMode
from kproto_server.connection.authenticating_connection import connect
from kproto_server.connection.dispatcher import Dispatcher
from kproto_server.network.event_loop import EventLoop
from kproto_server.network.half_open import REAL_TIME_MIN_MS, HalfOpenTransport
from kproto_server.network.transport import Transport
from kproto_server.observation.observe import Observations
from kproto_server.requests.context import ConnectionInfo
from kproto_server.security.sasl import Authentication, SaslRules
from kproto_server.security.users import ScramCredentials, Users
from tests.coordinator.broker_state import NOW_MS, new_state
from tests.network.requests import topic_names
from tests.security.sasl_scripts import Client, api_versions, authenticate, handshake, list_groups
from tests.security.secured_client import SecuredClient
from tests.waiting import LIMIT_S, wait_until

IDLE_MS = 600_000
SASL: Any = {"sasl": ["PLAIN", "SCRAM-SHA-256"], "users": {"alice": "secret"}}
RIGHT = b"\0alice\0secret"
Begin = Callable[[Broker], socket.socket]


def is_open(broker: Broker, count: int) -> bool:
    """Return whether the broker has so many connections."""
    return bool(broker._call(lambda server: len(server.nodes.listeners[1].transports)) == count)


def connected(broker: Broker) -> socket.socket:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    sock = socket.create_connection((host, int(port)), LIMIT_S)
    wait_until(lambda: is_open(broker, 1), "the connection to be accepted")
    return sock


def trusting(broker: Broker) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(broker.tls.files.ca_file))


def hello(broker: Broker) -> socket.socket:
    """The client's first message and the broker's, and nothing behind them."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting(broker).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    sock = connected(broker)
    sock.sendall(outgoing.read())
    assert sock.recv(5)[0] == 0x16, "a message of the handshake"
    return sock


def shaken(broker: Broker) -> socket.socket:
    """TLS without a byte of SASL in it."""
    client = SecuredClient(broker.bootstrap_servers, trusting(broker))
    # The client's last message of the handshake is on its way when the client's own end of it is done.
    wait_until(lambda: broker._call(_handshakes_ended), "the end of the handshake")
    return client.socket


def _handshakes_ended(server: Any) -> bool:
    return all(transport._socket.is_open for transport in server.nodes.listeners[1].transports)


def begin_sasl(*steps: Callable[[Client], None]) -> Begin:
    def begin(broker: Broker) -> socket.socket:
        client = Client(broker.bootstrap_servers)
        for step in steps:
            step(client)
            assert client.read() is not None
        return client._socket

    return begin


CASES: dict[str, tuple[dict[str, Any], Begin]] = {
    "TLS, nothing": ({"tls": "auto"}, connected),
    "TLS, the first message": ({"tls": "auto"}, hello),
    "SASL_SSL, TLS alone": ({"tls": "auto", **SASL}, shaken),
    "SASL, nothing": (SASL, connected),
    "SASL, ApiVersions": (SASL, begin_sasl(api_versions)),
    "SASL, the mechanism": (SASL, begin_sasl(handshake("PLAIN"))),
    "SASL, the mechanism by the old framing": (SASL, begin_sasl(handshake("PLAIN", 0))),
}


@contextmanager
def manual(**options: Any) -> Iterator[Broker]:
    with Broker.running(clock="manual", **options) as broker:
        yield broker


@pytest.mark.parametrize("case", CASES)
def test_a_half_open_connection_ends_by_the_brokers_clock(case: str) -> None:
    options, begin = CASES[case]
    with manual(**options) as broker, begin(broker) as sock:
        broker.clock.advance(seconds=(IDLE_MS - 1) / 1000)
        assert is_open(broker, 1)
        broker.clock.advance(seconds=0.001)
        assert is_open(broker, 0)
        while sock.recv(65536):  # what the broker sent before the end
            pass


def test_bytes_of_the_client_begin_the_time_again() -> None:
    with manual(**SASL) as broker:
        client = Client(broker.bootstrap_servers)
        for step in (api_versions, handshake("PLAIN")):
            broker.clock.advance(seconds=IDLE_MS / 1000 - 1)
            step(client)
            assert client.read() is not None
        broker.clock.advance(seconds=IDLE_MS / 1000 - 1)
        assert is_open(broker, 1)
        broker.clock.advance(seconds=1)
        assert client.read() is None
        client.close()


def test_a_client_that_is_authenticated_stays_whatever_the_clock_says() -> None:
    with manual(**SASL) as broker:
        client = Client(broker.bootstrap_servers)
        for step in (handshake("PLAIN"), authenticate(RIGHT)):
            step(client)
            assert client.read() is not None
        broker.clock.advance(days=8)
        for again in (handshake("PLAIN"), list_groups):  # in the middle of authenticating again, too (KIP-368)
            again(client)
            assert client.read() is not None
            broker.clock.advance(days=8)
        client.close()


def test_a_client_with_tls_stays_whatever_the_clock_says() -> None:
    with manual(tls="auto") as broker, SecuredClient(broker.bootstrap_servers, trusting(broker)) as client:
        topic_names(client)
        broker.clock.advance(days=8)
        topic_names(client)


def test_the_setting_may_turn_this_off() -> None:
    with manual(**SASL, settings={"connections.max.idle.ms": -1}) as broker, begin_sasl(api_versions)(broker):
        broker.clock.advance(days=8)
        assert is_open(broker, 1)


def half_open(mode: ClockMode) -> tuple[EventLoop, Transport, socket.socket]:
    """Return a half-open connection on a loop that does not run."""
    client, sock = socket.socketpair()
    sock.setblocking(False)
    state, loop = new_state(), EventLoop(Clock(NOW_MS, 0.0, mode))
    authentication = Authentication(Users({}, ScramCredentials(bytes)), SaslRules(), lambda: "nonce")
    dispatcher = Dispatcher(state, Observations(), takes_turns=True)
    connection = connect(dispatcher, state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"), None, authentication)
    transport = HalfOpenTransport(loop, sock, connection, lambda _: None, IDLE_MS)
    transport.active_ms = 0.0
    return loop, transport, client


@pytest.mark.parametrize("mode", [ClockMode(rate=3600.0), ClockMode(auto=True)], ids=["scaled", "auto"])
def test_a_clock_ahead_of_real_time_leaves_a_client_time_for_its_handshake(mode: ClockMode) -> None:
    loop, transport, client = half_open(mode)
    loop.clock.advance(2 * IDLE_MS)
    for real_ms in range(1000, REAL_TIME_MIN_MS, 1000):
        loop.clock.tick(real_ms)
        loop.clock.run_due()
        assert transport.fd >= 0
    loop.clock.tick(REAL_TIME_MIN_MS + 1)
    loop.clock.run_due()
    assert transport.fd == -1
    client.close()
    loop.poller.close()


@pytest.mark.parametrize("mode", [ClockMode(rate=3600.0), ClockMode(auto=True)], ids=["scaled", "auto"])
def test_a_half_open_connection_costs_an_advance_nothing_by_its_length(mode: ClockMode) -> None:
    loop, transport, client = half_open(mode)
    before = loop.clock.timers_set
    loop.clock.advance(10 * 365 * 86_400_000)
    assert loop.clock.timers_set - before <= 2
    assert transport.fd >= 0
    transport.close()
    client.close()
    loop.poller.close()


def test_an_automatic_clock_does_not_jump_to_the_end_of_a_handshake() -> None:
    loop, transport, client = half_open(ClockMode(auto=True))
    loop.clock.tick(5000)
    loop.clock.run_due()
    assert loop.clock.now_ms() == NOW_MS + 5000
    transport.close()
    client.close()
    loop.poller.close()
