"""`kproto proxy --capture`: the file has what clients and brokers sent, and a full disk does not end the proxy."""

from __future__ import annotations

import json
import logging
import os
import socket
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import trio

from kproto.messages.k03_metadata import MetadataRequest
from kproto_server.broker.broker import Broker
from kproto_server.capture.writer import CaptureFile
from kproto_server.commandline import cli
from kproto_server.network.transport import RESET_AT_CLOSE
from kproto_server.observation.observe import Observations
from kproto_server.proxy.proxy import Proxy
from kproto_server.proxy.recording import Recording
from tests.audit.test_same_rows import rows
from tests.commandline.commands import LIMIT_S, kproto
from tests.network.raw_client import RawClient
from tests.proxy.proxies import proxy_of

PROGRAM = """
import os
from kafka import KafkaConsumer, KafkaProducer
servers = os.environ["KAFKA_BOOTSTRAP_SERVERS"]
producer = KafkaProducer(bootstrap_servers=servers, client_id="shop")
producer.send("orders", b"x" * 100_000).get(30)
producer.close()
consumer = KafkaConsumer("orders", bootstrap_servers=servers, client_id="warehouse", group_id="g",
                         auto_offset_reset="earliest", enable_auto_commit=False)
assert len(next(consumer).value) == 100_000
consumer.commit()
consumer.close()
"""


def test_the_audit_of_a_capture_is_the_report_of_its_proxy(tmp_path: Path) -> None:
    path = tmp_path / "kafka.pcap"
    with Broker.running() as broker, proxy_of(broker.bootstrap_servers, tmp_path, "--capture", str(path)) as proxy:
        variables = os.environ | {"KAFKA_BOOTSTRAP_SERVERS": proxy.address}
        subprocess.run([sys.executable, "-c", PROGRAM], env=variables, timeout=LIMIT_S, check=True)
        report = proxy.end()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    done = kproto("audit", str(path), "--quiet", "--report", "-")
    assert done.returncode == 0, done.stderr
    audited = json.loads(done.stdout)
    assert rows(audited) == rows(report)
    assert {client["client_id"] for client in audited["clients"]} == {"shop", "warehouse"}
    assert (audited["capture"]["gaps"], audited["capture"]["unread_bytes"]) == (0, 0)
    assert audited["kafka_version"] == report["kafka_version"] == "latest"


def test_a_file_that_others_could_read_is_private_from_now_on(tmp_path: Path) -> None:
    path = tmp_path / "kafka.pcap"
    path.write_bytes(b"former")
    path.chmod(0o644)
    CaptureFile(str(path)).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"former" not in path.read_bytes()


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Broker.running() as broker:
        words = ("proxy", "--upstream", broker.bootstrap_servers, "--port", "0", "--capture")
        assert cli.main((*words, str(tmp_path / "missing" / "x.pcap"))) == 2
        assert cli.main((*words, "/dev/full")) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("x.pcap': No such file or directory")
    assert second == "kproto proxy: --capture: can't write '/dev/full': No space left on device"


def test_a_disk_that_is_full_ends_the_capture_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(file: CaptureFile, packet: bytes, time_ns: int) -> None:
        raise OSError(28, "No space left on device")

    recording = Recording(str(tmp_path / "kafka.pcap"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        connection, other = (recording.connection(client.getsockname(), client) for _ in range(2))
        assert connection is not None
        assert other is not None
        monkeypatch.setattr(CaptureFile, "packet", full)
        with caplog.at_level(logging.ERROR, "kproto"):
            connection.sent(b"request")
            connection.received(b"response")
            other.closed(by_broker=True)
            recording.close()
        client.close()
    assert recording.has_failed
    assert [record.message for record in caplog.records] == [
        f"--capture: can't write {str(tmp_path / 'kafka.pcap')!r} any more: No space left on device"
    ]


def test_a_client_that_has_reset_early_is_no_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its socket has no address any more when the connection to the broker is there."""
    recording = Recording(str(tmp_path / "kafka.pcap"))
    with Broker.running() as broker, socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        accepted, address = listener.accept()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        client.close()
        with pytest.raises(OSError):
            accepted.getpeername()
        host, port = broker.bootstrap_servers.split(":")
        upstream = host, int(port)
        proxy = Proxy(
            upstream,
            host=host,
            port=0,
            advertised_host=host,
            observations=Observations(),
            served={},
            recording=recording,
        )

        async def serve() -> None:
            await proxy._limit.acquire_on_behalf_of(token := object())
            await proxy._serve_client(upstream, accepted, address, token)

        with closing(proxy):
            trio.run(serve)
        assert proxy.connection_count == 0
    recording.close()
    assert caplog.records == []
    assert (tmp_path / "kafka.pcap").stat().st_size > 100


def test_a_broker_that_has_reset_early_is_not_captured(tmp_path: Path) -> None:
    """Its socket has no address any more."""
    recording = Recording(str(tmp_path / "kafka.pcap"))
    with socket.socket() as sock:
        assert recording.connection(("127.0.0.1", 1), sock) is None
    recording.close()
    assert not recording.has_failed


def test_a_failed_capture_is_the_exit_code_2(tmp_path: Path) -> None:
    """The clients are served to the end; a fifo whose reader has gone stands for a disk that is full."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with Broker.running() as broker, proxy_of(broker.bootstrap_servers, tmp_path, "--capture", str(path)) as proxy:
        os.close(reader)
        with RawClient(proxy.address, client_id="app") as client:
            for _ in range(3):
                client.ask(MetadataRequest(topics=()), 9)
        report = proxy.end(exit_code=2)
    assert "--capture: can't write" in proxy.errors
    assert [client["client_id"] for client in report["clients"]] == ["app"]
