"""`kproto serve` prints its addresses, writes the port file and ends on a signal.

Method. Each test starts `kproto serve` as a process.
"""

from __future__ import annotations

import re
import resource
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from tests.commandline.commands import LIMIT_S, is_running, kproto, kproto_started, line_of
from tests.network.raw_client import RawClient
from tests.network.requests import commit_offset, create_topic, long_poll
from tests.robustness.broker_process import broker_process
from tests.storage.log_data import batch_of
from tests.waiting import wait_until

LISTENING = re.compile(r"kproto: listening on (127\.0\.0\.1):([0-9]+)")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_prints_its_address_and_a_signal_ends_it(number: signal.Signals) -> None:
    with kproto_started("serve", "--port", "0") as process:
        found = LISTENING.fullmatch(line_of(process))
        assert found is not None
        with socket.create_connection((found[1], int(found[2]))) as connection:
            connection.sendall(bytes.fromhex("0000000a 0012 0000 00000001 ffff"))  # ApiVersions v0
            assert connection.recv(8)[4:] == b"\0\0\0\1"
        process.send_signal(number)
        process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0


def test_each_broker_has_a_line_in_the_output_and_in_the_port_file(tmp_path: Path) -> None:
    port_file = tmp_path / "ports"
    with kproto_started("serve", "--port", "0", "--brokers", "3", "--port-file", str(port_file)) as process:
        lines = [LISTENING.fullmatch(line_of(process)) for _ in range(3)]
        addresses = [f"{found[1]}:{found[2]}" for found in lines if found]
        assert len(set(addresses)) == 3
        wait_until(port_file.exists, "the port file")
        assert port_file.read_text().split() == addresses
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)
    assert not port_file.exists()


def test_the_port_file_is_there_only_while_the_broker_serves(tmp_path: Path) -> None:
    """Method. A thread reads the file all the time, over several starts: it has an address, or is absent."""
    port_file, seen, is_over = tmp_path / "ports", set[str](), threading.Event()

    def watch() -> None:
        while not is_over.is_set():
            with suppress(FileNotFoundError):
                seen.add(port_file.read_text())

    watcher = threading.Thread(target=watch)
    port_file.write_text("127.0.0.1:1\n")  # of an earlier broker
    watcher.start()
    addresses = ["127.0.0.1:1"]
    try:
        for _ in range(5):
            with kproto_started("serve", "--port", "0", "--port-file", str(port_file)) as process:
                addresses.append(line_of(process).removeprefix("kproto: listening on "))
                wait_until(port_file.exists, "the port file")
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=LIMIT_S)
    finally:
        is_over.set()
        watcher.join()
    assert seen <= {f"{address}\n" for address in addresses}
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_fails_to_start_leaves_no_port_file_and_removes_a_stale_one(tmp_path: Path) -> None:
    port_file = tmp_path / "ports"
    damaged = tmp_path / "data"
    damaged.mkdir()
    (damaged / "topics.json").write_text("[[[")
    for words in (["--data-dir", str(damaged)], ["--host", "192.0.2.7"], ["--brokers", "none"], ["--nonsense"]):
        port_file.write_text("127.0.0.1:1\n")
        done = kproto("serve", "--port", "0", "--port-file", str(port_file), *words)
        assert (done.returncode, done.stdout, port_file.exists()) == (2, "", False), done.stderr


def test_a_port_file_of_another_broker_stays(tmp_path: Path) -> None:
    port_file = tmp_path / "ports"
    with kproto_started("serve", "--port", "0", "--port-file", str(port_file)) as process:
        line_of(process)
        wait_until(port_file.exists, "the port file")
        port_file.write_text("127.0.0.1:2\n")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)
    assert port_file.read_text() == "127.0.0.1:2\n"


def test_a_port_file_that_cannot_be_written_ends_the_broker_with_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    hook = f"""
import os, sys
from kproto import output_file
from kproto_server.commandline import cli
write = output_file.write
def write_without_folder(path, text, **options):
    os.rmdir({str(folder)!r})
    write(path, text, **options)
output_file.write = write_without_folder
sys.exit(cli.main(["serve", "--port", "0", "--port-file", {str(folder / "ports")!r}]))
"""
    done = subprocess.run([sys.executable, "-c", hook], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    line = f"kproto serve: --port-file: can't write {str(folder / 'ports')!r}: No such file or directory"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, line)


def test_serve_ends_with_its_parent() -> None:
    """Method. The parent is killed, so that it can't end the broker itself."""
    program = """
import subprocess, sys, time
broker = subprocess.Popen([sys.executable, "-m", "kproto_server", "serve", "--port", "0", "--exit-with-parent"])
print(broker.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert parent.stdout.readline().startswith("kproto: listening on ")
        parent.kill()
        assert parent.stdout.read() == ""  # the broker has closed its end too
    wait_until(lambda: not is_running(pid), "the end of the broker")


def test_a_taken_port_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
        done = kproto("serve", "--port", str(port))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"kproto serve: can't listen on 127.0.0.1:{port}: Address already in use; "
        "choose another --host or --port (0: a free one)\n"
    )


def test_an_address_of_another_host_is_one_line() -> None:
    done = kproto("serve", "--host", "192.0.2.7", "--port", "0")
    assert done.returncode == 2
    assert done.stderr.startswith("kproto serve: can't listen on 192.0.2.7:0: ")
    assert done.stderr.count("\n") == 1


def test_tls_prints_the_settings_of_each_client_and_its_files_end_with_the_broker() -> None:
    with kproto_started("serve", "--port", "0", "--tls", "auto") as process:
        address = line_of(process).removeprefix("kproto: listening on ")
        directory = Path(line_of(process).removeprefix("kproto: security protocol SSL; certificates and keys in "))
        lines: list[str] = []
        while "# kafkajs" not in lines:
            lines.append(line_of(process))
        assert lines[1:4] == ["# java", f"bootstrap.servers={address}", "security.protocol=SSL"]
        assert (directory / "ca.pem").exists()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)
    assert {"# librdkafka", "# kafka-python", "# aiokafka", "# franz-go"} <= set(lines)
    assert process.returncode == 0
    assert not directory.exists()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--tls", "rotten"], "--tls: no kind of certificate 'rotten': give one of auto, "),
        (["--tls-dir", "x"], "--tls-dir: a directory for the files of TLS needs TLS: give tls, too"),
        (["--sasl", "GSSAPI"], "--sasl: no SASL mechanism 'GSSAPI': give some of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        (["--user", "alice:x"], "--user: users need SASL: give sasl, too"),
        (["--sasl", "PLAIN", "--user", "alice"], "--user: no password: write NAME:PASSWORD"),
        (["--set", "sasl.enabled.mechanisms=PLAIN"], "sasl.enabled.mechanisms needs SASL: give sasl instead"),
        (["--tls", "auto", "--tls-dir", "/proc/x"], "TLS: can't write '/proc/x': "),
        (["--set", "listeners=SSL://:0"], "listeners has no listener that can be opened: write --tls auto for SSL"),
        (
            ["--tls", "auto", "--set", "listeners=PLAINTEXT://:0"],
            "listeners has no listener with TLS: add one with SSL",
        ),
        (["--tls", "auto", "--set", "ssl.enabled.protocols=TLSv1"], "ssl.enabled.protocols has none of TLSv1.2"),
    ],
)
def test_what_is_wrong_with_the_security_is_said_in_one_line(words: list[str], error: str) -> None:
    done = kproto("serve", "--port", "0", "--quiet", *words)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert error in line


def test_a_broker_that_fails_to_start_leaves_its_data_directory_shut_down_cleanly(tmp_path: Path) -> None:
    """Otherwise the next start would recover all logs as after a crash."""
    done = kproto("serve", "--port", "0", "--data-dir", str(tmp_path), "--tls", "auto", "--tls-dir", "/proc/x")
    assert done.returncode == 2
    assert (tmp_path / "kproto.clean").exists()


def limited_to(soft: int, hard: int | None = None) -> str:
    """Return Python source that limits the descriptors of its process."""
    return f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard or soft}))\n"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_serve_may_open_as_many_files_as_the_system_allows() -> None:
    """With 1024 descriptors, records for 1000 partitions left none for the connections of others."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with broker_process(planted=limited_to(64, hard)) as broker:
        (limits,) = re.findall(r"^Max open files +(\S+) +(\S+)", Path(f"/proc/{broker.pid}/limits").read_text(), re.M)
    assert limits[0] == limits[1] == str(hard)


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_connections_leave_descriptors_for_files(durability: str, tmp_path: Path) -> None:
    """Without any, one file that could not be synced ended all commits until the next start."""
    options = ("--data-dir", str(tmp_path / "data"), "--durability", durability)
    with broker_process(*options, planted=limited_to(160)) as broker, ExitStack() as stack:
        client = stack.enter_context(RawClient(broker.address))
        create_topic(client)
        assert commit_offset(client, "first") == 0
        for _ in range(200):  # most of them wait to be accepted
            stack.enter_context(RawClient(broker.address))
        assert [commit_offset(client, f"group-{number}") for number in range(10)] == [0] * 10
        create_topic(client, "u")
        stack.close()
        with RawClient(broker.address) as another:
            assert [commit_offset(another, f"group-{number}") for number in range(20)] == [0] * 20


def test_connections_leave_descriptors_for_modules() -> None:
    """Without any, the first Fetch and the first CreateTopics could not import their handlers, and were closed."""
    topics = (CreatableTopic(name="u", num_partitions=1, replication_factor=1, assignments=(), configs=()),)
    with broker_process(planted=limited_to(100)) as broker, ExitStack() as stack:
        client = stack.enter_context(RawClient(broker.address))
        create_topic(client)
        for _ in range(150):  # most of them wait to be accepted
            stack.enter_context(RawClient(broker.address))
        assert client.ask(long_poll(0), 4).responses[0].partitions[0].error_code == 0
        assert client.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000), 2).topics[0].error_code == 0


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_written_partitions_leave_descriptors_for_connections(durability: str, tmp_path: Path) -> None:
    """Each had one for itself: with 256, the broker accepted no connection after records to 240 partitions."""
    options = ("--data-dir", str(tmp_path / "data"), "--durability", durability, "--set", "num.partitions=150")
    batch, _ = batch_of(b"value")
    partitions = tuple(PartitionProduceData(index=index, records=batch) for index in range(150))
    request = ProduceRequest(
        acks=1, timeout_ms=1000, topic_data=(TopicProduceData(name="t", partition_data=partitions),)
    )
    with broker_process(*options, planted=limited_to(100)) as broker:
        with RawClient(broker.address) as client:
            create_topic(client)
            for base_offset in range(2):
                (topic,) = client.ask(request, 3).responses
                found = [(one.error_code, one.base_offset) for one in topic.partition_responses]
                assert found == [(0, base_offset)] * 150
        with RawClient(broker.address) as another:
            assert commit_offset(another, "group") == 0
