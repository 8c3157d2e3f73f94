"""Tests start further brokers over HTTP: each has state, clock, ports and control API of its own, and ends in time."""

from __future__ import annotations

import socket
import threading
import time

import confluent_kafka
import pytest

from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto_server.broker.broker import BrokerOptions
from kproto_server.control import brokers
from tests.control.client import controlled
from tests.network.raw_client import RawClient
from tests.waiting import LIMIT_S, wait_until

OF_THIS_MACHINE = {"host", "data", "tls_directory"}


def is_listening(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError:
        return False
    return True


def thread_count() -> int:
    return sum(thread.name == "kproto-broker" for thread in threading.enumerate())


def test_each_broker_has_its_own_state_and_control_api() -> None:
    with controlled(clock="manual") as (broker, client):
        made = client("POST", "/brokers", {"kafka_version": "2.0", "brokers": 2, "clock": "manual"})
        other = client("POST", "/brokers", {"settings": {"num.partitions": 4, "auto.create.topics.enable": False}})
        assert (made.status, made.json["number"], made.json["control_path"]) == (201, 1, "/brokers/1")
        before_ms = broker.clock.now_ms()
        assert client("POST", "/brokers/1/clock/advance", {"days": 1}).status == 204
        assert client("GET", "/brokers/1/clock").json["now_ms"] >= before_ms + 86_400_000
        assert broker.clock.now_ms() == before_ms
        assert client("GET", "/brokers/1/info").json["kafka_version"] == "2.0"
        with RawClient(made.json["bootstrap_servers"].split(",")[1]) as raw:
            raw.ask(ApiVersionsRequest(), 0)
        assert client("GET", "/brokers/1/requests").json["count"] == 1
        assert client("GET", "/brokers/1/").headers["content-type"] == "text/html; charset=utf-8"
        assert client("GET", "/brokers/1/events", timeout_s=0).status == 200
        assert len(broker.requests) == 0
        assert client("GET", "/brokers").json["brokers"] == [made.json, other.json]
        assert client("POST", "/brokers/1/nodes/2/stop").status == 204
        assert client("POST", "/brokers/1/reset").status == 204


def test_a_further_broker_takes_what_a_broker_of_python_takes() -> None:
    """Without the address, and without files of the machine, which other users of the port could read or change."""
    assert brokers.NewBroker.__annotations__.keys() == BrokerOptions.__annotations__.keys() - OF_THIS_MACHINE


def consumed(settings: str, topic: str, group: str) -> object:
    """Return the first record that confluent-kafka reads with these settings, and commit behind it."""
    options = dict(line.split("=", 1) for line in settings.splitlines())
    consumer = confluent_kafka.Consumer(options | {"group.id": group, "auto.offset.reset": "error"})
    consumer.subscribe([topic])
    try:
        message = consumer.poll(LIMIT_S)
        assert message is not None
        assert message.error() is None, message.error()
        consumer.commit(message=message, asynchronous=False)
        return message.value()
    finally:
        consumer.close()


def test_a_real_client_uses_a_broker_with_security_a_seed_and_faults() -> None:
    seed = {
        "topics": {"orders": {"partitions": 1, "records": ["a", "b", "c"]}},
        "groups": {"billing": {"offsets": {"orders": {"0": 1}}}},
    }
    fault = {"api": "FindCoordinator", "error": "COORDINATOR_NOT_AVAILABLE", "times": 1}
    with controlled() as (_, client):
        given = {"tls": "auto", "sasl": "SCRAM-SHA-256", "users": {"alice": "secret"}, "seed": seed, "faults": [fault]}
        made = client("POST", "/brokers", given)
        assert made.json["client_variables"]["KAFKA_SECURITY_PROTOCOL"] == "SASL_SSL"
        assert client("GET", "/brokers/1/client-variables").json["variables"] == made.json["client_variables"]
        settings = client("GET", "/brokers/1/client-settings", client="librdkafka", user="alice").body.decode()
        assert consumed(settings, "orders", "billing") == b"b"
        assert client("GET", "/brokers/1/faults/1").json["fired"] == 1
        offsets = client("GET", "/brokers/1/groups/billing/offsets").json["partitions"]
        assert [one["offset"] for one in offsets] == [2]
        assert client("POST", "/brokers/1/reset").status == 204
        assert consumed(settings, "orders", "billing") == b"b"
        assert client("POST", "/brokers/1/tls/certificate", {"certificate": "wrong"}).status == 400
        assert "no TLS" in client("POST", "/tls/certificate", {"certificate": "expired"}).json["detail"]


def test_a_broker_has_listeners() -> None:
    with controlled() as (_, client):
        names = ["PLAINTEXT://127.0.0.1:0", "SASL_PLAINTEXT://127.0.0.1:0"]
        made = client("POST", "/brokers", {"listeners": names, "sasl": "PLAIN"})
        assert made.status == 201, made.body
        with RawClient(made.json["bootstrap_servers"]) as raw:
            raw.ask(ApiVersionsRequest(), 0)


def test_a_broker_ends_with_delete_and_with_its_parent() -> None:
    threads = thread_count()
    with controlled() as (_, client):
        first, second = (client("POST", "/brokers", {}).json for _ in range(2))
        assert client("DELETE", "/brokers/1").status == 204
        assert (is_listening(first["bootstrap_servers"]), is_listening(second["bootstrap_servers"])) == (False, True)
        for method, path in (("GET", "/brokers/1"), ("DELETE", "/brokers/1"), ("GET", "/brokers/1/clock")):
            assert client(method, path).status == 404
        assert client("POST", "/brokers", {}).json["number"] == 3
    assert not is_listening(second["bootstrap_servers"])
    wait_until(lambda: thread_count() == threads, "the end of the threads")


def test_a_wait_on_a_broker_that_ends_ends() -> None:
    with controlled() as (_, client):
        client("POST", "/brokers", {})
        replies = []
        path = "/brokers/1/requests/wait"
        waiting = threading.Thread(target=lambda: replies.append(client("POST", path, {"count": 9, "timeout_s": 300})))
        began = time.monotonic()
        waiting.start()
        wait_until(lambda: client("GET", "/brokers/1/info").json["keeps_requests"], "the wait")
        client("DELETE", "/brokers/1")
        waiting.join(60)
        assert [reply.status for reply in replies] == [409]
        assert time.monotonic() - began < 60


def test_mistakes_have_problem_details(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "BROKERS_MAX", 1)
    with controlled() as (broker, client):
        for body, detail in (
            ({"kafka_version": "9.9"}, "9.9"),
            ({"brokers": 0}, "at least one node"),
            ({"brokers": 30_000_000}, "at most 1000 nodes"),
            ({"port": 70_000}, "is 0 to 65535, not 70000"),
            ({"port": -1}, "is 0 to 65535, not -1"),
            ({"port": 65535, "brokers": 2}, "is 0 to 65534, not 65535"),
            (
                {
                    "listeners": ["PLAINTEXT://127.0.0.1:0", "OTHER://127.0.0.1:65535"],
                    "settings": {"listener.security.protocol.map": "OTHER:PLAINTEXT"},
                    "brokers": 2,
                },
                "is 0 to 65534, not 65535",
            ),
            ({"settings": {"no.such": 1}}, "no.such"),
            ({"settings": {"sasl.oauthbearer.jwks.endpoint.url": "file:///x"}}, "may name a file of this machine"),
            ({"settings": {"ssl.keystore.location": "/x"}, "tls": "auto"}, "may name a file of this machine"),
            ({"clock": "wrong"}, "clock 'wrong' is not known"),
            ({"data": "/tmp"}, "has no argument 'data'"),  # noqa: S108
            ({"seed": "/etc/passwd"}, "seed is an object"),
            ({"seed": {"topics": {"t": {"size": 1}}}}, "topics.t: there is no 'size'"),
            ({"faults": [{"api": "Nothing", "close": True}]}, "no API 'Nothing'"),
            ({"faults": "faults.yaml"}, "faults is an array"),
            ({"tls": "wrong"}, "no kind of certificate 'wrong'"),
            ({"sasl": ["NONE"]}, "no SASL mechanism 'NONE'"),
            ({"users": {"alice": "secret"}}, "users need SASL"),
        ):
            reply = client("POST", "/brokers", body)
            assert reply.status == 400
            assert detail in reply.json["detail"]
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        assert client("POST", "/brokers", {"port": port}).status == 409
        assert client("POST", "/brokers", {}).status == 201
        assert client("POST", "/brokers", {}).status == 409
        assert client("POST", "/brokers/1/brokers", {}).status == 404
