"""Kafka's documentation of its configs, as DescribeConfigs returns it from 2.6 on.

``documentation.json`` has the texts of Apache Kafka (Apache License 2.0), as `recorded_configs` describes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.configuration.recorded_configs import recorded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.releases.kafka_version import KafkaVersion

FILE = "documentation.json"


def documentation(kind: str, kafka_version: KafkaVersion) -> Mapping[str, str]:
    """Return config -> documentation in a release, of "topic", "broker", "client_metrics" or "group"."""
    return recorded(FILE, kind, kafka_version)
