"""Reports say which client logged in how, and what a newer Java or OpenSSL would refuse of it."""

from __future__ import annotations

import datetime
import json
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from kproto_server.broker.broker import Broker, BrokerOptions
from kproto_server.observation import observe
from kproto_server.observation.observe import Observations
from kproto_server.report import html_page, json_file, markdown, text
from kproto_server.requests.context import ConnectionInfo
from kproto_server.security.refusals import TlsParameters, refusals
from tests.report.samples import report_of
from tests.waiting import LIMIT_S

LIST_GROUPS = struct.pack(">ihhih", 11, 16, 0, 1, 1) + b"t"
SAFE_CIPHER, NO_FORWARD_SECRECY = "ECDHE-RSA-AES256-GCM-SHA384", "AES256-GCM-SHA384"
EC_CIPHER = "ECDHE-ECDSA-AES256-GCM-SHA384"


def talk(broker: Broker, frames: list[bytes], prepare: Callable[[ssl.SSLContext], object]) -> None:
    """Send frames over TLS, one after the response to the other."""
    context = ssl.create_default_context(cafile=str(broker.tls.files.ca_file))
    prepare(context)
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with (
        socket.create_connection((host, int(port)), LIMIT_S) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as sock,
    ):
        for frame in frames:
            sock.sendall(frame)
            assert sock.recv(65536)


def sasl_frame(api_key: int, version: int, body: bytes) -> bytes:
    content = struct.pack(">hhih", api_key, version, 1, 1) + b"t" + body
    return struct.pack(">i", len(content)) + content


def logins(broker: Broker) -> list[dict[str, Any]]:
    report = json.loads(json_file.render(report_of(broker.observations)))
    return [login for client in report["clients"] for login in client["logins"]]


def test_a_login_has_user_mechanism_and_tls() -> None:
    token = b"\0alice\0secret"
    frames = [
        sasl_frame(17, 1, struct.pack(">h", 5) + b"PLAIN"),
        sasl_frame(36, 0, struct.pack(">i", len(token)) + token),
        LIST_GROUPS,
    ]
    wrong = [frames[0], sasl_frame(36, 0, struct.pack(">i", 13) + b"\0alice\0wrong!")]
    settings = {"connection.failed.authentication.delay.ms": 0}
    with Broker.running(tls="auto", sasl="PLAIN", users={"alice": "secret"}, settings=settings) as broker:
        for sent in (frames, frames, wrong):
            talk(broker, sent, lambda context: None)
        (login,) = logins(broker)
        rendered = text.render(report_of(broker.observations))
    assert login == {
        "mechanism": "PLAIN",
        "user": "alice",
        "tls_version": "TLSv1.3",
        "cipher": "TLS_AES_256_GCM_SHA384",
        "newer_refuse": [],
        "count": 2,
    }
    assert "logins:\n  PLAIN  2x  alice  TLSv1.3 TLS_AES_256_GCM_SHA384  t\n" in rendered
    assert "would refuse" not in rendered


def test_reports_have_what_newer_software_would_refuse() -> None:
    options: BrokerOptions = {"tls": "weak-key", "settings": {"ssl.client.auth": "required"}}
    with Broker.running(**options) as broker:
        pair = broker.tls.files.client_certificate_file, broker.tls.files.client_key_file

        def prepare(context: ssl.SSLContext) -> None:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(f"{NO_FORWARD_SECRECY}:@SECLEVEL=0")
            context.load_cert_chain(*pair)

        talk(broker, [LIST_GROUPS], prepare)
        (login,) = logins(broker)
        report = report_of(broker.observations)
        broker.tls.use("auto")
        talk(broker, [LIST_GROUPS], lambda context: context.load_cert_chain(*pair))
        latest = logins(broker)
    assert login["user"] == "CN=client,O=kproto"
    assert login["mechanism"] is None
    assert (login["tls_version"], login["cipher"]) == ("TLSv1.2", NO_FORWARD_SECRECY)
    reasons = [
        "Java 24 and later: the cipher has no forward secrecy",
        "OpenSSL 3.2 and later: the RSA key of 1024 bits of the broker's certificate",
    ]
    assert login["newer_refuse"] == reasons
    for rendered in (text.render(report), markdown.render(report), html_page.render(report).replace("&#x27;", "'")):
        assert all(reason in " ".join(rendered.split()) for reason in reasons)
    assert [one["newer_refuse"] for one in latest] == [reasons, []]


SHA_1_ROOT = b"""-----BEGIN CERTIFICATE-----
MIIBbjCCARSgAwIBAgIUGe3rUojRjvfTjtskotn6rXzSZaMwCQYHKoZIzj0EATAN
MQswCQYDVQQDDAJjYTAeFw0yNjExMjYxMTM1MzVaFw0zNjExMjMxMTM1MzVaMA0x
CzAJBgNVBAMMAmNhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEct1H1JiKD5T2
GmEJrZ250zIHD8Q2yFKFBp3ILkfwCMHYbI2fTAOcsmULLAfMj5M6+9HVvC9OfhW5
ES3soryGP6NTMFEwHQYDVR0OBBYEFAOSYNdyy+UBaX/JnbG1xOvzT2BgMB8GA1Ud
IwQYMBaAFAOSYNdyy+UBaX/JnbG1xOvzT2BgMA8GA1UdEwEB/wQFMAMBAf8wCQYH
KoZIzj0EAQNJADBGAiEA3mFDdTmuRGk4IMMi/nA7Q3YfbG9ZCe9qDDyDjRjZV04C
IQDrBtbggtk9WrhnbVxVTslkXaPjqfuPYuD446sRRnjkiw==
-----END CERTIFICATE-----
"""
SHA_1 = b"""-----BEGIN CERTIFICATE-----
MIIBETCBuQIUKjez6kq9h21buxBHESDOl6/Vm2gwCQYHKoZIzj0EATANMQswCQYD
VQQDDAJjYTAeFw0yNjExMjYxMTM1MzZaFw0zNjExMjMxMTM1MzZaMAwxCjAIBgNV
BAMMAWEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARy3UfUmIoPlPYaYQmtnbnT
MgcPxDbIUoUGncguR/AIwdhsjZ9MA5yyZQssB8yPkzr70dW8L05+FbkRLeyivIY/
MAkGByqGSM49BAEDSAAwRQIhAP12qyFBBW+z0DhhS2IR+hqUYeMNyjDMHdqxiBy8
llRTAiByBFU3adPdazwrKJ/kGz98mcQ1F2RfHVppCv18oItMLw==
-----END CERTIFICATE-----
"""
"""Made by `openssl x509 -req -sha1` of OpenSSL 3.0; the first one signs itself, and the second one."""


def certificate(key: Any) -> x509.Certificate:
    names = [x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, one)]) for one in ("a", "ca")]
    day = datetime.datetime(2026, 1, 1)
    return (
        x509.CertificateBuilder()
        .subject_name(names[0])
        .issuer_name(names[1])
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(day)
        .not_valid_after(day)
        .sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    )


SAFE = certificate(ec.generate_private_key(ec.SECP256R1()))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (SAFE, []),
        (certificate(ec.generate_private_key(ec.SECP192R1())), ["OpenSSL 3.2 and later: the EC key of 192 bits"]),
        (certificate(rsa.generate_private_key(65537, 1024)), ["OpenSSL 3.2 and later: the RSA key of 1024 bits"]),
        (x509.load_pem_x509_certificate(SHA_1), ["OpenSSL 3.0 and later: the SHA-1 signature"]),
        (x509.load_pem_x509_certificate(SHA_1_ROOT), []),
    ],
    ids=["safe", "short EC key", "short RSA key", "SHA-1", "SHA-1 of a root"],
)
def test_weak_certificates_are_refused(found: x509.Certificate, expected: list[str]) -> None:
    assert refusals(EC_CIPHER, found, None) == tuple(f"{one} of the broker's certificate" for one in expected)
    assert refusals(EC_CIPHER, SAFE, found) == tuple(f"{one} of the client's certificate" for one in expected)


def test_the_number_of_users_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "LOGINS_MAX", 2)
    observations = Observations()
    for user in "abca":
        info = ConnectionInfo("/127.0.0.1", principal=f"User:{user}", tls=TlsParameters("TLSv1.3", SAFE_CIPHER, ()))
        observations.request(info, "app", 16, 0)
        observations.disconnected(info)
    (client,) = observations.snapshot().clients
    assert sorted((one.user, one.count) for one in client.logins) == [(observe.OTHER_USERS, 1), ("a", 2), ("b", 1)]
