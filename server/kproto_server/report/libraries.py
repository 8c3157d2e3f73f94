"""Client libraries: how a report recognizes them, and the first release of each that Kafka 4.0 serves.

Sources:

- The releases are those of KIP-896 ("Remove old client protocol API versions in Kafka 4.0"): for each library the
  release that its analysis found to work, and for Java the baseline, 2.1. KIP-896 names no release of the libraries
  whose ``first_release`` is None.
- Sarama sends the versions of its ``Config.Version``, which is 2.1 by default since 1.41.0 (its release notes).
- Software names are those of KIP-511, as the libraries send them in ApiVersions v3 and later
  (``fixtures/golden/clients``, ``fixtures/clients/versions.json``).
- Client ids are the default ``client.id`` of each library.
- A Java client before 0.10.2 does not negotiate (KIP-97): it sends the newest version of each API of its own release.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.releases.kafka_version import KafkaVersion, kafka_version_names

if TYPE_CHECKING:
    from collections.abc import Collection

FIRST_NEGOTIATING_JAVA = (0, 10, 2)
VERSION_SET_MIN = 3
"""APIs that a client must have sent for its versions to name a release: with fewer, several libraries send the same."""


class Library(NamedTuple):
    """A client library."""

    name: str
    first_release: str | None
    """The first release that Kafka 4.0 and later serve, by KIP-896; None: it does not say."""
    software_names: str
    """A pattern of the software name in ApiVersions."""
    client_ids: str
    """A pattern of the default client id; its group, if any, is the library's version."""
    hint: str = ""
    """A setting that keeps even a newer release at old versions."""


JAVA = Library(
    "Java client",
    "2.1.0",
    r"apache-kafka-java",
    r"(?:consumer|producer|adminclient|admin)-(?:.+-)?\d+|.+-StreamThread-\d+-(?:restore-)?(?:consumer|producer)"
    r"|connector-(?:consumer|producer)-.+|console-(?:consumer|producer)",
)
LIBRARIES = (
    JAVA,
    Library(
        "librdkafka",
        "1.8.2",
        r"librdkafka|confluent-kafka-.+|rdkafka-.+",
        r"rdkafka",
        "without api.version.request=false",
    ),
    Library(
        "kafka-python", "2.0.2", r"kafka-python", r"kafka-python(?:-(\d[\w.]*)|-.+)?", "without an older api_version"
    ),
    Library("aiokafka", None, r"aiokafka", r"aiokafka(?:-(\d[\w.]*)|-.+)?"),
    Library("KafkaJS", "1.15.0", r"kafkajs", r"kafkajs"),
    Library("Sarama", "1.30.1", r"sarama", r"sarama", "with Config.Version of 2.1 or newer, the default since 1.41.0"),
    Library("franz-go", None, r"kgo", r"kgo"),
    Library("kafka-go", None, r"kafka-go", r".+\(github\.com/segmentio/kafka-go\)"),
    Library("ruby-kafka", None, r"ruby-kafka", r"ruby-kafka"),
    Library("kafka-node", None, r"kafka-node", r"kafka-node-client"),
)


class Recognized(NamedTuple):
    """A library that a client was recognized as."""

    library: Library
    version: str | None
    """None: nothing shows it."""

    @property
    def name(self) -> str:
        return f"{self.library.name} {self.version}" if self.version else self.library.name

    @property
    def advice(self) -> str:
        """Return what to do for Kafka 4.0 and later, one clause."""
        first, hint = self.library.first_release, self.library.hint
        if first is None:
            return "use a newer release"
        newer = f"use {first} or newer" if not _is_at_least(self.version, first) else "check its settings"
        return f"{newer}, {hint}" if hint else newer


def recognize(
    client_id: str, software_name: str, software_version: str, sent: Collection[tuple[int, int]], *, negotiates: bool
) -> Recognized | None:
    """Return the library of a client by its software name, its client id, or the versions (API key, version) it sent.

    None: nothing shows it.
    """
    for library in LIBRARIES:
        if re.fullmatch(library.software_names, software_name):
            return Recognized(library, software_version or None)
    if software_name:
        return None
    java = None if negotiates else _java_release(sent)
    for library in LIBRARIES:
        match = re.fullmatch(library.client_ids, client_id)
        if match:
            version = match[1] if match.re.groups else None
            return Recognized(library, java if library is JAVA else version)
    return Recognized(JAVA, java) if java is not None else None


def _java_release(sent: Collection[tuple[int, int]]) -> str | None:
    """Return the only release line whose Java client sends all these versions; None if there is not just one."""
    if len({api_key for api_key, _ in sent}) < VERSION_SET_MIN:
        return None
    found = [line for line, newest in _newest_versions() if all(newest.get(key) == version for key, version in sent)]
    return found[0] if len(found) == 1 else None


@cache
def _newest_versions() -> list[tuple[str, dict[int, int]]]:
    """Return, by release line before `FIRST_NEGOTIATING_JAVA`, the newest version of each API."""
    lines = [KafkaVersion.named(name) for name in kafka_version_names()]
    return [
        (line.name, {api_key: high for api_key, (_, high) in line.api_versions.items()})
        for line in lines
        if not line.at_least(*FIRST_NEGOTIATING_JAVA)
    ]


def _is_at_least(version: str | None, least: str) -> bool:
    """Return whether a version is known and not older; all that is not a number is ignored."""
    return version is not None and _numbers(version) >= _numbers(least)


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)][:3]
