"""The commits of a consumer whose librdkafka must not commit by itself.

While a partition catches up, librdkafka would commit the position of consumer 1 instead of the user's; and librdkafka
commits without metadata. So kproto makes the automatic commits: in `poll`, as Kafka's Java client does, and when
partitions are revoked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kproto.client.configuration import COMMIT_CALLBACK, Configuration
from kproto.client.decisions.checkpoints import CHECKPOINT_TOPIC
from kproto.client.topic_partitions import PartitionKey, partition_of, position_after, topic_partitions_at

logger: logging.Logger = logging.getLogger("kproto.client")

OffsetsToCommit = Callable[[Collection[PartitionKey] | None], dict[PartitionKey, int]]
"""Returns the offsets that a commit of these partitions (None: all) commits now."""


class Commits:
    """The commits of one consumer.

    Args:
        consumer: an object whose methods are confluent-kafka's own.
        metadata: returns the metadata of commits for which the user gives none.
        on_success: called with each committed offset.
    """

    def __init__(
        self,
        consumer: Consumer,
        configuration: Configuration,
        to_commit: OffsetsToCommit,
        metadata: Callable[[], str | None],
        on_success: Callable[[PartitionKey, int], None] | None,
    ) -> None:
        self._consumer = consumer
        self._to_commit = to_commit
        self._metadata = metadata
        self._on_success = on_success
        self._user_callback: Callable[..., None] | None = configuration.librdkafka.get(COMMIT_CALLBACK)
        self._committed: dict[PartitionKey, int] = {}
        """The last successful commit of each assigned partition."""
        self.is_automatic: bool = configuration.auto_commit
        self._interval_s = configuration.auto_commit_interval_s
        self.next_commit_at: float = time.monotonic() + self._interval_s
        """When `commit_periodically` commits next, on the monotonic clock."""

    def commit_periodically(self) -> bool:
        """Commit if the commit interval has passed; return whether it has."""
        now = time.monotonic()
        if now < self.next_commit_at:
            return False
        self.next_commit_at = now + self._interval_s
        if self.is_automatic:
            offsets = self._changed(None)
            if offsets:
                self._consumer.commit(offsets=offsets, asynchronous=True)
        return True

    def commit_now(self, partitions: Collection[PartitionKey] | None = None) -> None:
        """Commit these partitions (None: all) if commits are automatic; log a failure, as after a rebalance."""
        if not self.is_automatic:
            return
        offsets = self._changed(partitions)
        if offsets:
            try:
                self._note(self._consumer.commit(offsets=offsets, asynchronous=False))
            except KafkaException as error:
                logger.warning(
                    "automatic commit failed, the records since the last commit will be read again: %s", error
                )

    def commit(self, arguments: dict[str, Any]) -> list[TopicPartition] | None:
        """Commit for the user, with confluent-kafka's arguments."""
        message, offsets = arguments.pop("message", None), arguments.pop("offsets", None)
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        if message is not None:
            offsets = [position_after(message)]
        elif offsets is None:
            offsets = self._changed(None)
            if not offsets:
                raise KafkaException(KafkaError(KafkaError._NO_OFFSET, "Commit failed: Local: No offset stored"))
        results = self._consumer.commit(offsets=[self._with_metadata(each) for each in offsets], **arguments)
        return None if results is None else self._note(results)

    def forget(self, partitions: Collection[PartitionKey]) -> None:
        for partition in partitions:
            self._committed.pop(partition, None)

    def on_commit(self, error: KafkaError | None, topic_partitions: list[TopicPartition]) -> None:
        """librdkafka's callback after each commit."""
        if any(each.topic == CHECKPOINT_TOPIC for each in topic_partitions):
            return  # of `earlier_ranges`, not of the user
        if error is None:
            self._note(topic_partitions)
        if self._user_callback is not None:
            self._user_callback(error, topic_partitions)

    def _changed(self, partitions: Collection[PartitionKey] | None) -> list[TopicPartition]:
        offsets = self._to_commit(partitions).items()
        changed = ((partition, offset) for partition, offset in offsets if self._committed.get(partition) != offset)
        return topic_partitions_at(changed, self._metadata())

    def _with_metadata(self, topic_partition: TopicPartition) -> TopicPartition:
        metadata = self._metadata()
        if metadata is not None and not topic_partition.metadata:
            return TopicPartition(topic_partition.topic, topic_partition.partition, topic_partition.offset, metadata)
        return topic_partition

    def _note(self, results: list[TopicPartition]) -> list[TopicPartition]:
        for result in results:
            if result.error is None and result.offset >= 0:
                self._committed[partition_of(result)] = result.offset
                if self._on_success is not None:
                    self._on_success(partition_of(result), result.offset)
        return results
