"""Client libraries see the throttle times of their quotas: librdkafka and kafka-python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka import KafkaProducer

from kproto_server.broker.broker import Broker
from tests.network.raw_client import RawClient
from tests.security.quota_scripts import PRODUCER, change
from tests.waiting import wait_until

QUOTA = 100.0
RECORD = b"x" * 1050
"""With its request, between 1.0 and 2.0 s more than the ten seconds that a client may send at once."""


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.running() as running, RawClient(running.bootstrap_servers) as client:
        running.topics.create("orders")
        change({"client-id": "app"}, (PRODUCER, QUOTA))(client, 1)
        yield running


def test_librdkafka_reports_the_throttle_time(broker: Broker) -> None:
    seen: list[Any] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "app", "throttle_cb": seen.append})
    producer.produce("orders", RECORD)

    def has_seen() -> bool:
        producer.poll(0.01)
        return bool(seen)

    wait_until(has_seen, "the throttle event")
    assert 1.0 < seen[0].throttle_time < 2.0
    (request,) = broker.requests.wait(api="Produce")
    assert request.response is not None
    assert request.response.throttle_time_ms == pytest.approx(seen[0].throttle_time * 1000)  # type: ignore[attr-defined]


def test_kafka_python_logs_the_throttle_time_and_pauses(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="app", enable_idempotence=False)
    producer.send("orders", RECORD).get(20)
    producer.close()
    found = re.search(r"ProduceResponse throttled by broker \((\d+) ms\)", caplog.text)
    assert found is not None
    assert 1000 < int(found[1]) < 2000
