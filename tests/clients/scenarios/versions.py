"""The versions of the client libraries of the drivers."""

import importlib.metadata
import json
import re
import subprocess

import confluent_kafka

from tests.clients.scenarios.built import DRIVERS
from tests.requirements import need_kcat

FRANZ_GO = "github.com/twmb/franz-go"
GO_MODULES = {"franz-go": FRANZ_GO, "franz-go-kip-848": FRANZ_GO, "sarama": "github.com/IBM/sarama"}


def version_of(client: str) -> str:
    """Return the version of a client, or an empty text if the client's name has the version."""
    if client.startswith("java-"):
        return ""
    if client == "kcat":
        return _kcat()
    if client == "kafkajs":
        found: str = json.loads((DRIVERS / "node/package.json").read_text())["dependencies"][client]
        return found
    if client in GO_MODULES:
        return _search(rf"{GO_MODULES[client]} v(\S+)", (DRIVERS / "go/go.mod").read_text())
    version = importlib.metadata.version(client)
    return f"{version} (librdkafka {confluent_kafka.libversion()[0]})" if client == "confluent-kafka" else version


def _kcat() -> str:
    output = subprocess.run([need_kcat(), "-V"], capture_output=True, text=True, check=True).stdout
    return "{} (librdkafka {})".format(*(_search(rf"{name} (\S+)", output) for name in ("Version", "librdkafka")))


def _search(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found, f"no {pattern} in {text}"
    return found[1]
