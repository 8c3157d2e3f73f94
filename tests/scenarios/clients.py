"""The consumers that run in the failure scenarios, each with its command."""

import sys
from collections.abc import Callable
from pathlib import Path

from tests.oracle.cluster import kafka
from tests.oracle.java import compiled, java_command

PROGRAMS = Path(__file__).parent / "programs"
NEWEST = "4.4.0"
RESETS = ("earliest", "latest", "none")
"""The values of `auto.offset.reset`."""


def python(name: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, str(PROGRAMS / f"{name}_consumer.py")]


def java() -> list[str]:
    classpath = kafka("clientpath", NEWEST)
    return java_command(
        compiled(PROGRAMS / "ResetConsumer.java", classpath, java_release=11), classpath, "ResetConsumer"
    )


CLIENTS: dict[str, Callable[[], list[str]]] = {
    "kafka-python": python("kafka_python"),
    "aiokafka": python("aiokafka"),
    "confluent-kafka": python("confluent"),
    f"java-{NEWEST}": java,
}
