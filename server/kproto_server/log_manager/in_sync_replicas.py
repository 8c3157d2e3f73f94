"""Whether a partition has enough in-sync replicas for a write that asks for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.partition_log.log_config import log_config
from kproto_server.partition_log.version_behavior import ProduceBehavior

if TYPE_CHECKING:
    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.configuration.settings import Settings


def has_too_few_in_sync(settings: Settings, topic: Topic, partition: Partition) -> bool:
    """Return whether a partition has fewer in-sync replicas than `min.insync.replicas` of its topic."""
    count = len(partition.isr)
    if count == len(partition.replicas):
        behavior = settings.kafka_version.behavior(ProduceBehavior)
        if behavior.needs_no_more_in_sync_than_replicas:
            return False
    return count < log_config(settings, topic.configs).in_sync_replicas_min
