"""Connections above their rate (KIP-612): they wait until they are accepted, or are closed without being read.

The numbers are those of 2.8.2 and 4.4.0: with a limit of 1 per second, 10 connections are let in at once, and each
further one is throttled for one window.
"""

from __future__ import annotations

import pytest

from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto_server.broker.broker import Broker
from kproto_server.quotas.entities import altered, entity_of
from kproto_server.testing import InMemoryBroker
from kproto_server.throttling.connections import ConnectionRates
from tests.network.raw_client import RawClient
from tests.security.quota_scripts import CONNECTIONS, change
from tests.waiting import wait_until

ALLOWED = 10
IP = "127.0.0.1"
GROUPS = (ListGroupsRequest(), 0)


def rates_of(broker: InMemoryBroker) -> ConnectionRates:
    return ConnectionRates(broker.state.cluster, broker.state.settings, broker.clock)


def limit_address(broker: InMemoryBroker, ip: str | None, limit: float) -> None:
    cluster = broker.state.cluster
    cluster.set_client_quotas(altered(cluster.client_quotas, entity_of({"ip": ip}), {CONNECTIONS: limit}))


def test_an_address_has_its_own_rate_or_the_default() -> None:
    broker = InMemoryBroker()
    rates = rates_of(broker)
    assert not rates.address_ms(1, "PLAINTEXT", IP)
    limit_address(broker, None, 1.0)
    limit_address(broker, "10.0.0.1", 2.0)
    assert [rates.address_ms(1, "PLAINTEXT", IP) for _ in range(12)] == [0] * ALLOWED + [1000] * 2
    assert [rates.address_ms(1, "PLAINTEXT", "10.0.0.1") for _ in range(21)] == [0] * 2 * ALLOWED + [500]
    assert not rates.address_ms(1, "PLAINTEXT", "10.0.0.2")
    assert not rates.address_ms(2, "PLAINTEXT", IP), "each node has rates of its own"


def test_a_name_of_the_loopback_address_counts() -> None:
    broker = InMemoryBroker()
    limit_address(broker, "localhost", 1.0)
    assert [rates_of(broker).address_ms(1, "PLAINTEXT", IP) for _ in range(11)] == [0] * ALLOWED + [1000]


@pytest.mark.parametrize(
    ("name", "ip"),
    [("::1", "0:0:0:0:0:0:0:1"), ("0:0:0:0:0:0:0:1", "0:0:0:0:0:0:0:1"), ("::ffff:127.0.0.1", "127.0.0.1")],
)
def test_a_quota_may_have_any_form_of_an_address(name: str, ip: str) -> None:
    broker = InMemoryBroker()
    rates = rates_of(broker)
    assert not rates.address_ms(1, "PLAINTEXT", ip)
    limit_address(broker, name, 1.0)
    assert [rates.address_ms(1, "PLAINTEXT", ip) for _ in range(11)] == [0] * ALLOWED + [1000]


def test_connections_that_are_not_let_in_do_not_count() -> None:
    broker = InMemoryBroker(settings={"max.connection.creation.rate": "1"})
    rates = rates_of(broker)
    limit_address(broker, None, 1.0)
    for _ in range(2 * ALLOWED):
        rates.listener_ms(1, "PLAINTEXT")
        rates.address_ms(1, "PLAINTEXT", IP)
    broker.advance(milliseconds=11_000)
    assert not rates.listener_ms(1, "PLAINTEXT")
    assert not rates.address_ms(1, "PLAINTEXT", IP)


def test_a_listener_has_a_rate_within_that_of_its_node() -> None:
    name = "listener.name.outside.max.connection.creation.rate"
    broker = InMemoryBroker(settings={"max.connection.creation.rate": "3", name: "1"})
    rates = rates_of(broker)
    assert [rates.listener_ms(1, "OUTSIDE") for _ in range(11)] == [0] * ALLOWED + [1000]
    assert [rates.listener_ms(1, "PLAINTEXT") for _ in range(20)] == [0] * 19 + [333]


def test_a_connection_above_the_rate_of_its_address_is_closed_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "kproto")
    with Broker.running(clock="manual") as broker, RawClient(broker.bootstrap_servers) as admin:
        change({"ip": IP}, (CONNECTIONS, 1.0))(admin, 1)
        for _ in range(ALLOWED):
            with RawClient(broker.bootstrap_servers) as client:
                client.ask(*GROUPS)
        with RawClient(broker.bootstrap_servers) as client:
            client.send(GROUPS)
            wait_until(lambda: "connection_creation_rate" in caplog.text, "the connection that is not let in")
            assert client.is_open()
            broker.clock.advance(seconds=1)
            client.wait_closed()
        assert f"/{IP}: closed in 1000 ms: connection_creation_rate is exceeded" in caplog.messages


def test_a_connection_above_the_rate_of_its_node_waits(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "kproto")
    with Broker.running(clock="manual", settings={"max.connection.creation.rate": 1}) as broker:
        for _ in range(ALLOWED):
            with RawClient(broker.bootstrap_servers) as client:
                client.ask(*GROUPS)
        assert "not accepted" not in caplog.text
        with RawClient(broker.bootstrap_servers) as client:
            client.send(GROUPS)
            wait_until(lambda: "not accepted for 1000 ms" in caplog.text, "the connection that waits")
            assert client.is_open()
            broker.clock.advance(seconds=1)
            assert client.read_ids(1) == [1]


def test_a_reset_closes_connections_that_are_not_let_in() -> None:
    with Broker.running(clock="manual") as broker, RawClient(broker.bootstrap_servers) as admin:
        change({"ip": None}, (CONNECTIONS, 1.0))(admin, 1)
        clients = [RawClient(broker.bootstrap_servers) for _ in range(ALLOWED + 1)]
        broker.reset()
        clients[-1].wait_closed()
        for client in clients:
            client.socket.close()


def test_a_reset_closes_a_connection_that_waits_for_the_rate_of_its_node(caplog: pytest.LogCaptureFixture) -> None:
    """The reset removes the timer for which it waits; the node goes on with the next connections."""
    caplog.set_level("INFO", "kproto")
    with Broker.running(clock="manual", settings={"max.connection.creation.rate": 1}) as broker:
        clients = [RawClient(broker.bootstrap_servers) for _ in range(ALLOWED + 1)]
        wait_until(lambda: "not accepted for 1000 ms" in caplog.text, "the connection that waits")
        broker.reset()
        clients[-1].wait_closed()
        with RawClient(broker.bootstrap_servers) as client:
            client.ask(*GROUPS)
        for one in clients:
            one.socket.close()
