"""Settings that one listener has for itself: ``listener.name.NAME.`` in front, as in Kafka."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kproto.codes import ErrorCode
from kproto.errors import UsageError
from kproto.messages.k17_sasl_handshake import SaslHandshakeRequest
from kproto.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from kproto_server.broker.broker import Broker
from kproto_server.broker.own_stores import OwnStores
from kproto_server.security.certificates import PASSWORD, Authority, CertificateKind
from tests.network.raw_client import RawClient
from tests.network.requests import topic_names
from tests.security.secured_client import SecuredClient
from tests.security.test_principals import principals

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
REAUTH = "connections.max.reauth.ms"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker whose listeners differ: INSIDE and OUTSIDE have SASL, OPEN and OWN have TLS."""
    folder = tmp_path_factory.mktemp("stores")
    ca = Authority.make(datetime.now(UTC))
    pair = ca.server(CertificateKind.AUTO, ["localhost", "127.0.0.1"], datetime.now(UTC))
    (folder / "own.p12").write_bytes(pair.pkcs12(ca))
    (folder / "own-ca.pem").write_bytes(ca.pair.certificate_pem)
    client = ca.client("alice", datetime.now(UTC))
    (folder / "client.pem").write_bytes(client.certificate_pem + client.key_pem)
    with Broker.running(
        tls="auto",
        sasl="PLAIN",
        users={"inner": "inner-secret"},
        listeners=[f"{name}://127.0.0.1:0" for name in ("INSIDE", "OUTSIDE", "OPEN", "OWN")],
        settings={
            "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT,OUTSIDE:SASL_PLAINTEXT,OPEN:SSL,OWN:SSL",
            "listener.name.outside.sasl.enabled.mechanisms": "SCRAM-SHA-256,PLAIN",
            "listener.name.outside.plain.sasl.jaas.config": f'{PLAIN} user_outer="outer-secret";',
            f"listener.name.outside.{REAUTH}": 60_000,
            "listener.name.own.ssl.client.auth": "required",
            "listener.name.own.ssl.enabled.protocols": "TLSv1.3",
            "listener.name.own.ssl.keystore.location": folder / "own.p12",
            "listener.name.own.ssl.keystore.password": PASSWORD,
            "listener.name.own.ssl.principal.mapping.rules": "RULE:^CN=([a-z]*).*$/of-$1/",
        },
    ) as running:
        running.topics.create("t")
        yield running


def ask_sasl(address: str, mechanism: str, token: bytes = b"") -> tuple[Any, Any]:
    """Return the responses to SaslHandshake and to SaslAuthenticate; no token: the first one alone."""
    with RawClient(address) as client:
        chosen = client.ask(SaslHandshakeRequest(mechanism=mechanism), 1)
        return chosen, client.ask(SaslAuthenticateRequest(auth_bytes=token), 2) if token else None


def test_each_listener_has_its_mechanisms(broker: Broker) -> None:
    inside, outside = broker.servers_of("INSIDE"), broker.servers_of("OUTSIDE")
    assert ask_sasl(inside, "PLAIN")[0].mechanisms == ("PLAIN",)
    assert set(ask_sasl(outside, "PLAIN")[0].mechanisms) == {"SCRAM-SHA-256", "PLAIN"}
    assert ask_sasl(outside, "SCRAM-SHA-256")[0].error_code == ErrorCode.NONE
    assert ask_sasl(inside, "SCRAM-SHA-256")[0].error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM


@pytest.mark.parametrize(("listener", "user", "session_ms"), [("INSIDE", "inner", 0), ("OUTSIDE", "outer", 60_000)])
def test_each_listener_has_its_users_and_sessions(broker: Broker, listener: str, user: str, session_ms: int) -> None:
    address = broker.servers_of(listener)
    _, right = ask_sasl(address, "PLAIN", f"\0{user}\0{user}-secret".encode())
    assert (right.error_code, right.session_lifetime_ms) == (ErrorCode.NONE, session_ms)
    other = {"inner": "outer", "outer": "inner"}[user]
    _, wrong = ask_sasl(address, "PLAIN", f"\0{other}\0{other}-secret".encode())
    assert wrong.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_clients_get_the_settings_of_their_listener(broker: Broker) -> None:
    assert "sasl.username=inner\n" in broker.client_settings("librdkafka")
    outside = broker.client_settings("librdkafka", listener="OUTSIDE")
    assert "sasl.mechanism=SCRAM-SHA-256\n" in outside
    assert "sasl.username=outer\n" in outside
    with pytest.raises(UsageError, match="no user 'inner': there are outer"):
        broker.client_settings("librdkafka", listener="OUTSIDE", user="inner")


def stores(broker: Broker) -> Path:
    location = broker.run(lambda server: server.state.settings.current.str_of_listener("OWN", "ssl.keystore.location"))
    return Path(location).parent


def test_each_listener_has_its_certificate_and_clients(broker: Broker) -> None:
    with_auto = ssl.create_default_context(cafile=str(broker.tls.files.ca_file))
    with SecuredClient(broker.servers_of("OPEN"), with_auto) as client:
        assert topic_names(client) == {"t"}
    with pytest.raises(ssl.SSLCertVerificationError):
        SecuredClient(broker.servers_of("OWN"), with_auto)
    own = ssl.create_default_context(cafile=str(stores(broker) / "own-ca.pem"))
    with pytest.raises((ssl.SSLError, ConnectionError)), SecuredClient(broker.servers_of("OWN"), own) as stranger:
        topic_names(stranger)
    own.load_cert_chain(stores(broker) / "client.pem")
    with SecuredClient(broker.servers_of("OWN"), own) as alice:
        assert topic_names(alice) == {"t"}
        assert alice.version == "TLSv1.3"
        assert "User:of-alice" in principals(broker)
    own.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionError)):
        SecuredClient(broker.servers_of("OWN"), own)


def test_other_certificates_leave_the_stores_of_listeners(broker: Broker) -> None:
    broker.tls.use("expired")
    own = ssl.create_default_context(cafile=str(stores(broker) / "own-ca.pem"))
    own.load_cert_chain(stores(broker) / "client.pem")
    with SecuredClient(broker.servers_of("OWN"), own) as client:
        assert topic_names(client) == {"t"}
    broker.tls.use("auto")


def test_stores_of_listeners_are_read_again_once(broker: Broker) -> None:
    with mock.patch.object(OwnStores, "read_key_store", autospec=True, side_effect=OwnStores.read_key_store) as read:
        assert broker.run(lambda server: server.state.cluster.read_stores_again()) == ""  # type: ignore[misc]  # it has stores
    assert read.call_count == 1


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({"listener.name.other.ssl.client.auth": "required"}, {"tls": "auto"}, "no such listener: there are SSL"),
        ({"listener.name.plaintext.ssl.keystore.location": "x"}, {}, "needs TLS: give tls"),
        ({"listener.name.plaintext.sasl.enabled.mechanisms": "PLAIN"}, {}, "needs SASL: give sasl, too"),
        (
            {"listener.name.sasl_plaintext.sasl.enabled.mechanisms": "GSSAPI"},
            {"sasl": "PLAIN"},
            "no SASL mechanism 'GSSAPI'",
        ),
        ({"listener.name.plaintext.plain.sasl.jaas.config": f"{PLAIN} user_a=b;"}, {}, "users need SASL"),
        (
            {"listener.name.other.plain.sasl.jaas.config": f"{PLAIN} user_a=b;"},
            {"sasl": "PLAIN"},
            "users of other: no such listener: there are SASL_PLAINTEXT",
        ),
        ({"listener.name.plaintext.plain.sasl.jaas.config": "x"}, {}, "is no login module"),
        (
            {"listener.name.ssl.ssl.principal.mapping.rules": "RULE:"},
            {"tls": "auto"},
            "principal.mapping.rules can't be",
        ),
        ({"listener.name.ssl.ssl.keystore.location": "missing.p12"}, {"tls": "auto"}, "can't read 'missing.p12'"),
        ({"listener.name.ssl.compression.type": "gzip"}, {"tls": "auto"}, "no broker setting"),
    ],
)
def test_what_a_listener_cannot_have_is_refused(settings: dict[str, str], options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message), Broker.running(settings=settings, **options):
        pass


def test_the_only_listener_has_the_name_of_its_protocol() -> None:
    with Broker.running(tls="auto", settings={"listener.name.ssl.ssl.client.auth": "required"}) as broker:
        context = ssl.create_default_context(cafile=str(broker.tls.files.ca_file))
        with (
            pytest.raises((ssl.SSLError, ConnectionError)),
            SecuredClient(broker.bootstrap_servers, context) as stranger,
        ):
            topic_names(stranger)
        assert "ssl.certificate.location" in broker.client_settings("librdkafka")
