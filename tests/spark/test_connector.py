"""Spark's own Kafka connector reads kproto and a real broker, once and as a stream, also the offsets topic.

The jars have different versions: the connector is 4.2.0, but the newest token provider that Maven mirrors have as a jar
is 4.0.0. It is enough for clusters without delegation tokens.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its stubs leave it out

from kproto.spark.kafka import connector_package
from tests.clients.admin import wait_coordinators
from tests.commandline.commands import kproto_started, line_of
from tests.interop.kproto_process import LISTENING
from tests.oracle.cluster import NEWEST, real_kafka
from tests.oracle.releases import fetch_artifacts, fetch_clients
from tests.requirements import need_java, need_maven

ARTIFACTS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)
KAFKA_CLIENTS = "3.9.2"
TOPIC, RECORDS, GROUP = "orders", 300, "billing"
METADATA = "by hand"
"""confluent-kafka appends the zero byte that ends a C string."""
OFFSETS = {0: 11, 1: 22, 2: 33}


def jars() -> str:
    need_java()
    need_maven()
    connector = fetch_artifacts("spark-connector-4.2.0", ARTIFACTS).glob("*.jar")
    clients = fetch_clients(KAFKA_CLIENTS).glob("kafka-clients-*.jar")
    return ",".join(map(str, [*connector, *clients]))


def fill(servers: str) -> None:
    """Write records to three partitions; commit offsets of a group."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, len(OFFSETS), 1)])[TOPIC].result(30)
    producer = Producer({"bootstrap.servers": servers})
    for number in range(RECORDS):
        producer.produce(TOPIC, str(number).encode(), partition=number % len(OFFSETS))
    assert producer.flush(30) == 0
    wait_coordinators(servers, [GROUP])
    consumer = Consumer({"bootstrap.servers": servers, "group.id": GROUP})
    offsets = [TopicPartition(TOPIC, partition, offset, metadata=METADATA) for partition, offset in OFFSETS.items()]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


@pytest.mark.oracle
@pytest.mark.slow  # starts a real broker, and Spark with the connector
def test_the_connector_reads_topics_and_the_offsets_topic(tmp_path: Path) -> None:
    paths = jars()
    with kproto_started("serve", "--port", "0") as process, real_kafka(NEWEST) as real:
        ours = line_of(process).removeprefix(LISTENING).split()[0]
        brokers = {"kproto": ours, "kafka": real.bootstrap}
        for servers in brokers.values():
            fill(servers)
        named = [f"{name}={servers}" for name, servers in brokers.items()]
        command = [sys.executable, "-m", "tests.spark.connector_child", paths, TOPIC, *named]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        process.terminate()
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    for result in found.values():
        assert result["batch"] == result["stream"] == sorted(map(str, range(RECORDS)))
        commits = [tuple(row) for row in result["commits"] if row[0] == GROUP]
        assert commits == [(GROUP, TOPIC, p, offset, METADATA + "\0", False, "none") for p, offset in OFFSETS.items()]
    assert found["kafka"]["offsets_by_itself"] == 0  # else `BY_CONSUMER` is no longer needed


def test_the_maven_coordinates_of_the_connector() -> None:
    assert connector_package("4.2.0") == "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
