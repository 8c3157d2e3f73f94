"""The ranges that earlier owners of a partition checkpointed, read in the background after an assignment.

Only `parallel.rebalance.merge=false` needs them. The records of a partition are delivered in order with and without
them, so the catch-up starts at once and is divided when they are read.

The read starts at the offset that the group has committed for its partition of the checkpoint topic: no checkpoint that
is still in force lies before it. Each read commits the next such offset, so a read does not depend on what other groups
have written since the topic was created.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any

from confluent_kafka import OFFSET_STORED, KafkaError, KafkaException, TopicCollection, TopicPartition

from kproto.client.background import Background, Steps
from kproto.client.broker_queries import NO_TOPIC_ID, BrokerQueries
from kproto.client.checkpoint_topic import CheckpointTopic
from kproto.client.configuration import Configuration
from kproto.client.decisions.checkpoints import CHECKPOINT_TOPIC, Checkpoint, GroupCheckpoints
from kproto.client.decisions.settings import AUTO_OFFSET_RESET
from kproto.client.topic_partitions import PartitionKey, offset_of

logger: logging.Logger = logging.getLogger("kproto.client")

READ_LIMIT_S = 30.0
STEP_RECORDS = 500
"""Records read at once, within a call of the user."""

Checkpoints = dict[int, Checkpoint]


class EarlierRanges:
    """The reads of one consumer.

    Args:
        commit: commits an offset of the checkpoint topic for the group, without waiting.
    """

    def __init__(
        self,
        queries: BrokerQueries,
        configuration: Configuration,
        checkpoint_topic: CheckpointTopic,
        commit: Callable[[TopicPartition], None],
    ) -> None:
        self._queries = queries
        self._group = configuration.group_id
        self._clients = configuration.clients
        self._config: dict[str, Any] = {**configuration.for_consumer2(), AUTO_OFFSET_RESET: "earliest"}
        self._checkpoint_topic = checkpoint_topic
        self._commit = commit
        self._reading: Background[GroupCheckpoints] | None = None
        self.awaited: set[PartitionKey] = set()
        """Partitions whose earlier ranges are not known yet."""
        self.topic_ids: dict[str, str] = {}

    def start(self, partitions: Collection[PartitionKey]) -> None:
        """Start to read the ranges of newly assigned partitions."""
        awaited = {*self.awaited, *partitions}
        self.close()  # one read for all partitions
        self.awaited = awaited
        self._reading = Background(self._read({topic for topic, _ in self.awaited}), READ_LIMIT_S)

    def forget(self, partition: PartitionKey) -> None:
        self.awaited.discard(partition)
        if not self.awaited:
            self.close()

    def serve(self) -> dict[PartitionKey, Checkpoints]:
        """Continue to read; return the checkpoints of all awaited partitions once they are read."""
        if self._reading is None:
            return {}
        try:
            if not self._reading.advance():
                return {}
            found = self._reading.result.by_partition()
        except KafkaException as error:
            logger.warning("cannot read %s, the catch-up is not divided: %s", CHECKPOINT_TOPIC, error)
            found = {}
        self._reading = None
        awaited, self.awaited = self.awaited, set()
        return {partition: found.get(partition, {}) for partition in awaited}

    def close(self) -> None:
        self.awaited.clear()
        if self._reading is not None:
            self._reading.close()
            self._reading = None

    def _read(self, topics: set[str]) -> Steps[GroupCheckpoints]:
        yield from self._find_topic_ids(topics)
        found = GroupCheckpoints(self._group)
        partition = yield from self._checkpoint_topic.find()
        if partition < 0:
            return found
        consumer = self._clients.consumer(self._config)
        try:
            consumer.assign([TopicPartition(CHECKPOINT_TOPIC, partition, OFFSET_STORED)])
            while True:
                for message in consumer.consume(STEP_RECORDS, 0):
                    error = message.error()
                    if error is None:
                        found.add(offset_of(message), message.key(), message.value())
                    elif error.code() == KafkaError._PARTITION_EOF:
                        read_from = found.first_in_force(offset_of(message))
                        self._commit(TopicPartition(CHECKPOINT_TOPIC, partition, read_from))
                        return found
                yield None
        finally:
            consumer.close()

    def _find_topic_ids(self, topics: set[str]) -> Steps[None]:
        """Query the topic ids: a topic that was deleted and created again keeps its name, not its records (CK-87)."""
        for topic, future in self._queries.admin.describe_topics(TopicCollection(sorted(topics))).items():
            try:
                topic_id = str((yield future).topic_id)
            except KafkaException as error:
                logger.warning("no topic id of %s: %s", topic, error)
            else:
                if topic_id not in NO_TOPIC_ID:  # brokers before 2.8 have none
                    self.topic_ids[topic] = topic_id
