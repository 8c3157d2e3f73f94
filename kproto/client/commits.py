"""The commits of a consumer whose librdkafka does not know what to commit.

While a partition catches up, librdkafka would commit the position of consumer 1 instead of the user's; and it would
commit without metadata. So kproto stores the user's positions, with metadata, in librdkafka: in `poll`, before it
returns the next record, and when partitions are revoked. librdkafka commits what is stored: by its timer, which makes
no commit in a rebalance that could cost the member its partitions, and when partitions are unassigned.

librdkafka's timer commits no stored offset that is before the last committed one, as after a seek. kproto commits such
a position itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

import confluent_kafka
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Message, TopicPartition

from kproto.client.configuration import COMMIT_CALLBACK, Configuration
from kproto.client.decisions.checkpoints import CHECKPOINT_TOPIC
from kproto.client.topic_partitions import PartitionKey, are_topic_partitions, at_offset, partition_of, position_after

logger: logging.Logger = logging.getLogger("kproto.client")

COMMIT_ARGUMENTS = ("message", "offsets", "async", "asynchronous")
"""The arguments of confluent-kafka's `commit` in their order. `asynchronous` wins over its older name."""
REFUSES_NONE = confluent_kafka.libversion()[1] < 0x020D0000
"""Whether this release of confluent-kafka refuses None as message or offsets."""
STORES_IN_INTERVAL = 5
"""How often positions are stored in a commit interval."""
OffsetsToCommit = Callable[[Collection[PartitionKey] | None], dict[PartitionKey, TopicPartition]]
"""Returns the offsets that a commit of these partitions (None: all) commits now."""


class Commits:
    """The commits of one consumer.

    Args:
        consumer: an object whose methods are confluent-kafka's own.
        metadata: returns the metadata of commits for which the user gives none.
        on_request: called with the partitions of each commit before it is sent or stored.
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
        self._committed_by_librdkafka: dict[PartitionKey, TopicPartition] = {}
        """The last successful commit of each partition, also of those that were revoked since."""
        self._stored: set[PartitionKey] = set()
        """The partitions with an offset that is stored in librdkafka."""
        self.is_automatic: bool = configuration.auto_commit
        self._refuses_store = configuration.auto_store
        self._interval_s = configuration.auto_commit_interval_s
        self._next_commit_at = time.monotonic() + self._interval_s
        self.next_store_at: float = 0.0
        """When `store_periodically` stores next, on the monotonic clock."""

    def store_periodically(self) -> bool:
        """Store the user's positions if it is time; return whether a commit interval has passed."""
        now = time.monotonic()
        if now < self.next_store_at:
            return False
        self.next_store_at = now + self._interval_s / STORES_IN_INTERVAL
        self.store_positions()
        if now < self._next_commit_at:
            return False
        self._next_commit_at = now + self._interval_s
        return True

    def store_positions(self, partitions: Collection[PartitionKey] | None = None) -> None:
        """Let librdkafka commit the user's positions in these partitions (None: all), if commits are automatic."""
        if not self.is_automatic:
            return
        offsets = {partition_of(each): each for each in self._changed(partitions)}
        self.drop_stored(self._stored - offsets.keys() if partitions is None else set(partitions) - offsets.keys())
        before = [each for each in offsets.values() if self._is_before_committed(each)]
        if before:
            self._commit_automatically(before)
        self._store(offsets.values())

    def commit_stored(self) -> None:
        """Commit at once what is stored for librdkafka's automatic commits."""
        stored = [
            self._with_known_metadata(each) for each in self._to_commit(self._stored).values() if each.offset >= 0
        ]
        if self.is_automatic and stored:
            self._commit_automatically(stored)

    def _commit_automatically(self, offsets: list[TopicPartition]) -> None:
        try:
            self._request(offsets, asynchronous=True)
        except KafkaException as error:
            logger.warning("automatic commit failed, the records since the last commit will be read again: %s", error)

    @staticmethod
    def offsets_to_store(given: Mapping[str, Any]) -> list[TopicPartition] | None:
        """Return what these arguments of `store_offsets` store, None if they are invalid."""
        message, offsets = given.get("message"), given.get("offsets")
        if REFUSES_NONE and None in given.values():
            return None
        if message is None and are_topic_partitions(offsets):
            return list(given["offsets"])
        if offsets is None and isinstance(message, Message) and message.error() is None:
            return [position_after(message)]
        return None

    def store(self, offsets: list[TopicPartition]) -> None:
        """Store offsets for the user, while commits are automatic.

        Raises:
            KafkaException: as of confluent-kafka's `store_offsets`.
        """
        if self._refuses_store:  # librdkafka does not: its own setting is false
            error = KafkaError._INVALID_ARG
            raise KafkaException(KafkaError(error, f"StoreOffsets failed: {KafkaError(error).str()}"))
        self._consumer.store_offsets(offsets=list(map(self._with_metadata, offsets)))
        self._stored.update(map(partition_of, offsets))

    def drop_stored(self, partitions: Iterable[PartitionKey]) -> None:
        """Let librdkafka commit nothing in these partitions until a position is stored again."""
        dropped = self._stored.intersection(partitions)
        if dropped:
            self._stored -= dropped
            with suppress(KafkaException):  # they are revoked
                self._consumer.store_offsets(offsets=[TopicPartition(*each, OFFSET_INVALID) for each in dropped])

    def _store(self, offsets: Collection[TopicPartition]) -> None:
        if offsets:
            self._note_request(offsets)
            self._stored.update(map(partition_of, offsets))
            with suppress(KafkaException):  # they are revoked
                self._consumer.store_offsets(offsets=list(offsets))

    def _is_before_committed(self, position: TopicPartition) -> bool:
        """Return whether librdkafka's timer would not commit a position, and no commit of it is requested."""
        committed = self._committed_by_librdkafka.get(partition_of(position))
        if committed is None or self._requested.get(partition_of(position), (-1,))[0] == position.offset:
            return False
        epoch, committed_epoch = position.leader_epoch, committed.leader_epoch
        if epoch is None or committed_epoch is None or epoch == committed_epoch:
            return position.offset < committed.offset
        return epoch < committed_epoch

    def commit(self, *args: Any, **kwargs: Any) -> list[TopicPartition] | None:
        """Commit for the user, with confluent-kafka's arguments; confluent-kafka refuses invalid ones."""
        given = {**dict(zip(COMMIT_ARGUMENTS, args, strict=False)), **kwargs}
        offsets = None
        if len(given) == len(args) + len(kwargs) and given.keys() <= set(COMMIT_ARGUMENTS):
            offsets = self._offsets_to_commit(given)
        if offsets is not None:
            if self.is_automatic:  # or librdkafka's timer might commit what was stored before
                self._store([each for each in offsets if each.offset >= 0])
            return self._request(offsets, asynchronous=bool(given.get("asynchronous", given.get("async", True))))
        refused: list[TopicPartition] | None = self._consumer.commit(*args, **kwargs)
        return refused

    def _request(self, offsets: list[TopicPartition], *, asynchronous: bool) -> list[TopicPartition] | None:
        self._note_request(offsets)
        commit: Callable[..., list[TopicPartition] | None] = self._consumer.commit
        results = commit(offsets=offsets, asynchronous=asynchronous)
        return None if results is None else self.note(results)

    def _note_request(self, offsets: Iterable[TopicPartition]) -> None:
        requested = {partition_of(each): (each.offset, each.metadata) for each in offsets if each.offset >= 0}
        self._requested.update(requested)
        self._on_request(requested.keys())

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
            self._stored.discard(partition)

    def on_commit(self, error: KafkaError | None, topic_partitions: list[TopicPartition]) -> None:
        """librdkafka's callback after each commit."""
        if any(each.topic == CHECKPOINT_TOPIC for each in topic_partitions):
            return  # of `earlier_ranges`, not of the user
        if error is None:
            self.note(topic_partitions)
        if self._user_callback is not None:
            self._user_callback(error, topic_partitions)
        elif error is not None and error.code() != KafkaError._NO_OFFSET:
            logger.warning("commit failed, the records since the last commit may be read again: %s", error)

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
                self._committed_by_librdkafka[partition] = result
                self._on_success(partition, result.offset)
        return results
