"""Each kind of certificate is what it says: OpenSSL, as a client, accepts it or names the fault."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.x509 import DNSName, SubjectAlternativeName

from kproto.errors import UsageError
from kproto.headers import request_frame
from kproto_server.broker.broker import Broker
from kproto_server.security.certificates import Authority, CertificateKind
from tests.network.requests import ALL_TOPICS, topic_names
from tests.security.secured_client import SecuredClient
from tests.waiting import wait_until

FAULTS = {
    "expired": "certificate has expired",
    "not-yet-valid": "certificate is not yet valid",
    "wrong-name": "IP address mismatch, certificate is not valid for '127.0.0.1'.",
    "unknown-ca": "unable to get local issuer certificate",
    "revoked": "certificate revoked",
    "weak-key": "EE certificate key too weak",
}


PLAINTEXT = request_frame(ALL_TOPICS, 1, correlation_id=1, client_id="old")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker.running(tls="auto") as running:
        yield running


def context_of(broker: Broker) -> ssl.SSLContext:
    """Return a client's context that trusts the CA, checks names and reads the list of revoked certificates."""
    context = ssl.create_default_context(cafile=str(broker.tls.files.ca_file))
    context.load_verify_locations(str(broker.tls.files.revocation_list_file))
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    return context


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", socket.gethostname()])
def test_the_right_certificate_has_each_name_of_this_machine(broker: Broker, host: str) -> None:
    broker.tls.use("auto")
    with SecuredClient(broker.bootstrap_servers, context_of(broker), host=host) as client:
        assert topic_names(client) == set()


def test_a_certificate_has_the_ascii_form_of_an_international_name() -> None:
    now = datetime.now(UTC)
    pair = Authority.make(now).server(CertificateKind.AUTO, ["ü.example", "b_c.example"], now)
    names = pair.certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
    assert names.get_values_for_type(DNSName) == ["xn--tda.example", "b_c.example"]


def test_what_is_no_host_name_is_refused() -> None:
    advertised = {"advertised.listeners": "SSL://ü..example:9092"}
    with pytest.raises(UsageError, match=r"TLS: no certificate can have the host name 'ü\.\.example'"):
        Broker(tls="auto", settings=advertised).start()


@pytest.mark.parametrize("kind", FAULTS)
def test_a_wrong_certificate_is_refused_for_its_fault(broker: Broker, kind: str) -> None:
    broker.tls.use(kind)
    with pytest.raises(ssl.SSLCertVerificationError) as refused:
        SecuredClient(broker.bootstrap_servers, context_of(broker), host="127.0.0.1")
    assert refused.value.verify_message == FAULTS[kind]


def test_connections_go_on_when_the_certificate_changes(broker: Broker) -> None:
    broker.tls.use("auto")
    with SecuredClient(broker.bootstrap_servers, context_of(broker)) as client:
        broker.tls.use("expired")
        assert topic_names(client) == set()


def test_the_ca_stays_as_long_as_its_directory(tmp_path: Path) -> None:
    with Broker.running(tls="auto", tls_directory=str(tmp_path)) as first:
        context = context_of(first)
    with (
        Broker.running(tls="auto", tls_directory=str(tmp_path)) as second,
        SecuredClient(second.bootstrap_servers, context) as client,
    ):
        assert topic_names(client) == set()


def test_a_temporary_directory_ends_with_the_broker() -> None:
    with Broker.running(tls="auto") as broker:
        directory = broker.tls.files.directory
        assert (directory / "ca.pem").exists()
    assert not directory.exists()


def test_only_the_user_reads_private_keys(tmp_path: Path) -> None:
    with Broker.running(tls="auto", tls_directory=str(tmp_path)):
        private = {path.name for path in tmp_path.iterdir() if path.stat().st_mode & 0o077 == 0}
    assert private == {"ca-key.pem", "server-key.pem", "client-key.pem", "client.p12"}


def test_a_directory_without_a_ca_is_refused(tmp_path: Path) -> None:
    for name in ("ca.pem", "ca-key.pem"):
        (tmp_path / name).write_text("no certificate")
    with pytest.raises(UsageError, match=r"are no CA: remove both, and one is made"):
        Broker(tls="auto", tls_directory=str(tmp_path)).start()
    assert (tmp_path / "ca.pem").read_text() == "no certificate"


def test_unknown_kinds_and_directories_without_tls_are_refused() -> None:
    with pytest.raises(UsageError, match="no kind of certificate 'rotten': give one of auto, expired"):
        Broker(tls="rotten")
    with pytest.raises(UsageError, match="a directory for the files of TLS needs TLS"):
        Broker(tls_directory="x")
    with Broker.running() as broker, pytest.raises(RuntimeError, match='has no TLS: give tls="auto"'):
        _ = broker.tls


def test_versions_of_tls_are_those_of_the_settings() -> None:
    with Broker.running(tls="auto", settings={"ssl.enabled.protocols": "TLSv1.2"}) as broker:
        with SecuredClient(broker.bootstrap_servers, context_of(broker)) as client:
            assert client.version == "TLSv1.2"
        context = context_of(broker)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
            SecuredClient(broker.bootstrap_servers, context)
    with pytest.raises(UsageError, match=r"ssl.enabled.protocols has none of TLSv1.2, TLSv1.3"):
        Broker(tls="auto", settings={"ssl.enabled.protocols": "TLSv1"}).start()
    with pytest.raises(UsageError, match=r"ssl.enabled.protocols cannot be 'SSLv3': give some of TLSv1.2"):
        Broker(tls="auto", settings={"ssl.enabled.protocols": "SSLv3"})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\nHost: kproto\r\n\r\n", "HTTP on a listener with TLS"),
        (
            request_frame(ALL_TOPICS, 1, correlation_id=1, client_id="old"),
            "a request without TLS on a listener with TLS",
        ),
        (b"\x16\x03\x01\xff\xff" + bytes(100), "TLS: "),
    ],
)
def test_what_is_no_tls_is_called_by_its_name(data: bytes, reason: str) -> None:
    with Broker.running(tls="auto") as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        with socket.create_connection((host, int(port))) as sock:
            sock.sendall(data)
            while sock.recv(1000):
                pass
        wait_until(lambda: bool(broker.observations.snapshot().clients), "the client in the report")
        (client,) = broker.observations.snapshot().clients
        assert [closed.reason.startswith(reason) for closed in client.closed] == [True]


def test_the_ca_is_not_sent() -> None:
    """sslyze 6.3.1 warns of a chain with its anchor; Kafka 4.4.0 with the same files sends one certificate."""
    with Broker.running(tls="auto") as broker, SecuredClient(broker.bootstrap_servers, context_of(broker)) as client:
        chain = client.socket._sslobj.get_unverified_chain()  # type: ignore[attr-defined]  # public from 3.13 on
        assert len(chain) == 1
