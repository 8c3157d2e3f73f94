"""The commits of a consumer whose librdkafka must not commit by itself.

While a partition catches up, librdkafka would commit the position of consumer 1 instead of the user's; and librdkafka
commits without metadata. So kproto makes the automatic commits: in `poll`, as Kafka's Java client does, and when
partitions are revoked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from kproto.client.configuration import COMMIT_CALLBACK, Configuration
from kproto.client.decisions.checkpoints import CHECKPOINT_TOPIC
from kproto.client.topic_partitions import PartitionKey, are_topic_partitions, at_offset, partition_of, position_after

logger: logging.Logger = logging.getLogger("kproto.client")

COMMIT_ARGUMENTS = ("message", "offsets", "async", "asynchronous")
"""The arguments of confluent-kafka's `commit` in their order. `asynchronous` wins over its older name."""
REFUSES_NONE = confluent_kafka.libversion()[1] < 0x020D0000
"""Whether this release of confluent-kafka refuses None as message or offsets."""
OffsetsToCommit = Callable[[Collection[PartitionKey] | None], dict[PartitionKey, TopicPartition]]
"""Returns the offsets that a commit of these partitions (None: all) commits now."""


class Commits:
    """The commits of one consumer.

    Args:
        consumer: an object whose methods are confluent-kafka's own.
        metadata: returns the metadata of commits for which the user gives none.
        on_request: called with the partitions of each commit before it is sent.
        on_success: called with each committed offset.
        limit: returns the offset to commit where the user names one.
    """

    def __init__(
        self,
        consumer: Consumer,
        configuration: Configuration,
        to_commit: OffsetsToCommit,
        metadata: Callable[[], str | None],
        on_request: Callable[[Collection[PartitionKey]], None],
        on_success: Callable[[PartitionKey, int], None],
        limit: Callable[[PartitionKey, int], int] | None = None,
    ) -> None:
        self._consumer = consumer
        self._to_commit = to_commit
        self._metadata = metadata
        self._on_request = on_request
        self._on_success = on_success
        self._limit = limit
        self._user_callback: Callable[..., None] | None = configuration.librdkafka.get(COMMIT_CALLBACK)
        self._committed: dict[PartitionKey, int] = {}
        """The last successful commit of each assigned partition."""
        self._requested: dict[PartitionKey, tuple[int, str | None]] = {}
        """Offset and metadata of each partition's last commit. The results of earlier commits may come after it."""
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
                self._request(offsets, asynchronous=True)
        return True

    def commit_now(self, partitions: Collection[PartitionKey] | None = None, *, waits: bool = False) -> None:
        """Commit these partitions (None: all) if commits are automatic; log a failure, as after a rebalance.

        Without `waits`, librdkafka sends the commit before it revokes partitions, and `on_commit` gets the result.
        """
        if not self.is_automatic:
            return
        offsets = self._changed(partitions)
        if offsets:
            try:
                self._request(offsets, asynchronous=not waits)
            except KafkaException as error:
                logger.warning(
                    "automatic commit failed, the records since the last commit will be read again: %s", error
                )

    def commit(self, *args: Any, **kwargs: Any) -> list[TopicPartition] | None:
        """Commit for the user, with confluent-kafka's arguments; confluent-kafka refuses invalid ones."""
        given = {**dict(zip(COMMIT_ARGUMENTS, args, strict=False)), **kwargs}
        offsets = None
        if len(given) == len(args) + len(kwargs) and given.keys() <= set(COMMIT_ARGUMENTS):
            offsets = self._offsets_to_commit(given)
        if offsets is not None:
            return self._request(offsets, asynchronous=bool(given.get("asynchronous", given.get("async", True))))
        refused: list[TopicPartition] | None = self._consumer.commit(*args, **kwargs)
        return refused

    def _request(self, offsets: list[TopicPartition], *, asynchronous: bool) -> list[TopicPartition] | None:
        requested = {partition_of(each): (each.offset, each.metadata) for each in offsets if each.offset >= 0}
        self._requested.update(requested)
        self._on_request(requested.keys())
        commit: Callable[..., list[TopicPartition] | None] = self._consumer.commit
        results = commit(offsets=offsets, asynchronous=asynchronous)
        return None if results is None else self.note(results)

    def _offsets_to_commit(self, given: Mapping[str, Any]) -> list[TopicPartition] | None:
        """Return what the user's arguments commit, None if they are invalid."""
        message, offsets = given.get("message"), given.get("offsets")
        if REFUSES_NONE and any(given[name] is None for name in given.keys() & {"message", "offsets"}):
            return None
        if message is None and offsets is None:
            positions = self._to_commit(None).items()
            return [
                self._with_known_metadata(each) if self._is_new(each) else TopicPartition(*key)
                for key, each in positions
            ]
        if message is None and are_topic_partitions(offsets):
            return [self._with_metadata(self._limited(each)) for each in given["offsets"]]
        if offsets is None and isinstance(message, Message) and message.error() is None:
            return [self._with_metadata(self._limited(position_after(message)))]
        return None

    def forget(self, partitions: Collection[PartitionKey]) -> None:
        for partition in partitions:
            self._committed.pop(partition, None)
            self._requested.pop(partition, None)

    def on_commit(self, error: KafkaError | None, topic_partitions: list[TopicPartition]) -> None:
        """librdkafka's callback after each commit."""
        if any(each.topic == CHECKPOINT_TOPIC for each in topic_partitions):
            return  # of `earlier_ranges`, not of the user
        if error is None:
            self.note(topic_partitions)
        if self._user_callback is not None:
            self._user_callback(error, topic_partitions)

    def _changed(self, partitions: Collection[PartitionKey] | None) -> list[TopicPartition]:
        """Return the offsets of these partitions (None: all) that are not committed yet."""
        return [self._with_known_metadata(each) for each in self._to_commit(partitions).values() if self._is_new(each)]

    def _is_new(self, position: TopicPartition) -> bool:
        return position.offset >= 0 and self._committed.get(partition_of(position)) != position.offset

    def _limited(self, given: TopicPartition) -> TopicPartition:
        if self._limit is None:
            return given
        offset = self._limit(partition_of(given), given.offset)
        return given if offset == given.offset else at_offset(partition_of(given), offset, given.metadata)

    def _with_known_metadata(self, position: TopicPartition) -> TopicPartition:
        """Return a position with the metadata that the user's commit of the same offset has given."""
        offset, metadata = self._requested.get(partition_of(position), (None, None))
        if offset != position.offset or not metadata or position.metadata:
            return self._with_metadata(position)
        return at_offset(partition_of(position), offset, metadata, position.leader_epoch)

    def _with_metadata(self, topic_partition: TopicPartition) -> TopicPartition:
        metadata = self._metadata()
        if metadata is None or topic_partition.metadata:
            return topic_partition
        return at_offset(partition_of(topic_partition), topic_partition.offset, metadata, topic_partition.leader_epoch)

    def note(self, results: list[TopicPartition]) -> list[TopicPartition]:
        """Note the results of a commit, and return them."""
        for result in results:
            if result.error is None and result.offset >= 0:
                partition = partition_of(result)
                if self._requested.get(partition, (result.offset,))[0] == result.offset:
                    self._committed[partition] = result.offset
                self._on_success(partition, result.offset)
        return results
