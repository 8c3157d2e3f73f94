"""Kafka's own exactly-once programs: Kafka Streams, killed and restarted, and its TransactionalMessageCopier.

Connect runs exactly-once sources in distributed mode only.
"""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kproto_server.broker.broker import Broker
from tests.clients.admin import create_topic
from tests.oracle.cluster import kafka
from tests.oracle.java import JVM_FLAGS, compiled, java_command
from tests.oracle.releases import fetch_artifacts
from tests.requirements import need_java

confluent_kafka: Any = pytest.importorskip("confluent_kafka")

SOURCE = Path(__file__).parent / "java" / "StreamsCounter.java"
STREAMS = "3.9.2"
"""Each release of Kafka Streams is compatible with brokers of all releases."""
ROCKSDB = "7.9.2"
LIMIT_S = 60.0
KEYS = ("a", "b")
"""Of the records of each partition."""
COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"

pytestmark = pytest.mark.oracle


def write(broker: Broker, topic: str, count: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(count):
        producer.produce(topic, str(number), KEYS[number % 2], partition=number % 2)
    assert producer.flush(LIMIT_S) == 0


def committed(broker: Broker, topic: str, count: int) -> list[tuple[str, str]]:
    """Return the keys and values of so many committed records, in the order of each partition."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", "isolation.level": "read_committed"}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, index, 0) for index in range(2)])
    found: list[tuple[str, str]] = []
    while len(found) < count:
        message = consumer.poll(LIMIT_S)
        assert message is not None, f"{len(found)} of {count} records"
        found.append((message.key().decode(), message.value().decode()))
    consumer.close()
    return found


@contextmanager
def counter(broker: Broker, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    artifacts = [("org.apache.kafka", "kafka-streams", STREAMS), ("org.rocksdb", "rocksdbjni", ROCKSDB)]
    classpath = f"{fetch_artifacts(f'streams-{STREAMS}', artifacts)}/*{os.pathsep}{kafka('clientpath', STREAMS)}"
    command = java_command(compiled(SOURCE, classpath, 11), classpath, "StreamsCounter")
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [*command, broker.bootstrap_servers, str(folder)], stdin=subprocess.PIPE, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("version", ["3.9", "latest"])
def test_streams_count_each_record_once_although_they_are_killed(version: str, tmp_path: Path) -> None:
    with Broker.running(kafka_version=version, settings={"group.min.session.timeout.ms": "1000"}) as broker:
        for topic in ("in", "out"):
            create_topic(broker.bootstrap_servers, topic, 2)
        write(broker, "in", 300)
        with counter(broker, tmp_path) as first:
            committed(broker, "out", 100)
            write(broker, "in", 300)
            first.kill()
        with counter(broker, tmp_path):
            found = committed(broker, "out", 600)
    counts = defaultdict(list)
    for key, count in found:
        counts[key].append(int(count))
    assert counts == {key: list(range(1, 301)) for key in KEYS}


@pytest.mark.parametrize("version", ["3.9", "latest"])
def test_the_message_copier_copies_each_record_once(version: str) -> None:
    classpath = kafka("toolpath", STREAMS)
    with Broker.running(kafka_version=version) as broker:
        for topic in ("in", "out"):
            create_topic(broker.bootstrap_servers, topic, 2)
        write(broker, "in", 400)
        command = [need_java(), *JVM_FLAGS, "-cp", classpath, COPIER]
        arguments = {
            "transactional-id": "copier",
            "broker-list": broker.bootstrap_servers,
            "consumer-group": "copiers",
            "input-topic": "in",
            "input-partition": "0",
            "output-topic": "out",
            "max-messages": "200",
            "transaction-size": "15",
            "transaction-timeout": "10000",
        }
        words = [word for name, value in arguments.items() for word in (f"--{name}", value)]
        done = subprocess.run(
            [*command, *words, "--enable-random-aborts"],
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert [value for _, value in committed(broker, "out", 200)] == [str(number) for number in range(0, 400, 2)]
