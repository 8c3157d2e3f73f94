"""A cluster with TLS behind the proxy, whose clients have none. The brokers are kproto's, with a CA of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from kproto_server.broker.broker import Broker
from kproto_server.commandline import cli
from kproto_server.proxy.upstream import tls_context
from tests.network.raw_client import RawClient
from tests.network.requests import node_addresses, topic_names
from tests.proxy.proxies import proxy_of


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.running(tls="auto", brokers=2) as running:
        yield running


def error_of(capsys: pytest.CaptureFixture[str], broker: Broker, *words: str) -> str:
    """Return the one line of a proxy that does not start."""
    upstream = broker.bootstrap_servers.split(",")[0]
    assert cli.main(("proxy", "--upstream", upstream, "--port", "0", *words)) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err.replace(upstream, "BROKER")


def test_clients_without_tls_reach_each_broker(broker: Broker, tmp_path: Path) -> None:
    words = ("--upstream-tls-ca", str(broker.tls.files.ca_file))
    with proxy_of(broker.bootstrap_servers, tmp_path, *words) as proxy:
        with RawClient(proxy.address) as client:
            addresses = [f"{host}:{port}" for host, port in node_addresses(client)]
        assert proxy.address in addresses
        assert not {*addresses} & {*broker.bootstrap_servers.split(",")}
        for address in addresses:
            with RawClient(address) as client:
                assert topic_names(client) == set()
        assert {request.node_id for request in broker.requests if request.client_id == "raw"} == {1, 2}
        proxy.end()


def test_a_certificate_of_another_ca_is_refused(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    with Broker.running(tls="auto") as other:
        found = error_of(capsys, broker, "--upstream-tls-ca", str(other.tls.files.ca_file))
    assert found.startswith("kproto proxy: --upstream: can't connect to BROKER: its certificate is refused: ")


def test_a_certificate_of_another_name_is_refused(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    broker.tls.use("wrong-name")
    found = error_of(capsys, broker, "--upstream-tls-ca", str(broker.tls.files.ca_file))
    assert "its certificate is refused: " in found
    assert "mismatch" in found


def test_a_listener_with_tls_needs_the_option(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    assert "the CA of a listener with TLS by --upstream-tls-ca" in error_of(capsys, broker)


def test_a_listener_without_tls_is_one_line(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    with Broker.running() as plain:
        found = error_of(capsys, plain, "--upstream-tls-ca", str(broker.tls.files.ca_file))
    assert found.startswith("kproto proxy: --upstream: can't connect to BROKER: no TLS: ")


@pytest.mark.parametrize(
    ("content", "error"),
    [(None, "can't read '{}': No such file or directory"), ("no PEM", "no CA certificate in PEM format in '{}'")],
)
def test_a_file_that_cannot_be_used_is_one_line(
    broker: Broker, capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str | None, error: str
) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    found = error_of(capsys, broker, "--upstream-tls-ca", str(path))
    assert found == f"kproto proxy: --upstream-tls-ca: {error.format(path)}\n"


def test_the_files_of_a_certificate_are_checked(
    broker: Broker, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    files = broker.tls.files
    both, encrypted = tmp_path / "both.pem", tmp_path / "encrypted.pem"
    both.write_bytes(files.client_certificate_file.read_bytes() + files.client_key_file.read_bytes())
    key = load_pem_private_key(files.client_key_file.read_bytes(), None)
    password = BestAvailableEncryption(b"p")
    encrypted.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, password))
    certificate, ca = str(files.client_certificate_file), ("--upstream-tls-ca", str(files.ca_file))
    cases = [
        ((certificate,), f"certificate: no certificate with its private key in PEM format in '{certificate}'"),
        ((certificate, certificate), f"certificate: no certificate in PEM format in '{certificate}', or no "),
        ((certificate, str(files.key_file)), "certificate: the private key is that of another certificate"),
        ((certificate, str(encrypted)), f"key: the key in '{encrypted}' has a password: remove it"),
        ((certificate, str(tmp_path / "k")), f"key: can't read '{tmp_path / 'k'}': No such file or directory"),
        ((str(tmp_path / "c"),), f"certificate: can't read '{tmp_path / 'c'}': No such file or directory"),
    ]
    for paths, error in cases:
        words = [word for pair in zip(("certificate", "key"), paths, strict=False) for word in pair]
        words[::2] = [f"--upstream-tls-{name}" for name in words[::2]]
        assert error_of(capsys, broker, *ca, *words).startswith(f"kproto proxy: --upstream-tls-{error}")
    tls_context(str(files.ca_file), str(both))
