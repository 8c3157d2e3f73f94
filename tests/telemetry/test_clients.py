"""librdkafka subscribes to metrics and pushes them to kproto, which shows them to a test, in process and over HTTP."""

from __future__ import annotations

import base64
import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from kproto_server.broker.broker import Broker
from tests.control.client import controlled

if TYPE_CHECKING:
    from pathlib import Path

    from kproto_server.broker.client_metrics import ClientMetricsPush
    from kproto_server.broker.controls import BrokerControls

RECEIVER = {"client.telemetry.receiver.enable": True}
INTERVAL_MS = 100
LIMIT_S = 30.0
CONNECTIONS = b"producer.connection.creation.total"


def producer(broker: BrokerControls, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "app", **settings})


def pushed(broker: BrokerControls, of: Producer) -> tuple[ClientMetricsPush, ...]:
    """Return the pushes of a client as soon as there are any."""
    deadline_s = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline_s:
        found = broker.client_metrics.pushes("app")
        if found:
            return found
        of.poll(0.02)
    raise TimeoutError("no client has pushed metrics")


def test_librdkafka_pushes_metrics() -> None:
    with controlled(settings=RECEIVER) as (broker, http):
        broker.client_metrics.subscribe("all", interval_ms=INTERVAL_MS, match=["client_id=app"])
        client = producer(broker)
        first = pushed(broker, client)[0]
        rows = http("GET", "/client-metrics-pushes", client_id="app").json["pushes"]
    assert (first.software_name, first.node_id, first.is_terminating) == ("confluent-kafka-python", 1, False)
    assert first.content is not None
    assert CONNECTIONS in first.content
    assert base64.urlsafe_b64decode(first.client_instance_id + "==") != uuid.UUID(int=0).bytes
    assert {one["client_instance_id"] for one in rows} == {first.client_instance_id}
    assert base64.b64decode(rows[0]["content"]) == first.content


@pytest.mark.parametrize(
    ("receiver", "client"),
    [({}, {}), (RECEIVER, {"enable.metrics.push": False}), (RECEIVER, {"client.id": "other"})],
    ids=["no receiver", "off in the client", "another client"],
)
def test_others_push_nothing(receiver: dict[str, Any], client: dict[str, Any]) -> None:
    """Method. Every client that pushes metrics pushes them when it ends, too."""
    with Broker(settings=receiver) as broker:
        broker.client_metrics.subscribe("all", interval_ms=INTERVAL_MS, match=["client_id=app"])
        one = producer(broker, **client)
        one.list_topics(timeout=LIMIT_S)
        one.poll(0.0)
        del one
        assert broker.client_metrics.pushes() == ()


def test_subscriptions_survive_a_restart_and_not_a_reset(tmp_path: Path) -> None:
    with Broker(data=str(tmp_path)) as broker:
        broker.client_metrics.subscribe("all", ["a.", "b"], interval_ms=500, match=["client_id=x", "client_id=y"])
        broker.client_metrics.subscribe("gone")
        broker.client_metrics.unsubscribe("gone")
        snapshot = broker.snapshot()
    with Broker(data=str(tmp_path)) as broker:
        (found,) = broker.client_metrics.subscriptions()
        assert found == ("all", ("a.", "b"), 500, ("client_id=x", "client_id=y"))
        broker.reset()
        assert broker.client_metrics.subscriptions() == ()
        broker.restore(snapshot)
        assert broker.client_metrics.subscriptions() == (found,)
