"""Delegation tokens (KIP-48, KIP-373, BA-117): responses of recorded releases, what is kept, and that no secret is."""

from __future__ import annotations

import json
import ssl
from base64 import b64encode
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto_server.broker.broker import Broker
from kproto_server.security import delegation_tokens
from kproto_server.security.delegation_tokens import DelegationTokens, Principal, Token
from tests.network.raw_client import RawClient
from tests.robustness.steps import GROWTH_MAX, count_steps, growth
from tests.security.secured_client import SecuredClient
from tests.security.token_scripts import (
    FOLDER,
    HOUR_MS,
    SECRET_KEY,
    USERS,
    Script,
    authenticate,
    create,
    describe,
    expire,
    login,
    renew,
    transcript,
    user,
    version_name,
)

KEY = "delegation.token.secret.key"
OLD_KEY = "delegation.token.master.key"
SCRAM = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
LISTENERS = ["SASL_PLAINTEXT://127.0.0.1:0", "PLAINTEXT://127.0.0.1:0"]
DELAY = "connection.failed.authentication.delay.ms"
SECURED: Any = {"sasl": SCRAM, "users": USERS, "settings": {KEY: SECRET_KEY, DELAY: 0}, "clock": "manual"}


def authorizer_of(release: str, mode: str) -> str:
    """Return the class of the authorizer of a release."""
    if mode == "kraft":
        return "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    is_old = release < "2.4"
    return "kafka.security.auth.SimpleAclAuthorizer" if is_old else "kafka.security.authorizer.AclAuthorizer"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_the_responses_are_those_of_the_release(path: Path) -> None:
    *words, release, mode = path.stem.split("-")
    variant = "-".join(words)
    settings: dict[str, object] = {DELAY: 0}
    if variant == "with-key":
        settings |= {KEY: SECRET_KEY, "super.users": "User:admin;User:ANONYMOUS"}
        settings["authorizer.class.name"] = authorizer_of(release, mode)
    version = version_name(f"{release}-{mode}")
    options: Any = {"listeners": LISTENERS, "sasl": SCRAM, "users": USERS, "settings": settings, "clock": "manual"}
    with Broker.running(kafka_version=version, **options) as broker:

        def pause(duration_ms: int) -> None:
            broker.clock.advance(milliseconds=duration_ms)

        found = transcript(variant, broker.bootstrap_servers, broker.servers_of("PLAINTEXT"), version, pause)
    recorded = json.loads(path.read_text())
    differences = {number: pair for number, pair in enumerate(zip(found, recorded, strict=True)) if pair[0] != pair[1]}
    assert not differences, json.dumps(differences, indent=1)[:20_000]


def script_of(broker: Broker) -> Script:
    return Script(broker.bootstrap_servers, "", broker.kafka_version.name, lambda duration_ms: None)


ALL = describe("alice", asks_all=True)
LOGGED_IN = [0, "", "4096", 24 * HOUR_MS]
REFUSED = ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("name", [KEY, OLD_KEY])
def test_the_key_has_two_names(name: str) -> None:
    with Broker.running(**(SECURED | {"settings": {name: SECRET_KEY}})) as broker:
        script = script_of(broker)
        assert create("alice", "one")(script)[0] == 0
        assert authenticate("one")(script) == LOGGED_IN
        script.close()


def test_tokens_survive_restarts_and_a_start_without_a_key(tmp_path: Path) -> None:
    options: Any = {**SECURED, "data": str(tmp_path / "data")}
    with Broker.running(**options) as broker:
        first = script_of(broker)
        create("alice", "one", renewers=(user("bob"), user("a:b")))(first)
        create("alice", "two", lifetime_ms=HOUR_MS)(first)
        create("alice", "three")(first)
        expire("alice", "three", -1)(first)
        renew("bob", "one", 2 * HOUR_MS)(first)
        described = ALL(first)
        assert len(described) == 5
        first.close()
    with Broker.running(**(options | {"settings": {}})) as broker:
        script = script_of(broker)
        assert ALL(script)[0] == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        script.close()
    with Broker.running(**options) as broker:
        script = script_of(broker)
        script.tokens = first.tokens
        assert ALL(script) == described
        assert [authenticate(name)(script)[0] for name in ("one", "two", "three")] == [0, 0, REFUSED]
        script.close()
    with Broker.running(**(options | {"settings": {KEY: "another key"}})) as broker:
        script = script_of(broker)
        script.tokens = first.tokens
        assert renew("alice", "one", -1)(script)[0] == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        assert authenticate("one")(script)[0] == REFUSED
        script.close()


@pytest.mark.parametrize("change", [expire, renew])
def test_a_token_whose_end_is_beyond_64_bits_survives_a_restart(change: Any, tmp_path: Path) -> None:
    """Its end is negative, as in Kafka; the file with it could not be read."""
    options: Any = {**SECURED, "data": str(tmp_path / "data"), "kafka_version": "2.8"}
    with Broker.running(**options) as broker:
        script = script_of(broker)
        create("alice", "one")(script)
        assert change("alice", "one", (1 << 63) - 1)(script) == [0, "beyond 64 bits", 0]
        described = ALL(script)
        script.close()
    with Broker.running(**options) as broker:
        again = script_of(broker)
        again.tokens = script.tokens
        assert ALL(again) == described
        again.close()


def test_a_reset_removes_tokens_and_a_snapshot_brings_them_back() -> None:
    with Broker.running(**SECURED) as broker:
        script = script_of(broker)
        create("alice", "one")(script)
        snapshot = broker.snapshot()
        script.close()
        broker.reset()
        assert authenticate("one")(script)[0] == REFUSED
        broker.restore(snapshot)
        assert authenticate("one")(script)[0] == 0


def test_tokens_are_removed_some_time_after_their_end_by_the_brokers_clock() -> None:
    """`delegation.token.expiry.check.interval.ms`: until then they log in, and the session has no time left."""
    settings = {KEY: SECRET_KEY, "delegation.token.expiry.check.interval.ms": 3 * HOUR_MS}
    with Broker.running(**(SECURED | {"settings": settings})) as broker:
        script = script_of(broker)
        create("alice", "short", lifetime_ms=HOUR_MS)(script)
        create("alice", "long")(script)
        broker.clock.advance(hours=2)
        assert [one[0] for one in ALL(script)[3:]] == ["long", "short"]
        assert authenticate("short")(script) == [0, "", "4096", 0]
        broker.clock.advance(hours=2)
        assert [one[0] for one in ALL(script)[3:]] == ["long"]
        assert authenticate("short")(script)[0] == REFUSED
        script.close()


def test_the_limits_are_settings() -> None:
    limits = {"delegation.token.max.lifetime.ms": 5 * HOUR_MS, "delegation.token.expiry.time.ms": 2 * HOUR_MS}
    with Broker.running(**(SECURED | {"settings": {KEY: SECRET_KEY} | limits})) as broker:
        script = script_of(broker)
        assert create("alice", "one")(script)[4:6] == [2 * HOUR_MS, 5 * HOUR_MS]
        assert create("alice", "two", lifetime_ms=HOUR_MS)(script)[4:6] == [HOUR_MS, HOUR_MS]
        broker.clock.advance(hours=1)
        assert renew("alice", "one", -1)(script) == [0, f"issue + {3 * HOUR_MS}", 0]
        script.close()


def test_a_session_ends_with_its_token() -> None:
    with Broker.running(**SECURED) as broker:
        script = script_of(broker)
        create("alice", "one", lifetime_ms=HOUR_MS)(script)
        assert authenticate("one", stays="by-token")(script) == [0, "", "4096", HOUR_MS]
        assert describe("by-token")(script)[0] == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        broker.clock.advance(hours=1, milliseconds=1)
        assert describe("by-token")(script) == "closed"
        script.close()


def test_a_certificate_says_who_a_client_is(tmp_path: Path) -> None:
    """On a listener with TLS alone, clients with a certificate have tokens, and others do not."""
    settings = {KEY: SECRET_KEY, "ssl.client.auth": "requested"}
    with Broker.running(tls="auto", tls_directory=str(tmp_path), settings=settings) as broker:
        script = script_of(broker)
        for name in ("certified", "anonymous"):
            context = ssl.create_default_context(cafile=str(broker.tls.files.ca_file))
            if name == "certified":
                context.load_cert_chain(broker.tls.files.client_certificate_file, broker.tls.files.client_key_file)
            script.adopt(name, SecuredClient(broker.bootstrap_servers, context))
        assert create("certified", "one")(script)[:2] == [0, "User:CN=client,O=kproto"]
        assert create("anonymous")(script)[:2] == [ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, "User:ANONYMOUS"]
        script.close()


def test_a_cluster_of_an_older_metadata_version_has_no_tokens() -> None:
    with Broker.running(**SECURED, kafka_version="3.9") as broker:
        script = script_of(broker)
        create("alice", "one")(script)
        broker.run(lambda server: server.state.cluster.finalize({"metadata.version": 13}))
        changes = (create("alice"), renew("alice", "one", -1), expire("alice", "one", -1))
        assert [change(script)[0] for change in changes] == [ErrorCode.UNSUPPORTED_VERSION] * 3
        assert len(ALL(script)) == 4
        script.close()


def test_secrets_are_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the key nor an HMAC is in logs, reprs, the list of requests, snapshots, files or described configs."""
    directory = tmp_path / "data"
    with caplog.at_level("DEBUG"), Broker.running(**SECURED, data=str(directory)) as broker:
        script = script_of(broker)
        create("alice", "one")(script)
        renew("alice", "one", HOUR_MS)(script)
        authenticate("one")(script)
        ALL(script)
        script.close()
        asked = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
        with RawClient(broker.bootstrap_servers) as client:
            login(client, "PLAIN", b"\0alice\0alice-secret")
            request = DescribeConfigsRequest(resources=(asked,), include_synonyms=True, include_documentation=False)
            (result,) = client.ask(request, 4).results
        (config,) = (one for one in result.configs if one.name == KEY)
        assert (config.value, config.is_sensitive, config.synonyms[0].value) == (None, True, None)
        requests = [one for one in broker.requests if "DelegationToken" in one.api]
        assert len(requests) == 3
        frames = b"".join(one.frame for one in requests)
        seen = [
            caplog.text,
            repr(broker),
            repr(broker.observations.snapshot()),
            repr(broker.snapshot()),
            repr(requests),
        ]
    _, secret, _ = script.tokens["one"]
    files = b"".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())
    forms = (SECRET_KEY, b64encode(secret).decode(), secret.hex(), repr(secret)[2:-1])
    assert not [form for form in forms if any(form in text for text in seen)]
    assert not [form for form in (SECRET_KEY.encode(), b64encode(secret), secret) if form in files + frames]


def test_few_tokens_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kproto_server.handlers.k38_create_delegation_token.TOKENS_MAX", 2)
    with Broker.running(**SECURED) as broker:
        script = script_of(broker)
        assert create("alice", renewers=(user("a" * 10_000),))(script)[0] == ErrorCode.POLICY_VIOLATION
        codes = [create("alice", name)(script)[0] for name in ("one", "two", "three")]
        assert codes == [0, 0, ErrorCode.POLICY_VIOLATION]
        script.close()


def test_tokens_have_few_renewers_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A renewer without a name has 4 characters, and took 300 bytes: 10,000 tokens of 2500 would take 7 GB."""
    monkeypatch.setattr("kproto_server.handlers.k38_create_delegation_token.ALL_NAMES_MAX", 20_000)
    with Broker.running(**SECURED) as broker:
        script = script_of(broker)

        def error_with(renewer_count: int, name: str | None = None) -> int:
            found: int = create("alice", name, renewers=(user(""),) * renewer_count)(script)[0]
            return found

        assert [error_with(count) for count in (97, 96, 95)] == [ErrorCode.POLICY_VIOLATION, 0, 0]
        assert [error_with(10), error_with(0, "last")] == [ErrorCode.POLICY_VIOLATION, 0]
        broker.reset()
        script = script_of(broker)
        assert [error_with(count) for count in (96, 95)] == [0, 0]
        script.close()


def test_the_cost_of_an_end_does_not_grow_with_the_tokens_that_have_logged_in() -> None:
    """The credentials of all tokens were looked through for each one that ended: 9000 took 15 s."""

    def steps(count: int) -> int:
        tokens = DelegationTokens(SECRET_KEY, lambda size: bytes(size))
        alice = Principal("User", "alice")
        all_tokens = [Token(str(index), alice, alice, (), 1, 2, 3) for index in range(count)]
        tokens.replace(all_tokens)
        credential = tokens.scram_credential("SCRAM-SHA-256", "0")
        with mock.patch.object(delegation_tokens, "scram_credential", return_value=credential):
            for token in all_tokens:
                tokens.scram_credential("SCRAM-SHA-256", token.token_id)
        return count_steps(lambda: tokens.replace(()))

    assert growth(steps) < GROWTH_MAX
