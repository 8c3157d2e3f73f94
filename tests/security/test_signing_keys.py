"""The keys of signed tokens are read again while a broker runs: of an endpoint by time and need, of a changed file.

Method: what a broker 4.4.0 did on 2026-11-24 with the same keys and the same endpoint, or file.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kproto.errors import UsageError
from kproto_server.broker.broker import Broker
from kproto_server.security.oauth import JWKS_URL, TokenIssuer
from tests.security.oauth_scripts import BEARER
from tests.security.signed_tokens import accepted, jwks_of
from tests.waiting import wait_until

DELAY = "connection.failed.authentication.delay.ms"
REFRESH = "sasl.oauthbearer.jwks.endpoint.refresh.ms"
HOUR_MS = 3_600_000


class Endpoint(ThreadingHTTPServer):
    """A server of keys."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), KeysHandler)
        self.text = ""
        self.missing_bytes = 0
        """Bytes that responses promise and do not have."""
        self.requests = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/keys"


class KeysHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server: Any = self.server
        server.requests += 1
        body = server.text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + server.missing_bytes))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def issuers() -> tuple[TokenIssuer, TokenIssuer]:
    return TokenIssuer("ES256", "first"), TokenIssuer("ES256", "second")


def logs_in(broker: Broker, issuer: TokenIssuer) -> bool:
    token = issuer.token("alice", issued_s=broker.clock.now_ms() / 1000, lifetime_s=10 * HOUR_MS / 1000)
    return accepted(broker.bootstrap_servers, token)


def options(url: str) -> Any:
    return {"sasl": BEARER, "settings": {JWKS_URL: url, DELAY: 0}, "clock": "manual"}


def test_an_unknown_key_has_the_endpoint_read_again_at_most_once_a_minute(
    endpoint: Endpoint, issuers: tuple[TokenIssuer, TokenIssuer]
) -> None:
    first, second = issuers
    endpoint.text = first.jwks
    with Broker.running(**options(endpoint.url)) as broker:
        assert [logs_in(broker, first), logs_in(broker, second), logs_in(broker, second)] == [True, False, False]
        wait_until(lambda: endpoint.requests == 2, "the endpoint is read again")
        endpoint.text = jwks_of(first, second)
        assert not logs_in(broker, second)
        broker.clock.advance(minutes=1)
        assert not logs_in(broker, second)
        wait_until(lambda: logs_in(broker, second), "the new key is known")
        assert endpoint.requests == 3


def test_the_endpoint_is_read_again_after_a_time_by_the_brokers_clock(
    endpoint: Endpoint, issuers: tuple[TokenIssuer, TokenIssuer]
) -> None:
    first, second = issuers
    endpoint.text = first.jwks
    with Broker.running(**options(endpoint.url)) as broker:
        endpoint.text = second.jwks
        broker.clock.advance(minutes=59)
        assert [logs_in(broker, first), endpoint.requests] == [True, 1]
        broker.clock.advance(minutes=1)
        wait_until(lambda: not logs_in(broker, first), "the old key is forgotten")
        assert logs_in(broker, second)


def test_keys_stay_when_the_endpoint_sends_none(
    endpoint: Endpoint, issuers: tuple[TokenIssuer, TokenIssuer], caplog: pytest.LogCaptureFixture
) -> None:
    first, _ = issuers
    endpoint.text = first.jwks
    settings = options(endpoint.url)
    settings["settings"] |= {REFRESH: 1000}
    with Broker.running(**settings) as broker:
        endpoint.text = "no keys"
        broker.clock.advance(seconds=1)
        wait_until(lambda: "the keys stay" in caplog.text, "a warning")
        assert logs_in(broker, first)


@pytest.mark.parametrize("content", ["cut", "[" * 100_000])
def test_keys_are_read_again_after_any_bad_response(
    content: str, endpoint: Endpoint, issuers: tuple[TokenIssuer, TokenIssuer], caplog: pytest.LogCaptureFixture
) -> None:
    first, second = issuers
    endpoint.text = first.jwks
    settings = options(endpoint.url)
    settings["settings"] |= {REFRESH: 1000}
    with Broker.running(**settings) as broker:
        endpoint.text, endpoint.missing_bytes = content, int(content == "cut")
        broker.clock.advance(seconds=1)
        wait_until(lambda: "the keys stay" in caplog.text, "a warning")
        assert logs_in(broker, first)
        endpoint.text, endpoint.missing_bytes = second.jwks, 0
        broker.clock.advance(seconds=1)
        wait_until(lambda: logs_in(broker, second), "the new keys are read")


def test_a_broker_does_not_start_when_the_endpoint_cuts_its_response(
    endpoint: Endpoint, issuers: tuple[TokenIssuer, TokenIssuer]
) -> None:
    endpoint.text, endpoint.missing_bytes = issuers[0].jwks, 1
    with pytest.raises(UsageError, match="can't read"), Broker.running(**options(endpoint.url)):
        pass


@pytest.mark.parametrize(("release", "follows"), [("4.0", False), ("4.1", True)])
def test_a_file_is_followed_from_4_1_on(
    release: str, follows: bool, issuers: tuple[TokenIssuer, TokenIssuer], tmp_path: Path
) -> None:
    first, second = issuers
    path = tmp_path / "my keys.json"
    path.write_text(first.jwks)
    with Broker.running(**options(path.as_uri()), kafka_version=release) as broker:
        assert [logs_in(broker, first), logs_in(broker, second)] == [True, False]
        path.write_text(second.jwks)
        os.utime(path, ns=(1, 1))  # a change within the resolution of file times is a change, too
        assert [logs_in(broker, first), logs_in(broker, second)] == [not follows, follows]
        for content in ("no keys", None, jwks_of(first, second)):
            path.unlink() if content is None else path.write_text(content)
            has_keys = content not in ("no keys", None)
            expected = [has_keys, has_keys] if follows else [True, False]
            assert [logs_in(broker, first), logs_in(broker, second)] == expected, content
