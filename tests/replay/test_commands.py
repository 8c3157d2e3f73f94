"""`kproto replay` and `kproto diff` with captures of real clients in front of kproto's brokers.

Method. A proxy captures kafka-python and librdkafka; the capture is sent to brokers of other releases, and the captures
of both are compared.
"""

from __future__ import annotations

import errno
import fcntl
import gzip
import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from kproto.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from kproto_server.broker.broker import Broker
from kproto_server.capture.writer import CapturedConnection, CaptureFile
from kproto_server.commandline import cli
from kproto_server.network.descriptors import raise_limit
from kproto_server.network.listening import reserve
from kproto_server.replay.broker_connection import BrokerConnection
from tests.capture.packets import captured, pcap
from tests.commandline.commands import LIMIT_S, kproto
from tests.proxy.exchanged import asked, response
from tests.proxy.proxies import proxy_of
from tests.proxy.test_capture import PROGRAM

TWO_MEMBERS = """
import os
from confluent_kafka import Consumer
settings = {"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"], "group.id": "pair",
            "heartbeat.interval.ms": 100, "enable.auto.commit": False, "auto.offset.reset": "earliest"}

def new_member(number):
    consumer = Consumer(settings | {"client.id": f"member-{number}"})
    consumer.subscribe(["orders"])
    return consumer

def poll_until(owned):
    while [len(consumer.assignment()) for consumer in members] != owned:
        for consumer in members:
            consumer.poll(0.1)

members = [new_member(1)]
poll_until([2])
members.append(new_member(2))
poll_until([1, 1])
for consumer in members:
    for partition in consumer.assignment():
        partition.offset = 1
        consumer.commit(offsets=[partition], asynchronous=False)
for consumer in members:
    consumer.close()
"""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captured")
    path = folder / "kafka.pcap"
    with (
        Broker.running(kafka_version="3.9", settings={"num.partitions": "2"}) as broker,
        proxy_of(broker.bootstrap_servers, folder, "--capture", str(path)) as proxy,
    ):
        variables = os.environ | {"KAFKA_BOOTSTRAP_SERVERS": proxy.address}
        for program in (PROGRAM, TWO_MEMBERS):
            subprocess.run([sys.executable, "-c", program], env=variables, timeout=LIMIT_S, check=True)
        proxy.end()
    return path


@pytest.fixture
def same_broker() -> Iterator[str]:
    with Broker.running(kafka_version="3.9", settings={"num.partitions": "2"}) as broker:
        yield broker.bootstrap_servers


def test_the_same_release_responds_alike(capture: Path, same_broker: str, tmp_path: Path) -> None:
    """Members, generations, producers and topics have other ids there."""
    again = tmp_path / "again.pcap"
    done = kproto("replay", str(capture), same_broker, "--capture", str(again))
    assert done.returncode == 0, done.stdout + done.stderr
    assert ": 0 of " in done.stdout
    assert "not sent" not in done.stdout
    done = kproto("diff", str(capture), str(again))
    assert done.returncode == 0, done.stdout + done.stderr


def test_another_release_differs_in_what_it_offers_first(capture: Path, tmp_path: Path) -> None:
    report = tmp_path / "differing.json"
    with Broker.running(kafka_version="4.0", settings={"num.partitions": "2"}) as broker:
        done = kproto("replay", str(capture), broker.bootstrap_servers, "--report", str(report))
    assert done.returncode == 1, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("connection "))
    assert "ApiVersions v4" in lines[first] or "ApiVersions v3" in lines[first]
    assert "api_keys" in lines[first + 1]
    everything = json.loads(report.read_text())
    assert everything[0]["fields"][0]["path"].startswith("api_keys")
    assert f"{len(everything)} of " in lines[0]


def beat(code: int, version: int = 4) -> list[bytes]:
    """Return a request and its response."""
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    return [asked(request, version), response(HeartbeatResponse(error_code=code), version)]


def heartbeats(folder: Path, *codes: int) -> Path:
    """Return a capture of heartbeats, of one connection, that get these error codes."""

    def write(connection: CapturedConnection) -> None:
        for code in codes:
            request, response_frame = beat(code)
            connection.sent(request)
            connection.received(response_frame)

    path = folder / f"{'-'.join(map(str, codes))}.pcap"
    path.write_bytes(pcap(captured(folder, write)))
    return path


def test_diff_shows_the_first_responses_that_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = heartbeats(tmp_path, 0, 25, 0, 14), heartbeats(tmp_path, 0, 22, 0, 0, 0)
    assert cli.main(["diff", str(one), str(other)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "kproto: 1 of 3 responses differ",
        "  1 pair of responses with a retriable error not compared",
        "  1 response in one of the captures only",
        "connection 1, app, request 2: Heartbeat v4",
        "  error_code: A UNKNOWN_MEMBER_ID, B ILLEGAL_GENERATION",
    ]
    assert cli.main(["diff", str(one), str(one)]) == 0


def test_diff_compares_connections_with_many_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A diff of all of them would take minutes. An hour of a client has as many, in another order each time."""

    def capture(seed: int, code: int) -> Path:
        chosen = Random(seed).choices((3, 4), (3, 1), k=10_000)  # noqa: S311 - reproducible

        def write(connection: CapturedConnection) -> None:
            for version in [*chosen[:5000], 2, *chosen[5000:]]:
                request, response_frame = beat(code if version == 2 else 0, version)
                connection.sent(request)
                connection.received(response_frame)

        path = tmp_path / f"{seed}.pcap"
        path.write_bytes(pcap(captured(tmp_path, write)))
        return path

    one, other = capture(1, 25), capture(2, 22)
    started = time.process_time()
    assert cli.main(["diff", str(one), str(other)]) == 1
    assert time.process_time() - started < 30
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == [
        "connection 1, app, request 5001: Heartbeat v2",
        "  error_code: A UNKNOWN_MEMBER_ID, B ILLEGAL_GENERATION",
    ]
    assert int(lines[1].split()[0]) < 500, "requests in one of the captures only"


def test_only_the_first_responses_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = heartbeats(tmp_path, *[25] * 14), heartbeats(tmp_path, *[0] * 14)
    assert cli.main(["diff", str(one), str(other)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line.startswith("connection ")]) == 10
    assert lines[-1] == "and 4 responses more"


def test_a_broker_that_closes_the_connection_differs_and_the_rest_is_not_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = heartbeats(tmp_path, 25, 25, 25)
    with Broker.running(kafka_version="0.11.0") as broker:  # Heartbeat v4 is not served
        address = broker.bootstrap_servers
        assert cli.main(["replay", str(path), address]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"kproto: 1 request of 1 connection sent to {address}: 1 of 1 responses differ",
        "  2 requests behind the end of a connection not sent",
        "connection 1, app, request 1: Heartbeat v4",
        "  response: captured a response, now connection closed",
    ]


def test_a_response_that_does_not_come_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = heartbeats(tmp_path, 25)
    with reserve("127.0.0.1", 0) as sock:
        sock.listen()
        host, port = sock.getsockname()
        assert cli.main(["replay", str(path), f"{host}:{port}", "--timeout", "1"]) == 1
    assert "now no response" in capsys.readouterr().out


def test_the_capture_of_a_replay_may_be_the_file_that_is_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = heartbeats(tmp_path, 16, 16)
    former = path.read_bytes()
    with Broker.running() as broker:
        assert cli.main(["replay", str(path), broker.bootstrap_servers, "--capture", str(path)]) == 0
    assert path.read_bytes() != former
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    capsys.readouterr()
    assert cli.main(["audit", str(path), "--quiet", "--report", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["capture"]["gaps"] == 0


def test_a_connection_with_a_large_descriptor_waits() -> None:
    """select() has none above 1023."""
    raise_limit()
    with reserve("127.0.0.1", 0) as sock:
        sock.listen()
        connection = BrokerConnection(sock.getsockname(), 1.0)
        small, connection._socket = (
            connection._socket,
            socket.socket(fileno=fcntl.fcntl(connection._socket.fileno(), fcntl.F_DUPFD_CLOEXEC, 1100)),
        )
        with small, sock.accept()[0] as peer:
            assert connection._socket.fileno() >= 1100
            connection.wait_readable(0.01)
            peer.sendall(b"\0\0\0\4\0\0\0\7")
            connection.wait_readable(60)
            assert connection.receive(7) == b"\0\0\0\7"
        connection.close()


@pytest.mark.parametrize("words", [["{gone}"], ["{gone}", "--report", "x"], ["{gone}", "--timeout", "0"], ["b"]])
def test_an_earlier_file_stays_if_nothing_is_replayed(words: list[str], tmp_path: Path) -> None:
    path, former = heartbeats(tmp_path, 16), tmp_path / "former.pcap"
    former.write_bytes(b"former")
    with reserve("127.0.0.1", 0) as sock:
        gone = f"127.0.0.1:{sock.getsockname()[1]}"
        assert (
            cli.main(["replay", str(path), *(word.format(gone=gone) for word in words), "--capture", str(former)]) == 2
        )
    assert former.read_bytes() == b"former"


def test_a_disk_that_is_full_at_the_end_fails_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(file: CaptureFile) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path, output = heartbeats(tmp_path, 16), tmp_path / "new.pcap"
    monkeypatch.setattr(CaptureFile, "close", full)
    with Broker.running() as broker:
        assert cli.main(["replay", str(path), broker.bootstrap_servers, "--capture", str(output)]) == 2
    assert capsys.readouterr().err == (
        "kproto replay: --capture: can't write the file any more: No space left on device\n"
    )
    assert not output.exists()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("replay",), "kproto replay: give a capture and a broker: FILE HOST:PORT"),
        (("replay", "a"), "kproto replay: give a capture and a broker: FILE HOST:PORT"),
        (("replay", "{good}", "b"), "kproto replay: the broker can't be 'b': write HOST:PORT"),
        (("replay", "{good}", "a..b:1"), "kproto replay: the broker can't be 'a..b:1': 'a..b' is no host name"),
        (("replay", "missing.pcap", "b:1"), "kproto replay: can't read 'missing.pcap': No such file or directory"),
        (("replay", "{log}", "b:1"), "kproto replay: can't read '{log}': no pcap or pcapng file"),
        (("replay", "{ssh}", "b:1"), "kproto replay: no connection of Kafka in '{ssh}'"),
        (("replay", "{good}", "{gone}"), "kproto replay: can't connect to {gone}: Connection refused"),
        (("replay", "{good}", "b:1", "--timeout", "0"), "kproto replay: --timeout can't be '0': give a whole number"),
        (("replay", "{good}", "b:1", "--report", "x"), "kproto replay: --report can't be 'x': its name ends in .json"),
        (
            ("replay", "{good}", "b:1", "--capture", "/dev/full"),
            "kproto replay: --capture: can't write '/dev/full': No",
        ),
        (("diff", "{good}"), "kproto diff: give two captures: A B"),
        (("diff", "{good}", "{ssh}"), "kproto diff: no response of Kafka in '{ssh}'"),
        (("replay", "{cut}", "b:1"), "kproto replay: can't read '{cut}': not a whole gzip file"),
        (("diff", "{good}", "{cut}"), "kproto diff: can't read '{cut}': not a whole gzip file"),
        (("diff", "{good}", "{log}"), "kproto diff: can't read '{log}': no pcap or pcapng file"),
    ],
)
def test_mistakes_are_one_line(
    words: tuple[str, ...], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, ssh = tmp_path / "log", tmp_path / "ssh.pcap"
    log.write_text("[2026-11-23] INFO started")
    ssh.write_bytes(pcap(captured(tmp_path, lambda each: each.sent(b"SSH-2.0"))))
    cut = tmp_path / "cut.pcap.gz"
    cut.write_bytes(gzip.compress(ssh.read_bytes())[:-20])
    with reserve("127.0.0.1", 0) as sock:
        gone = f"127.0.0.1:{sock.getsockname()[1]}"
        names = {"good": heartbeats(tmp_path, 0), "log": log, "ssh": ssh, "cut": cut, "gone": gone}
        assert cli.main([word.format(**names) for word in words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(error.format(**names))
