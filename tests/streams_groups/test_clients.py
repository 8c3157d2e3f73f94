"""Kafka Streams as a streams group (`group.protocol=streams`): killed and restarted, and with two instances."""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kproto.messages.k89_streams_group_describe import StreamsGroupDescribeRequest
from tests.clients.admin import create_topic
from tests.membership.socket_transport import SocketTransport
from tests.oracle import launcher
from tests.oracle.cluster import NEWEST, kafka
from tests.oracle.java import compiled, java_command
from tests.oracle.releases import fetch_artifacts
from tests.waiting import wait_until

confluent_kafka: Any = pytest.importorskip("confluent_kafka")

SOURCE = Path(__file__).parent / "java" / "WordCounter.java"
ROCKSDB = "7.9.2"
LIMIT_S = 90.0
WORDS = ("a", "b", "c")
PAIRS = (("kproto 4.2", "4.2.2"), ("kproto latest", "4.3.1"), (f"kafka {NEWEST}", "4.3.1"))
"""A broker and the release of Kafka Streams; no registry has 4.4.0."""
GROUP = "words"
SETTINGS = {
    "group.streams.session.timeout.ms": "3000",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.initial.rebalance.delay.ms": "500",
    "offsets.topic.num.partitions": "1",
}

pytestmark = pytest.mark.oracle


def write(address: str, count: int) -> None:
    """Write lines that have each word once."""
    producer = confluent_kafka.Producer({"bootstrap.servers": address})
    for number in range(count):
        producer.produce("in", " ".join(WORDS), partition=number % 2)
    assert producer.flush(LIMIT_S) == 0


def counts(address: str, count: int) -> Mapping[str, list[int]]:
    """Return the committed counts of each word, once there are so many, in the order of each partition."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": address, "group.id": "reader", "isolation.level": "read_committed"}
    )
    consumer.assign([confluent_kafka.TopicPartition("out", index, 0) for index in range(2)])
    found: dict[str, list[int]] = defaultdict(list)
    for number in range(count):
        message = consumer.poll(LIMIT_S)
        assert message is not None, f"{number} of {count} records"
        found[message.key().decode()].append(int(message.value()))
    consumer.close()
    return found


@contextmanager
def counter(address: str, folder: Path, release: str) -> Iterator[subprocess.Popen[bytes]]:
    artifacts = [("org.apache.kafka", "kafka-streams", release), ("org.rocksdb", "rocksdbjni", ROCKSDB)]
    streams = fetch_artifacts(f"streams-{release}", artifacts)
    classpath = f"{streams}/*{os.pathsep}{kafka('clientpath', release)}"
    command = java_command(compiled(SOURCE, classpath, 11), classpath, "WordCounter")
    folder.mkdir(exist_ok=True)
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([*command, address, str(folder)], stdin=subprocess.PIPE, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class Described:
    """The group as its broker describes it."""

    def __init__(self, address: str) -> None:
        self._transport = SocketTransport(address)

    def group(self) -> Any:
        request = StreamsGroupDescribeRequest(group_ids=(GROUP,), include_authorized_operations=False)
        self._transport.send("admin", request, 0)
        return next((response.groups[0] for _, response in self._transport.responses()), None)

    def wait_for(self, *task_counts: int) -> None:
        """Wait until members have so many active tasks."""

        def is_so() -> bool:
            group = self.group()
            if group is None or group.group_state != "Stable":
                return False
            found = [sum(len(one.partitions) for one in member.assignment.active_tasks) for member in group.members]
            return sorted(found) == sorted(task_counts)

        wait_until(is_so, f"members with {task_counts} tasks")


@pytest.mark.parametrize(("streams_broker", "release"), PAIRS, indirect=["streams_broker"])
def test_streams_count_each_word_once(release: str, tmp_path: Path, streams_broker: str) -> None:
    """One instance is killed and starts again, a second one joins and leaves: each word is counted once."""
    address = streams_broker
    for topic in ("in", "out"):
        create_topic(address, topic, 2)
    described = Described(address)
    write(address, 50)
    with counter(address, tmp_path / "first", release) as first:
        assert len(counts(address, 100)) == len(WORDS)
        described.wait_for(4)
        write(address, 50)
        first.kill()
    with counter(address, tmp_path / "first", release) as first:
        counts(address, 300)
        with counter(address, tmp_path / "second", release) as second:
            described.wait_for(2, 2)
            write(address, 50)
            counts(address, 450)
            assert second.stdin is not None
            second.stdin.close()
            second.wait(LIMIT_S)
        described.wait_for(4)
        write(address, 50)
        found = counts(address, 600)
    assert found == {word: list(range(1, 201)) for word in WORDS}


@pytest.fixture
def streams_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    from kproto_server.broker.broker import Broker

    kind, _, version = request.param.partition(" ")
    if kind == "kproto":
        with Broker.running(kafka_version=version, settings=SETTINGS) as broker:
            yield broker.bootstrap_servers
    else:
        folder = tmp_path / "kafka"
        try:
            yield launcher.start(version, folder=folder, props=SETTINGS).bootstrap
        finally:
            launcher.stop(folder)
