"""The settings that kproto prints work as pasted, for TLS, certificates of clients, and mechanisms of SASL.

Method. Each client library takes the text as it is, inside the few lines that any program has: it writes a record and
reads it in a group.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kproto.errors import UsageError
from kproto_server.broker.broker import Broker, BrokerOptions
from tests.oracle.cluster import NEWEST, kafka
from tests.oracle.java import compiled, java_command
from tests.requirements import need_go, need_node, need_npm
from tests.waiting import LIMIT_S

JAVA = Path(__file__).parent / "java" / "SecuredClient.java"
EXAMPLES = Path(__file__).parents[2] / "fixtures" / "examples"
BUILD_LIMIT_S = 300
"""The first run downloads the modules of the clients."""


KINDS: dict[str, BrokerOptions] = {
    "TLS": {"tls": "auto"},
    "certificate": {"tls": "auto", "settings": {"ssl.client.auth": "required"}},
    "PLAIN": {"sasl": "PLAIN", "users": {"al,ice=": 'se"cr\\et'}},
    "SCRAM-SHA-256": {"sasl": "SCRAM-SHA-256"},
    "TLS and SCRAM-SHA-512": {"tls": "auto", "sasl": "SCRAM-SHA-512"},
}
"""The security of a listener, by name. A name and a password have characters that settings may have to escape."""


@pytest.fixture(scope="module", params=KINDS)
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker.running(**KINDS[request.param]) as running:
        yield running


def properties(text: str) -> dict[str, Any]:
    return dict(line.split("=", 1) for line in text.splitlines())


def arguments(text: str, **names: object) -> dict[str, Any]:
    """Return the arguments of a call in Python."""
    found: dict[str, Any] = eval(f"dict({text})", names)  # noqa: S307 - what users paste into their programs
    return found


def test_confluent_kafka(broker: Broker) -> None:
    confluent_kafka: Any = pytest.importorskip("confluent_kafka")
    settings = properties(broker.client_settings("librdkafka"))
    producer = confluent_kafka.Producer(settings)
    producer.produce("confluent", b"v")
    assert producer.flush(LIMIT_S) == 0
    consumer = confluent_kafka.Consumer(settings | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["confluent"])
    record = consumer.poll(LIMIT_S)
    assert record.value() == b"v"
    consumer.commit(record, asynchronous=False)
    consumer.close()


def test_kafka_python(broker: Broker) -> None:
    kafka_python: Any = pytest.importorskip("kafka")
    settings = arguments(broker.client_settings("kafka-python"))
    with kafka_python.KafkaProducer(**settings) as producer:
        producer.send("python", b"v").get(LIMIT_S)
    consumer = kafka_python.KafkaConsumer("python", group_id="g", auto_offset_reset="earliest", **settings)
    assert next(consumer).value == b"v"
    consumer.close()


def test_aiokafka(broker: Broker) -> None:
    aiokafka: Any = pytest.importorskip("aiokafka")
    pytest.importorskip("aiokafka.helpers")

    async def run() -> bytes:
        return await run_aiokafka(**arguments(broker.client_settings("aiokafka"), aiokafka=aiokafka))

    assert asyncio.run(run()) == b"v"


async def run_aiokafka(**settings: object) -> bytes:
    """Write a record and read it in a group; return its value. Cancelled, it closes its clients."""
    aiokafka: Any = pytest.importorskip("aiokafka")
    async with aiokafka.AIOKafkaProducer(**settings) as producer:
        await producer.send_and_wait("aiokafka", b"v")
    consumer = aiokafka.AIOKafkaConsumer("aiokafka", group_id="g", auto_offset_reset="earliest", **settings)
    async with consumer:
        record = await asyncio.wait_for(consumer.getone(), LIMIT_S)
    value: bytes = record.value
    return value


@pytest.mark.oracle
@pytest.mark.parametrize("release", ["2.0.1", NEWEST])
def test_java(broker: Broker, release: str, tmp_path: Path) -> None:
    assert run_java(release, broker.client_settings("java"), tmp_path) == "v"


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["certificate", "PLAIN"])
def test_java_0_11(kind: str, tmp_path: Path) -> None:
    """Its tokens have no headers. SCRAM of this client needs classes that Java has had up to 10 only."""
    with Broker.running(**KINDS[kind]) as broker:
        assert run_java("0.11.0.3", broker.client_settings("java"), tmp_path) == "v"


@pytest.mark.oracle
@pytest.mark.parametrize("release", ["2.0.1", NEWEST])
@pytest.mark.parametrize("kind", ["expired", "wrong-name", "unknown-ca"])
def test_java_refuses_a_wrong_certificate(release: str, kind: str, tmp_path: Path) -> None:
    """As with a real broker: an error of the handshake, after which the client does not try again."""
    with Broker.running(tls=kind) as broker:
        assert run_java(release, broker.client_settings("java"), tmp_path) == "SslAuthenticationException"


def run_java(release: str, settings: str, folder: Path, jars: str = "clientpath") -> str:
    """Run the client of a release with these settings; return what it prints. ``jars``: clientpath or toolpath."""
    classpath = kafka(jars, release)
    (folder / "client.properties").write_text(settings)
    command = java_command(compiled(JAVA, classpath), classpath, "SecuredClient")
    done = subprocess.run(
        [*command, str(folder / "client.properties")],
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()[-1]


GO = """
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// What only some of the settings use.
var (
	_ = tls.Config{}
	_ = x509.NewCertPool
	_ = os.ReadFile
	_ = oauth.Auth{}
	_ = plain.Auth{}
	_ = scram.Auth{}
)

func main() {
%s
	options = append(options, kgo.AllowAutoTopicCreation(), kgo.ConsumeTopics("go"), kgo.ConsumerGroup("g"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	var refused *kerr.Error
	if err := client.Ping(context.Background()); errors.As(err, &refused) {
		fmt.Println(refused.Message)
		return
	}
	record := &kgo.Record{Topic: "go", Value: []byte("v")}
	if err := client.ProduceSync(context.Background(), record).FirstErr(); err != nil {
		panic(err)
	}
	fetches := client.PollFetches(context.Background())
	fmt.Println(string(fetches.Records()[0].Value))
}
"""


def test_franz_go(broker: Broker, tmp_path: Path) -> None:
    assert run_franz_go(broker.client_settings("franz-go"), tmp_path) == "v"


def run_franz_go(settings: str, folder: Path) -> str:
    """Run a program of franz-go with these settings; return what it prints: the record, or the error."""
    go = need_go()
    for name in ("go.mod", "go.sum"):
        shutil.copy(EXAMPLES / "go" / name, folder)
    (folder / "main.go").write_text(GO % textwrap.indent(settings, "\t"))
    return output(go, "run", "-mod=mod", ".", folder=folder)


NODE = """
import fs from "node:fs";
import { Kafka, logLevel } from "kafkajs";

const kafka = new Kafka({
  logLevel: logLevel.ERROR,
%s
});
const producer = kafka.producer();
try {
  await producer.connect();
} catch (error) {
  console.log(error.name);
  process.exit();
}
await producer.send({ topic: "node", messages: [{ value: "v" }] });
await producer.disconnect();
const consumer = kafka.consumer({ groupId: "g" });
await consumer.connect();
await consumer.subscribe({ topic: "node", fromBeginning: true });
await new Promise((resolve) => consumer.run({
  eachMessage: async ({ message }) => { console.log(message.value.toString()); resolve(); },
}));
await consumer.disconnect();
"""


def test_kafkajs(broker: Broker, tmp_path: Path) -> None:
    assert run_kafkajs(broker.client_settings("kafkajs"), tmp_path) == "v"


def run_kafkajs(settings: str, folder: Path) -> str:
    """Run a program of KafkaJS with these settings; return what it prints: the record, or the class of the error."""
    node, npm = need_node(), need_npm()
    if not (folder / "node_modules").exists():
        for name in ("package.json", "package-lock.json"):
            shutil.copy(EXAMPLES / "node" / name, folder)
        output(npm, "ci", "--silent", "--no-audit", "--no-fund", folder=folder)
    (folder / "main.mjs").write_text(NODE % settings)
    return output(node, "main.mjs", folder=folder)


def output(*command: str, folder: Path) -> str:
    """Run a command; return the last word that it prints."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "GOFLAGS": "-mod=mod"},
        capture_output=True,
        text=True,
        timeout=BUILD_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()[-1] if done.stdout else ""


def test_a_library_without_settings_is_refused() -> None:
    with Broker.running(tls="auto") as broker, pytest.raises(UsageError, match="give one of java, librdkafka"):
        broker.client_settings("cobol")
