"""The second consumer (KIP-333's consumer2): it reads what is to be caught up with, and belongs to no group."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from kproto.client.places import Place, partitions_of, place_of_message

logger: logging.Logger = logging.getLogger("kproto.client")

BATCH = 500
"""Records taken from librdkafka at once. What it has fetched beyond that waits in its own queue."""


class SideConsumerFailed(Exception):
    """It is of no use any more, and another one has to go on."""


@dataclass(slots=True)
class Fetched:
    """What one look has brought."""

    runs: list[tuple[Place, list[Message]]] = field(default_factory=list)
    """Records of a partition that came one after the other, in the order in which they came."""
    ends: dict[Place, int] = field(default_factory=dict)
    """Partitions that have no record before this offset any more, and none after it yet."""
    refused: dict[Place, Message] = field(default_factory=dict)
    """What librdkafka says of positions that are out of range."""


class SideConsumer:
    """Reads assigned partitions; made at the first `read`, and closed when there is nothing more to read."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = dict(config)
        self._consumer: Consumer | None = None
        self._places: set[Place] = set()
        self._topics: set[str] = set()
        """Of all partitions that were read since it was made."""

    @property
    def is_open(self) -> bool:
        return self._consumer is not None

    def read(self, positions: Mapping[Place, TopicPartition]) -> None:
        """Read these partitions from these offsets on, beside those that are read already."""
        if self._consumer is None:
            self._consumer = Consumer(self._config)
        self.leave(positions, close=False)
        self._consumer.incremental_assign(list(positions.values()))
        self._places.update(positions)
        self._topics.update(topic for topic, _ in positions)

    def leave(self, places: Collection[Place], *, close: bool = True) -> None:
        """Read these no longer."""
        gone = [place for place in places if place in self._places]
        if gone and self._consumer is not None:
            self._consumer.incremental_unassign(partitions_of(gone))
            self._places.difference_update(gone)
        if close and not self._places:
            self.close()

    def pause(self, places: Collection[Place]) -> None:
        if self._consumer is not None:
            self._consumer.pause(partitions_of(self._places.intersection(places)))

    def resume(self, places: Collection[Place]) -> None:
        if self._consumer is not None:
            self._consumer.resume(partitions_of(self._places.intersection(places)))

    def fetch(self, wait_s: float) -> Fetched:
        """Take what was fetched; wait for the first of it if need be.

        Raises:
            SideConsumerFailed: it can't go on.
        """
        fetched = Fetched()
        if self._consumer is None:
            return fetched
        try:
            messages = self._consumer.consume(BATCH, 0)
            if not messages:
                first = self._consumer.poll(wait_s)
                messages = [] if first is None else [first, *self._consumer.consume(BATCH, 0)]
        except RuntimeError as error:  # it is closed
            raise SideConsumerFailed(str(error)) from error
        if any(map(Message.error, messages)):
            for message in messages:
                self._note_error(message, fetched)
            messages = [message for message in messages if message.error() is None]
        if messages:
            fetched.runs += (each for each in self._runs(messages) if each[0] in self._places)
        return fetched

    def close(self) -> None:
        self._places.clear()
        self._topics.clear()
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _runs(self, messages: list[Message]) -> Iterator[tuple[Place, list[Message]]]:
        """Divide at the places where the partition changes; librdkafka gives many of one before those of another."""
        kinds = (Message.partition, Message.topic) if len(self._topics) > 1 else (Message.partition,)
        runs = [messages]
        for kind in kinds:
            runs = [list(group) for run in runs for _, group in groupby(run, kind)]
        return ((place_of_message(run[0]), run) for run in runs)

    def _note_error(self, message: Message, fetched: Fetched) -> None:
        error = message.error()
        if error is None:
            return
        if error.code() == KafkaError._PARTITION_EOF:
            fetched.ends[place_of_message(message)] = _offset(message)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            fetched.refused[place_of_message(message)] = message
        elif error.fatal():
            raise SideConsumerFailed(str(error))
        else:
            logger.info("while catching up: %s", error)


def _offset(message: Message) -> int:
    offset = message.offset()
    return -1 if offset is None else offset
