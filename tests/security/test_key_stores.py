"""Key stores and trust stores of the settings `ssl.keystore.*`: PKCS12, PEM and JKS, made by Java and by OpenSSL."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from kproto.codes import ErrorCode
from kproto.errors import UsageError
from kproto.messages import k33_alter_configs as k33
from kproto.messages import k44_incremental_alter_configs as k44
from kproto_server.broker.broker import Broker
from kproto_server.security.certificates import PASSWORD, Authority, CertificateKind, KeyPair
from kproto_server.security.key_stores import key_store, trusted_certificates
from tests.network.raw_client import RawClient
from tests.network.requests import topic_names
from tests.security.secured_client import SecuredClient

FOLDER = Path(__file__).parents[2] / "fixtures" / "key-stores"
STORE, KEY, TRUST = "store-password", "key-password", "trust-password"
LOCATION, TYPE = "ssl.keystore.location", "ssl.keystore.type"


def authority() -> Authority:
    return Authority.make(datetime.now(UTC))


def server_pair(of: Authority) -> KeyPair:
    return of.server(CertificateKind.AUTO, ["localhost", "127.0.0.1"], datetime.now(UTC))


def organization(broker: Broker) -> str:
    """Return the organization in the certificate that a client gets, which trusts what `client_settings` have."""
    context = ssl.create_default_context(cafile=str(broker.tls.files.ca_file))
    with SecuredClient(broker.bootstrap_servers, context) as client:
        assert topic_names(client) == set()
        subject: Any = client.socket.getpeercert()
    (name,) = (value for part in subject["subject"] for key, value in part if key == "organizationName")
    return str(name)


@pytest.mark.parametrize("type_", ["JKS", "PKCS12"])
@pytest.mark.parametrize("made", ["jks", "p12"])
def test_stores_of_java_are_read_by_their_content(made: str, type_: str) -> None:
    settings = {LOCATION: str(FOLDER / f"server.{made}"), TYPE: type_, "ssl.keystore.password": STORE}
    if made == "jks":
        settings["ssl.key.password"] = KEY
    settings |= {"ssl.truststore.location": str(FOLDER / f"trust.{made}"), "ssl.truststore.password": TRUST}
    with Broker.running(tls="auto", settings=settings) as broker:
        assert organization(broker) == {"jks": "jks", "p12": "pkcs12"}[made]
        assert broker.tls.files.client_ca_file.read_text() == (FOLDER / "ca.pem").read_text()


def test_the_default_type_is_jks_which_also_reads_pkcs12() -> None:
    settings = {LOCATION: str(FOLDER / "server.p12"), "ssl.keystore.password": STORE}
    with Broker.running(tls="auto", settings=settings) as broker:
        assert organization(broker) == "pkcs12"


@pytest.mark.parametrize("way", ["file", "settings", "encrypted"])
def test_pem_is_in_a_file_or_in_the_settings(way: str, tmp_path: Path) -> None:
    ca = authority()
    pair = server_pair(ca)
    chain = (pair.certificate_pem + ca.pair.certificate_pem).decode()
    key = pair.key_pem.decode()
    settings = {TYPE: "PEM"}
    if way == "encrypted":
        encryption = BestAvailableEncryption(b"a key's password")
        key = pair.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()
        settings["ssl.key.password"] = "a key's password"
    if way == "file":
        (tmp_path / "server.pem").write_text(ca.pair.certificate_pem.decode() + key + pair.certificate_pem.decode())
        settings[LOCATION] = str(tmp_path / "server.pem")
    else:
        settings |= {"ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
    with Broker.running(tls="auto", settings=settings) as broker:
        assert organization(broker) == "kproto"
        assert broker.tls.files.ca_file.read_bytes() == ca.pair.certificate_pem
        assert f"ssl.ca.location={broker.tls.files.ca_file}" in broker.client_settings("librdkafka")


def test_clients_with_certificates_of_the_trust_store_are_principals(tmp_path: Path) -> None:
    ca, clients = authority(), authority()
    (tmp_path / "server.p12").write_bytes(server_pair(ca).pkcs12(ca))
    client = clients.client("alice", datetime.now(UTC))
    (tmp_path / "client.pem").write_bytes(client.certificate_pem + client.key_pem)
    settings = {
        LOCATION: str(tmp_path / "server.p12"), TYPE: "PKCS12", "ssl.keystore.password": PASSWORD,
        "ssl.truststore.certificates": clients.pair.certificate_pem.decode(), "ssl.truststore.type": "PEM",
        "ssl.client.auth": "required",
    }  # fmt: skip
    with Broker.running(tls="auto", settings=settings) as broker:
        context = ssl.create_default_context(cafile=str(broker.tls.files.ca_file))
        context.load_cert_chain(tmp_path / "client.pem")
        with SecuredClient(broker.bootstrap_servers, context) as alice:
            assert topic_names(alice) == set()
        other = authority().client("mallory", datetime.now(UTC))
        (tmp_path / "client.pem").write_bytes(other.certificate_pem + other.key_pem)
        context.load_cert_chain(tmp_path / "client.pem")
        with (
            pytest.raises((ssl.SSLError, ConnectionError)),
            SecuredClient(broker.bootstrap_servers, context) as mallory,
        ):
            topic_names(mallory)


def test_the_stores_are_read_again_without_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "server.p12"
    path.write_bytes((FOLDER / "server.p12").read_bytes())
    settings = {LOCATION: str(path), "ssl.keystore.password": STORE, "ssl.key.password": KEY}
    with Broker.running(tls="auto", settings=settings) as broker:
        path.write_bytes((FOLDER / "server.jks").read_bytes())
        assert organization(broker) == "pkcs12"
        broker.tls.use("auto")
        assert organization(broker) == "jks"
        path.write_bytes(b"junk")
        with pytest.raises(UsageError, match="no PKCS12 file with this password"):
            broker.tls.use("auto")
        assert organization(broker) == "jks"
        with pytest.raises(UsageError, match="kproto makes no certificates then"):
            broker.tls.use("expired")


OF_LISTENER = "listener.name.ssl.ssl.keystore.location"
SET, DELETE, APPEND = range(3)


def alter(client: RawClient, value: str, operation: int = SET, *, broker: str = "1", name: str = OF_LISTENER) -> int:
    config = k44.AlterableConfig(name=name, config_operation=operation, value=value)
    resource = k44.AlterConfigsResource(resource_type=4, resource_name=broker, configs=(config,))
    (found,) = client.ask(k44.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1).responses
    return int(found.error_code)


def test_clients_have_the_stores_read_again(tmp_path: Path) -> None:
    """KIP-226: AlterConfigs and IncrementalAlterConfigs of the listener's location, which stays the same."""
    path = tmp_path / "server.p12"
    path.write_bytes((FOLDER / "server.p12").read_bytes())
    settings = {LOCATION: str(path), "ssl.keystore.password": STORE, "ssl.key.password": KEY}
    with Broker.running(tls="auto", settings=settings) as broker:
        context = ssl.create_default_context(cafile=str(broker.tls.files.ca_file))
        with SecuredClient(broker.bootstrap_servers, context) as client:
            path.write_bytes((FOLDER / "server.jks").read_bytes())
            assert alter(client, "/etc/passwd") == ErrorCode.POLICY_VIOLATION
            assert alter(client, str(path), APPEND) != ErrorCode.NONE
            assert alter(client, str(path), broker="") == ErrorCode.POLICY_VIOLATION
            assert alter(client, STORE, name="listener.name.ssl.ssl.keystore.password") == ErrorCode.POLICY_VIOLATION
            assert organization(broker) == "pkcs12"
            assert alter(client, str(path)) == ErrorCode.NONE
            assert organization(broker) == "jks"
            path.write_bytes(b"junk")
            assert alter(client, str(path)) == ErrorCode.INVALID_REQUEST
            assert organization(broker) == "jks"
            path.write_bytes((FOLDER / "server.p12").read_bytes())
            assert alter(client, "", DELETE) == ErrorCode.NONE
            assert organization(broker) == "pkcs12"
            path.write_bytes((FOLDER / "server.jks").read_bytes())
            config = k33.AlterableConfig(name=OF_LISTENER, value=str(path))
            resource = k33.AlterConfigsResource(resource_type=4, resource_name="1", configs=(config,))
            for validate_only in (True, False):
                request = k33.AlterConfigsRequest(resources=(resource,), validate_only=validate_only)
                assert client.ask(request, 1).responses[0].error_code == ErrorCode.NONE
                assert organization(broker) == ("pkcs12" if validate_only else "jks")
    with Broker.running() as broker, RawClient(broker.bootstrap_servers) as client:
        assert alter(client, "") == ErrorCode.POLICY_VIOLATION
        assert alter(client, "", DELETE) == ErrorCode.NONE


STORES = {LOCATION: str(FOLDER / "server.jks"), "ssl.keystore.password": STORE, "ssl.key.password": KEY}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no file": ({LOCATION: "/no/such/file"}, "ssl.keystore.location: can't read '/no/such/file': No such file"),
    "password": (STORES | {"ssl.keystore.password": "wrong-word"}, "it is damaged, or has another password"),
    "key password": (STORES | {"ssl.key.password": "wrong-word"}, "is ssl.key.password right?"),
    "type": (STORES | {TYPE: "BKS"}, "ssl.keystore.type can't be 'BKS': give one of PEM, PKCS12, JKS"),
    "PEM": (STORES | {TYPE: "PEM"}, "no private key in PEM and PKCS8"),
    "two stores": (STORES | {"ssl.keystore.key": "x"}, "are two key stores: give one of them"),
    "half": ({"ssl.keystore.key": "x", TYPE: "PEM"}, "ssl.keystore.key is set, and ssl.keystore.certificate.chain is"),
    "no key store": ({"ssl.truststore.location": "x"}, "ssl.truststore.location is for a key store of your own"),
    "no certificates": (STORES | {"ssl.truststore.location": str(FOLDER / "ca.pem")}, "no PKCS12 file with this"),
    "no key": (STORES | {LOCATION: str(FOLDER / "trust.jks"), "ssl.keystore.password": TRUST}, "it has no private key"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_used_is_refused_in_one_line(case: str) -> None:
    settings, text = WRONG[case]
    with pytest.raises(UsageError) as refused, Broker.running(tls="auto", settings=settings):
        pass
    assert text in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not [word for word in (STORE, KEY, TRUST, "wrong-word") if word in str(refused.value)]


def test_stores_need_tls_and_no_other_directory(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs TLS"):
        Broker(settings=STORES)
    with pytest.raises(UsageError, match="leave out the directory"):
        Broker(tls="auto", tls_directory=str(tmp_path), settings=STORES)
    with (
        pytest.raises(UsageError, match="has no such certificate: give auto"),
        Broker.running(tls="expired", settings=STORES),
    ):
        pass


def test_damaged_stores_are_refused() -> None:
    """Each truncation, and each changed byte that the checksum does not find for want of a password."""
    whole = (FOLDER / "trust.jks").read_bytes()
    for size in range(0, len(whole), 7):
        with pytest.raises(UsageError):
            trusted_certificates(whole[:size], "JKS", None)
    server = (FOLDER / "server.jks").read_bytes()
    for position in range(4, len(server), 31):
        changed = server[:position] + bytes([server[position] ^ 0xFF]) + server[position + 1 :]
        with pytest.raises(UsageError):
            key_store(changed, "JKS", STORE, KEY)
