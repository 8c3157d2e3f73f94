"""The clients of the table, each with the program that drives it and what it cannot do."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

OLD = "3.9.2"
"""The last line of releases that serves clients of every age."""
NEW = "4.4.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    name: str
    command: Callable[[], list[str]]
    """The words before BOOTSTRAP; builds what has to be built, and skips the test where something is missing."""
    unsupported: Mapping[str, str] = field(default_factory=dict)
    """The scenarios for which the client has no call, with the reason."""
    told: Mapping[tuple[str, str], object] = field(default_factory=dict)
    """What the client tells instead of the expected fact, by scenario and fact."""
    real: tuple[str, ...] = (OLD, NEW)
    """The releases of real Kafka that serve it."""
    is_slow_to_build: bool = False
    """It runs with a JVM, Go or Node.js."""


def python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"tests.clients.drivers.{module}"]


CLIENTS = (
    Client(name="kafka-python", command=python("kafka_python_driver")),
    Client(
        name="aiokafka",
        command=python("aiokafka_driver"),
        unsupported={
            "cooperative": "no assignor is cooperative",
            "delete-group": "its admin client does not delete groups",
            "delete-offsets": "its admin client does not delete offsets",
        },
    ),
    Client(
        name="confluent-kafka",
        command=python("confluent_driver"),
        told={("metadata-too-large", "length"): 4095},
        unsupported={"delete-offsets": "its admin client does not delete offsets"},
    ),
)
