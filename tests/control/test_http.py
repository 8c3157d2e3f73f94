"""The control port refuses requests that are no HTTP, too large, too slow, too many, or of another site's pages."""

from __future__ import annotations

import json
import logging
import math
import threading

import pytest

from kproto_server import Broker
from kproto_server.control import api, conversation, listening
from kproto_server.control.admission import Admission
from kproto_server.control.message import HttpRequest
from kproto_server.control.problem import Problem
from tests.control.client import Client, controlled, read_all
from tests.waiting import wait_until

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
CLOSE = b"Connection: close\r\n"


def waiting_count() -> int:
    """Return how many operations are in progress."""
    return sum(thread.name == api.THREAD_NAME for thread in threading.enumerate())


def status_of(response: bytes) -> int:
    assert response.startswith(b"HTTP/1.1 ")
    return int(response.split()[1])


def problem_of(response: bytes) -> dict[str, object]:
    head, _, body = response.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head.lower()
    found: dict[str, object] = json.loads(body)
    assert found["status"] == status_of(response)
    assert "Traceback" not in str(found)
    return found


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        (b"GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n" + CLOSE + b"\r\n", 400),
        (b"GET /%ff HTTP/1.1\r\nHost: localhost\r\n" + CLOSE + b"\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20_000, 431),
        (b"GET /" + b"x" * 20_000, 431),
        (b"POST /reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n", 413),
        (b"POST /reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", 400),
        (b"POST /reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", 400),
        (b"POST /reset HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n{}", 501),
        (b"GET /health HTTP/1.0\r\n\r\n", 403),
        (b"BREW /reset HTTP/1.1\r\nHost: localhost\r\n" + CLOSE + b"\r\n", 405),
    ],
)
def test_what_is_no_request_gets_an_error_and_the_connection_closes(data: bytes, status: int) -> None:
    with controlled() as (_, client):
        assert problem_of(client.raw(data))["status"] == status
        assert client("GET", "/health").json == {"status": "ok"}


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"days": ' * 5_000,
        b'{"days": NaN}',
        b'{"days": 1e999}',
        b'{"days": 1' + b"0" * 5_000 + b"}",
        b'{"days": 1, "days": 2}',
        b'{"\\ud800": 1}',
        b'"days"',
        b"[]",
        b"\xff\xfe",
        b"{",
        b'{"days": 1} {}',
    ],
)
def test_what_is_no_json_object_gets_an_error(body: bytes) -> None:
    with controlled() as (_, client):
        assert client("POST", "/clock/advance", body).status == 400


def test_numbers_that_json_does_not_have_are_strings() -> None:
    with controlled(kafka_version="3.9") as (broker, client):
        broker.quotas.set(
            client_id="a", producer_byte_rate=1.0, request_percentage=math.inf, controller_mutation_rate=math.nan
        )
        reply = client("GET", "/quotas")
    assert reply.status == 200
    (quota,) = reply.json["quotas"]
    assert {name: value for name, value in quota.items() if value is not None} == {
        "client_id": "a",
        "producer_byte_rate": 1.0,
        "request_percentage": "Infinity",
        "controller_mutation_rate": "NaN",
    }


def test_a_body_may_be_large_and_no_larger() -> None:
    with controlled() as (_, client):
        most = conversation.BODY_MAX_BYTES
        assert client("POST", "/reset", b"{" + b" " * (most - 2) + b"}").status == 204
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        head = b"POST /reset HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        with client.connect() as sock:
            sock.sendall(head)
            try:
                for _ in range(most // 0x10000 + 1):
                    sock.sendall(chunk)
            except OSError:
                return  # the broker has closed the connection meanwhile
            assert problem_of(read_all(sock))["status"] == 413


def test_a_client_that_waits_for_100_continue_gets_it() -> None:
    with controlled() as (_, client), client.connect() as sock:
        sock.sendall(b"POST /reset HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
        sock.sendall(b"{}")
        assert status_of(sock.recv(1000)) == 204


def test_requests_of_one_connection_have_responses_in_order() -> None:
    with controlled() as (_, client):
        missing = b"GET /missing HTTP/1.1\r\nHost: localhost\r\n" + CLOSE + b"\r\n"
        head = b"HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        found = client.raw(HEALTH + head + HEALTH + missing)
    assert [int(part.split()[0]) for part in found.split(b"HTTP/1.1 ")[1:]] == [200, 200, 200, 404]
    assert found.count(b'{"status": "ok"}') == 2


def test_a_slow_request_is_refused_and_an_idle_connection_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "RECEIVE_S", 0.05)
    monkeypatch.setattr(conversation, "IDLE_S", 0.1)
    with controlled() as (_, client):
        assert problem_of(client.raw(HEALTH[:10]))["status"] == 408
        assert (
            problem_of(client.raw(b"POST /reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{"))["status"]
            == 408
        )
        assert client.raw(b"") == b""


def test_connections_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "CONNECTIONS_MAX", 2)
    with controlled() as (_, client):
        idle = [client.connect() for _ in range(2)]
        for sock in idle:
            sock.sendall(HEALTH)
            assert status_of(sock.recv(1000)) == 200
        found = client.raw(b"")
        assert problem_of(found)["status"] == 503
        for sock in idle:
            sock.close()
        wait_until(lambda: status_of(client.raw(HEALTH[:-2] + CLOSE + b"\r\n")) == 200, "a free connection")


def test_a_client_that_hangs_up_ends_its_wait() -> None:
    with controlled() as (_, client):
        sock = client.connect()
        body = b'{"count": 99, "timeout_s": 300}'
        head = b"POST /requests/wait HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        sock.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        wait_until(lambda: waiting_count() == 1, "the wait")
        sock.close()
        wait_until(lambda: waiting_count() == 0, "its end")


def test_a_broker_that_stops_ends_waits_and_idle_connections() -> None:
    with controlled() as (_, client):
        idle, waiting = client.connect(), client.connect()
        idle.sendall(HEALTH)
        assert status_of(idle.recv(1000)) == 200
        body = b'{"count": 99, "timeout_s": 300}'
        head = b"POST /requests/wait HTTP/1.1\r\nHost: localhost\r\n"
        waiting.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        wait_until(lambda: waiting_count() == 1, "the wait")
    assert read_all(idle) == b""
    wait_until(lambda: waiting_count() == 0, "its end")
    with pytest.raises(OSError):
        client.connect()


def test_a_defect_is_logged_and_not_shown(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("secret")

    with controlled() as (_, client):
        monkeypatch.setattr(api.Call, "_converted", fail)
        with caplog.at_level(logging.ERROR, "kproto"):
            reply = client("GET", "/health")
        monkeypatch.undo()
        assert reply.status == 500
        assert "secret" not in reply.body.decode()
        assert "ZeroDivisionError" in caplog.text
        assert client("GET", "/health").status == 200


@pytest.mark.parametrize("host", ["localhost", "localhost:80", "127.0.0.1:9", "127.1.2.3", "[::1]:1", "LOCALHOST."])
def test_loopback_may_be_named(host: str) -> None:
    Admission(True, None).check(HttpRequest("GET", "/", {"host": host}))


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "a@localhost",
        "[::1",
        "localhost/x",
    ],
)
def test_another_host_may_not_be_named(host: str) -> None:
    with pytest.raises(Problem, match="the Host header names"):
        Admission(True, None).check(HttpRequest("GET", "/", {"host": host}))


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:2"},
        {"origin": "https://localhost:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_pages_of_another_origin_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Problem, match="another site's"):
        Admission(True, None).check(HttpRequest("POST", "/", {"host": "localhost:1"} | headers))
    own = {"host": "localhost:1", "origin": "http://localhost:1", "sec-fetch-site": "same-origin"}
    Admission(True, None).check(HttpRequest("POST", "/", own))


def test_a_form_is_refused() -> None:
    form = HttpRequest("POST", "/", {"host": "localhost", "content-type": "text/plain"}, b"{}")
    with pytest.raises(Problem, match="the body is JSON"):
        Admission(True, None).check(form)


@pytest.mark.parametrize("given", [None, "", "Bearer", "Bearer wrong", "Basic secret", "secret", "Bearer sécret"])
def test_a_token_is_needed_where_there_is_one(given: str | None) -> None:
    headers = {"host": "broker.example"} | ({} if given is None else {"authorization": given})
    with pytest.raises(Problem, match="needs the header Authorization") as caught:
        Admission(False, "secret").check(HttpRequest("GET", "/", headers))
    assert dict(caught.value.headers) == {"WWW-Authenticate": "Bearer"}
    Admission(False, "secret").check(HttpRequest("GET", "/", headers | {"authorization": "bearer secret"}))


def test_a_port_that_others_can_reach_has_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(listening.TOKEN_VARIABLE, raising=False)
    with Broker.running() as broker:
        port = listening.open_port("0.0.0.0", 0)  # noqa: S104
        assert port.token is not None
        broker.run(lambda server: server.start_task(port.serve))
        address = f"http://127.0.0.1:{port.socket.getsockname()[1]}"
        assert Client(address)("GET", "/health").status == 401
        assert Client(address, port.token)("GET", "/health").status == 200
        assert port.content.splitlines() == [port.url, port.token]
    monkeypatch.setenv(listening.TOKEN_VARIABLE, "chosen")
    port = listening.open_port("127.0.0.1", 0)
    assert port.content.splitlines()[1] == "chosen"
    port.socket.close()
