"""The clients that must work with kproto unchanged, each a small program of its own, run as a new process.

Every program knows the same verbs and prints one line of JSON:

    commit   assigns the partitions of the given offsets and commits these with their metadata; {}
    fetch    what is committed for partitions 0 and 1: {"0": [offset, metadata], ...}
    poll     assigns partitions 0 and 1 of an empty topic to a group without offsets, waits for records once, and tells
             the position in each: {"0": 0, "1": 0}
    unknown  commits to a topic that does not exist: {"error": name, "message": text}, as the client names it
"""

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.oracle.cluster import NEWEST, kafka
from tests.oracle.java import compiled, java_command

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    name: str
    command: Callable[[], list[str]]
    """What runs the program; skips the test where something for it is missing."""
    unknown_topic: dict[str, str]
    """What `unknown` prints."""
    needs_java: bool = False
    last_fetch: tuple[int, ...] | None = None
    """The last release of Kafka that still answers its ListOffsets and Fetch; None: the newest does."""


def java(version: str) -> Callable[[], list[str]]:
    def command() -> list[str]:
        classpath = kafka("clientpath", version)
        classes = compiled(HERE / "java" / "OffsetsClient.java", classpath)
        return java_command(classes, classpath, "OffsetsClient")

    return command


def java_client(version: str, error: str, message: str, last_fetch: tuple[int, ...] | None = None) -> Client:
    return Client(
        name=f"java-{version}",
        command=java(version),
        unknown_topic={"error": error, "message": message},
        needs_java=True,
        last_fetch=last_fetch,
    )


UNKNOWN_TOPIC = "no-such-topic"
NO_TOPIC = ("UnknownTopicOrPartitionException", "This server does not host this topic-partition.")

CLIENTS = (
    java_client(
        "0.9.0.1",
        "KafkaException",
        "Unexpected error in commit: This server does not host this topic-partition.",
        last_fetch=(3, 9),
    ),
    java_client("1.1.1", "KafkaException", f"Topic or Partition {UNKNOWN_TOPIC}-0 does not exist"),
    java_client("2.0.1", *NO_TOPIC),
    java_client("2.8.2", *NO_TOPIC),
    java_client(NEWEST, *NO_TOPIC),
)


def run(client: Client, verb: str, bootstrap: str, group: str, topic: str, *offsets: str) -> dict[str, Any]:
    """Run one verb in a new process; return what it printed.

    Args:
        offsets: PARTITION:OFFSET:METADATA each.
    """
    command = [*client.command(), verb, bootstrap, group, topic, *offsets]
    utf8 = os.environ | {"LC_ALL": "C.UTF-8"}  # Java reads its arguments in the locale's encoding
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=90, check=False, env=utf8)
    assert done.returncode == 0, f"{client.name} {verb} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    printed: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return printed
