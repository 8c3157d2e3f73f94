"""The README's line starts a broker with TLS and SCRAM, and what it prints works as pasted, in four languages.

Method. The command is the one in the README; the settings are cut out of its output. Each client has them as they are,
and once more with another password, which it has to report as a failed authentication.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commandline.commands import process_started
from tests.oracle.cluster import NEWEST
from tests.security.test_client_settings import arguments, properties, run_aiokafka, run_franz_go, run_java, run_kafkajs
from tests.waiting import LIMIT_S, wait_until

README = (Path(__file__).parents[2] / "README.md").read_text()
COMMAND = re.compile(r"^kproto (serve .*--tls auto --sasl SCRAM-SHA-256.*)$", re.MULTILINE)
PASSWORD, WRONG = "alice-secret", "wrong-secret"
LIBRARIES = ("java", "librdkafka", "kafka-python", "aiokafka", "franz-go", "kafkajs")


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The settings that the command of the README prints, by library."""
    found = COMMAND.search(README)
    assert found is not None, "the README has the line"
    folder = tmp_path_factory.mktemp("readme")
    ports, output = folder / "brokers.txt", folder / "output"
    words = shlex.split(found[1].replace("brokers.txt", str(ports)))
    script = 'exec "$@" >"$0" 2>&1'
    with process_started("sh", "-c", script, str(output), sys.executable, "-m", "kproto_server", *words) as process:

        def serves() -> bool:
            assert process.poll() is None, output.read_text()
            return ports.exists() and f"# {LIBRARIES[-1]}\n" in output.read_text()

        wait_until(serves, "the broker to print its settings and to write the file of its ports")
        text = output.read_text()
        assert ports.read_text().strip() in text
        blocks = re.split(r"^# ([\w-]+)\n", text, flags=re.MULTILINE)[1:]
        yield {name: block.strip() + "\n" for name, block in zip(blocks[::2], blocks[1::2], strict=True)}


def wrong(settings: str) -> str:
    assert PASSWORD in settings
    return settings.replace(PASSWORD, WRONG)


def test_each_library_has_settings(printed: dict[str, str]) -> None:
    assert tuple(printed) == LIBRARIES


@pytest.mark.oracle
def test_java(printed: dict[str, str], tmp_path: Path) -> None:
    assert run_java(NEWEST, printed["java"], tmp_path) == "v"
    assert run_java(NEWEST, wrong(printed["java"]), tmp_path) == "SaslAuthenticationException"


def test_librdkafka(printed: dict[str, str]) -> None:
    confluent_kafka: Any = pytest.importorskip("confluent_kafka")
    producer = confluent_kafka.Producer(properties(printed["librdkafka"]))
    producer.produce("confluent", b"v")
    assert producer.flush(LIMIT_S) == 0
    errors: list[Any] = []
    refused = confluent_kafka.Producer(properties(wrong(printed["librdkafka"])) | {"error_cb": errors.append})
    deadline = time.monotonic() + LIMIT_S
    while not errors and time.monotonic() < deadline:
        refused.poll(0.1)
    assert errors[0].code() == confluent_kafka.KafkaError._AUTHENTICATION


def test_kafka_python(printed: dict[str, str]) -> None:
    kafka_python: Any = pytest.importorskip("kafka")
    errors: Any = pytest.importorskip("kafka.errors")
    with kafka_python.KafkaProducer(**arguments(printed["kafka-python"])) as producer:
        producer.send("python", b"v").get(LIMIT_S)
    with pytest.raises(errors.KafkaError):
        kafka_python.KafkaProducer(**arguments(wrong(printed["kafka-python"])), bootstrap_timeout_ms=500)


def test_aiokafka(printed: dict[str, str]) -> None:
    aiokafka: Any = pytest.importorskip("aiokafka")
    errors: Any = pytest.importorskip("aiokafka.errors")
    pytest.importorskip("aiokafka.helpers")

    async def run(text: str) -> bytes:
        return await run_aiokafka(**arguments(text, aiokafka=aiokafka))

    assert asyncio.run(run(printed["aiokafka"])) == b"v"
    with pytest.raises(errors.KafkaError):
        asyncio.run(run(wrong(printed["aiokafka"])))


def test_go(printed: dict[str, str], tmp_path: Path) -> None:
    assert run_franz_go(printed["franz-go"], tmp_path) == "v"
    assert run_franz_go(wrong(printed["franz-go"]), tmp_path) == "SASL_AUTHENTICATION_FAILED"


def test_node(printed: dict[str, str], tmp_path: Path) -> None:
    assert run_kafkajs(printed["kafkajs"], tmp_path) == "v"
    assert run_kafkajs(wrong(printed["kafkajs"]), tmp_path) == "KafkaJSSASLAuthenticationError"
