"""The clients of the table of clients: each has a program in ``fixtures/examples/conform``."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from typing import TYPE_CHECKING, NamedTuple

from tests.clients.scenarios.built import go_program, node_program
from tests.fixture_files import FIXTURES
from tests.oracle.cluster import NEWEST, kafka
from tests.oracle.java import compiled, java_command

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FOLDER = FIXTURES / "examples" / "conform"
GO = FOLDER / "go"
JAVA_RELEASE = 11
"""Of the programs' language."""


class Copier(NamedTuple):
    """A program with a client library that copies records."""

    name: str
    version: str
    command: Callable[[], Sequence[str]]
    """Builds the program and returns its command; skips the test if a requirement is missing."""
    needs_runtime: bool = True
    """Whether the program needs a JVM, Go or Node.js."""


def _java(version: str, program: str) -> Copier:
    def command() -> list[str]:
        classpath = kafka("clientpath", version)
        return java_command(compiled(FOLDER / f"{program}.java", classpath, JAVA_RELEASE), classpath, program)

    return Copier(f"Java {version}", "", command)


def _python(package: str, note: str = "") -> Copier:
    program = FOLDER / f"copy_with_{package.replace('-', '_')}.py"
    return Copier(package, f"{metadata.version(package)}{note}", lambda: [sys.executable, str(program)], False)


def _go(name: str, module: str, folder: str) -> Copier:
    return Copier(name, _found(rf"{module} v(\S+)", (GO / "go.mod").read_text()), lambda: go_program(GO, folder))


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found, f"no {pattern}"
    return found[1]


def _node(name: str, package: str, script: str) -> Copier:
    folder = FOLDER / package
    version = _found(rf'"{name}": "(\S+)"', (folder / "package.json").read_text())
    return Copier(name, version, lambda: node_program(folder, script))


COPIERS = {
    copier.name: copier
    for copier in (
        _java(NEWEST, "CopyWithJava"),
        _java("2.8.2", "CopyWithJava"),
        _java("0.11.0.3", "CopyWithOldJava"),
        _python("kafka-python"),
        _python("aiokafka"),
        _python("confluent-kafka", " (librdkafka)"),
        _go("franz-go", "twmb/franz-go", "franz"),
        _go("sarama", "IBM/sarama", "sarama"),
        _go("kafka-go", "segmentio/kafka-go", "segmentio"),
        _node("kafkajs", "node", "copy_with_kafkajs.js"),
        _node("@platformatic/kafka", "node", "copy_with_platformatic.js"),
        _node("kafka-node", "kafka-node", "copy_with_kafka_node.js"),
    )
}
"""By name."""
