"""Spark's own Kafka connector on a kproto broker and on a real one: once and as a stream, and the offsets topic.

The connector's jars are a mix. Maven Central as seen here has the connector up to 4.2.0, but of the token provider that
it needs only 4.0.0 as a jar; that one is enough for clusters without delegation tokens.
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
from tests.interop.ours import LISTENING
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
"""confluent-kafka sends the zero that ends a string of C with it."""
OFFSETS = {0: 11, 1: 22, 2: 33}


def jars() -> str:
    need_java()
    need_maven()
    connector = fetch_artifacts("spark-connector-4.2.0", ARTIFACTS).glob("*.jar")
    clients = fetch_clients(KAFKA_CLIENTS).glob("kafka-clients-*.jar")
    return ",".join(map(str, [*connector, *clients]))


def fill(servers: str) -> None:
    """Write records to three partitions, and commit offsets of a group."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, len(OFFSETS), 1)])[TOPIC].result(30)
    producer = Producer({"bootstrap.servers": servers})
    for number in range(RECORDS):
        producer.produce(TOPIC, str(number).encode(), partition=number % len(OFFSETS))
    assert producer.flush(30) == 0
    wait_coordinators(servers, [GROUP])
    consumer = Consumer({"bootstrap.servers": servers, "group.id": GROUP})
    places = [TopicPartition(TOPIC, partition, offset, metadata=METADATA) for partition, offset in OFFSETS.items()]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


@pytest.mark.oracle
@pytest.mark.slow  # starts a real broker, and Spark with the connector
def test_the_connector_reads_topics_and_the_offsets_topic_is_never_zero_rows(tmp_path: Path) -> None:
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
    for facts in found.values():
        assert facts["batch"] == facts["stream"] == sorted(map(str, range(RECORDS)))
        commits = [tuple(row) for row in facts["commits"] if row[0] == GROUP]
        assert commits == [(GROUP, TOPIC, p, offset, METADATA + "\0", False, "none") for p, offset in OFFSETS.items()]
    assert found["kafka"]["offsets_by_itself"] == 0  # else the detour has become needless


def test_the_package_is_named_as_spark_wants_it() -> None:
    assert connector_package("4.2.0") == "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
