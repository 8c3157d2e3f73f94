"""Connections with TLS are served, delayed, limited and ended as those without: the same client, the same results."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kproto.errors import UsageError
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto_server.broker.broker import Broker
from tests.commandline.commands import LIMIT_S
from tests.network.requests import commit_offset, committed, create_topic, long_poll, topic_names
from tests.security.secured_client import SecuredClient

GROUPS = (ListGroupsRequest(), 0)
MANY = 50


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.running(tls="auto") as running:
        yield running


def trusting(broker: Broker) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(broker.tls.files.ca_file))


def test_many_clients_commit_and_fetch(broker: Broker) -> None:
    context = trusting(broker)
    with ExitStack() as stack:
        clients = [stack.enter_context(SecuredClient(broker.bootstrap_servers, context)) for _ in range(MANY)]
        for offset, client in enumerate(clients):
            assert commit_offset(client, f"g{offset}", offset) == 0
        assert [committed(client, f"g{offset}") for offset, client in enumerate(clients)] == list(range(MANY))


def test_requests_in_one_piece_get_their_responses_in_order(broker: Broker) -> None:
    with SecuredClient(broker.bootstrap_servers, trusting(broker)) as client:
        ids = client.send(*[GROUPS] * 1000)
        assert client.read_ids(1000) == ids


def test_a_delayed_operation_ends_when_time_passes(broker: Broker) -> None:
    with SecuredClient(broker.bootstrap_servers, trusting(broker)) as client:
        create_topic(client)
        ids = client.send((long_poll(30_000), 4), GROUPS)
        broker.requests.wait(api="Fetch")
        broker.clock.advance(seconds=30)
        assert client.read_ids(2) == ids


def test_responses_that_were_made_arrive_before_the_end(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """As without TLS, and then the client reads the end of TLS, not of the socket alone."""
    monkeypatch.setattr("kproto_server.network.shutdown.RESPOND_S", LIMIT_S)
    with SecuredClient(broker.bootstrap_servers, trusting(broker)) as client:
        topic_names(client)
        sent = client.send(*[GROUPS] * 100)
        stopping = threading.Thread(target=broker.stop)
        stopping.start()
        assert client.read_ids_to_the_end() == sent
        stopping.join()


def test_a_bad_network_stands_below_tls(broker: Broker) -> None:
    with SecuredClient(broker.bootstrap_servers, trusting(broker)) as before:
        topic_names(before)
        broker.cluster.network(1, latency_ms=20, bytes_per_second=1_000_000)
        assert commit_offset(before) == 0
        with SecuredClient(broker.bootstrap_servers, trusting(broker)) as after:
            assert committed(after) == 7


def test_large_records_pass_in_both_directions(broker: Broker) -> None:
    confluent_kafka: Any = pytest.importorskip("confluent_kafka")
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "ssl",
        "ssl.ca.location": str(broker.tls.files.ca_file),
    }
    values = [bytes([number]) * 900_000 for number in range(20)]
    producer = confluent_kafka.Producer(settings)
    for value in values:
        producer.produce("t", value, partition=0)
    assert producer.flush(LIMIT_S) == 0
    consumer = confluent_kafka.Consumer(settings | {"group.id": "g"})
    consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
    assert [record.value() for record in consumer.consume(20, LIMIT_S)] == values
    consumer.close()


def alter(broker: Broker, name: str, value: str) -> None:
    """Change a dynamic setting of the broker, as an administrator does (KIP-226)."""
    admin: Any = pytest.importorskip("confluent_kafka.admin")
    client = admin.AdminClient(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "ssl",
            "ssl.ca.location": str(broker.tls.files.ca_file),
        }
    )
    entry = admin.ConfigEntry(name, value, incremental_operation=admin.AlterConfigOpType.SET)
    resource = admin.ConfigResource(admin.ResourceType.BROKER, "1", incremental_configs=[entry])
    for future in client.incremental_alter_configs([resource]).values():
        future.result(LIMIT_S)


def test_client_authentication_changes_while_the_broker_runs(broker: Broker) -> None:
    """`ssl.client.auth` is a dynamic setting; connections that exist go on."""
    context = trusting(broker)
    with SecuredClient(broker.bootstrap_servers, context) as before:
        alter(broker, "ssl.client.auth", "required")
        assert topic_names(before) == set()
    with SecuredClient(broker.bootstrap_servers, context) as refused, pytest.raises((ssl.SSLError, ConnectionError)):
        topic_names(refused)
    files = broker.tls.files
    context.load_cert_chain(files.client_certificate_file, files.client_key_file)
    with SecuredClient(broker.bootstrap_servers, context) as accepted:
        assert topic_names(accepted) == set()


def test_versions_that_the_broker_does_not_have_end_new_connections_only(broker: Broker) -> None:
    context = trusting(broker)
    with SecuredClient(broker.bootstrap_servers, context) as before:
        alter(broker, "ssl.enabled.protocols", "TLSv1")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            SecuredClient(broker.bootstrap_servers, context)
        assert topic_names(before) == set()
    assert broker.is_running


def test_use_of_an_unknown_kind_is_refused(broker: Broker) -> None:
    with pytest.raises(UsageError, match="no kind of certificate 'rotten'"):
        broker.tls.use("rotten")
