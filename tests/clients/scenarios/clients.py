"""The clients of the table, each with its driver and the scenarios that it does not support."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.clients.scenarios import built
from tests.requirements import need_kcat

OLD = "3.9.2"
"""The newest release line that serves clients of all releases."""
NEW = "4.4.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client library and its driver."""

    name: str
    command: Callable[[], list[str]]
    """Builds the driver and returns its command before BOOTSTRAP; skips the test if a requirement is missing."""
    unsupported: Mapping[str, str] = field(default_factory=dict)
    """The scenarios for which the client has no call, with the reason."""
    known_results: Mapping[tuple[str, str], object] = field(default_factory=dict)
    """The client's own values that differ from the expected ones, by scenario and result."""
    real: tuple[str, ...] = (OLD, NEW)
    """The releases of real Kafka that serve the client."""
    security: str = "SCRAM-SHA-256"
    """How the client logs in over TLS: a mechanism of SASL, or SSL, without SASL."""
    needs_runtime: bool = False
    """Whether the driver needs a JVM, Go or Node.js."""


def python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"tests.clients.drivers.{module}"]


def kcat() -> list[str]:
    need_kcat()
    return python("kcat_driver")()


def java(
    version: str,
    *,
    unsupported: Mapping[str, str],
    known_results: Mapping[tuple[str, str], object],
    real: tuple[str, ...],
    security: str = "SCRAM-SHA-256",
) -> Client:
    return Client(
        name=f"java-{version}",
        command=built.java(version),
        unsupported=unsupported,
        known_results=known_results,
        real=real,
        security=security,
        needs_runtime=True,
    )


TRANSACTIONS = ("exactly-once", "fenced-producer", "transaction-timeout")
KCAT_NO_GROUPS = "has no group requests"
KCAT_NO_METADATA = "commits no metadata"
KCAT_COMMITS = "commits only when it ends"

LIBRDKAFKA_FENCED = -144
"""librdkafka's own error code."""

JAVA_2_0 = {
    "static-member": "no static members before 2.3",
    "cooperative": "no cooperative assignor before 2.4",
    "delete-offsets": "its admin client deletes no offsets before 2.4",
}
JAVA_NO_GROUPS = "its admin client has no group calls before 2.0"
JAVA_1 = JAVA_2_0 | dict.fromkeys(
    ("list-groups", "describe-group", "delete-group", "list-group-offsets", "delete-offsets"), JAVA_NO_GROUPS
)
JAVA_0_9 = {
    "create-topic": "no admin client before 0.11",
    "idempotent-produce": "its producer is not idempotent before 0.11",
    **dict.fromkeys(TRANSACTIONS, "no transactions before 0.11"),
}
JAVA_KNOWN_RESULTS = {("unknown-topic", "error"): "KafkaException"}
"""Before 2.0 the exception has no error code."""

CLIENTS = (
    Client(name="kafka-python", command=python("kafka_python_driver")),
    Client(
        name="aiokafka",
        command=python("aiokafka_driver"),
        unsupported={
            "cooperative": "no cooperative assignor",
            "delete-group": "its admin client does not delete groups",
            "delete-offsets": "its admin client does not delete offsets",
        },
    ),
    Client(
        name="confluent-kafka",
        command=python("confluent_driver"),
        known_results={
            ("metadata-too-large", "length"): 4095,
            ("fenced-producer", "error"): LIBRDKAFKA_FENCED,
            ("transaction-timeout", "error"): LIBRDKAFKA_FENCED,
        },
        unsupported={"delete-offsets": "its admin client does not delete offsets"},
    ),
    Client(
        name="kcat",
        command=kcat,
        security="PLAIN",  # brokers from 3.7 on refuse the nonce in the SCRAM proof of its librdkafka (2.0.2)
        unsupported={
            "create-topic": "creates no topics",
            "consume-and-commit": KCAT_COMMITS,
            "rewind": KCAT_COMMITS,
            "commit-with-metadata": KCAT_NO_METADATA,
            "metadata-too-large": KCAT_NO_METADATA,
            "lag": "does not report committed offsets",
            "list-groups": KCAT_NO_GROUPS,
            "describe-group": KCAT_NO_GROUPS,
            "delete-group": KCAT_NO_GROUPS,
            "list-group-offsets": KCAT_NO_GROUPS,
            "delete-offsets": KCAT_NO_GROUPS,
            **dict.fromkeys(TRANSACTIONS, "has no transactions"),
        },
    ),
    # The only mechanism of 0.9 is GSSAPI; SCRAM of 0.11 needs classes that Java has up to 10 only.
    java("0.9.0.1", unsupported=JAVA_1 | JAVA_0_9, known_results=JAVA_KNOWN_RESULTS, real=(OLD,), security="SSL"),
    java("0.11.0.3", unsupported=JAVA_1, known_results=JAVA_KNOWN_RESULTS, real=(OLD, NEW), security="PLAIN"),
    java("1.1.1", unsupported=JAVA_1, known_results=JAVA_KNOWN_RESULTS, real=(OLD, NEW)),
    java("2.0.1", unsupported=JAVA_2_0, known_results={}, real=(OLD, NEW)),
    java("2.8.2", unsupported={}, known_results={}, real=(OLD, NEW)),
    java(NEW, unsupported={}, known_results={}, real=(OLD, NEW)),
    Client(name="franz-go", command=built.go("franz"), needs_runtime=True),
    Client(
        name="franz-go-kip-848",
        command=lambda: ["env", "GROUP_PROTOCOL=consumer", *built.go("franz")()],
        unsupported={"static-member": "a static member that comes back gets no partitions, from Kafka 4.4.0 neither"},
        real=(NEW,),
        needs_runtime=True,
    ),
    Client(name="sarama", command=built.go("sarama"), needs_runtime=True),
    Client(
        name="kafkajs",
        command=built.node,
        unsupported={
            "static-member": "no static members",
            "cooperative": "no cooperative assignor",
            "delete-offsets": "its admin client does not delete offsets",
        },
        known_results={("create-topic", "again"): False},
        needs_runtime=True,
    ),
)
