"""OAUTHBEARER as real brokers do it (BA-115): unsecured tokens byte for byte, signed ones, sessions, and clients."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from kproto.errors import UsageError
from kproto_server.broker.broker import Broker
from kproto_server.security.oauth import (
    InvalidToken,
    SignedTokens,
    TokenIssuer,
    jwks_keys,
    subject_of_token,
    unsecured_bearer,
    unsecured_token,
)
from tests.security.oauth_scripts import BEARER, FOLDER, good, message, now_s, of_parts, scripts
from tests.security.sasl_scripts import CLOSED, Client, authenticate, handshake, list_groups, transcript
from tests.security.signed_tokens import AUDIENCES, ISSUER, accepted, jwks_of, tokens

RECORDED = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", BEARER]
DELAY = "connection.failed.authentication.delay.ms"
JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"
LIMIT_S = 20.0


@pytest.fixture(scope="module", params=RECORDED)
def release(request: pytest.FixtureRequest) -> Iterator[tuple[str, Broker]]:
    version = request.param.rpartition(".")[0]
    with Broker.running(kafka_version=version, settings={DELAY: 0}, sasl=MECHANISMS, users={"a": "b"}) as broker:
        yield request.param, broker


@pytest.mark.parametrize("script", scripts())
def test_the_transcript_is_that_of_the_release(release: tuple[str, Broker], script: str) -> None:
    name, broker = release
    assert transcript(broker.bootstrap_servers, scripts()[script]) == RECORDED[name][script]


@pytest.fixture(scope="module")
def issuers() -> tuple[TokenIssuer, TokenIssuer]:
    return TokenIssuer("RS256", "r1"), TokenIssuer("ES256", "e1")


@pytest.fixture(scope="module")
def signed(issuers: tuple[TokenIssuer, TokenIssuer], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    jwks = tmp_path_factory.mktemp("keys") / "jwks.json"
    jwks.write_text(jwks_of(*issuers))
    settings = {
        JWKS_URL: jwks.as_uri(),
        "sasl.oauthbearer.expected.audience": ",".join(AUDIENCES),
        "sasl.oauthbearer.expected.issuer": ISSUER,
        DELAY: 0,
    }
    with Broker.running(kafka_version="4.4", sasl=BEARER, settings=settings) as broker:
        yield broker


def test_signed_tokens_are_accepted_and_refused_as_by_a_real_broker(
    signed: Broker, issuers: tuple[TokenIssuer, TokenIssuer]
) -> None:
    cases = tokens(*issuers, now_s())
    found = {name: accepted(signed.bootstrap_servers, token) for name, (token, _) in cases.items()}
    assert found == {name: expected for name, (_, expected) in cases.items()}


def test_unsecured_tokens_are_refused_where_signed_ones_are_expected(signed: Broker) -> None:
    assert not accepted(signed.bootstrap_servers, good(iss=ISSUER, aud="kafka"))


def test_an_owner_that_cannot_be_encoded_is_refused(
    signed: Broker, issuers: tuple[TokenIssuer, TokenIssuer], caplog: pytest.LogCaptureFixture
) -> None:
    """With such an owner, responses and reports could not be written, and the data directory could not be read."""
    for surrogate in ("\ud800x", "x\udfff"):
        token = unsecured_token(surrogate, issued_s=now_s())
        with pytest.raises(InvalidToken, match="sub cannot be encoded"):
            unsecured_bearer(token, int(now_s() * 1000))
        with pytest.raises(InvalidToken):
            subject_of_token(token)
        valid = issuers[0].token(surrogate, issued_s=now_s(), iss=ISSUER, aud="kafka")
        assert not accepted(signed.bootstrap_servers, valid)
    assert unsecured_bearer(unsecured_token("\U0001d11e", issued_s=now_s()), int(now_s() * 1000)).name == "\U0001d11e"
    assert not [one for one in caplog.records if one.exc_info]


@pytest.mark.parametrize("value", [True, 7, -1.5, 10**400, math.nan, "", [], ["a"], [[]], {}, {"a": [1]}])
def test_values_of_wrong_types_are_no_defects(issuers: tuple[TokenIssuer, TokenIssuer], value: Any) -> None:
    """A key id that was a list was looked up in a dict."""
    at_s = now_s()
    signed = SignedTokens(jwks_keys(jwks_of(*issuers)), ["kafka"], "me")
    claims: dict[str, Any] = {"sub": "alice", "iat": at_s, "exp": at_s + 60, "iss": "me", "aud": "kafka"}
    for name in ("alg", "kid"):
        with pytest.raises(InvalidToken):
            signed.bearer(of_parts({"alg": "RS256", "kid": "r1", name: value}, claims, "AAAA"), int(at_s * 1000))
    for name in (*claims, "nbf", "scope"):
        changed = claims | {name: value}
        with suppress(InvalidToken):
            signed.bearer(issuers[0].token("alice", issued_s=at_s, **changed), int(at_s * 1000))
        with suppress(InvalidToken):
            unsecured_bearer(of_parts({"alg": "none"}, changed), int(at_s * 1000))


def test_the_session_ends_with_the_token_unless_the_client_authenticates_again() -> None:
    """KIP-368: the lifetime in the response is that of the token, by the broker's clock."""
    with Broker.running(sasl=BEARER, settings={DELAY: 0}, clock="manual") as broker:
        began_ms = broker.clock.now_ms()

        def log_in(client: Client) -> None:
            issued_s = broker.clock.now_ms() / 1000
            authenticate(message(unsecured_token("alice", issued_s=issued_s, lifetime_s=60)), 1)(client)

        def later(client: Client) -> None:
            broker.clock.advance(seconds=61)
            list_groups(client)

        found = transcript(
            broker.bootstrap_servers,
            [handshake(BEARER), log_in, list_groups, handshake(BEARER), log_in, list_groups, later],
        )
        assert broker.clock.now_ms() - began_ms == 61_000
    lifetime = (60_000).to_bytes(8, "big").hex()
    assert [found[1][-16:], found[4][-16:]] == [lifetime, lifetime]
    assert found[-1] == CLOSED
    assert found.count(CLOSED) == 1


def test_a_session_is_as_short_as_the_setting_says() -> None:
    settings = {DELAY: 0, "connections.max.reauth.ms": 5_000}
    with Broker.running(sasl=BEARER, settings=settings) as broker:
        found = transcript(broker.bootstrap_servers, [handshake(BEARER), authenticate(message(good()), 1)])
    assert found[1].endswith((5_000).to_bytes(8, "big").hex())


@pytest.mark.parametrize("name", ["carol", "dave"])
def test_librdkafka_logs_in(name: str) -> None:
    """By its unsecured tokens, and by tokens of the application."""
    confluent_kafka: Any = pytest.importorskip("confluent_kafka.admin")
    with Broker.running(sasl=BEARER) as broker:
        token = unsecured_token(name, issued_s=now_s())
        settings: dict[str, Any] = {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": BEARER,
        }
        if name == "carol":
            settings |= {"enable.sasl.oauthbearer.unsecure.jwt": True, "sasl.oauthbearer.config": f"principal={name}"}
        else:
            settings["oauth_cb"] = lambda _: (token, now_s() + 3600)
        admin = confluent_kafka.AdminClient(settings)
        admin.poll(0)
        assert admin.list_topics(timeout=LIMIT_S).brokers


def test_tokens_are_nowhere_to_be_read(caplog: pytest.LogCaptureFixture) -> None:
    token = good()
    with caplog.at_level("DEBUG"), Broker.running(sasl=BEARER, settings={DELAY: 0}) as broker:
        for one in (token, good(exp=now_s() - 1)):
            transcript(broker.bootstrap_servers, [handshake(BEARER), authenticate(message(one)), list_groups])
        seen = [repr(broker), repr(broker.observations.snapshot()), caplog.text]
        seen += [repr(request) + repr(request.frame) for request in broker.requests]
    assert not any(token.split(".")[1] in text for text in seen)


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("ftp://x/y", "can't be 'ftp://x/y': give a URL with file, http or https"),
        ("file:///missing/jwks.json", "can't read 'file:///missing/jwks.json'"),
        ("file:///etc/hostname", "the JWKS is no set of keys"),
    ],
)
def test_keys_that_cannot_be_read_are_refused(url: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        Broker(sasl=BEARER, settings={JWKS_URL: url}).start()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"keys": [1]}', '{"keys": []}', '{"keys": [{"kty": "RSA"}]}'])
def test_what_is_no_jwks_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="the JWKS"):
        jwks_keys(text)


def test_an_issuer_has_known_algorithms_only() -> None:
    with pytest.raises(UsageError, match="no algorithm 'HS256': give one of RS256, ES256"):
        TokenIssuer("HS256")
