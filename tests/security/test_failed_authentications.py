"""Authentications that fail are counted by client, mechanism and user, and reports have them without passwords."""

from __future__ import annotations

from collections import Counter

import pytest

from kproto_server.broker.broker import Broker
from kproto_server.observation import observe
from kproto_server.observation.observe import Observations
from kproto_server.report import html_page, json_file, markdown, text
from kproto_server.requests.context import ConnectionInfo
from kproto_server.security.oauth import unsecured_token
from tests.report.samples import report_of
from tests.security.oauth_scripts import BEARER, message
from tests.security.sasl_scripts import (
    SCRAM,
    Step,
    authenticate,
    client_final,
    client_first,
    handshake,
    list_groups,
    raw,
    transcript,
)

SECRET = "hunter2"  # noqa: S105 - of a test
LOGIN = b"\0alice\0" + SECRET.encode()
EXPIRED = message(unsecured_token("alice", issued_s=0, lifetime_s=60))
SCRIPTS: list[tuple[list[Step], tuple[str, str] | None]] = [
    ([handshake("PLAIN"), authenticate(b"\0alice\0secret"), list_groups], None),
    ([handshake("PLAIN"), authenticate(LOGIN)], ("PLAIN", "alice")),
    ([handshake("PLAIN", 0), raw(LOGIN)], ("PLAIN", "alice")),
    ([handshake("PLAIN"), authenticate(b"\0carol\0" + SECRET.encode())], ("PLAIN", "carol")),
    ([handshake("PLAIN"), authenticate(LOGIN[1:])], ("PLAIN", "")),
    ([handshake("PLAIN"), authenticate(LOGIN[1:] + b"\0")], ("PLAIN", "")),
    ([handshake(SCRAM), client_first(), client_final(SECRET)], (SCRAM, "alice")),
    ([handshake(SCRAM), client_first(), client_final(junk="AAAA")], (SCRAM, "alice")),
    ([handshake(SCRAM), authenticate(SECRET.encode())], (SCRAM, "")),
    ([handshake(BEARER), authenticate(EXPIRED), authenticate(b"\1")], (BEARER, "")),
    ([handshake("GSSAPI")], ("GSSAPI", "")),
]
"""What clients send, with mechanism and user of the failure that is counted."""


def test_failures_are_counted_and_no_report_has_a_password() -> None:
    settings = {"connection.failed.authentication.delay.ms": 0}
    with Broker.running(sasl=["PLAIN", SCRAM, BEARER], users={"alice": "secret"}, settings=settings) as broker:
        for steps, _ in SCRIPTS:
            transcript(broker.bootstrap_servers, steps)
        (client,) = broker.observations.snapshot().clients
        report = report_of(broker.observations)
    expected = [failure for _, failure in SCRIPTS if failure is not None]
    assert client.client_id == "t"
    counts = {(one.mechanism, one.user): one.count for one in client.failed_authentications}
    assert counts == Counter(expected)
    reports = [text.render(report), json_file.render(report), markdown.render(report), html_page.render(report)]
    for rendered in reports:
        assert "GSSAPI" in rendered
        assert "carol" in rendered
        assert SECRET not in rendered


def test_the_number_of_users_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "FAILED_AUTHENTICATIONS_MAX", 2)
    observations, info = Observations(), ConnectionInfo("/127.0.0.1")
    for user in "abcd":
        observations.failed_authentication(info, "app", "PLAIN", user)
    (client,) = observations.snapshot().clients
    assert [(one.user, one.count) for one in client.failed_authentications] == [
        (observe.OTHER_USERS, 2),
        ("a", 1),
        ("b", 1),
    ]
