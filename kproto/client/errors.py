"""The exceptions that `kproto.client.Consumer` raises in addition to confluent-kafka's."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from kproto.client.decisions.settings import ConfigError
from kproto.errors import KprotoError

__all__ = ["ConfigError", "NoOffsetForPartition", "OffsetOutOfRange", "UnsupportedBroker"]


class NoPosition(KprotoError, KafkaException):
    """Partitions have no position. They stay assigned and are not fetched until `seek` sets a position."""

    CODE = KafkaError._AUTO_OFFSET_RESET
    REASON = ""
    partitions: list[TopicPartition]

    def __init__(self, partitions: Sequence[TopicPartition]) -> None:
        self.partitions = list(partitions)
        names = ", ".join(f"{each.topic} [{each.partition}]" for each in partitions)
        super().__init__(KafkaError(self.CODE, f"{self.REASON}: {names}"))


class NoOffsetForPartition(NoPosition):
    """The group has no committed offset for these partitions, and no setting names a reset position."""

    REASON = "no committed offset and no reset policy"


class OffsetOutOfRange(NoPosition):
    """The positions of these partitions are outside the log, and no setting names a reset position."""

    REASON = "offset out of range and no reset policy"


class UnsupportedBroker(NoPosition):
    """The brokers cannot serve ``safe_latest``: they find no offset by timestamp (ListOffsets v0)."""

    CODE = KafkaError._UNSUPPORTED_FEATURE
    REASON = (
        "safe_latest needs brokers of Kafka 0.10.1 or newer; with older ones use latest_on_start and "
        "auto.offset.reset=earliest"
    )
