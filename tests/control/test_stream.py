"""The stream of events has what is new, its looks are limited, and a client that does not read it is dropped."""

from __future__ import annotations

import json
import re
import socket
from typing import Any

import pytest

from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto_server.control import conversation, stream
from kproto_server.control.stream import EventStream
from tests.control.client import Client, commit, controlled
from tests.network.raw_client import RawClient
from tests.waiting import wait_until


def events(data: bytes) -> list[tuple[str, Any]]:
    found = re.findall(r"event: (.*)\ndata: (.*)\n\n", data.decode())
    return [(name, json.loads(text)) for name, text in found]


def looked(stream: EventStream, broker: Any) -> dict[str, Any]:
    return dict(events(stream.look(broker)))


def test_a_look_has_what_has_changed() -> None:
    with controlled(clock="manual") as (broker, _):
        commit(broker)
        page = EventStream({}, 300)
        first = looked(page, broker)
        assert list(first) == ["clock", "state", "requests", "timeline"]
        assert first["clock"] == {"now_ms": broker.clock.now_ms(), "rate": 0.0}
        assert [one["group_id"] for one in first["state"]["groups"]] == ["billing"]
        assert first["state"]["groups"][0]["expires_ms"] == broker.clock.now_ms() + 7 * 86_400_000
        assert first["requests"]["requests"][-1]["names"] == ["billing", "orders"]
        assert [one["kind"] for one in first["timeline"]["events"]] == ["commit"]
        assert not {"requests", "timeline"} & looked(page, broker).keys()
        commit(broker, offset=43)
        then = looked(page, broker)
        assert then["state"]["requests"]["taken"] == len(broker.requests)
        assert "topics" not in then["state"]
        assert then["requests"]["requests"][-1]["number"] == len(broker.requests)


def test_http_streams_until_its_time_is_over() -> None:
    with controlled() as (broker, client):
        commit(broker)
        reply = client("GET", "/events", timeout_s=0, api="OffsetCommit")
        assert reply.headers["content-type"] == "text/event-stream"
        found = dict(events(reply.body))
        assert [one["api"] for one in found["requests"]["requests"]] == ["OffsetCommit"]
        assert client("GET", "/events", timeout_s=0, api="OffsetComit").status == 400
        assert client("HEAD", "/events").body == b""


def test_a_request_is_sent_again_once_it_has_a_response() -> None:
    settings = {"group.initial.rebalance.delay.ms": 3000}
    with controlled(clock="manual", settings=settings) as (broker, _):
        commit(broker)
        page = EventStream({"api": "JoinGroup"}, 300)
        page.look(broker)
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
        request = JoinGroupRequest(
            group_id="billing", session_timeout_ms=10_000, member_id="", protocol_type="consumer", protocols=(protocol,)
        )
        with RawClient(broker.bootstrap_servers) as client:
            client.socket.sendall(client.frame(request, 0, 7))
            wait_until(lambda: broker.groups.state("billing") == "PreparingRebalance", "the rebalance")
            (open_one,) = looked(page, broker)["requests"]["requests"]
            assert open_one["responded_ms"] is None
            broker.clock.advance(seconds=3)
            client.read_frame()
            wait_until(lambda: broker.requests.where(api="JoinGroup")[0].responded_ms is not None, "the response")
            found = looked(page, broker)
            (responded,) = found["requests"]["requests"]
            assert (responded["number"], responded["responded_ms"]) == (open_one["number"], broker.clock.now_ms())
            (join,) = found["timeline"]["events"]
            assert (join["kind"], join["generation"], join["until_ms"]) == ("join", 1, broker.clock.now_ms())


def test_looks_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "REQUESTS_MAX", 5)
    with controlled() as (broker, _), RawClient(broker.bootstrap_servers) as client:
        page = EventStream({}, 300)
        client.ask(ApiVersionsRequest(), 0)
        page.look(broker)
        for _ in range(12):
            client.ask(ApiVersionsRequest(), 0)
        found = looked(page, broker)["requests"]
        assert [one["number"] for one in found["requests"]] == [9, 10, 11, 12, 13]
        assert found["skipped"] == 7


def test_a_client_that_does_not_read_is_dropped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(conversation, "SEND_S", 0.2)
    monkeypatch.setattr(conversation, "LOOK_S", 0.0)
    monkeypatch.setattr(EventStream, "look", lambda *_: b"event: x\ndata: {}\n\n" * 10_000)
    with controlled() as (_, client):
        sock = socket.create_connection(client.address)
        sock.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        ended = Client(client.url)("GET", "/health")
        assert ended.status == 200
        with sock:
            sock.settimeout(30)
            wait_until(lambda: _is_reset(sock), "the end")
    assert "the control API has failed" not in caplog.text


def _is_reset(sock: socket.socket) -> bool:
    """Return whether the broker has closed a connection, without reading from it."""
    try:
        sock.send(b"x")
    except OSError:
        return True
    return False
