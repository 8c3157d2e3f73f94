"""`kproto serve` takes Kafka's own server.properties, advertises an address, reports, and logs what it closes."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from kproto.messages.k03_metadata import MetadataRequest
from tests.commandline.commands import LIMIT_S, Process, kproto, kproto_started, line_of
from tests.network.raw_client import RawClient
from tests.network.requests import node_addresses
from tests.security.test_settings_of_listeners import ask_sasl
from tests.waiting import wait_until

SERVER_PROPERTIES = """\
# Kafka's config/server.properties, without its comments
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:0,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:0,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""
SECURED_PROPERTIES = """\
process.roles=broker,controller
listeners=INTERNAL://127.0.0.1:0,CLIENT://127.0.0.1:0,CONTROLLER://127.0.0.1:0
listener.security.protocol.map=INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=INTERNAL
controller.listener.names=CONTROLLER
listener.name.client.sasl.enabled.mechanisms=PLAIN
listener.name.client.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  username="admin" password="broker-secret" user_admin="admin-secret" user_alice="alice-secret";
listener.name.internal.plain.sasl.jaas.config=PlainLoginModule required user_carol="carol-secret";
"""
NAMED = "process.roles, listener.name.internal.plain.sasl.jaas.config"
EVERY_ADDRESS = "0.0.0.0"  # noqa: S104
IGNORED = (
    "process.roles, controller.quorum.bootstrap.servers, "
    "socket.send.buffer.bytes, socket.receive.buffer.bytes, log.dirs, num.recovery.threads.per.data.dir"
)


def port_of(process: Process) -> int:
    return int(line_of(process).rpartition(":")[2])


def ended(process: Process) -> str:
    """End a broker; return its standard error."""
    process.send_signal(signal.SIGTERM)
    return process.communicate(timeout=LIMIT_S)[1]


def test_kafkas_own_server_properties_is_taken(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(SERVER_PROPERTIES)
    with kproto_started("serve", "--config", str(config)) as process:
        port = port_of(process)
        with RawClient(f"127.0.0.1:{port}") as client:
            assert node_addresses(client) == [("localhost", port)]
        err = ended(process)
    assert process.returncode == 0
    assert err.splitlines() == [
        f"kproto serve: --config {config}: these settings mean nothing here: {IGNORED}",
        f"kproto: the listener on {EVERY_ADDRESS} is open to other machines, without TLS and SASL",
    ]


def test_server_properties_have_the_mechanisms_and_the_users_of_sasl(tmp_path: Path) -> None:
    """As a broker of Kafka with this file: alice may log in, by PLAIN, and has her own password only."""
    config = tmp_path / "server.properties"
    config.write_text(SECURED_PROPERTIES)
    with kproto_started("serve", "--config", str(config)) as process:
        port_of(process)
        servers = line_of(process).rpartition(" ")[2]
        assert line_of(process) == "kproto: security protocol SASL_PLAINTEXT"
        assert servers in settings_of_clients(process)
        assert logged_in(servers, "alice", "alice-secret")
        assert not logged_in(servers, "alice", "admin-secret")
        assert not logged_in(servers, "admin", "broker-secret")
        err = ended(process)
    assert err.splitlines()[0] == f"kproto serve: --config {config}: these settings mean nothing here: {NAMED}"
    words = ("--sasl", "SCRAM-SHA-256", "--user", "bob:bob-secret")
    with kproto_started("serve", "--config", str(config), *words) as process:
        port_of(process)
        servers = line_of(process).rpartition(" ")[2]
        assert not logged_in(servers, "alice", "alice-secret")
        assert logged_in(servers, "bob", "bob-secret", "SCRAM-SHA-256")
        assert "listener.name.client.plain.sasl.jaas.config" in ended(process)


def test_listeners_of_server_properties_may_differ(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(
        SECURED_PROPERTIES.replace("INTERNAL:PLAINTEXT", "INTERNAL:SASL_PLAINTEXT")
        + "listener.name.internal.sasl.enabled.mechanisms=SCRAM-SHA-256,PLAIN\n"
        "listener.name.controller.sasl.enabled.mechanisms=PLAIN\n"
        "listener.name.client.ssl.keystore.location=missing.p12\n"
    )
    with kproto_started("serve", "--config", str(config)) as process:
        internal = f"127.0.0.1:{port_of(process)}"
        client = line_of(process).rpartition(" ")[2]
        assert line_of(process) == "kproto: security protocol SASL_PLAINTEXT"
        assert "sasl.username=carol" in settings_of_clients(process)
        assert logged_in(internal, "carol", "carol-secret")
        assert logged_in(internal, "carol", "carol-secret", "SCRAM-SHA-256")
        assert not logged_in(internal, "alice", "alice-secret")
        assert logged_in(client, "alice", "alice-secret")
        assert not logged_in(client, "carol", "carol-secret")
        err = ended(process)
    ignored = "listener.name.client.ssl.keystore.location, listener.name.controller.sasl.enabled.mechanisms"
    assert err.splitlines()[0] == (
        f"kproto serve: --config {config}: these settings mean nothing here: process.roles, {ignored}"
    )


@pytest.mark.parametrize("listeners", ["", "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0"])
def test_the_main_listener_has_settings_for_itself(listeners: str) -> None:
    """It has the name of its protocol if none is given."""
    name = "inside" if listeners else "sasl_plaintext"
    settings = [f"listener.name.{name}.connections.max.reauth.ms=60000"]
    if listeners:
        protocols = "INSIDE:SASL_PLAINTEXT,OUTSIDE:SASL_PLAINTEXT"
        settings += [f"listeners={listeners}", f"listener.security.protocol.map={protocols}"]
    words = [word for setting in settings for word in ("--set", setting)]
    with kproto_started("serve", "--port", "0", "--sasl", "PLAIN", "--user", "a:b", *words) as process:
        addresses = [f"127.0.0.1:{port_of(process)}"]
        if listeners:
            addresses.append(line_of(process).rpartition(" ")[2])
        lifetimes_ms = [ask_sasl(address, "PLAIN", b"\0a\0b")[1].session_lifetime_ms for address in addresses]
        ended(process)
    assert lifetimes_ms == ([60_000, 0] if listeners else [60_000])


@pytest.mark.parametrize(
    ("setting", "fault"),
    [
        ("listener.name.inside.ssl.client.auth=required", "listener.name.inside.ssl.client.auth: no such listener: "),
        ("listener.name.plaintext.ssl.keystore.location=a.p12", "needs TLS: give tls (auto), too"),
        ("listener.name.plaintext.sasl.enabled.mechanisms=PLAIN", "needs SASL: give sasl, too"),
    ],
)
def test_settings_of_listeners_that_cannot_act_are_refused(setting: str, fault: str) -> None:
    done = kproto("serve", "--port", "0", "--set", setting)
    assert done.returncode == 2
    assert fault in done.stderr
    assert done.stderr.count("\n") == 1


def settings_of_clients(process: Process) -> str:
    """Return what is printed before the settings of the last client."""
    lines = []
    while (line := line_of(process)) != "# kafkajs":
        lines.append(line)
    return "\n".join(lines)


def logged_in(servers: str, user: str, password: str, mechanism: str = "PLAIN") -> bool:
    errors: list[KafkaError] = []
    config: dict[str, Any] = {
        "bootstrap.servers": servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
        "error_cb": errors.append,
        "log_level": 0,
    }
    client = AdminClient(config)
    found: list[object] = []

    def is_known() -> bool:
        try:
            found.append(client.list_topics(timeout=0.2))
        except KafkaException:
            client.poll(0)
        return bool(found) or any(error.code() == KafkaError._AUTHENTICATION for error in errors)

    wait_until(is_known, "the response to a login")
    return bool(found)


@pytest.mark.parametrize("name", ["broker.id", "node.id"])
def test_the_first_broker_has_the_given_id(name: str) -> None:
    words = ("--set", f"{name}=0", "--network", "node_id=0,latency_ms=1")
    with kproto_started("serve", "--port", "0", "--brokers", "2", *words) as process:
        port = port_of(process)
        with RawClient(f"127.0.0.1:{port}") as client:
            metadata = client.ask(MetadataRequest(topics=None), 5)
        ended(process)
    assert [one.node_id for one in metadata.brokers] == [0, 1]
    assert metadata.brokers[0].port == port


def test_all_faults_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text("num.partitions=none\nlog.segment.bytes=1\nlisteners=9092\nnum.io.threads=8\n")
    done = kproto("serve", "--config", str(config))
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"kproto serve: --config {config}: num.partitions cannot be 'none': give a whole number from 1 to 10000",
        f"kproto serve: --config {config}: log.segment.bytes cannot be '1': give a whole number from 14 to 2147483647",
        f"kproto serve: --config {config}: listeners can't be '9092': give NAME://HOST:PORT",
    ]


@pytest.mark.parametrize(
    ("words", "host"),
    [
        (["--host", EVERY_ADDRESS, "--set", "advertised.listeners=PLAINTEXT://kproto.test:0"], "kproto.test"),
        (["--host", EVERY_ADDRESS], socket.gethostname()),
        (["--set", "listeners=PLAINTEXT://127.0.0.1:0"], "127.0.0.1"),
    ],
)
def test_clients_receive_the_advertised_address(words: list[str], host: str) -> None:
    with kproto_started("serve", "--port", "0", "--brokers", "2", *words) as process:
        port = port_of(process)
        with RawClient(f"127.0.0.1:{port}") as client:
            found = node_addresses(client)
        ended(process)
    assert [name for name, _ in found] == [host, host]
    assert port in [one for _, one in found]


def test_advertised_ports_follow_each_other() -> None:
    words = ("--port", "0", "--brokers", "2", "--set", "advertised.listeners=PLAINTEXT://kproto.test:19092")
    with kproto_started("serve", *words) as process:
        port = port_of(process)
        assert line_of(process) == "kproto: clients receive the address kproto.test:19092"
        with RawClient(f"127.0.0.1:{port}") as client:
            assert node_addresses(client) == [("kproto.test", 19092), ("kproto.test", 19093)]
        ended(process)


def test_each_connection_that_the_broker_closes_is_one_line(tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    words = ("--report", str(report), "--target", "4.0", "--fail-on-protocol-error")
    with kproto_started("serve", "--port", "0", *words) as process:
        address = ("127.0.0.1", port_of(process))
        for _ in range(2):
            with socket.create_connection(address) as connection:
                connection.sendall(bytes(4))
                assert connection.recv(1) == b""
        err = ended(process)
    assert process.returncode == 3
    line = "kproto: /127.0.0.1 '': closed: "
    assert sum(one.startswith(line) for one in err.splitlines()) == 2
    assert "kproto: 2 connections broke: protocol errors\n" in err
    found = json.loads(report.read_text())
    assert (found["target"], found["protocol_errors"], found["run"]) == ("4.0", 2, None)


def test_a_quiet_broker_prints_nothing(tmp_path: Path) -> None:
    port_file = tmp_path / "ports"
    words = ("--quiet", "--report", "-", "--port-file", str(port_file))
    with kproto_started("serve", "--port", "0", *words) as process:
        wait_until(port_file.exists, "the port file")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["clients"] == []


def test_a_report_on_standard_output_follows_the_commands_output() -> None:
    done = kproto("run", "--report", "-", "--quiet", "--", "echo", "mine")
    assert (done.returncode, done.stderr) == (0, "")
    first, rest = done.stdout.split("\n", 1)
    assert first == "mine"
    assert json.loads(rest)["run"]["command"] == ["echo", "mine"]


def test_listeners_have_their_own_addresses() -> None:
    """Each listener gives its own addresses, and each is printed; what cannot be opened is named."""
    listeners = "PLAINTEXT://127.0.0.1:0,OUTSIDE://127.0.0.1:0,SSL://127.0.0.1:0"
    protocols = "listener.security.protocol.map=OUTSIDE:PLAINTEXT,SSL:SSL"
    advertised = "advertised.listeners=OUTSIDE://kproto.test:0"
    words = ("--port", "0", "--set", f"listeners={listeners}", "--set", protocols, "--set", advertised)
    with kproto_started("serve", *words) as process:
        main, line = port_of(process), line_of(process)
        name, outside = line.rpartition(" ")[::2]
        port = int(outside.rpartition(":")[2])
        found = []
        for one in (main, port):
            with RawClient(f"127.0.0.1:{one}") as client:
                found.append(node_addresses(client))
        err = ended(process)
    assert name == "kproto: listener OUTSIDE at"
    assert found == [[("127.0.0.1", main)], [("kproto.test", port)]]
    assert err.splitlines()[0] == "kproto serve: --set: these listeners are not opened: SSL"
