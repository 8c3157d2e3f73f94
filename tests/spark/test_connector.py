"""Spark's own Kafka connector reads kproto and a real broker, once and as a stream, also the offsets topic to tables.

kproto has a listener with TLS and SASL. A command that follows it is killed, and later runs go on where it was.

The jars have different versions: the connector is 4.2.0, but the newest token provider that Maven mirrors have as a jar
is 4.0.0. It is enough for clusters without delegation tokens.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its stubs leave it out

from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LATEST
from kproto.spark import jobs
from kproto.spark.embedded import EmbeddedSession
from kproto.spark.engine import EMBEDDED, using
from kproto.spark.input import Input
from kproto.spark.inputs import TablesInput
from kproto.spark.kafka import connector_package
from kproto.spark.schemas import LAG
from tests.clients.admin import wait_coordinators
from tests.commandline.commands import kproto_started, line_of, process_started
from tests.interop.kproto_process import LISTENING
from tests.oracle.cluster import NEWEST, real_kafka
from tests.oracle.releases import fetch_artifacts, fetch_clients
from tests.requirements import need_java, need_maven
from tests.spark.settings import use_in_commands
from tests.spark.tables_child import embedded, rows

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
Settings = Mapping[str, Any]
LOGIN = {"security.protocol": "SASL_SSL", "sasl.mechanisms": "PLAIN"} | {
    "sasl.username": "spark",
    "sasl.password": "secret",
}
LOGIN_OF_JAVA = """\
security.protocol=SASL_SSL
ssl.truststore.type=PEM
ssl.truststore.location={ca}
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
    username="spark" password="secret";
"""


def jars() -> str:
    need_java()
    need_maven()
    connector = fetch_artifacts("spark-connector-4.2.0", ARTIFACTS).glob("*.jar")
    clients = fetch_clients(KAFKA_CLIENTS).glob("kafka-clients-*.jar")
    return ",".join(map(str, [*connector, *clients]))


def fill(servers: str, settings: Settings) -> None:
    """Write records to three partitions; commit offsets of a group, in transactions, and as members of groups."""
    common = {"bootstrap.servers": servers, **settings}
    admin = AdminClient(common)
    admin.create_topics([NewTopic(TOPIC, len(OFFSETS), 1)])[TOPIC].result(30)
    producer = Producer(common)
    for number in range(RECORDS):
        producer.produce(TOPIC, str(number).encode(), partition=number % len(OFFSETS))
    assert producer.flush(30) == 0
    if not settings:  # a real broker
        wait_coordinators(servers, [GROUP])
    consumer = Consumer({**common, "group.id": GROUP})
    offsets = [TopicPartition(TOPIC, partition, offset, metadata=METADATA) for partition, offset in OFFSETS.items()]
    consumer.commit(offsets=offsets, asynchronous=False)
    writer = Producer({**common, "transactional.id": "writer"})
    writer.init_transactions()
    group = consumer.consumer_group_metadata()
    for offset, end in ((44, writer.commit_transaction), (55, writer.abort_transaction)):
        writer.begin_transaction()
        writer.send_offsets_to_transaction([TopicPartition(TOPIC, 0, offset)], group)
        end()
    consumer.close()
    for protocol in ("classic", "consumer"):
        member = Consumer({**common, "group.id": protocol, "group.protocol": protocol, "auto.offset.reset": "earliest"})
        member.subscribe([TOPIC])
        assert member.poll(30) is not None
        member.commit(asynchronous=False)
        member.close()


def commit_of_a_later_group(common: Settings) -> None:
    consumer = Consumer({**common, "group.id": "later"})
    consumer.commit(offsets=[TopicPartition(TOPIC, 1, 77)], asynchronous=False)
    consumer.close()


def killed_while_it_reads(paths: str, servers: str, login: Path, root: Path) -> None:
    """Follow a cluster; kill the command, Java and Python, after its second micro-batch, a second after its first."""
    options = ("--command-config", login, "--every", "1", "--offsets-per-batch", "8", "--jars", paths, "-o", root)
    words = ("-m", "kproto.spark", "tables", "--from-kafka", servers, *options)
    with process_started(sys.executable, *map(str, words)) as process:
        assert process.stderr is not None, "it was asked for"
        said: list[str] = []
        while sum(line.startswith("kproto.spark: log_batches: ") for line in said) < 2:
            line = process.stderr.readline()
            assert line, said
            said.append(line)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def in_files(log_dir: Path) -> dict[str, Any]:
    """Return the rows of a log, and the results of jobs, with what a broker does not return as null."""
    with embedded(str(log_dir)) as log:
        commits = [row for row in rows(COMMITS, log.table(COMMITS.name)) if row["txn_state"] != "aborted"]
        for row in commits:
            row["txn_state"] = row["producer_id"] = None
        return {
            COMMITS.name: sorted(commits, key=str),
            GROUP_METADATA.name: rows(GROUP_METADATA, log.table(GROUP_METADATA.name)),
            **results(log),
        }


def in_tables(root: Path) -> dict[str, Any]:
    """Return the rows of tables, and the results of jobs."""
    session: Any = EmbeddedSession()
    with using(EMBEDDED):
        source = TablesInput(session, str(root))
        found = {table.name: rows(table, source.table(table.name)) for table in (COMMITS, GROUP_METADATA)}
        found |= results(source)
    session.stop()
    return found


def results(source: Input) -> dict[str, Any]:
    lag = jobs.lag(source.last_commits, source.log_ends, moments=[source.end_ts])
    end_of_log = [{**row, "ts": None} for row in rows(LAG, lag)]  # markers are newer, and not in the tables
    return {"latest": rows(LATEST, jobs.latest(source.last_commits)), "lag": end_of_log}


@pytest.mark.oracle
@pytest.mark.slow  # starts a real broker, and Spark with the connector
def test_the_connector_reads_topics_and_the_offsets_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = jars()
    use_in_commands(monkeypatch, tmp_path / "conf")
    none, login = tmp_path / "none.properties", tmp_path / "login.properties"
    none.write_text("")
    ours_dir, tables, certificates = tmp_path / "kproto", tmp_path / "tables of eu", tmp_path / "tls"
    login.write_text(LOGIN_OF_JAVA.format(ca=certificates / "ca.pem"))
    secured = ("--tls", "auto", "--tls-dir", str(certificates), "--sasl", "PLAIN", "--user", "spark:secret")
    flags = ("--port", "0", "--data-dir", str(ours_dir), *secured)
    with kproto_started("serve", *flags) as process, real_kafka(NEWEST) as real:
        ours = line_of(process).removeprefix(LISTENING).split()[0]
        to_ours = LOGIN | {"ssl.ca.location": str(certificates / "ca.pem")}
        brokers = {"kproto": (ours, login, to_ours), "kafka": (real.bootstrap, none, {})}
        for servers, _, settings in brokers.values():
            fill(servers, settings)
        killed_while_it_reads(paths, ours, login, tables / "kproto")
        partly = len(in_tables(tables / "kproto")[COMMITS.name])
        commit_of_a_later_group({"bootstrap.servers": ours, **to_ours})
        named = [f"{name}={servers}={file}" for name, (servers, file, _) in brokers.items()]
        command = [sys.executable, "-m", "tests.spark.connector_child", paths, TOPIC, str(tables), *named]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        process.terminate()
        process.wait()
        real.stop(1)
        (offsets,) = real.folder.glob("**/__consumer_offsets-0")
        same = [
            (in_tables(tables / name), in_files(log)) for name, log in (("kproto", ours_dir), ("kafka", offsets.parent))
        ]
    found = json.loads(done.stdout.splitlines()[-1])
    for result in found.values():
        assert result["batch"] == result["stream"] == sorted(map(str, range(RECORDS)))
        commits = [tuple(row) for row in result["commits"] if row[0] == GROUP and row[3] != 44]
        assert commits == [(GROUP, TOPIC, p, offset, METADATA + "\0", False, None) for p, offset in OFFSETS.items()]
        *dead, third, last = result["runs"]
        if dead:
            assert dead == [[], []]
            # The first run had written the micro-batch that is repeated; its rows are compared below.
            assert third[:2] == ["commits: 0 rows added", "group_metadata: 0 rows added"]
        assert last == [f"{name}: 0 rows added" for name in ("commits", "group_metadata", "log_batches")]
    assert found["kafka"]["offsets_by_itself"] == 0  # else `BY_CONSUMER` is no longer needed
    assert [len(result["runs"]) for result in found.values()] == [2, 4]
    assert 0 < partly < len(same[0][0][COMMITS.name])
    for from_broker, from_files in same:
        assert len(from_broker[COMMITS.name]) > len(OFFSETS)
        assert {row["kind"] for row in from_broker[GROUP_METADATA.name]} == {"classic", "consumer"}
        assert from_broker == from_files


def test_the_maven_coordinates_of_the_connector() -> None:
    assert connector_package("4.2.0") == "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
