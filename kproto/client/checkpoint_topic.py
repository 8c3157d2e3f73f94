"""The compacted topic `__parallel_checkpoints`: created at the first write, written with the commits.

Checkpoints only say how a range is divided and how far consumer 1 has read. The position of the group is its committed
offset. So nothing waits for the topic: it is looked up, created and written in the background, and a failure is logged
and stops nothing. A user who may not create or write the topic gets one warning, and no checkpoints.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicCollection
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # not in its __all__

from kproto.client.background import Background, Steps
from kproto.client.broker_queries import BrokerQueries
from kproto.client.configuration import Configuration
from kproto.client.decisions.checkpoints import CHECKPOINT_TOPIC, Checkpoint, CheckpointKey, checkpoint_partition
from kproto.client.decisions.events import CheckpointDeleted, CheckpointsFailed, CheckpointWritten
from kproto.client.events import Publish
from kproto.client.topic_partitions import PartitionKey

PARTITION_COUNT = 16
"""Of a new topic. All members of a group write to the same partition."""
REPLICATION_FACTOR = 3
"""As of Kafka's own internal topics; lower if there are fewer brokers."""
TOPIC_CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1024 * 1024),
    "segment.ms": str(10 * 60 * 1000),
    "min.cleanable.dirty.ratio": "0.1",
    "delete.retention.ms": str(60 * 60 * 1000),
}
"""Brokers never compact the newest segment. With these small segments a partition keeps about a megabyte more than its
last checkpoints; 1 MiB is the smallest segment that Kafka 4 accepts."""
OPEN_LIMIT_S = 10.0
RETRY_AFTER_S = 60.0
"""From a failed attempt to the next one."""
FLUSH_LIMIT_S = 1.0
"""Longest wait for the last checkpoints when the consumer is closed."""
FINAL_ERRORS = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.POLICY_VIOLATION,
        KafkaError.INVALID_CONFIG,
    }
)
"""Errors that another attempt does not change."""


class CheckpointTopic:
    """The checkpoints of one group.

    The object owns its producer: the first write creates it, `close` flushes and releases it.
    """

    def __init__(self, queries: BrokerQueries, configuration: Configuration, publish: Publish) -> None:
        self._queries = queries
        self._configuration = configuration
        self._publish = publish
        self._producer: Producer | None = None
        self._opening: Background[int] | None = None
        self._partition: int | None = None
        """The partition of the group's checkpoints, once known."""
        self._waiting: dict[bytes, bytes | None] = {}
        """Keys and values to write once the partition is known."""
        self._next_attempt_at = 0.0
        """When a write tries to open the topic again, on the monotonic clock."""

    @property
    def is_busy(self) -> bool:
        """Whether `serve` has something to do."""
        return bool(self._waiting) or (self._producer is not None and len(self._producer) > 0)

    def write(
        self, partition: PartitionKey, checkpoints: Mapping[int, Checkpoint], deleted: Iterable[int] = ()
    ) -> None:
        """Write checkpoints, and tombstones for the numbers in `deleted`, without waiting."""
        if time.monotonic() < self._next_attempt_at:
            return
        values = {**{number: each.encode() for number, each in checkpoints.items()}, **dict.fromkeys(deleted)}
        for number, value in values.items():
            self._waiting[CheckpointKey(self._configuration.group_id, *partition, number).encode()] = value
        self.serve()

    def serve(self) -> None:
        """Continue to open the topic; produce what waits for it."""
        if self._waiting and self._is_open():
            assert self._partition is not None
            try:
                self._produce(self._partition)
            except KafkaException as error:  # for example, the topic was deleted
                self._give_up(error.args[0])
            except BufferError:
                self._give_up(KafkaError(KafkaError._QUEUE_FULL))
        if self._producer is not None:
            self._producer.poll(0)

    def _produce(self, partition: int) -> None:
        producer = self._open_producer()
        for key, value in self._waiting.items():
            producer.produce(CHECKPOINT_TOPIC, key=key, value=value, partition=partition, on_delivery=self._delivered)
        self._waiting.clear()

    def close(self) -> None:
        if self._producer is not None:
            self._producer.flush(FLUSH_LIMIT_S)
            self._producer = None

    def find(self) -> Steps[int]:
        """Return the partition of the group's checkpoints, -1 if there is no topic."""
        count = yield from self._partition_count()
        return checkpoint_partition(self._configuration.group_id, count) if count else -1

    def _is_open(self) -> bool:
        if self._partition is None:
            if self._queries.is_closed:  # commits while the consumer is being closed
                return False
            if self._opening is None:
                self._opening = Background(self._open(), OPEN_LIMIT_S)
            try:
                if not self._opening.advance():
                    return False
                self._partition = self._opening.result
            except KafkaException as error:
                self._give_up(error.args[0])
            self._opening = None
        return self._partition is not None

    def _open(self) -> Steps[int]:
        count = yield from self._partition_count()
        if not count:
            cluster = yield self._queries.admin.describe_cluster()
            replication_factor = min(REPLICATION_FACTOR, len(cluster.nodes))
            topic = NewTopic(CHECKPOINT_TOPIC, PARTITION_COUNT, replication_factor, config=TOPIC_CONFIG)
            (created,) = self._queries.admin.create_topics([topic], operation_timeout=OPEN_LIMIT_S).values()
            try:
                yield created
                count = PARTITION_COUNT
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
                # Another member creates it, and the broker that describes topics has not heard of it.
                while not (count := (yield from self._partition_count())):
                    yield None
        return checkpoint_partition(self._configuration.group_id, count)

    def _partition_count(self) -> Steps[int]:
        """Return the partition count of the topic, 0 if there is no such topic; the request does not create it."""
        (description,) = self._queries.admin.describe_topics(TopicCollection([CHECKPOINT_TOPIC])).values()
        try:
            return len((yield description).partitions)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return 0
            raise

    def _open_producer(self) -> Producer:
        if self._producer is None:
            config = {**self._configuration.for_connection(), "linger.ms": 0}
            self._producer = self._configuration.clients.producer(config)
        return self._producer

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._publish_delivered(CheckpointKey.decode(message.key()), Checkpoint.decode(message.value()))
        elif time.monotonic() >= self._next_attempt_at:
            self._give_up(error)

    def _publish_delivered(self, key: CheckpointKey | None, written: Checkpoint | None) -> None:
        assert key is not None
        if written is None:
            self._publish(CheckpointDeleted(topic=key.topic, partition=key.partition, number=key.number))
        else:
            self._publish(
                CheckpointWritten(
                    topic=key.topic,
                    partition=key.partition,
                    number=key.number,
                    range=written.range,
                    position=written.position,
                )
            )

    def _give_up(self, error: KafkaError) -> None:
        is_final = error.code() in FINAL_ERRORS
        self._next_attempt_at = math.inf if is_final else time.monotonic() + RETRY_AFTER_S
        self._waiting.clear()
        self._partition = None  # the topic may be another one by then
        self._publish(CheckpointsFailed(error=str(error), retry_after_s=None if is_final else RETRY_AFTER_S))
