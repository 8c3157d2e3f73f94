"""Exactly-once programs of other client libraries: Java's (2.8.2 and the newest), aiokafka and kafka-python."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kproto_server.broker.broker import Broker
from tests.oracle.cluster import NEWEST, kafka
from tests.oracle.java import compiled, java_command

SOURCE = Path(__file__).parent / "java" / "TransactionsClient.java"
LIMIT_S = 60
VERSIONS = ["2.8", "latest"]


@pytest.mark.oracle
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("client", ["2.8.2", NEWEST])
def test_java_copies_each_record_once(client: str, version: str) -> None:
    """BA-100 to BA-106, BA-75: commits, aborts, fencing, and a read_committed consumer (of KIP-848 if both know it)."""
    protocol = ["consumer"] if (client, version) == (NEWEST, "latest") else []
    classpath = kafka("clientpath", client)
    command = java_command(compiled(SOURCE, classpath, 11), classpath, "TransactionsClient")
    with Broker.running(kafka_version=version) as broker:
        done = subprocess.run(
            [*command, broker.bootstrap_servers, *protocol],
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert [group.kind for group in broker.groups.list()] == (protocol or ["classic"])
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert found == {"values": ["0", "2", "4", "last"], "offset": 5, "fenced": True}


@pytest.mark.parametrize("version", ["0.11", *VERSIONS])
def test_aiokafka_commits_and_aborts(version: str) -> None:
    aiokafka: Any = pytest.importorskip("aiokafka")

    async def run(address: str) -> None:
        partition = aiokafka.TopicPartition("t", 0)
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=address, transactional_id="a")
        await producer.start()
        for offset, commits in ((1, True), (2, False), (3, True), (4, False)):
            await producer.begin_transaction()
            await producer.send_and_wait("t", b"%d" % offset, partition=0)
            await producer.send_offsets_to_transaction({partition: offset}, "g")
            await (producer.commit_transaction() if commits else producer.abort_transaction())
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=address, group_id="g", isolation_level="read_committed", enable_auto_commit=False
        )
        await consumer.start()
        consumer.assign([partition])
        assert await consumer.committed(partition) == 3
        await consumer.seek_to_beginning()
        found = [await asyncio.wait_for(consumer.getone(), LIMIT_S) for _ in range(2)]
        assert [record.value for record in found] == [b"1", b"3"]
        await consumer.stop()

    with Broker.running(kafka_version=version) as broker:
        asyncio.run(run(broker.bootstrap_servers))


@pytest.mark.parametrize("version", VERSIONS)
def test_kafka_python_commits_and_aborts(version: str) -> None:
    kafka_python: Any = pytest.importorskip("kafka")
    structs: Any = pytest.importorskip("kafka.structs")
    partition = structs.TopicPartition("t", 0)
    with Broker.running(kafka_version=version) as broker:
        producer = kafka_python.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="a")
        producer.init_transactions()
        for offset, commits in ((1, True), (2, False), (3, True), (4, False)):
            producer.begin_transaction()
            producer.send("t", b"%d" % offset, partition=0).get(LIMIT_S)
            producer.send_offsets_to_transaction({partition: structs.OffsetAndMetadata(offset, "", -1)}, "g")
            (producer.commit_transaction if commits else producer.abort_transaction)()
        producer.close()
        consumer = kafka_python.KafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers,
            group_id="g",
            isolation_level="read_committed",
            enable_auto_commit=False,
        )
        consumer.assign([partition])
        assert consumer.committed(partition) == 3
        consumer.seek_to_beginning()
        assert [next(consumer).value for _ in range(2)] == [b"1", b"3"]
        consumer.close()
