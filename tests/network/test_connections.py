"""The broker serves many connections, limits them and detects every way in which a client disconnects.

Method: real sockets; with max.connections.per.ip 1 or 2 the broker accepts a further client only after a connection is
gone.
"""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator

import pytest

from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto_server.broker.broker import Broker
from kproto_server.configuration.setting_table import SettingError
from kproto_server.connection.connection import Connection
from kproto_server.network.event_loop import real_ms
from tests.network.raw_client import RawClient
from tests.network.requests import ALL_TOPICS, create_topic, long_poll, topic_names
from tests.waiting import wait_until

GROUPS = (ListGroupsRequest(), 0)
MANY = 1000
HALF_A_MINUTE_MS = 30_000


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.running() as running:
        yield running


def is_let_in(address: str) -> bool:
    """Return whether the broker serves a further client; otherwise it closes the connection at once (BA-11)."""
    with RawClient(address) as client:
        try:
            client.ask(*GROUPS)
        except ConnectionError:
            return False
        return True


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Both ends of all connections are in this process."""
    needed = 2 * MANY + 500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard not in (resource.RLIM_INFINITY, -1) and hard < needed:
        pytest.skip(f"needs a limit of {needed} open files: ulimit -Hn says {hard}")
    if soft not in (resource.RLIM_INFINITY, -1) and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_descriptors")
def test_a_thousand_idle_connections_stay_and_each_gets_a_response(broker: Broker) -> None:
    clients = [RawClient(broker.bootstrap_servers) for _ in range(MANY)]
    for client in reversed(clients):
        client.send(GROUPS)
    assert [client.read_ids(1) for client in clients] == [[1]] * MANY
    for client in clients:
        client.socket.close()
    assert is_let_in(broker.bootstrap_servers)


@pytest.mark.parametrize("method", ["receive", "resume"])
def test_a_defect_that_one_client_meets_ends_its_connection_only(
    broker: Broker, method: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(connection: Connection, *args: object) -> bytes:
        raise RuntimeError("a defect")

    request = GROUPS if method == "receive" else (long_poll(100), 4)
    with RawClient(broker.bootstrap_servers) as other, RawClient(broker.bootstrap_servers) as client:
        other.ask(*GROUPS)
        broker.topics.create("t")
        monkeypatch.setattr(Connection, method, fail)
        client.send(request)
        client.read_ids_to_the_end()
        monkeypatch.undo()
        other.ask(*GROUPS)
    assert "RuntimeError: a defect" in caplog.text


# Limits.


def test_connections_above_the_limit_of_an_address_are_closed_at_once() -> None:
    """BA-11."""
    with Broker(settings={"max.connections.per.ip": 2}) as broker, RawClient(broker.bootstrap_servers) as first:
        second = RawClient(broker.bootstrap_servers)
        assert topic_names(first) == topic_names(second) == set()
        assert not is_let_in(broker.bootstrap_servers)
        assert topic_names(first) == topic_names(second) == set(), "earlier connections stay"

        second.socket.close()

        wait_until(lambda: is_let_in(broker.bootstrap_servers), "room for a connection")


@pytest.mark.parametrize("prefix", ["", "listener.name.plaintext."])
def test_a_connection_above_the_limit_of_the_broker_waits_until_another_one_ends(prefix: str) -> None:
    """BA-11."""
    with Broker(settings={f"{prefix}max.connections": 2}) as broker, RawClient(broker.bootstrap_servers) as first:
        second = RawClient(broker.bootstrap_servers)
        assert topic_names(first) == topic_names(second) == set()
        with RawClient(broker.bootstrap_servers) as third:
            third.send(GROUPS)
            assert topic_names(first) == topic_names(second) == set(), "earlier connections stay"
            assert third.is_open()
            assert not broker.requests.where(api="ListGroups")

            second.socket.close()

            assert third.read_ids(1) == [1]


def test_a_broker_that_stops_closes_a_connection_that_waits_and_serves_others_after_its_start() -> None:
    with Broker(brokers=2, settings={"max.connections": 1}) as broker:
        address = broker.bootstrap_servers.split(",")[0]
        with RawClient(address) as first, RawClient(address) as second:
            second.send(GROUPS)
            first.ask(*GROUPS)  # the other one is accepted by then
            broker.stop_node(1)
            second.wait_closed()
        broker.start_node(1)
        assert is_let_in(address)
        assert is_let_in(address), "the place of a connection that waited is free"


def test_a_host_may_have_a_limit_of_its_own() -> None:
    settings = {"max.connections.per.ip": 0, "max.connections.per.ip.overrides": "10.0.0.1:5,127.0.0.1:1"}
    with Broker(settings=settings) as broker, RawClient(broker.bootstrap_servers) as first:
        assert topic_names(first) == set()
        assert not is_let_in(broker.bootstrap_servers)
    with pytest.raises(SettingError, match="give HOST:NUMBER"):
        Broker(settings={"max.connections.per.ip.overrides": "10.0.0.1=5"})


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="needs IPv6")
@pytest.mark.parametrize(("connected", "shown"), [("[::1]", "0:0:0:0:0:0:0:1"), ("127.0.0.1", "127.0.0.1")])
@pytest.mark.parametrize("given", ["::1:1,::ffff:127.0.0.1:1", "[0:0::1]:1,127.0.0.1:1"])
def test_a_node_that_listens_on_ipv6_has_addresses_as_java(connected: str, shown: str, given: str) -> None:
    """For clients of IPv4, too. What is configured may have another form."""
    settings = {"max.connections.per.ip": 0, "max.connections.per.ip.overrides": given}
    with Broker.running(host="::", settings=settings) as broker:
        address = f"{connected}:{broker.bootstrap_servers.rpartition(':')[2]}"
        with RawClient(address) as client:
            client.ask(*GROUPS)
            assert not is_let_in(address)
        assert [one.client_host for one in broker.requests.where(api="ListGroups")] == [f"/{shown}"]


def test_the_limit_for_an_address_is_that_addresss_own() -> None:
    """BA-11."""
    with Broker(settings={"max.connections.per.ip": 1}) as broker, RawClient(broker.bootstrap_servers) as first:
        topic_names(first)
        assert not is_let_in(broker.bootstrap_servers)
        host, _, port = broker.bootstrap_servers.rpartition(":")
        try:
            other = socket.create_connection((host, int(port)), source_address=("127.0.0.2", 0))
        except OSError:
            pytest.skip("needs 127.0.0.2 as a second loopback address")
        with other:
            other.sendall(bytes.fromhex("0000000a 0012 0000 00000001 ffff"))  # ApiVersions v0
            assert other.recv(8)[4:] == b"\0\0\0\1"


@pytest.mark.parametrize("new_ports", [False, True])
def test_a_reset_lets_in_no_connection_that_waits_for_a_slot(new_ports: bool) -> None:
    """BA-11. The reset frees the slots, and with new ports closes the listener, in one iteration of the loop."""
    with Broker.running(settings={"max.connections": 1}) as broker, RawClient(broker.bootstrap_servers) as first:
        topic_names(first)
        with RawClient(broker.bootstrap_servers) as second:
            wait_until(lambda: is_waiting(broker), "the connection that waits")
            broker.reset(new_ports=new_ports)
            second.wait_closed()
        with RawClient(broker.bootstrap_servers) as third:
            assert topic_names(third) == set()


def is_waiting(broker: Broker) -> bool:
    """Return whether a connection waits for a slot of node 1."""
    return broker._call(lambda server: server.nodes.listeners[1].closed.statistics().tasks_waiting > 0)


def test_each_broker_of_a_cluster_has_limits_of_its_own() -> None:
    """BA-11."""
    with Broker(brokers=2, settings={"max.connections.per.ip": 1}) as broker:
        first, second = broker.bootstrap_servers.split(",")
        with RawClient(first) as one, RawClient(second) as two:
            assert topic_names(one) == topic_names(two) == set()
            assert not is_let_in(first)
            assert not is_let_in(second)


# Idle connections.


def test_an_idle_connection_is_closed_and_a_delayed_one_is_not(broker: Broker) -> None:
    """BA-10. The test says since when connections are idle."""
    with RawClient(broker.bootstrap_servers) as delayed, RawClient(broker.bootstrap_servers) as idle:
        create_topic(delayed)
        topic_names(idle)
        delayed.send((long_poll(3_600_000), 4))
        broker.requests.wait(api="Fetch", timeout_s=60)
        broker._call(lambda server: server.close_idle(0.0))
        assert idle.is_open()
        broker._call(lambda server: server.close_idle(real_ms() + 1))
        idle.wait_closed()
        assert delayed.is_open()


def test_a_connection_without_a_single_request_is_idle() -> None:
    """BA-10."""
    with Broker(settings={"connections.max.idle.ms": 100}) as broker, RawClient(broker.bootstrap_servers) as client:
        client.wait_closed()


def test_idle_connections_stay_where_that_is_set() -> None:
    """BA-10: -1 is no limit."""
    with Broker(settings={"connections.max.idle.ms": -1}) as broker, RawClient(broker.bootstrap_servers) as client:
        assert topic_names(client) == set()
        assert client.is_open()


# Clients that disconnect.


@pytest.fixture
def small() -> Iterator[Broker]:
    """A broker with room for one connection."""
    with Broker.running(settings={"max.connections.per.ip": 1}) as running:
        yield running


def test_a_client_that_closes_is_forgotten(small: Broker) -> None:
    with RawClient(small.bootstrap_servers) as client:
        topic_names(client)
    wait_until(lambda: is_let_in(small.bootstrap_servers), "room for a connection")


def test_a_client_that_resets_is_forgotten(small: Broker) -> None:
    client = RawClient(small.bootstrap_servers)
    topic_names(client)
    client.reset()
    wait_until(lambda: is_let_in(small.bootstrap_servers), "room for a connection")


def test_a_client_that_resets_during_a_delayed_request_is_forgotten_at_once(small: Broker) -> None:
    client = RawClient(small.bootstrap_servers)
    create_topic(client)
    client.send((long_poll(HALF_A_MINUTE_MS), 4), GROUPS)
    client.reset()
    wait_until(lambda: is_let_in(small.bootstrap_servers), "room for a connection")


def test_a_client_that_closes_during_a_delayed_request_is_forgotten_after_it(small: Broker) -> None:
    """As a real broker, kproto does not read the connection until the response, so it detects the end only then."""
    client = RawClient(small.bootstrap_servers)
    create_topic(client)
    client.send((long_poll(300), 4), GROUPS)
    client.socket.close()
    wait_until(lambda: is_let_in(small.bootstrap_servers), "room for a connection")


def test_a_client_that_resets_with_unread_responses_is_forgotten(small: Broker) -> None:
    client = RawClient(small.bootstrap_servers, receive_buffer_bytes=4096)
    client.send(*[GROUPS] * 1000)
    client.read_ids(1)
    client.reset()
    wait_until(lambda: is_let_in(small.bootstrap_servers), "room for a connection")


def test_a_client_that_closes_its_sending_half_gets_all_responses(small: Broker) -> None:
    with RawClient(small.bootstrap_servers) as client:
        create_topic(client)
        sent = client.send(*[GROUPS] * 500, (long_poll(200), 4), (ALL_TOPICS, 1))
        client.socket.shutdown(socket.SHUT_WR)
        assert client.read_ids_to_the_end() == sent
    wait_until(lambda: is_let_in(small.bootstrap_servers), "room for a connection")


def test_invalid_bytes_close_only_their_own_connection(broker: Broker) -> None:
    """BA-6."""
    with RawClient(broker.bootstrap_servers) as good, RawClient(broker.bootstrap_servers) as bad:
        topic_names(good)
        bad.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
        bad.wait_closed()
        assert topic_names(good) == set()


def test_observations_keep_the_requests_of_closed_connections(broker: Broker) -> None:
    for number in range(10):
        with RawClient(broker.bootstrap_servers, client_id=f"app-{number % 2}") as client:
            topic_names(client)
    counts = {
        client.client_id: [seen.count for seen in client.requests] for client in broker.observations.snapshot().clients
    }
    assert counts == {"app-0": [5], "app-1": [5]}
