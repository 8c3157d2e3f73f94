"""The coordinator's version behavior by the name of a Kafka version."""

from __future__ import annotations

from kproto_server.coordinator.version_behavior import CoordinatorBehavior
from kproto_server.releases.kafka_version import KafkaVersion


def behavior_of(kafka_version: str) -> CoordinatorBehavior:
    """Return the coordinator's behavior in a Kafka version."""
    return KafkaVersion.named(kafka_version).behavior(CoordinatorBehavior)
