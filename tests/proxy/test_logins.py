"""Who logs in behind the proxy by SASL: users, mechanisms and failures count as the broker counts them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kproto_server.broker.broker import Broker
from kproto_server.observation.observe import Observations
from kproto_server.report import json_file
from tests.commandline.commands import kproto
from tests.proxy.exchanged import new_exchanges, raw
from tests.proxy.proxies import proxy_of
from tests.report.samples import report_of
from tests.security import sasl_scripts
from tests.security.oauth_scripts import BEARER, good, message
from tests.security.sasl_scripts import (
    GOOD,
    SCRAM,
    authenticate,
    client_final,
    client_first,
    handshake,
    list_groups,
    transcript,
)
from tests.security.test_failed_authentications import SCRIPTS, SECRET

RIGHT = [
    [handshake("PLAIN", 0), sasl_scripts.raw(GOOD), list_groups],
    [handshake(SCRAM), client_first(), client_final(), list_groups],
    [handshake("PLAIN"), authenticate(GOOD), handshake("PLAIN"), authenticate(GOOD)],
]


def logins(report: dict[str, Any]) -> dict[str, Any]:
    (client,) = (client for client in report["clients"] if client["client_id"] == "t")
    names = "principals", "logins", "failed_authentications", "requests", "errors"
    return {name: client[name] for name in names}


def test_logins_and_failures_are_those_of_the_broker(tmp_path: Path) -> None:
    capture = tmp_path / "kafka.pcap"
    settings = {"connection.failed.authentication.delay.ms": 0}
    scripts = [
        *(steps for steps, _ in SCRIPTS),
        *RIGHT,
        [handshake(BEARER), authenticate(message(good())), list_groups],
    ]
    with Broker.running(sasl=["PLAIN", SCRAM, BEARER], users={"alice": "secret"}, settings=settings) as broker:
        with proxy_of(broker.bootstrap_servers, tmp_path, "--capture", str(capture)) as proxy:
            for steps in scripts:
                transcript(proxy.address, steps)
            report = proxy.end()
        own = json.loads(json_file.render(report_of(broker.observations)))
    found = logins(report)
    assert found == logins(own)
    assert "User:alice" in found["principals"]
    assert {login["mechanism"]: login["count"] for login in found["logins"]} == {BEARER: 1, "PLAIN": 3, SCRAM: 1}
    assert SECRET not in json.dumps(report)
    done = kproto("audit", str(capture), "--quiet", "--report", "-")
    assert done.returncode == 0, done.stderr
    assert logins(json.loads(done.stdout)) == found


def frame(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def pass_tokens(observations: Observations, mechanism: bytes, tokens: list[bytes], *last: bytes) -> Any:
    """Log in with tokens that have no headers; return the client that was seen."""
    exchanges = new_exchanges(observations)
    exchanges.requests.feed(raw(17, 0, 1, len(mechanism).to_bytes(2, "big") + mechanism))
    exchanges.responses.feed(frame(b"\0\0\0\1\0\0\0\0\0\0"))
    for index, token in enumerate((*tokens, *last)):
        (exchanges.responses if index % 2 else exchanges.requests).feed(frame(token))
    exchanges.broker_closed()
    observations.disconnected(exchanges.info)
    (client,) = observations.snapshot().clients
    return client


SCRAM_TOKENS = [b"n,,n=alice,r=abc", b"r=abcdef,s=c2FsdA==,i=4096", b"c=biws,r=abcdef,p=AAAA"]


def test_tokens_without_headers_are_read() -> None:
    client = pass_tokens(Observations(), SCRAM.encode(), SCRAM_TOKENS, b"v=AAAA")
    assert [(login.mechanism, login.user) for login in client.logins] == [(SCRAM, "alice")]
    assert client.failed_authentications == ()


def test_a_broker_that_closes_without_a_last_token_has_refused() -> None:
    client = pass_tokens(Observations(), SCRAM.encode(), SCRAM_TOKENS)
    assert [(one.mechanism, one.user) for one in client.failed_authentications] == [(SCRAM, "alice")]
    assert client.logins == client.closed == ()


def test_the_user_of_another_mechanism_is_not_known() -> None:
    client = pass_tokens(Observations(), b"GSSAPI", [b"\x60\x01", b"", b"\x60\x02"], b"")
    assert client.logins == client.failed_authentications == ()
    assert client.principals == ("User:ANONYMOUS",)
