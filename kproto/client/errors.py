"""What `kproto.client.Consumer` raises beside the errors of confluent-kafka."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from kproto.client.core.settings import ConfigError

__all__ = ["ConfigError", "NoOffsetForPartition", "OffsetOutOfRange"]


class _NoPosition(KafkaException):
    """Partitions have no position; they stay assigned and silent until `seek` gives them one."""

    WHY = ""
    partitions: list[TopicPartition]

    def __init__(self, partitions: Sequence[TopicPartition]) -> None:
        self.partitions = list(partitions)
        names = ", ".join(f"{each.topic} [{each.partition}]" for each in partitions)
        super().__init__(KafkaError(KafkaError._AUTO_OFFSET_RESET, f"{self.WHY}: {names}"))


class NoOffsetForPartition(_NoPosition):
    """The group has no offset for these partitions, and the settings name no place to go."""

    WHY = "no committed offset, and no reset policy"


class OffsetOutOfRange(_NoPosition):
    """The positions of these partitions are out of the log's range, and the settings name no place to go."""

    WHY = "offset out of range, and no reset policy"
