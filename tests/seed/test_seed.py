"""A broker that begins with a seed: what real clients find, and what is wrong with a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaAdminClient

from kproto.errors import UsageError
from kproto_server import Broker
from kproto_server.persistence import loading
from tests.commandline.commands import kproto, kproto_started, line_of
from tests.waiting import LIMIT_S

SEED = """\
topics:
  orders:
    partitions: 2
    configs: {retention.ms: 86400000, cleanup.policy: delete}
    records:
      - order 1040
      - {key: k, value: {id: 1041, state: paid}, partition: 1, headers: {trace: abc, empty: null}}
      - {value: null, key: k, partition: 1}
      - {value: !!binary AAEC, partition: 0}
  empty:
groups:
  billing:
    offsets:
      orders: {0: 1, 1: {offset: 2, metadata: after the deletion}}
"""
DAY_MS = 86_400_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "seed.yaml"
    path.write_text(SEED)
    return path


def read(bootstrap_servers: str) -> list[tuple[Any, ...]]:
    """Return the records of the topic by partition and offset, as librdkafka reads them."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "reader", "log_level": 0})
    consumer.assign([TopicPartition("orders", index, 0) for index in range(2)])
    found: list[tuple[Any, ...]] = []
    while len(found) < 4:
        message = consumer.poll(LIMIT_S)
        assert message is not None
        assert message.error() is None
        found.append(
            (message.partition(), message.offset(), message.key(), message.value(), dict(message.headers() or ()))
        )
    consumer.close()
    return sorted(found, key=lambda one: one[:2])


def committed(bootstrap_servers: str) -> list[tuple[int, str]]:
    """Return what kafka-python reads; confluent-kafka 2.16 had other bytes after the metadata once."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    found = admin.list_group_offsets("billing")["billing"]
    admin.close()
    return [(one.offset, one.metadata) for _, one in sorted(found.items())]


RECORDS = [
    (0, 0, None, b"order 1040", {}),
    (0, 1, None, b"\0\1\2", {}),
    (1, 0, b"k", b'{"id": 1041, "state": "paid"}', {"trace": b"abc", "empty": None}),
    (1, 1, b"k", None, {}),
]
OFFSETS = [(1, ""), (2, "after the deletion")]


def test_clients_find_topics_records_and_offsets(file: Path) -> None:
    with Broker.running(seed=str(file)) as broker:
        for new_ports in (False, True):
            assert read(broker.bootstrap_servers) == RECORDS
            assert committed(broker.bootstrap_servers) == OFFSETS
            assert broker.topics.describe("orders").configs["retention.ms"] == str(DAY_MS)
            assert [one.topic for one in broker.topics.list()] == ["empty", "orders"]
            broker.topics.delete("empty")
            broker.reset(new_ports=new_ports)


def test_serve_and_run_have_it(file: Path) -> None:
    with kproto_started("serve", "--port", "0", "--seed", str(file)) as process:
        address = line_of(process).rpartition(" ")[2]
        assert read(address) == RECORDS
        assert committed(address) == OFFSETS
    program = (
        "import os; from tests.seed.test_seed import read; print(len(read(os.environ['KAFKA_BOOTSTRAP_SERVERS'])))"
    )
    done = kproto("run", "--quiet", "--seed", str(file), "--", sys.executable, "-c", program)
    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr


def test_a_data_directory_is_filled_once(file: Path, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with Broker.running(seed=str(file), data=data) as broker:
        assert read(broker.bootstrap_servers) == RECORDS
        broker.topics.delete("empty")
    with Broker.running(seed=str(file), data=data) as broker:
        assert read(broker.bootstrap_servers) == RECORDS
        assert [one.topic for one in broker.topics.list()] == ["orders"]


def test_a_data_directory_with_offsets_and_without_topics_is_filled_again(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The offsets of its log are loaded before those of the seed are committed, however long that takes."""
    monkeypatch.setattr(loading, "TURN_S", -1)  # no turn comes to a step
    data = str(tmp_path / "data")
    with Broker.running(seed=str(file), data=data) as broker:
        broker.groups.commit("other", {("orders", 0): 1})
        for topic in broker.topics.list():
            broker.topics.delete(topic.topic)
    with Broker.running(seed=str(file), data=data) as broker:
        assert read(broker.bootstrap_servers) == RECORDS
        assert broker.groups.committed("billing")


def test_a_seed_may_be_a_value() -> None:
    with Broker.running(seed={"topics": {"orders": {"records": ["a", b"b"]}}}, kafka_version="0.10.0") as broker:
        assert [one.value for one in broker.topics.records("orders")] == [b"a", b"b"]


def test_several_brokers_have_replicas(tmp_path: Path) -> None:
    seed = {"topics": {"orders": {"replication_factor": 3}}, "groups": {"billing": {"offsets": {"orders": {0: 7}}}}}
    with Broker.running(seed=seed, brokers=3) as broker:
        assert len(broker.topics.describe("orders").partitions[0].replicas) == 3
        assert broker.groups.committed("billing") == {("orders", 0): 7}


WRONG = """\
topic: {}
users: {alice: secret}
topics:
  orders: {partitions: 0, replication_factor: 2, color: red}
  invoices: {replication_factor: 2, configs: {retention.ms: soon}}
  "no/name":
  __consumer_offsets:
  1041:
  others:
    partitions: 2
    records:
      - 42
      - {value: x, partition: 2}
      - {values: x}
      - {}
      - {timestamp_ms: -1, headers: [a]}
groups:
  billing:
    offsets: {others: {2: 0, 0: -1, 1: {metadata: 7}}, unknown: {0: 1}, orders: 7}
  shipping: {}
"""
MISTAKES = {
    "seed": "there is no 'topic': use topics, groups, acls",
    "users": "users are no part of a seed: give them by --user NAME:PASSWORD, or Broker(users=...)",
    "topics": """names are texts: write "1041", not 1041""",
    "topics.orders": "there is no 'color': use partitions, replication_factor, configs, records",
    "topics.orders.partitions": "a number from 1 to 2147483647, not 0",
    "topics.invoices": "INVALID_CONFIG: ",
    "topics.no/name": "INVALID_TOPIC_EXCEPTION: Topic name is invalid",
    "topics.__consumer_offsets": "the broker creates this topic itself",
    "topics.others.records[0]": """a text: write "42", not 42""",
    "topics.others.records[1].partition": "topic others has partitions 0 to 1, not 2",
    "topics.others.records[2]": "there is no 'values': use value, key, headers, timestamp_ms, partition",
    "topics.others.records[3]": "a record has value, key, headers, timestamp_ms, partition",
    "topics.others.records[4].timestamp_ms": "a number from 0 to ",
    "topics.others.records[4].headers": "it has lines NAME: VALUE, not ['a']",
    "groups.billing.offsets.others.2": "topic others has partitions 0 to 1, not 2",
    "groups.billing.offsets.others.0.offset": "a number from 0 to ",
    "groups.billing.offsets.others.1": "an offset is missing",
    "groups.billing.offsets.others.1.metadata": "a text, not 7",
    "groups.billing.offsets.unknown": "the seed has no such topic",
    "groups.billing.offsets.orders": "an offset for each of some partitions, not 7",
    "groups.shipping": "a group has offsets",
}


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    file = tmp_path / "seed.yaml"
    file.write_text(WRONG)
    done = kproto("serve", "--seed", str(file))
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    for path, text in MISTAKES.items():
        (line,) = [one for one in lines if one.startswith(f"kproto serve: --seed: {file}: {path}: {text}")]
        lines.remove(line)
    assert [line for line in lines if f": {file}: topics.orders: " not in line] == []


HALF = "\ud800"
"""Half a surrogate pair."""


@pytest.mark.parametrize(
    ("seed", "path"),
    [
        ({"topics": {HALF: {}}}, "topics"),
        ({"topics": {"t": {"configs": {"retention.ms": HALF}}}}, "topics.t.configs.retention.ms"),
        ({"topics": {"t": {"records": [HALF]}}}, "topics.t.records[0]"),
        ({"topics": {"t": {"records": [{"key": HALF}]}}}, "topics.t.records[0].key"),
        ({"topics": {"t": {"records": [{"value": [HALF]}]}}}, "topics.t.records[0].value"),
        ({"topics": {"t": {"records": [{"headers": {HALF: "x"}}]}}}, "topics.t.records[0].headers"),
        ({"topics": {"t": {"records": [{"headers": {"x": HALF}}]}}}, "topics.t.records[0].headers.x"),
        ({"groups": {HALF: {}}}, "groups"),
        ({"topics": {"t": {}}, "groups": {"g": {"offsets": {"t": {0: {"offset": 0, "metadata": HALF}}}}}},
         "groups.g.offsets.t.0.metadata"),
        ({"acls": [{"principal": HALF, "operation": "READ", "resource_type": "TOPIC"}]}, "acls[0].principal"),
    ],
)  # fmt: skip
def test_what_utf_8_can_not_have_is_a_mistake(seed: Mapping[str, Any], path: str) -> None:
    with pytest.raises(UsageError) as refused:
        Broker(seed=seed)
    assert f"{path}: a text without half a surrogate pair, not " in str(refused.value)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("topics: [", "line 1: "),
        ("topics:\n  a:\n  a:\n", "line 2: 'a' is there twice"),
        ("[" * 5000, "it is nested too deeply"),
        ("- topics\n", "seed: it has lines NAME: VALUE, not ['topics']"),
    ],
)
def test_a_file_that_is_none(text: str, error: str, tmp_path: Path) -> None:
    file = tmp_path / "seed.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        Broker(seed=str(file))
    assert str(refused.value).startswith(f"{file}: {error}")


@pytest.mark.parametrize("words", [("serve", "--port", "0"), ("run",)])
def test_what_only_the_broker_finds_ends_the_command_too(words: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "seed.yaml"
    file.write_text(f"topics:\n  a: {{records: [{'x' * 2000}]}}\n  b: {{records: [{'x' * 2000}]}}\n  c:\n")
    rest = ("--", "true") if words[0] == "run" else ()
    done = kproto(*words, "--set", "message.max.bytes=1000", "--seed", str(file), *rest)
    assert done.returncode == 2
    assert done.stderr.count("MESSAGE_TOO_LARGE") == 2, done.stderr
    assert f"{file}: topics.b: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("seed", [{}, {"topics": None}, {"topics": {}, "groups": {}}])
def test_an_empty_seed_is_none(seed: Mapping[str, Any]) -> None:
    with Broker.running(seed=seed) as broker:
        assert broker.topics.list() == ()
