"""Commits of a consumer whose librdkafka may not make them itself.

What librdkafka would commit is where its own reading is; that is not where the user is while a partition is caught up
with, and it forgets metadata. So automatic commits are made here: in `poll`, as Kafka's Java client does, and when
partitions go. What is committed, and when a user's own commit succeeds, the catch-ups are told.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kproto.client.configuration import COMMIT_CALLBACK, Configuration
from kproto.client.places import Place, partitions_at, place_of

logger: logging.Logger = logging.getLogger("kproto.client")

Positions = Callable[[Collection[Place] | None], dict[Place, int]]
"""The offsets that a commit of these partitions (None: all) says now."""


class Commits:
    """The commits of one consumer.

    Args:
        consumer: the wrapped one.
        positions: where the user is.
        metadata: what commits carry if the user says nothing.
        on_success: is told of each committed offset.
    """

    def __init__(
        self,
        consumer: Consumer,
        configuration: Configuration,
        positions: Positions,
        metadata: Callable[[], str | None],
        on_success: Callable[[Place, int], None],
    ) -> None:
        self._consumer = consumer
        self._positions = positions
        self._metadata = metadata
        self._on_success = on_success
        self._user_callback: Callable[..., None] | None = configuration.given.get(COMMIT_CALLBACK)
        self._committed: dict[Place, int] = {}
        """What is known to be committed, of the partitions that we have."""
        self.is_automatic: bool = configuration.auto_commit
        self._interval_s = configuration.auto_commit_interval_s
        self.due_at: float = time.monotonic() + self._interval_s
        """When `tick` has something to do."""

    def tick(self) -> bool:
        """Commit if it is time; return whether it was."""
        now = time.monotonic()
        if now < self.due_at:
            return False
        self.due_at = now + self._interval_s
        if self.is_automatic:
            offsets = self._changed(None)
            if offsets:
                self._consumer.commit(offsets=offsets, asynchronous=True)
        return True

    def commit_now(self, places: Collection[Place] | None = None) -> None:
        """Commit what is automatic before something ends; that it fails (the group has gone on) is only logged."""
        if not self.is_automatic:
            return
        offsets = self._changed(places)
        if offsets:
            try:
                self._noted(self._consumer.commit(offsets=offsets, asynchronous=False))
            except KafkaException as error:
                logger.warning("what was read since the last commit is not committed: %s", error)

    def commit(self, arguments: dict[str, Any]) -> list[TopicPartition] | None:
        """The user's commit, with the arguments as confluent-kafka takes them."""
        message, offsets = arguments.pop("message", None), arguments.pop("offsets", None)
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        if message is not None:
            offsets = [TopicPartition(message.topic(), message.partition(), message.offset() + 1)]
        elif offsets is None:
            offsets = self._changed(None)
            if not offsets:
                raise KafkaException(KafkaError(KafkaError._NO_OFFSET, "Commit failed: Local: No offset stored"))
        answers = self._consumer.commit(offsets=[self._with_metadata(each) for each in offsets], **arguments)
        return None if answers is None else self._noted(answers)

    def forget(self, places: Collection[Place]) -> None:
        for place in places:
            self._committed.pop(place, None)

    def on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        """librdkafka's answer to any commit."""
        if error is None:
            self._noted(partitions)
        if self._user_callback is not None:
            self._user_callback(error, partitions)

    def _changed(self, places: Collection[Place] | None) -> list[TopicPartition]:
        positions = self._positions(places)
        changed = ((place, offset) for place, offset in positions.items() if self._committed.get(place) != offset)
        return partitions_at(changed, self._metadata())

    def _with_metadata(self, partition: TopicPartition) -> TopicPartition:
        text = self._metadata()
        if text is not None and not partition.metadata:
            return TopicPartition(partition.topic, partition.partition, partition.offset, text)
        return partition

    def _noted(self, answers: list[TopicPartition]) -> list[TopicPartition]:
        for answer in answers:
            if answer.error is None and answer.offset >= 0:
                self._committed[place_of(answer)] = answer.offset
                self._on_success(place_of(answer), answer.offset)
        return answers
