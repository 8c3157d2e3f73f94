"""Clients that exceed their quota for changes of topics (KIP-599), against recordings of 2.8.2 and 4.4.0."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k19_create_topics import CreateTopicsRequest
from kproto_server.broker.broker import Broker
from kproto_server.testing import InMemoryBroker
from tests.throttling.test_throttling import broker_with, pause_ms
from tests.throttling.topic_quota_scripts import FILE, new_topics, transcripts

RECORDED = json.loads(FILE.read_text())
KEY = "controller_mutation_rate"


@pytest.mark.parametrize("release", sorted(RECORDED))
def test_the_responses_are_those_of_the_release(release: str) -> None:
    with Broker.running(kafka_version=release) as broker:
        found = json.loads(json.dumps(transcripts(broker.bootstrap_servers)))
    differences = {name: (found[name], one) for name, one in RECORDED[release].items() if found[name] != one}
    assert not differences, json.dumps(differences, indent=1)


def create(name: str, count: int) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=new_topics((name, count)), timeout_ms=1000)


def results(broker: InMemoryBroker, name: str, count: int, version: int = 6) -> tuple[int, int]:
    """Return the error and the throttle time of a topic's creation by a new connection."""
    response: Any = broker.connect("app").ask(create(name, count), version)
    return response.topics[0].error_code, response.throttle_time_ms


def test_a_throttled_connection_is_not_read() -> None:
    broker = broker_with(KEY, 2.0)
    client = broker.connect("app")
    response: Any = client.ask(create("a", 30), 5)
    assert response.throttle_time_ms == 4000
    assert pause_ms(broker, client) == 4000
    assert pause_ms(broker, client) == 0


def test_tokens_come_back_with_time() -> None:
    broker = broker_with(KEY, 2.0)
    assert results(broker, "a", 30) == (0, 0)
    assert results(broker, "b", 1) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 4000)
    broker.advance(milliseconds=3000)
    assert results(broker, "b", 1) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 1000)
    broker.advance(milliseconds=1000)
    assert results(broker, "b", 1) == (0, 0)
    broker.advance(days=1)
    assert results(broker, "c", 22) == (0, 0)
    assert results(broker, "d", 1) == (0, 0), "the bucket holds 11 seconds of tokens"
    assert results(broker, "e", 1) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 500)


def test_settings_give_the_size_of_the_bucket() -> None:
    settings = {"controller.quota.window.num": "2", "controller.quota.window.size.seconds": "3"}
    broker = broker_with(KEY, 2.0, settings=settings)
    assert results(broker, "a", 13) == (0, 0)
    assert results(broker, "b", 1) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 500)


def test_clients_of_a_group_share_their_tokens_on_all_nodes() -> None:
    broker = broker_with(KEY, 1.0, brokers=3)
    first, second = broker.connect("app", node_id=1), broker.connect("app", node_id=2)
    response: Any = first.ask(create("a", 21), 6)
    assert response.topics[0].error_code == 0
    response = second.ask(create("b", 1), 6)
    assert (response.topics[0].error_code, response.throttle_time_ms) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 10_000)


@pytest.mark.parametrize(("release", "created"), [("2.8", 30), ("4.4", 12)])
def test_topics_that_metadata_creates_take_tokens(release: str, created: int) -> None:
    """As 2.8.2 and 4.4.0 with 30 topics: ZooKeeper creates all, KRaft those that the tokens of 11 seconds allow."""
    broker = broker_with(KEY, 1.0, kafka_version=release)
    names = tuple(MetadataRequestTopic(name=f"auto-{number}") for number in range(30))
    broker.connect("app").ask(MetadataRequest(topics=names), 8)
    assert sum(name.startswith("auto") for name in broker.state.cluster.topics) == created
    expected = 19_000 if created == 30 else 1000
    assert results(broker, "a", 1) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, expected)
