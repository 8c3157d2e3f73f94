"""Kafka's documentation of its configs, as DescribeConfigs returns it from 2.6 on.

``documentation.json`` has the texts of Apache Kafka (Apache License 2.0) by kind of resource, config and release: a
text is that of its release and of the following ones. It is read when a client first asks for documentation.

Source:
    DescribeConfigs v3 responses of running brokers, by ``python -m tests.configuration.record_documentation``.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.releases.kafka_version import KafkaVersion

FILE = "documentation.json"


def documentation(kind: str, kafka_version: KafkaVersion) -> Mapping[str, str]:
    """Return config -> documentation in a release, of "topic", "broker", "client_metrics" or "group"."""
    return _documentation(kind, ".".join(map(str, kafka_version.release)))


@cache
def _documentation(kind: str, release: str) -> Mapping[str, str]:
    recorded = json.loads(files("kproto_server.configuration").joinpath(FILE).read_text(encoding="utf-8"))
    releases: list[str] = recorded["releases"]
    if release not in releases:
        return {}
    known = set(releases[: releases.index(release) + 1])
    histories: dict[str, dict[str, str]] = recorded.get(kind, {})
    return {name: text for name, history in histories.items() for since, text in history.items() if since in known}
