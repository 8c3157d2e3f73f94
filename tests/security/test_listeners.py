"""Several listeners of one broker: each has its protocol, and clients get the addresses of the one that they use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kproto.errors import UsageError
from kproto.messages.k60_describe_cluster import DescribeClusterRequest
from kproto_server.broker.broker import Broker
from tests.network.raw_client import RawClient
from tests.network.requests import node_addresses

confluent_kafka: Any = pytest.importorskip("confluent_kafka")
admin_client: Any = pytest.importorskip("confluent_kafka.admin").AdminClient

LIMIT_S = 20.0
LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "OUTSIDE")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker.running(
        brokers=2,
        tls="auto",
        sasl=["PLAIN", "SCRAM-SHA-256"],
        users={"alice": "secret"},
        listeners=[f"{name}://127.0.0.1:0" for name in LISTENERS],
        settings={
            "listener.security.protocol.map": "OUTSIDE:SASL_SSL",
            "advertised.listeners": "OUTSIDE://localhost:0",
            "offsets.topic.replication.factor": 2,
        },
    ) as running:
        yield running


def admin_of(broker: Broker, listener: str) -> Any:
    text = broker.client_settings("librdkafka", listener=listener)
    return admin_client(dict(line.split("=", 1) for line in text.splitlines()))


def servers(found: Any) -> str:
    return ",".join(f"{node.host}:{node.port}" for node in found)


@pytest.mark.parametrize("listener", LISTENERS)
def test_a_client_gets_the_addresses_of_its_listener(broker: Broker, listener: str) -> None:
    admin = admin_of(broker, listener)
    wanted = broker.servers_of(listener)
    assert servers(admin.list_topics(timeout=LIMIT_S).brokers.values()) == wanted
    assert servers(admin.describe_cluster().result(LIMIT_S).nodes) == wanted
    assert wanted.startswith("localhost:" if listener == "OUTSIDE" else "127.0.0.1:")


def test_a_consumer_finds_its_coordinator_by_its_listener(broker: Broker) -> None:
    text = broker.client_settings("librdkafka", listener="OUTSIDE")
    settings: Any = dict(line.split("=", 1) for line in text.splitlines())
    broker.topics.create("t")
    consumer = confluent_kafka.Consumer(settings | {"group.id": "g"})
    consumer.commit(offsets=[confluent_kafka.TopicPartition("t", 0, 7)], asynchronous=False)
    consumer.close()
    assert broker.groups.committed("g") == {("t", 0): 7}


def test_listeners_stop_and_move_with_their_node(broker: Broker) -> None:
    before = broker.servers_of("OUTSIDE")
    broker.stop_node(2)
    with pytest.raises(OSError, match="refused"):
        RawClient(broker.servers_of("SSL").split(",")[1])
    broker.start_node(2)
    broker.reset(new_ports=True)
    after = broker.servers_of("OUTSIDE")
    assert not set(before.split(",")) & set(after.split(","))
    assert servers(admin_of(broker, "OUTSIDE").list_topics(timeout=LIMIT_S).brokers.values()) == after


def test_the_main_listener_is_the_first(broker: Broker) -> None:
    assert broker.servers_of("PLAINTEXT") == broker.bootstrap_servers
    assert broker.client_settings("librdkafka").endswith("security.protocol=plaintext\n")
    with RawClient(broker.bootstrap_servers) as client:
        addresses = node_addresses(client)
        assert {f"{host}:{port}" for host, port in addresses} == set(broker.bootstrap_servers.split(","))
        found = client.ask(DescribeClusterRequest(include_cluster_authorized_operations=False), 0)
        assert servers(found.brokers) == broker.bootstrap_servers


def test_unknown_listeners_are_refused(broker: Broker) -> None:
    with pytest.raises(UsageError, match="no listener 'INSIDE': there are PLAINTEXT, SSL, SASL_PLAINTEXT, OUTSIDE"):
        broker.servers_of("INSIDE")
    with pytest.raises(ValueError, match="no listener that can be opened"):
        Broker(listeners="SSL://127.0.0.1:0")
