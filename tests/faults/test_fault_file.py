"""Fault rules in a YAML file: from the command line, from Python, and what is wrong with a file."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from kproto.errors import UsageError
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto_server import Broker
from kproto_server.connection.commit_extensions import FEATURE
from kproto_server.network.links import GOOD
from tests.commandline.commands import kproto, kproto_started, line_of
from tests.network.raw_client import RawClient
from tests.network.requests import commit_offset

RULES = """\
# The first two commits of this group fail.
- api: OffsetCommit
  group: shipping
  error: NOT_COORDINATOR
  times: 2
- max_versions: {Fetch: 11, Produce: 8}
"""
COMMIT = "tests/examples/commit_with_kafka_python.py"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


def test_run_reports_rules_that_no_request_met(file: Path) -> None:
    done = kproto("run", "--faults", str(file), "--", sys.executable, str(ROOT / COMMIT))
    assert done.returncode == 0, done.stderr
    unused = [line for line in done.stderr.splitlines() if "no request met it" in line]
    assert len(unused) == 1
    assert "group='shipping'" in unused[0]


def test_serve_says_which_rule_acted(file: Path) -> None:
    with kproto_started("serve", "--port", "0", "--faults", str(file), "--log-level", "info") as process:
        address = line_of(process).rpartition(" ")[2]
        with RawClient(address) as client:
            assert {one.max_version for one in client.ask(ApiVersionsRequest(), 0).api_keys if one.api_key == 1} == {11}
        process.terminate()
        _, err = process.communicate(timeout=60)
        assert "ApiVersions: fault rule 2" in err


def test_python_reads_the_same_file(file: Path) -> None:
    with Broker.running(faults=str(file)) as broker:
        assert len(broker.faults) == 2
        assert len(broker.faults.load(str(file))) == 2
        assert len(broker.faults) == 4


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("- api: Heartbeat\n  topic: t\n  close: true\n", "fault rule 1: Heartbeat has no topic: its filters are "),
        ("- close: true\n- closed: true\n", "fault rule 2: a fault rule has no 'closed'"),
        ("- close: true\n  topic: no\n", "fault rule 1: topic is a string, not False"),
        ("- close: true\n  nth: 1\n  nth: 2\n", "line 2: 'nth' is there twice"),
        ("close: true\n", "a file of fault rules is a list: each rule begins with '- '"),
        ("- close\n", "fault rule 1: a rule has lines NAME: VALUE, not 'close'"),
        ("- api: [\n", "line 2: "),
        ("- api: \x01\n", "no YAML: "),
        ("[" * 5000, "it is nested too deeply"),
        ("- network: {latency: 1}\n", "fault rule 1: network has no 'latency': it has node_id, latency_ms, "),
        ("- network: {node_id: 2, refuse: true}\n", "fault rule 1: node 2 does not exist: "),
        ("- network: {node_id: []}\n", "fault rule 1: node_id is a number"),
        ("- network: {latency_ms: -1}\n", "fault rule 1: latency_ms is a number from 0 to "),
        ("- network:\n", "fault rule 1: network has lines NAME: VALUE, not None"),
        ("- forward_commits: 1\n", "fault rule 1: forward_commits is true or false, not 1"),
        ("- forward_commits: true\n  api: Fetch\n", "fault rule 1: a fault rule has no 'forward_commits'"),
        ("- !!python/object/apply:os.system ['true']\n", "line 1: could not determine a constructor"),
    ],
)
def test_one_line_says_what_is_wrong(text: str, error: str, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        Broker(faults=str(file))
    assert str(refused.value).startswith(f"{file}: {error}")
    assert "\n" not in str(refused.value)


def test_the_command_line_exits_with_2(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("- api: Fetch\n  versions: 13-\n  close: true\n")
    for words in (("serve",), ("run",)):
        done = kproto(
            *words, "--kafka-version", "2.0", "--faults", str(file), *(["--", "true"] if words == ("run",) else [])
        )
        assert done.returncode == 2
        assert done.stderr == (
            f"kproto {words[0]}: --faults: {file}: fault rule 1: Kafka version 2.0 serves Fetch in versions 0 to 8, "
            "not 13-\n"
        )
    done = kproto("serve", "--faults", str(tmp_path / "none.yaml"))
    assert done.returncode == 2
    assert done.stderr == f"kproto serve: --faults: {tmp_path / 'none.yaml'}: No such file or directory\n"


# Conditions of the network, and commits that no real broker accepts.

OTHERS = """\
- network: {latency_ms: 100}
- network: {node_id: 2, refuse: true}
- forward_commits: true
  conditional_commits: true
"""


def test_a_file_has_conditions_of_the_network_and_options_for_commits(tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text(OTHERS)
    with Broker.running(brokers=2, faults=str(file)) as broker:
        for _ in range(2):
            first, second = broker.bootstrap_servers.split(",")
            assert latency_s(first) >= 0.2
            assert refuses(second)
            assert has_conditional_commits(first)
            broker.reset(new_ports=True)  # the conditions are there from the start on


def test_a_running_broker_loads_conditions_of_the_network(tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text("- network: {latency_ms: 100}\n- close: true\n  api: Heartbeat\n")
    with Broker.running() as broker:
        assert len(broker.faults.load(str(file))) == 1
        assert latency_s(broker.bootstrap_servers) >= 0.2
        broker.reset()
        assert broker.run(lambda server: server.nodes.links and server.nodes.links.conditions(1)) == GOOD
        file.write_text("- forward_commits: true\n")
        with pytest.raises(
            UsageError, match=r"forward_commits is for a broker's start: Broker\(forward_commits=True\)"
        ):
            broker.faults.load(str(file))


def latency_s(address: str) -> float:
    """Return how long a response takes."""
    with RawClient(address) as client:
        began = time.monotonic()
        client.ask(ApiVersionsRequest(), 0)
        return time.monotonic() - began


def refuses(address: str) -> bool:
    try:
        with RawClient(address):
            return False
    except ConnectionRefusedError:
        return True


def has_conditional_commits(address: str) -> bool:
    with RawClient(address) as client:
        found = client.ask(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 3)
    return FEATURE in [one.name for one in found.supported_features]


# On the command line.


def test_the_command_line_has_them_too() -> None:
    settings = ("--brokers", "2", "--set", "offsets.topic.replication.factor=1")
    words = ("--network", "latency_ms=100", "--forward-commits", "--conditional-commits")
    with kproto_started("serve", "--port", "0", *settings, *words) as process:
        addresses = [line_of(process).rpartition(" ")[2] for _ in range(2)]
        for address in addresses:
            assert has_conditional_commits(address)
            with RawClient(address) as client:
                assert commit_offset(client) == 0, "one of them is not the coordinator"
        consumer = Consumer({"bootstrap.servers": ",".join(addresses), "group.id": "g"})
        began = time.monotonic()
        consumer.commit(offsets=[TopicPartition("t", 0, 9)], asynchronous=False)
        assert time.monotonic() - began >= 0.2
        consumer.close()


def test_nodes_refuse_connections_from_the_start_on() -> None:
    with kproto_started("serve", "--port", "0", "--brokers", "2", "--network", "node_id=2,refuse") as process:
        first, second = (line_of(process).rpartition(" ")[2] for _ in range(2))
        assert refuses(second)
        assert not refuses(first)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--network", "latency=1"), "--network: network has no 'latency': it has node_id, latency_ms"),
        (("--network", "node_id=2,refuse"), "--network: node 2 does not exist: there are nodes 1"),
        (("--network", "latency_ms=soon"), "--network: latency_ms is a number from 0 to "),
        (("--network", ""), "--network: network has no ''"),
        (("--network", "black_hole=false"), "--network: conditions of a network are "),
    ],
)
def test_one_line_says_what_is_wrong_with_the_command_line(words: tuple[str, ...], error: str) -> None:
    done = kproto("serve", *words)
    assert done.returncode == 2
    assert done.stderr.startswith(f"kproto serve: {error}")
    assert done.stderr.count("\n") == 1
