"""Small programs that write and read records with one client library each, run as new processes.

Each program has the same commands and prints one line of JSON:

    produce  sends COUNT records "value N" with key "N" to partitions 0 and 1 in turn: {"last": highest offset}
    consume  reads COUNT records of partitions 0 and 1 from the start: [["PARTITION:OFFSET", key, value], ...], sorted
"""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.oracle.cluster import NEWEST, kafka
from tests.oracle.java import compiled, java_command

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsClient:
    """A client library and its program."""

    name: str
    command: Callable[[], list[str]]
    """Returns the command of the program; skips the test if a requirement is missing."""
    compressions: tuple[str, ...] = ("gzip",)
    """In addition to none, which test_scenarios.py covers."""
    needs_java: bool = False


def _python(program: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, str(HERE / program)]


def _java(version: str) -> Callable[[], list[str]]:
    def command() -> list[str]:
        classpath = kafka("clientpath", version)
        return java_command(compiled(HERE / "java" / "RecordsClient.java", classpath), classpath, "RecordsClient")

    return command


CLIENTS = (
    RecordsClient(name="kafka-python", command=_python("records_kafka_python.py")),
    RecordsClient(name="aiokafka", command=_python("records_aiokafka.py")),
    RecordsClient(
        name="confluent-kafka", command=_python("records_confluent.py"), compressions=("gzip", "snappy", "lz4", "zstd")
    ),
    *(
        RecordsClient(name=f"java-{version}", command=_java(version), needs_java=True)
        for version in ("0.9.0.1", "1.1.1", "2.0.1", "2.8.2")
    ),
    RecordsClient(
        name=f"java-{NEWEST}", command=_java(NEWEST), compressions=("gzip", "snappy", "lz4", "zstd"), needs_java=True
    ),
)


def run(client: RecordsClient, command: str, bootstrap: str, topic: str, compression: str, count: int) -> Any:
    """Run one command in a new process; return its output."""
    arguments = [*client.command(), command, bootstrap, topic, compression, str(count)]
    done = subprocess.run(arguments, capture_output=True, encoding="utf-8", timeout=90, check=False)
    assert done.returncode == 0, f"{client.name} {command} exited with {done.returncode}:\n{done.stdout}{done.stderr}"
    return json.loads(done.stdout.strip().splitlines()[-1])
