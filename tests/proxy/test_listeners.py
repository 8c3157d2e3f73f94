"""The ports of the proxy: one for each broker, as responses name them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kproto_server.network.listening import CannotListen, listen
from kproto_server.observation.observe import Observations
from kproto_server.proxy import proxy
from kproto_server.proxy.proxy import Proxy
from kproto_server.proxy.upstream import release_of
from kproto_server.releases.kafka_version import KafkaVersion, kafka_version_names
from tests.oracle.ports import free_port

UPSTREAM = ("kafka-1", 9092)


def new_proxy(port: int = 0) -> Proxy:
    return Proxy(UPSTREAM, host="127.0.0.1", port=port, advertised_host="proxy", observations=Observations(), served={})


@pytest.fixture
def server() -> Iterator[Proxy]:
    found = new_proxy()
    yield found
    found.close()


def test_each_broker_has_one_port(server: Proxy) -> None:
    addresses = [server.address_of(host, 9092) for host in ("kafka-1", "kafka-2", "kafka-3", "kafka-2", "kafka-1")]
    assert {host for host, _ in addresses} == {"proxy"}
    assert addresses[:2] == addresses[4:2:-1]
    assert len(set(addresses)) == 3
    assert list(server.addresses) == [UPSTREAM, ("kafka-2", 9092), ("kafka-3", 9092)]
    assert list(server.addresses.values()) == addresses[:3]


def test_the_next_free_ports_are_taken() -> None:
    first = free_port()
    server = new_proxy(first)
    try:
        with listen("127.0.0.1", first + 1):
            _, second = server.address_of("kafka-2", 9092)
        _, third = server.address_of("kafka-3", 9092)
    finally:
        server.close()
    assert first + 1 < second < third < first + 50


def test_the_number_of_brokers_is_limited(server: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "BROKERS_MAX", 2)
    server.address_of("kafka-2", 9092)
    with pytest.raises(CannotListen, match="no port for the broker kafka-3:9092: there are 2 already"):
        server.address_of("kafka-3", 9092)


@pytest.mark.parametrize("name", ["0.10.0", "1.1", "2.0", "2.8", "3.9", "3.9-zookeeper", "4.0", "4.4", "latest"])
def test_the_release_is_that_of_the_api_versions(name: str) -> None:
    version = KafkaVersion.named(name)
    found = release_of(version.api_versions)
    assert found == version or found.api_versions == version.api_versions


def test_the_release_of_a_newer_kafka_is_the_newest() -> None:
    newest = kafka_version_names()[-1]
    served = dict(KafkaVersion.named(newest).api_versions)
    served[3] = (0, 99)
    served[200] = (0, 0)
    assert release_of(served).name == newest
