"""A proxy whose clients have TLS: it ends there, with the certificates and settings of `kproto serve`."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from kproto.messages.k03_metadata import MetadataRequest
from kproto_server.broker.broker import Broker
from kproto_server.report import json_file
from kproto_server.security.client_settings import CLIENTS, Access, Login
from kproto_server.security.tls_files import TlsFiles
from tests.audit.test_same_rows import rows
from tests.commandline.commands import kproto_started
from tests.network.raw_client import RawClient
from tests.network.requests import node_addresses
from tests.proxy.proxies import RunningProxy, proxy_of
from tests.report.samples import report_of
from tests.security.secured_client import SecuredClient
from tests.waiting import LIMIT_S, wait_until

PLAIN, SCRAM = "PLAIN", "SCRAM-SHA-256"
PASSWORD = "secret"  # noqa: S105 - of a test
MUTUAL = ("--set", "ssl.client.auth=required", "--set", "ssl.principal.mapping.rules=RULE:^CN=(.*?),.*$/$1/U")


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A secured cluster, whose brokers ask for a certificate."""
    settings = {"ssl.client.auth": "required", "connection.failed.authentication.delay.ms": 0}
    users = {"alice": PASSWORD}
    with Broker.running(tls="auto", sasl=[PLAIN, SCRAM], users=users, settings=settings) as running:
        yield running


def upstream_tls(files: TlsFiles) -> tuple[str, ...]:
    paths = files.ca_file, files.client_certificate_file, files.client_key_file
    return tuple(
        word for name, path in zip(("ca", "certificate", "key"), paths, strict=True)
        for word in (f"--upstream-tls-{name}", str(path))
    )  # fmt: skip


def arguments(text: str, client_id: str) -> dict[str, Any]:
    """Return the arguments of kafka-python."""
    found: dict[str, Any] = eval(f"dict({text})")  # noqa: S307 - what users paste into their programs
    return found | {"client_id": client_id}


def talk(proxy: RunningProxy, files: TlsFiles) -> None:
    """Write and read records as alice, over TLS: with librdkafka by SCRAM, with kafka-python by PLAIN."""
    text = CLIENTS["librdkafka"](Access(proxy.address, files, False, Login(SCRAM, "alice", PASSWORD)))
    settings = dict(line.split("=", 1) for line in text.splitlines()) | {"client.id": "billing"}
    producer = Producer(settings)
    producer.produce("orders", b"v")
    assert producer.flush(LIMIT_S) == 0
    groups = {"group.id": "billing", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer(settings | groups)
    consumer.subscribe(["orders"])
    record = consumer.poll(LIMIT_S)
    assert record is not None
    assert record.value() == b"v"
    consumer.commit(message=record, asynchronous=False)
    consumer.close()

    text = CLIENTS["kafka-python"](Access(proxy.address, files, False, Login(PLAIN, "alice", PASSWORD)))
    producer = KafkaProducer(**arguments(text, "shop"))
    producer.send("orders", b"x" * 300_000).get(LIMIT_S)
    producer.close()
    reader = KafkaConsumer("orders", auto_offset_reset="earliest", **arguments(text, "warehouse"))
    assert len(next(reader).value) == 1
    assert len(next(reader).value) == 300_000
    reader.close()


def seen(report: dict[str, Any]) -> dict[str, Any]:
    """Return who the clients are, by client id."""
    return {
        client["client_id"]: (client["principals"], client["logins"], client["failed_authentications"])
        for client in report["clients"]
        if client["client_id"] in ("billing", "shop", "warehouse")
    }


def test_real_clients_log_in_over_tls_as_at_the_broker(broker: Broker, tmp_path: Path) -> None:
    directory = tmp_path / "tls"
    words = (*upstream_tls(broker.tls.files), "--tls", "auto", "--tls-dir", str(directory))
    with proxy_of(broker.bootstrap_servers, tmp_path, *words) as proxy:
        assert proxy.line().startswith("kproto: security protocol SASL_SSL; ")
        while not (line := proxy.line()).startswith("sasl."):
            pass
        assert line == f"sasl.mechanism={PLAIN}"
        assert proxy.line().endswith('username="USER" password="PASSWORD";')
        talk(proxy, TlsFiles(str(directory)))
        report = proxy.end()
    own = json.loads(json_file.render(report_of(broker.observations)))
    assert rows(report) == rows(own)
    assert seen(report) == seen(own)
    assert seen(report)["billing"][0] == ["User:alice"]
    # That the proxy asks for the mechanisms is no failed authentication.
    asking = [client for client in own["clients"] if client["client_id"] == "kproto-proxy"]
    assert [client["failed_authentications"] for client in asking] == [[]]
    assert {login["mechanism"] for client in report["clients"] for login in client["logins"]} == {PLAIN, SCRAM}


@pytest.fixture
def plain_broker() -> Iterator[Broker]:
    with Broker.running(brokers=2) as running:
        yield running


def trusting(directory: Path, *, has_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(directory / "ca.pem"))
    if has_certificate:
        context.load_cert_chain(directory / "client.pem", directory / "client-key.pem")
    return context


def test_certificates_of_clients_name_their_principals(plain_broker: Broker, tmp_path: Path) -> None:
    words = ("--tls", "auto", "--tls-dir", str(tmp_path), *MUTUAL)
    with proxy_of(plain_broker.bootstrap_servers, tmp_path, *words) as proxy:
        known = trusting(tmp_path, has_certificate=True)
        with SecuredClient(proxy.address, known) as client:
            addresses = [f"{host}:{port}" for host, port in node_addresses(client)]
        assert proxy.address in addresses
        assert len({*addresses} - {*plain_broker.bootstrap_servers.split(",")}) == 2
        for address in addresses:
            with SecuredClient(address, known) as client:
                assert client.ask(MetadataRequest(topics=()), 9).brokers
        with pytest.raises(OSError), SecuredClient(proxy.address, trusting(tmp_path)) as client:
            client.ask(MetadataRequest(topics=()), 9)
        with RawClient(proxy.address) as plain:
            plain.send((MetadataRequest(topics=()), 9))
            plain.wait_closed()
        report = proxy.end()
    (raw,) = (client for client in report["clients"] if client["client_id"] == "raw")
    assert raw["principals"] == ["User:CLIENT"]
    assert {(login["user"], login["tls_version"], login["count"]) for login in raw["logins"]} == {
        ("CLIENT", "TLSv1.3", 3)
    }
    reasons = {row["reason"] for client in report["clients"] for row in client["closed"]}
    assert reasons == {"a request without TLS on a listener with TLS", "TLS: peer did not return a certificate"}


def test_a_client_without_a_handshake_gets_no_connection_to_the_cluster(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as cluster:
        host, port = cluster.getsockname()
        words = ("--tls", "auto", "--tls-dir", str(tmp_path), "--kafka-version", "3.9", "--quiet")
        port_file = tmp_path / "port"
        with kproto_started(
            "proxy", "--upstream", f"{host}:{port}", "--port", "0", "--port-file", str(port_file), *words
        ):
            cluster.accept()[0].close()  # at the start, the proxy asks whether the cluster is there
            wait_until(port_file.exists, "the port file")
            proxy = port_file.read_text().strip()
            silent = socket.create_connection(("127.0.0.1", int(proxy.rpartition(":")[2])))
            with silent, SecuredClient(proxy, trusting(tmp_path)) as client:
                client.send((MetadataRequest(topics=()), 9))
                cluster.settimeout(LIMIT_S)
                with cluster.accept()[0] as connection:
                    assert connection.recv(4)
                cluster.setblocking(False)
                with pytest.raises(BlockingIOError):
                    cluster.accept()


def test_a_certificate_that_is_wrong_is_served_as_asked_for(plain_broker: Broker, tmp_path: Path) -> None:
    words = ("--tls", "expired", "--tls-dir", str(tmp_path))
    with proxy_of(plain_broker.bootstrap_servers, tmp_path, *words) as proxy:
        with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
            SecuredClient(proxy.address, trusting(tmp_path))
        proxy.end()
