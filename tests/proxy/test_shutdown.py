"""`kproto proxy` ends at once after a signal, whatever the cluster and the clients do.

Method. The cluster is a listening socket that says nothing. A proxy that waited for it, or for a client, would still
run when its time is over.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kproto_server.commandline.options import ReportOptions
from kproto_server.commandline.reporting import write_files
from kproto_server.observation.observe import Observations
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.report.model import build
from tests.commandline.commands import LIMIT_S, end_of, kproto_started
from tests.proxy.proxies import proxy_of

RELEASE = ("--kafka-version", "3.9")
"""With it, the proxy asks the cluster nothing."""
API_VERSIONS_REQUEST = b"\0\0\0\x0e\0\x12\0\0\0\0\0\1\0\4test"
LARGE_REQUEST = b"\x00\x40\0\0\0\0\0\3\0\0\0\1\0\4test" + b"\0" * (1 << 22)
"""The beginning of a Produce request of 4 MiB."""


@pytest.fixture
def cluster() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(LIMIT_S)
        yield listener


def address_of(listener: socket.socket) -> str:
    return f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_wait_for_a_cluster(number: int, exit_code: int, cluster: socket.socket) -> None:
    with kproto_started("proxy", "--upstream", address_of(cluster), "--port", "0") as process:
        asking, _ = cluster.accept()
        with asking:
            asking.recv(1)
            process.send_signal(number)
            assert (end_of(process), process.returncode) == (("", ""), exit_code)


def test_clients_without_responses_do_not_delay_the_end(cluster: socket.socket, tmp_path: Path) -> None:
    with proxy_of(address_of(cluster), tmp_path, *RELEASE) as proxy:
        host, port = proxy.address.split(":")
        waiting, half, ended, sending = (socket.create_connection((host, int(port)), LIMIT_S) for _ in range(4))
        waiting.sendall(API_VERSIONS_REQUEST)
        half.sendall(API_VERSIONS_REQUEST + API_VERSIONS_REQUEST[:9])
        ended.sendall(API_VERSIONS_REQUEST)
        ended.shutdown(socket.SHUT_WR)
        sending.setblocking(False)
        sent = sending.send(LARGE_REQUEST)
        reached = [cluster.accept()[0] for _ in range(5)]
        for connection in reached[1:]:  # the first was the proxy's own
            connection.settimeout(LIMIT_S)
            assert connection.recv(1)
        report = proxy.end()
        for each in (waiting, half, ended, sending, *reached):
            each.close()
    assert sent < len(LARGE_REQUEST)
    assert sorted(client["client_id"] for client in report["clients"]) == ["test"]


def test_signals_that_the_parent_has_blocked_end_it(cluster: socket.socket, tmp_path: Path) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        with proxy_of(address_of(cluster), tmp_path, *RELEASE) as proxy:
            proxy.end()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_a_pipe_gets_the_report_at_the_end_only(tmp_path: Path) -> None:
    """Without a reader, opening it would take the proxy's thread until its end, and hold up a shutdown."""
    path = tmp_path / "report.json"
    os.mkfifo(path)
    options = ReportOptions(target=KafkaVersion.named(), files=(str(path),))
    report = build(
        Observations().snapshot(),
        kafka_version=KafkaVersion.named(),
        target=KafkaVersion.named(),
        offsets_retention_minutes=None,
    )
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_files(report, options)
        assert not os.read(reader, 1)
    finally:
        os.close(reader)
