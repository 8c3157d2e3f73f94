"""No secret is in what a broker shows: `repr`, logs, reports, the request log, the control API, snapshots, error texts.

Method. A broker has a secret of every kind, and clients use all of them, rightly and wrongly, in every way that the
protocol has. Then the test collects what the broker shows, and searches it for each secret: as it is, as Python writes
it, in Base64 and in hexadecimal.
"""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import signal
import ssl
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from kproto.errors import UsageError
from kproto.messages import k33_alter_configs as k33
from kproto.messages import k38_create_delegation_token as k38
from kproto.messages import k39_renew_delegation_token as k39
from kproto.messages import k40_expire_delegation_token as k40
from kproto.messages import k41_describe_delegation_token as k41
from kproto.messages import k44_incremental_alter_configs as k44
from kproto.messages import k51_alter_user_scram_credentials as k51
from kproto.messages.k17_sasl_handshake import SaslHandshakeRequest
from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from kproto.secret_configs import is_secret_config
from kproto_server.broker.broker import Broker
from kproto_server.commandline.cli import main
from kproto_server.control.operations import OPERATIONS
from kproto_server.observation.logged import NotKept
from kproto_server.report import html_page, json_file, markdown, text
from kproto_server.security.certificates import Authority, CertificateKind
from kproto_server.security.oauth import TokenIssuer
from tests.control.client import Client as HttpClient
from tests.control.client import controlled
from tests.control.test_operations import send_example
from tests.fixture_files import FIXTURES
from tests.network.raw_client import RawClient
from tests.report.samples import report_of
from tests.security.oauth_scripts import BEARER, message, now_s
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
from tests.security.secured_client import SecuredClient

RIGHT, TYPED = "alices-own-password", "a-wrong-password-of-alice"
KEY_PASSWORD, SECRET_KEY, ALTERED = "password-of-the-key", "key-of-delegation-tokens", "an-altered-password"
OTHER_USER = "password-of-another-broker"
SALTED = hashlib.sha256(b"salted").digest()
TRIES = "a-password-in-an-error"
BROKER = 4
OF_CLIENTS = {
    "GET /client-variables": ["password"],
    "GET /client-settings": ["password"],
    "GET /brokers": ["another broker's user"],
    "GET /brokers/{number}": ["another broker's user"],
}
"""What returns settings of clients, and so the password of the user whom they are for."""
Secrets = dict[str, bytes]


def written(secret: bytes) -> Iterator[str]:
    """Yield what a secret looks like in a text."""
    yield secret.decode("latin-1")
    yield repr(secret)[2:-1]
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(secret).decode().rstrip("=")
    yield secret.hex()
    yield secret.hex().upper()


def found_in(shown: str, secrets: Secrets) -> list[str]:
    """Return the names of the secrets that are in a text."""
    return [name for name, secret in secrets.items() if any(form in shown for form in written(secret))]


def log_in(client: RawClient, mechanism: str, token: bytes) -> None:
    client.ask(SaslHandshakeRequest(mechanism=mechanism), 1)
    assert client.ask(SaslAuthenticateRequest(auth_bytes=token), 1).error_code == 0


def plain(password: str) -> bytes:
    return b"\0alice\0" + password.encode()


def administer(client: RawClient, secrets: Secrets) -> str:
    """Do what an administrator does with secrets; return the id of a delegation token."""
    created = client.ask(k38.CreateDelegationTokenRequest(renewers=(), max_lifetime_ms=-1), 3)
    secrets["HMAC of a token"] = created.hmac
    assert created.error_code == 0
    assert client.ask(k39.RenewDelegationTokenRequest(hmac=created.hmac, renew_period_ms=-1), 2).error_code == 0
    assert client.ask(k41.DescribeDelegationTokenRequest(owners=None), 3).tokens[0].hmac == created.hmac
    client.ask(k40.ExpireDelegationTokenRequest(hmac=b"x" * 64, expiry_time_period_ms=0), 2)
    new = k51.ScramCredentialUpsertion(name="bob", mechanism=1, iterations=4096, salt=b"s", salted_password=SALTED)
    client.ask(k51.AlterUserScramCredentialsRequest(deletions=(), upsertions=(new,)), 0)
    for name in (
        "ssl.keystore.password",
        "listener.name.plaintext.plain.sasl.jaas.config",
        "delegation.token.secret.key",
    ):
        of_33 = k33.AlterConfigsResource(
            resource_type=BROKER, resource_name="1", configs=(k33.AlterableConfig(name=name, value=ALTERED),)
        )
        client.ask(k33.AlterConfigsRequest(resources=(of_33,), validate_only=True), 1)
        config = k44.AlterableConfig(name=name, config_operation=0, value=ALTERED)
        of_44 = k44.AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=(config,))
        client.ask(k44.IncrementalAlterConfigsRequest(resources=(of_44,), validate_only=False), 1)
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=None)
    described = client.ask(DescribeConfigsRequest(resources=(resource,), include_synonyms=True), 2)
    assert not found_in(repr(described), secrets)
    return str(created.token_id)


def together(*steps: Step) -> Step:
    """Return a step that sends the frames of several in one piece."""

    def step(client: Any) -> None:
        frames: list[bytes] = []
        send, client.send_bytes = client.send_bytes, frames.append
        for one in steps:
            one(client)
        client.send_bytes = send
        client.send_bytes(b"".join(frames))

    return step


def first_by_token(token_id: str) -> Step:
    """Return the first step of SCRAM with a delegation token."""

    def step(client: Any) -> None:
        client.first_bare = f"n={token_id},r=abc,tokenauth=true".encode()
        authenticate(b"n,," + client.first_bare)(client)

    return step


def attempts(secrets: Secrets, issuer: TokenIssuer, token_id: str) -> list[list[Step]]:
    """Return what clients without TLS send, right and wrong."""
    good = secrets["token of OAUTHBEARER"].decode()
    expired = issuer.token("alice", issued_s=0, lifetime_s=60)
    secrets["expired token"] = expired.encode()
    of_token = b64encode(secrets["HMAC of a token"]).decode()
    right, wrong = plain(RIGHT), plain(TYPED)
    return [
        [handshake("PLAIN"), authenticate(right), list_groups],
        [handshake("PLAIN"), authenticate(wrong)],
        [handshake("PLAIN"), authenticate(wrong[1:])],
        [handshake("PLAIN", 0), raw(right), list_groups],
        [handshake("PLAIN", 0), raw(wrong)],
        [handshake(SCRAM), client_first(), client_final(RIGHT), list_groups],
        [handshake(SCRAM), client_first(), client_final(TYPED)],
        [handshake(SCRAM), authenticate(wrong)],
        [handshake(SCRAM), first_by_token(token_id), client_final(of_token), list_groups],
        [handshake(SCRAM), first_by_token(token_id), authenticate(of_token.encode())],
        [handshake(BEARER), authenticate(message(good)), list_groups],
        [handshake(BEARER), authenticate(message(expired)), authenticate(b"\1")],
        [handshake(BEARER), authenticate(b"n,,\1auth=Basic " + good.encode() + b"\1\1")],
        [authenticate(wrong)],
        # Authenticating again (KIP-368): rightly, wrongly, and with tokens without headers behind the request.
        [handshake("PLAIN"), authenticate(right), handshake("PLAIN"), authenticate(wrong)],
        [handshake("PLAIN"), authenticate(right), together(handshake("PLAIN"), authenticate(right)), list_groups],
        [handshake("PLAIN"), authenticate(right), handshake("PLAIN", 0), raw(wrong)],
        [handshake("PLAIN"), authenticate(right), together(handshake("PLAIN", 0), raw(right)), list_groups],
    ]  # fmt: skip


def objects() -> Iterator[object]:
    """Yield the objects of kproto that exist."""
    gc.collect()
    for found in gc.get_objects():
        module = type(found).__module__
        if isinstance(module, str) and module.startswith(("kproto.", "kproto_server.")):
            yield found


def content(of: object) -> str:
    """Return all texts and bytes in a value, through its attributes and elements."""
    seen: set[int] = set()
    waiting, parts = [of], []
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, (type, ModuleType, FunctionType)):
            continue
        seen.add(id(one))
        if isinstance(one, bytes):
            parts.append(one.decode("latin-1"))
        elif isinstance(one, str):
            parts.append(one)
        else:
            waiting += gc.get_referents(one)
    return "\n".join(parts)


def of_routes(client: HttpClient) -> Iterator[tuple[str, str]]:
    """Yield what each route of the control API returns to its example, and to reads without one."""
    client("POST", "/brokers", {"sasl": "PLAIN", "users": {"carol": OTHER_USER}})
    changing = "/reset", "/stop", "/snapshots/{number}/restore", "/crash", "/disconnect"
    for operation in OPERATIONS:
        if operation.path.endswith(changing) or "wait" in operation.path or operation.path == "/events":
            continue
        if operation.method == "GET" and not operation.in_path:
            yield f"GET {operation.path}", client("GET", operation.path).body.decode()
        if operation.method != "DELETE":
            yield f"{operation.method} {operation.path}", send_example(client, operation).body.decode()


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    return {
        "password": RIGHT.encode(), "typed password": TYPED.encode(), "key password": KEY_PASSWORD.encode(),
        "secret key": SECRET_KEY.encode(), "altered config": ALTERED.encode(), "salted password": SALTED,
        "another broker's user": OTHER_USER.encode(), "tried": TRIES.encode(),
    }  # fmt: skip


def test_no_output_has_a_secret(secrets: Secrets, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    ca, issuer = Authority.make(datetime.now(UTC)), TokenIssuer("ES256")
    pair = ca.server(CertificateKind.AUTO, ["localhost", "127.0.0.1"], datetime.now(UTC))
    encrypted = pair.key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(KEY_PASSWORD.encode())
    ).decode()
    for number, line in enumerate((encrypted + pair.key_pem.decode()).splitlines()):
        if not line.startswith("-"):
            secrets[f"private key, {number}"] = line.encode()
    secrets["private key"] = pair.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, _none())
    secrets["token of OAUTHBEARER"] = issuer.token("alice", issued_s=now_s()).encode()
    (tmp_path / "keys.json").write_text(issuer.jwks)
    options: dict[str, Any] = {
        "tls": "auto",
        "sasl": ["PLAIN", SCRAM, BEARER],
        "users": {"alice": RIGHT},
        "data": str(tmp_path / "data"),
        "settings": {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": encrypted,
            "ssl.key.password": KEY_PASSWORD,
            "ssl.keystore.certificate.chain": (pair.certificate_pem + ca.pair.certificate_pem).decode(),
            "delegation.token.secret.key": SECRET_KEY,
            "sasl.oauthbearer.jwks.endpoint.url": (tmp_path / "keys.json").as_uri(),
            "connection.failed.authentication.delay.ms": 0,
            "connections.max.reauth.ms": 3_600_000,
            "listeners": "SASL_SSL://127.0.0.1:0,OPEN://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
            "listener.security.protocol.map": "OPEN:SASL_PLAINTEXT",
        },
    }
    shown: dict[str, str] = {}
    with ExitStack() as stack:
        broker, http = stack.enter_context(controlled(**options))
        context = ssl.create_default_context(cafile=str(broker.tls.files.ca_file))
        client = stack.enter_context(SecuredClient(broker.bootstrap_servers, context))
        log_in(client, "PLAIN", plain(RIGHT))
        token_id = administer(client, secrets)
        for steps in attempts(secrets, issuer, token_id):
            transcript(broker.servers_of("OPEN"), steps)
        for steps in ([authenticate(plain(TYPED))], [handshake("PLAIN", 0), raw(plain(TYPED))]):
            transcript(broker.servers_of("PLAINTEXT"), steps)
        assert broker.is_running
        snapshot = broker.snapshot()
        shown["snapshot"] = content((snapshot._topics, snapshot._groups)) + repr(snapshot)
        for request in broker.requests:
            shown[f"request {request.number}"] = repr(request) + content((request.frame, request.response_frame))
            try:
                shown[f"request {request.number}"] += repr((request.request, request.response))
            except NotKept:
                continue
        shown |= of_routes(http)
        for page in ("/", "/metrics", "/openapi.json"):
            shown[page] = http("GET", page).body.decode()
        body = {"sasl": "PLAIN", "users": {"": TRIES}, "settings": {"ssl.key.password": TRIES}}
        shown["an error over HTTP"] = http("POST", "/brokers", body).body.decode()
        report = report_of(broker.observations)
        for form in (text, json_file, markdown, html_page):
            shown[form.__name__] = form.render(report)
        for one in objects():
            shown[f"repr of {type(one).__qualname__}"] = repr(one)
        assert RIGHT in broker.client_settings("java"), "the settings of clients have the password, as they are for"
    for path in sorted((tmp_path / "data").rglob("*")):
        if path.is_file():
            shown[str(path)] = path.read_bytes().decode("latin-1")
    shown["log"] = caplog.text
    assert len(shown) > 100
    shown_secrets = {name: found for name, shown_text in shown.items() if (found := found_in(shown_text, secrets))}
    assert shown_secrets == OF_CLIENTS


def _none() -> Any:
    from cryptography.hazmat.primitives.serialization import NoEncryption

    return NoEncryption()


@pytest.mark.parametrize(
    "options",
    [
        {"sasl": "PLAIN", "users": {"": TRIES}},
        {"sasl": "PLAIN", "users": {"alice": TRIES + "\n"}},
        {"users": {"alice": TRIES}},
        {"sasl": "GSSAPI", "users": {"alice": TRIES}},
        {"settings": {"ssl.key.password": TRIES}},
        {"settings": {"ssl.keystore.key": TRIES}, "tls": "auto"},
        {"settings": {"ssl.keystore.key": TRIES, "ssl.keystore.certificate.chain": TRIES}, "tls": "auto"},
        {"settings": {"ssl.keystore.location": __file__, "ssl.keystore.password": TRIES}, "tls": "auto"},
        {"settings": {"ssl.keystore.pasword": TRIES}, "tls": "auto"},
        {"settings": {"delegation.token.secret.key": TRIES, "num.partitions": "x"}},
    ],
)
def test_no_error_has_a_secret(options: dict[str, Any]) -> None:
    with pytest.raises((UsageError, TypeError)) as raised:
        Broker(**options).start()
    assert TRIES not in str(raised.value)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--sasl", "PLAIN", "--user", TRIES],
        ["--user", f"alice:{TRIES}"],
        ["--sasl", "PLAIN", "--user", f":{TRIES}"],
        ["--set", f"ssl.keystore.pasword={TRIES}"],
        ["--set", f"ssl.key.password={TRIES}"],
        ["--tls", "auto", "--set", f"ssl.keystore.key={TRIES}"],
    ],
)
def test_no_line_of_the_command_line_has_a_secret(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert main(["serve", "--port", "0", *arguments]) == 2
    captured = capsys.readouterr()
    assert TRIES not in captured.out + captured.err
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == blocked


def test_a_client_that_sends_its_token_to_the_wrong_listener_is_not_logged() -> None:
    """The request log has what it sent up to the old SaslHandshake; a token that looks like a request is none."""
    with Broker.running() as broker:
        transcript(broker.bootstrap_servers, [handshake("PLAIN", 0), raw(b"\0Bob\0" + TYPED.encode())])
        transcript(broker.bootstrap_servers, [list_groups])
        assert [request.api for request in broker.requests] == ["SaslHandshake", "ListGroups"]


def test_messages_show_no_secret() -> None:
    assert repr(SaslAuthenticateRequest(auth_bytes=plain(RIGHT))) == "SaslAuthenticateRequest(auth_bytes=<secret>)"
    shown = repr(k44.AlterableConfig(name="retention.ms", config_operation=0, value="7"))
    assert shown == "AlterableConfig(name='retention.ms', config_operation=0, value='7')"


def test_the_passwords_of_all_releases_are_secrets() -> None:
    """By the types of Kafka's settings. Certificates of authorities are public."""
    settings = json.loads((FIXTURES / "broker-configs.json").read_text(encoding="utf-8"))["broker"]
    passwords = {
        name for name, releases in settings.items() for each in releases.values() if each and each[0] == "PASSWORD"
    }
    assert {name for name in passwords if not is_secret_config(name)} == {"ssl.truststore.certificates"}
