"""The compacted topic `__parallel_checkpoints`: written beside the commits, read when partitions are assigned.

What is in there only says how a range is divided, and what else may be shown; where a consumer goes on is the group's
committed offset. So a topic that can't be made, read or written is logged, and stops nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # it is not in its __all__

from kproto.client.configuration import Configuration
from kproto.client.core.checkpoints import TOPIC, Checkpoint, Key, partition_of
from kproto.client.core.settings import RESET
from kproto.client.facts import Facts
from kproto.client.places import Place

logger: logging.Logger = logging.getLogger("kproto.client")

REPLICAS = 3
"""As Kafka's own internal topics; fewer, if there are fewer brokers."""
READ_LIMIT_S = 10.0
FLUSH_LIMIT_S = 5.0


class CheckpointTopic:
    """The checkpoints of one group. The producer is made at the first write; `close` ends it."""

    def __init__(self, facts: Facts, configuration: Configuration) -> None:
        self._facts = facts
        self._configuration = configuration
        self._producer: Producer | None = None
        self._partition: int | None = None
        """Where the group's checkpoints are; None: not known yet."""

    def read(self, places: Collection[Place]) -> dict[Place, dict[int, Checkpoint]]:
        """The checkpoints of these partitions, by their numbers."""
        found: dict[Place, dict[int, Checkpoint]] = {place: {} for place in places}
        try:
            for key, value in self._read_all():
                of_place = found.get((key.topic, key.partition))
                if of_place is None or key.group != self._configuration.group_id:
                    continue
                if value is None:
                    of_place.pop(key.number, None)
                else:
                    of_place[key.number] = value
        except KafkaException as error:
            logger.warning("%s can't be read: %s", TOPIC, error)
        return found

    def write(self, place: Place, checkpoints: Mapping[int, Checkpoint], gone: Iterable[int] = ()) -> None:
        """Write these, and tombstones for the numbers that are gone; `flush` waits for them."""
        try:
            partition = self._find_partition()
        except KafkaException as error:
            logger.warning("%s can't be made: %s", TOPIC, error)
            return
        values = {**{number: each.encode() for number, each in checkpoints.items()}, **dict.fromkeys(gone)}
        for number, value in values.items():
            key = Key(self._configuration.group_id, *place, number).encode()
            self._make_producer().produce(TOPIC, key=key, value=value, partition=partition, on_delivery=_delivered)
        self._make_producer().poll(0)

    def flush(self) -> None:
        """Wait until what was written is there, but not for long."""
        if self._producer is not None:
            self._producer.flush(FLUSH_LIMIT_S)

    def close(self) -> None:
        self.flush()
        self._producer = None

    def _make_producer(self) -> Producer:
        if self._producer is None:
            self._producer = Producer({**self._configuration.for_connection(), "linger.ms": 0})
        return self._producer

    def _find_partition(self) -> int:
        if self._partition is None:
            count = self._partition_count() or self._create()
            self._partition = partition_of(self._configuration.group_id, count)
        return self._partition

    def _partition_count(self) -> int:
        """0: there is no such topic. Asked without a topic's name, since asking for one may create it."""
        topics = self._facts.admin.list_topics(timeout=READ_LIMIT_S).topics
        return len(topics[TOPIC].partitions) if TOPIC in topics else 0

    def _create(self) -> int:
        replicas = min(REPLICAS, len(self._facts.admin.list_topics(timeout=READ_LIMIT_S).brokers))
        topic = NewTopic(TOPIC, 1, replicas, config={"cleanup.policy": "compact"})
        (future,) = self._facts.admin.create_topics([topic], operation_timeout=READ_LIMIT_S).values()
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            return self._partition_count()
        return 1

    def _read_all(self) -> Iterable[tuple[Key, Checkpoint | None]]:
        count = self._partition_count()
        if not count:
            return
        config: dict[str, Any] = {**self._configuration.for_catch_up(), RESET: "earliest"}
        consumer = Consumer(config)
        try:
            # From 0: to be asked for the first offset, librdkafka waits half a second until it knows the leader.
            consumer.assign([TopicPartition(TOPIC, partition_of(self._configuration.group_id, count), 0)])
            for message in _until_end(consumer):
                key = Key.decode(message.key())
                if key is not None:
                    yield key, Checkpoint.decode(message.value())
        finally:
            consumer.close()


def _until_end(consumer: Consumer) -> Iterable[Message]:
    limit = time.monotonic() + READ_LIMIT_S
    while time.monotonic() < limit:
        message = consumer.poll(READ_LIMIT_S)
        error = None if message is None else message.error()
        if message is not None and error is None:
            yield message
        elif error is not None and error.code() == KafkaError._PARTITION_EOF:
            return
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{TOPIC} was not read to its end in {READ_LIMIT_S} s"))


def _delivered(error: KafkaError | None, message: Message) -> None:
    if error is not None:
        logger.warning("a checkpoint was not written to %s: %s", TOPIC, error)
