"""The compacted topic `__parallel_checkpoints`: written with the commits, read at an assignment.

Checkpoints only say how a range is divided and how far consumer 1 has read. The position of the group is its committed
offset. So a failure to create, read or write the topic is logged and stops nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # not in its __all__

from kproto.client.broker_queries import QUERY_LIMIT_S, BrokerQueries
from kproto.client.configuration import Configuration
from kproto.client.decisions.checkpoints import CHECKPOINT_TOPIC, Checkpoint, CheckpointKey, checkpoint_partition
from kproto.client.decisions.settings import AUTO_OFFSET_RESET
from kproto.client.topic_partitions import PartitionKey

logger: logging.Logger = logging.getLogger("kproto.client")

REPLICATION_FACTOR = 3
"""As of Kafka's own internal topics; lower if there are fewer brokers."""
FLUSH_LIMIT_S = 5.0


class CheckpointTopic:
    """The checkpoints of one group.

    The object owns its producer: the first `write` creates it, `close` flushes and releases it.
    """

    def __init__(self, queries: BrokerQueries, configuration: Configuration) -> None:
        self._queries = queries
        self._configuration = configuration
        self._producer: Producer | None = None
        self._partition: int | None = None
        """The partition of the group's checkpoints, once known."""

    def read(self, partitions: Collection[PartitionKey]) -> dict[PartitionKey, dict[int, Checkpoint]]:
        """Return the checkpoints of these partitions by range number."""
        found: dict[PartitionKey, dict[int, Checkpoint]] = {partition: {} for partition in partitions}
        try:
            for key, value in self._read_all():
                checkpoints = found.get((key.topic, key.partition))
                if checkpoints is None or key.group != self._configuration.group_id:
                    continue
                if value is None:
                    checkpoints.pop(key.number, None)
                else:
                    checkpoints[key.number] = value
        except KafkaException as error:
            logger.warning("cannot read %s: %s", CHECKPOINT_TOPIC, error)
        return found

    def write(
        self, partition: PartitionKey, checkpoints: Mapping[int, Checkpoint], deleted: Iterable[int] = ()
    ) -> None:
        """Write checkpoints, and tombstones for the numbers in `deleted`; `flush` waits for the delivery."""
        try:
            index = self._find_partition()
        except KafkaException as error:
            logger.warning("cannot create %s: %s", CHECKPOINT_TOPIC, error)
            return
        producer = self._open_producer()
        values = {**{number: each.encode() for number, each in checkpoints.items()}, **dict.fromkeys(deleted)}
        for number, value in values.items():
            key = CheckpointKey(self._configuration.group_id, *partition, number).encode()
            producer.produce(CHECKPOINT_TOPIC, key=key, value=value, partition=index, on_delivery=_log_failure)
        producer.poll(0)

    def flush(self) -> None:
        """Wait for the delivery of written checkpoints, up to `FLUSH_LIMIT_S`."""
        if self._producer is not None:
            self._producer.flush(FLUSH_LIMIT_S)

    def close(self) -> None:
        self.flush()
        self._producer = None

    def _open_producer(self) -> Producer:
        if self._producer is None:
            self._producer = Producer({**self._configuration.for_connection(), "linger.ms": 0})
        return self._producer

    def _find_partition(self) -> int:
        if self._partition is None:
            count = self._partition_count() or self._create()
            self._partition = checkpoint_partition(self._configuration.group_id, count)
        return self._partition

    def _partition_count(self) -> int:
        """Return the partition count of the topic, 0 if there is no such topic.

        Lists all topics: a Metadata request that names a missing topic may create the topic.
        """
        topics = self._queries.admin.list_topics(timeout=QUERY_LIMIT_S).topics
        return len(topics[CHECKPOINT_TOPIC].partitions) if CHECKPOINT_TOPIC in topics else 0

    def _create(self) -> int:
        admin = self._queries.admin
        replication_factor = min(REPLICATION_FACTOR, len(admin.list_topics(timeout=QUERY_LIMIT_S).brokers))
        topic = NewTopic(CHECKPOINT_TOPIC, 1, replication_factor, config={"cleanup.policy": "compact"})
        (future,) = admin.create_topics([topic], operation_timeout=QUERY_LIMIT_S).values()
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            return self._partition_count()
        return 1

    def _read_all(self) -> Iterable[tuple[CheckpointKey, Checkpoint | None]]:
        count = self._partition_count()
        if not count:
            return
        config: dict[str, Any] = {**self._configuration.for_consumer2(), AUTO_OFFSET_RESET: "earliest"}
        consumer = Consumer(config)
        try:
            # Offset 0 instead of OFFSET_BEGINNING: a query for the log start takes librdkafka half a second, until it
            # knows the leader.
            partition = checkpoint_partition(self._configuration.group_id, count)
            consumer.assign([TopicPartition(CHECKPOINT_TOPIC, partition, 0)])
            for message in _read_to_end(consumer):
                key = CheckpointKey.decode(message.key())
                if key is not None:
                    yield key, Checkpoint.decode(message.value())
        finally:
            consumer.close()


def _read_to_end(consumer: Consumer) -> Iterable[Message]:
    deadline = time.monotonic() + QUERY_LIMIT_S
    while time.monotonic() < deadline:
        message = consumer.poll(QUERY_LIMIT_S)
        error = None if message is None else message.error()
        if message is not None and error is None:
            yield message
        elif error is not None and error.code() == KafkaError._PARTITION_EOF:
            return
    reason = f"{CHECKPOINT_TOPIC} was not read to its end within {QUERY_LIMIT_S} s"
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, reason))


def _log_failure(error: KafkaError | None, message: Message) -> None:
    if error is not None:
        logger.warning("cannot write a checkpoint to %s: %s", CHECKPOINT_TOPIC, error)
