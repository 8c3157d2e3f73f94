"""SASL as three real brokers do it, byte for byte (BA-110 to BA-114), and what transcripts cannot show."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.errors import UsageError
from kproto.messages.k17_sasl_handshake import SaslHandshakeRequest
from kproto_server.broker.broker import Broker
from kproto_server.security.sasl import FIRST_TOKEN_MAX_BYTES, Authentication, SaslRules
from kproto_server.security.users import ScramCredentials, Users
from kproto_server.testing import InMemoryBroker
from tests.security.in_memory_login import Login
from tests.security.oauth_scripts import message, of_parts
from tests.security.sasl_scripts import (
    CLOSED,
    GOOD,
    PASSWORD,
    SCRIPTS,
    Client,
    authenticate,
    client_final,
    client_first,
    handshake,
    list_groups,
    raw,
    transcript,
)
from tests.waiting import wait_until

RECORDED = Path(__file__).parents[2] / "fixtures" / "sasl"
RELEASES = {path.stem: json.loads(path.read_text()) for path in sorted(RECORDED.glob("*.json"))}
DELAY = "connection.failed.authentication.delay.ms"
SASL: Any = {"sasl": ["PLAIN", "SCRAM-SHA-256"], "users": {"alice": PASSWORD, "bob": "another"}}
SESSION_MS = 60_000


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> Iterator[tuple[str, Broker]]:
    version = ".".join(request.param.split(".")[:2])
    with Broker.running(kafka_version=version, settings={DELAY: 0}, **SASL) as broker:
        yield request.param, broker


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_transcript_is_that_of_the_release(release: tuple[str, Broker], script: str) -> None:
    name, broker = release
    assert transcript(broker.bootstrap_servers, SCRIPTS[script]) == RELEASES[name][script]


def error_of(frame: bytes | None) -> int:
    """Return the error code of a response to SaslHandshake or SaslAuthenticate."""
    assert frame is not None
    return int.from_bytes(frame[4:6], "big")


def test_a_failure_is_delayed_by_the_brokers_clock() -> None:
    """`connection.failed.authentication.delay.ms`: the response comes when the time has passed."""
    with Broker.running(clock="scaled:3600", settings={DELAY: 3_600_000}, **SASL) as broker:
        began_ms = broker.clock.now_ms()
        client = Client(broker.bootstrap_servers)
        handshake("PLAIN")(client)
        assert error_of(client.read()) == 0
        authenticate(b"\0alice\0wrong")(client)
        assert error_of(client.read()) == 58
        assert broker.clock.now_ms() - began_ms >= 3_600_000
        assert client.read() is None
        client.close()


def test_a_failure_of_a_token_without_a_header_is_delayed_too() -> None:
    """There is no response to it: the connection ends, and what was sent behind it is never handled."""
    with Broker.running(clock="scaled:3600", settings={DELAY: 3_600_000}, **SASL) as broker:
        began_ms = broker.clock.now_ms()
        client = Client(broker.bootstrap_servers)
        handshake("PLAIN", 0)(client)
        assert error_of(client.read()) == 0
        raw(b"\0alice\0wrong")(client)
        raw(GOOD)(client)
        assert client.read() is None
        assert broker.clock.now_ms() - began_ms >= 3_600_000
        client.close()


def test_a_session_ends_unless_the_client_authenticates_again() -> None:
    """KIP-368, BA-116: `connections.max.reauth.ms`, by the broker's clock."""
    again = [handshake("PLAIN"), authenticate(GOOD, 1)]
    with Broker.running(settings={"connections.max.reauth.ms": SESSION_MS}, **SASL) as broker:

        def later(client: Client) -> None:
            broker.clock.advance(milliseconds=SESSION_MS + 1)
            list_groups(client)

        found = transcript(broker.bootstrap_servers, [*again, list_groups, *again, list_groups, later])
    assert found[-1] == CLOSED
    assert found.count(CLOSED) == 1
    lifetime = SESSION_MS.to_bytes(8, "big").hex()
    assert [found[1].endswith(lifetime), found[4].endswith(lifetime)] == [True, True]


def test_a_large_first_token_of_scram_is_refused_as_a_malformed_one() -> None:
    """200 clients with tokens of 512 KiB took 500 MB, as long as they sent nothing more."""
    with Broker.running(settings={DELAY: 0}, **SASL) as broker:

        def response_to(token: bytes) -> Any:
            return transcript(broker.bootstrap_servers, [handshake("SCRAM-SHA-256"), authenticate(token)])

        first = b"n,,n=alice,r="
        largest = first + b"c" * (FIRST_TOKEN_MAX_BYTES - len(first))
        refusal = response_to(b"malformed")
        assert response_to(largest) != refusal
        assert response_to(largest + b"c") == refusal


def test_a_refused_token_of_oauthbearer_is_not_kept() -> None:
    """Its client may acknowledge the refusal much later."""
    authentication = Authentication(Users({}, ScramCredentials(bytes)), SaslRules(), lambda: "nonce")
    authentication.choose("OAUTHBEARER", raw=False)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        assert b"invalid_token" in authentication.step(message("a" * 500_000), 0)
        assert tracemalloc.get_traced_memory()[0] - before < 100_000
    finally:
        tracemalloc.stop()


def test_a_client_stays_the_same_user() -> None:
    as_bob = [handshake("PLAIN"), authenticate(b"\0bob\0another", 1), list_groups]
    with Broker.running(settings={"connections.max.reauth.ms": SESSION_MS, DELAY: 0}, **SASL) as broker:
        found = transcript(broker.bootstrap_servers, [handshake("PLAIN"), authenticate(GOOD, 1), *as_bob])
    text = "Cannot change principals during re-authentication from User.alice: User.bob"
    assert text.encode().hex() in found[3]
    assert found[4] == CLOSED


AGAIN = {"connections.max.reauth.ms": SESSION_MS, DELAY: 0}
LOGIN = [handshake("PLAIN"), authenticate(GOOD, 1)]


def errors_of(found: list[str]) -> list[str]:
    """Return the error code of each response, behind its correlation id."""
    return [one if one == CLOSED else one[8:12] for one in found]


def in_memory(session_ms: int) -> InMemoryBroker:
    return InMemoryBroker(settings={"sasl.enabled.mechanisms": "PLAIN", "connections.max.reauth.ms": str(session_ms)})


@pytest.mark.parametrize("mechanism", ["PLAIN", "unknown"])
def test_a_client_authenticates_again_once_in_a_second(mechanism: str) -> None:
    """As 2.8.2 and 4.4.0, which handle the handshake as an ordinary request."""
    broker = in_memory(SESSION_MS)
    client = Login(broker)
    client.log_in()
    client.log_in()
    broker.advance(milliseconds=999)
    for _ in range(2):
        assert client.shake_hands(mechanism) == ErrorCode.ILLEGAL_SASL_STATE
    broker.advance(milliseconds=1)
    client.log_in()
    assert client.shake_hands() == ErrorCode.ILLEGAL_SASL_STATE


def test_a_second_has_passed_in_real_time_although_the_clock_stands_still() -> None:
    broker = in_memory(SESSION_MS)
    client = Login(broker)
    client.log_in()
    client.log_in()
    broker.clock.tick(broker.clock.real_ms + 1000)
    client.log_in()


def test_a_session_that_ends_within_the_second_ends_the_connection() -> None:
    broker = in_memory(500)
    client = Login(broker)
    client.log_in()
    client.log_in()
    broker.advance(milliseconds=501)
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1) is None
    assert client.close_reason is not None


@pytest.mark.parametrize("request_of_another", [authenticate(b"n,,n=alice,r=abc", 1), list_groups])
def test_a_client_that_authenticates_again_stays_with_its_mechanism(request_of_another: Any) -> None:
    """As 2.8.2 and 4.4.0: the handshake has a response, what follows has none."""
    with Broker.running(settings=AGAIN, **SASL) as broker:
        found = transcript(broker.bootstrap_servers, [*LOGIN, handshake("SCRAM-SHA-256"), request_of_another])
    assert errors_of(found) == ["0000"] * 3 + [CLOSED]


def test_a_mechanism_that_is_not_enabled_ends_the_connection_of_a_client_that_authenticates_again() -> None:
    """As 2.8.2 and 4.4.0. A client that logs in gets a response before."""
    with Broker.running(settings={"connections.max.reauth.ms": SESSION_MS}, **SASL) as broker:
        assert errors_of(transcript(broker.bootstrap_servers, [*LOGIN, handshake("unknown")])) == ["0000"] * 2 + [
            CLOSED
        ]


def test_the_error_message_says_that_the_client_authenticates_again() -> None:
    bad = [handshake("OAUTHBEARER"), authenticate(b"x", 1)]
    login = [handshake("OAUTHBEARER"), authenticate(message(of_parts({"alg": "none"}, {"sub": "a", "exp": 4e9})), 1)]
    text = "Authentication failed during re-authentication due to invalid credentials with SASL mechanism OAUTHBEARER"
    with Broker.running(sasl=["OAUTHBEARER"], settings=AGAIN) as broker:
        assert text.encode().hex() in transcript(broker.bootstrap_servers, [*login, *bad])[3]
        assert text.replace("re-auth", "auth").encode().hex() in transcript(broker.bootstrap_servers, bad)[1]


def test_no_commit_of_another_connection_serves_a_client_before_it_authenticates() -> None:
    """The cache of commits responds to equal requests of all connections, but not before authentication."""
    confluent_kafka: Any = pytest.importorskip("confluent_kafka")
    with Broker.running(settings={DELAY: 0}, **SASL) as broker:
        text = broker.client_settings("librdkafka", user="alice", mechanism="PLAIN")
        settings = dict(line.split("=", 1) for line in text.splitlines())
        consumer = confluent_kafka.Consumer(settings | {"group.id": "g", "allow.auto.create.topics": True})
        broker.topics.create("t")
        for offset in (1, 2, 3):
            commit = confluent_kafka.TopicPartition("t", 0, offset)
            consumer.commit(offsets=[commit], asynchronous=False)
        consumer.close()
        request = broker.requests.where(api="OffsetCommit")[-1]
        client = Client(broker.bootstrap_servers)
        client.send_frame(request.frame)
        assert client.read() is None
        client.close()
        assert broker.groups.committed("g") == {("t", 0): 3}


def test_secrets_are_nowhere_to_be_read(caplog: pytest.LogCaptureFixture) -> None:
    """Neither in the request log, nor in the report, the log, nor in what the broker says of itself."""
    with caplog.at_level("DEBUG"), Broker.running(settings={DELAY: 0}, **SASL) as broker:
        for token in (GOOD, b"\0alice\0my-typo"):
            transcript(broker.bootstrap_servers, [handshake("PLAIN"), authenticate(token, 1), list_groups])
        scram = [handshake("SCRAM-SHA-256"), client_first(), client_final(), list_groups]
        transcript(broker.bootstrap_servers, scram)
        wait_until(lambda: len(broker.requests.where(api="ListGroups")) == 2, "the requests")
        seen = [repr(broker), repr(broker.observations.snapshot()), caplog.text]
        seen += [repr(request) + repr(request.frame) for request in broker.requests]
    assert [text for text in seen for secret in (PASSWORD, "my-typo", "another") if secret in text] == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"sasl": "GSSAPI"}, "no SASL mechanism 'GSSAPI': give some of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ({"users": {"alice": "x"}}, "users need SASL: give sasl, too"),
        ({"sasl": "PLAIN", "users": {"alice": ""}}, "the user 'alice' needs a name and a password"),
        ({"sasl": "PLAIN", "users": {"a\nb": "x"}}, "needs a name and a password of printable characters"),
        ({"settings": {"sasl.enabled.mechanisms": "PLAIN"}}, "sasl.enabled.mechanisms needs SASL: give sasl instead"),
    ],
)
def test_what_makes_no_sense_is_refused(options: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        Broker(**options)


def test_settings_are_for_users_and_mechanisms_that_there_are() -> None:
    with Broker.running(**SASL) as broker:
        with pytest.raises(UsageError, match="no user 'carol': there are alice, bob"):
            broker.client_settings("java", user="carol")
        with pytest.raises(UsageError, match="'SCRAM-SHA-512' is not enabled: give one of PLAIN, SCRAM-SHA-256"):
            broker.client_settings("java", mechanism="SCRAM-SHA-512")
    with Broker.running() as plain:
        assert plain.client_settings("librdkafka").endswith("security.protocol=plaintext\n")
        with pytest.raises(UsageError, match="has no SASL"):
            plain.client_settings("java", user="alice")
