"""The clients of the table, each with the program that drives it and what it cannot do."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.clients.scenarios import built
from tests.requirements import need_kcat

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
    needs_more: bool = False
    """It runs with a JVM, Go or Node.js."""


def python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"tests.clients.drivers.{module}"]


def kcat() -> list[str]:
    need_kcat()
    return python("kcat_driver")()


def java(
    version: str, *, unsupported: Mapping[str, str], told: Mapping[tuple[str, str], object], real: tuple[str, ...]
) -> Client:
    return Client(
        name=f"java-{version}",
        command=built.java(version),
        unsupported=unsupported,
        told=told,
        real=real,
        needs_more=True,
    )


KCAT_NO_GROUPS = "does not ask for groups"
KCAT_NO_METADATA = "commits no metadata"
KCAT_COMMITS = "commits only when it ends"

JAVA_2_0 = {
    "static-member": "no static members before 2.3",
    "cooperative": "no cooperative assignor before 2.4",
    "delete-offsets": "its admin client deletes no offsets before 2.4",
}
JAVA_NO_GROUPS = "its admin client knows no groups before 2.0"
JAVA_1 = JAVA_2_0 | dict.fromkeys(
    ("list-groups", "describe-group", "delete-group", "list-group-offsets", "delete-offsets"), JAVA_NO_GROUPS
)
JAVA_0_9 = {
    "create-topic": "no admin client before 0.11",
    "idempotent-produce": "its producer is not idempotent before 0.11",
}
JAVA_TOLD = {("unknown-topic", "error"): "KafkaException"}
"""Before 2.0 the exception has no number."""

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
    Client(
        name="kcat",
        command=kcat,
        unsupported={
            "create-topic": "creates no topics",
            "consume-and-commit": KCAT_COMMITS,
            "rewind": KCAT_COMMITS,
            "commit-with-metadata": KCAT_NO_METADATA,
            "metadata-too-large": KCAT_NO_METADATA,
            "lag": "does not tell what is committed",
            "list-groups": KCAT_NO_GROUPS,
            "describe-group": KCAT_NO_GROUPS,
            "delete-group": KCAT_NO_GROUPS,
            "list-group-offsets": KCAT_NO_GROUPS,
            "delete-offsets": KCAT_NO_GROUPS,
        },
    ),
    java("0.9.0.1", unsupported=JAVA_1 | JAVA_0_9, told=JAVA_TOLD, real=(OLD,)),
    java("0.11.0.3", unsupported=JAVA_1, told=JAVA_TOLD, real=(OLD, NEW)),
    java("1.1.1", unsupported=JAVA_1, told=JAVA_TOLD, real=(OLD, NEW)),
    java("2.0.1", unsupported=JAVA_2_0, told={}, real=(OLD, NEW)),
    java("2.8.2", unsupported={}, told={}, real=(OLD, NEW)),
    java(NEW, unsupported={}, told={}, real=(OLD, NEW)),
    Client(name="franz-go", command=built.go("franz"), needs_more=True),
    Client(name="sarama", command=built.go("sarama"), needs_more=True),
    Client(
        name="kafkajs",
        command=built.node,
        unsupported={
            "static-member": "members are not static",
            "cooperative": "no assignor is cooperative",
            "delete-offsets": "its admin client does not delete offsets",
        },
        told={("create-topic", "again"): False},
        needs_more=True,
    ),
)
