"""The clients of the queries: one for all, until a query gets no response."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException

from kproto.client import configuration
from kproto.client.broker_queries import BrokerQueries, committed, partitions_of_topic
from kproto_server import Broker
from tests.kproto_client.kafka_fixture import LIMIT_S, KafkaFixture
from tests.waiting import wait_until


def test_a_client_is_replaced_after_a_query_without_a_response(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that has forgotten all brokers never gets a response again (librdkafka's issue 5301)."""
    opened: list[Consumer] = []
    with Broker.running() as broker:
        KafkaFixture(broker.bootstrap_servers).create("orders", 1)
        settings = configuration.read({"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing"})
        open_client = settings.clients.query_consumer

        def note(config: Mapping[str, Any]) -> Consumer:
            opened.append(open_client(config))
            return opened[-1]

        monkeypatch.setattr(settings.clients, "query_consumer", note)
        queries = BrokerQueries(settings)
        try:
            assert queries.in_thread(partitions_of_topic, "orders", LIMIT_S).result() == [("orders", 0)]
            with broker.faults.add(api="Metadata", error="TOPIC_AUTHORIZATION_FAILED"), pytest.raises(KafkaException):
                queries.in_thread(partitions_of_topic, "orders", LIMIT_S).result()
            assert queries.in_thread(committed, [("orders", 0)], LIMIT_S).result() == {}
            assert len(opened) == 1, "an error code is a response"
            with broker.faults.add(api="Metadata", no_response=True) as rule, pytest.raises(KafkaException):
                queries.in_thread(partitions_of_topic, "orders", 0.1).result()
            assert rule.fired
            assert queries.in_thread(partitions_of_topic, "orders", LIMIT_S).result() == [("orders", 0)]
            assert len(opened) == 2
            wait_until(lambda: _is_closed(opened[0]), "the end of the first client")
        finally:
            queries.close()
        assert all(map(_is_closed, opened))


def test_close_ends_the_admin_client() -> None:
    """It has no close: the last reference ends it, without the garbage collector."""
    settings = configuration.read({"bootstrap.servers": "127.0.0.1:1", "group.id": "billing"})
    queries = BrokerQueries(settings)
    ended = weakref.ref(queries.admin)
    queries.close()
    assert ended() is None
    with pytest.raises(KafkaException, match="the consumer is closed"):
        _ = queries.admin


def _is_closed(client: Consumer) -> bool:
    try:
        client.position([])
    except RuntimeError:
        return True
    return False
