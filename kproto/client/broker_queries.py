"""Queries to the brokers: the data that the decisions need.

Each query has a time limit and raises `KafkaException` on a timeout and on an error code in the response. The caller
decides when to repeat the query.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from confluent_kafka import Consumer, KafkaException, TopicPartition, Uuid
from confluent_kafka.admin import AdminClient

from kproto.client.configuration import Configuration
from kproto.client.decisions.resets import LogBounds
from kproto.client.topic_partitions import PartitionKey, partition_of, to_topic_partitions

EARLIEST_TIMESTAMP, LATEST_TIMESTAMP = -2, -1
"""ListOffsets' timestamps for the log start and the log end."""
NO_TOPIC_ID = (str(None), str(Uuid(0, 0)))
QUERY_LIMIT_S = 10.0
"""Limit of a query at an assignment."""
POLL_QUERY_LIMIT_S = 1.0
"""Limit of a query within `poll`, which returns to the user soon."""


class BrokerQueries:
    """Queries through the user's consumer and, for the checkpoint topic, through an admin client.

    The consumer's metadata is up to date for assigned partitions; that of a second client can be minutes old.

    The user's consumer stays open and belongs to the caller. The admin client needs no close.
    """

    def __init__(self, consumer: Consumer, configuration: Configuration) -> None:
        self._consumer = consumer
        self._configuration = configuration
        self._admin: AdminClient | None = None

    @property
    def admin(self) -> AdminClient:
        """The admin client, created on first use."""
        if self._admin is None:
            self._admin = self._configuration.clients.admin(self._configuration.for_connection())
        return self._admin

    def partitions_of_topic(self, topic: str, limit_s: float) -> list[PartitionKey]:
        metadata = self._consumer.list_topics(topic, timeout=limit_s).topics[topic]
        if metadata.error is not None:
            raise KafkaException(metadata.error)
        return [(topic, partition) for partition in sorted(metadata.partitions)]

    def committed(self, partitions: Collection[PartitionKey], limit_s: float) -> dict[PartitionKey, TopicPartition]:
        """Return the group's committed offsets, without the partitions that have none."""
        results = self._consumer.committed(to_topic_partitions(partitions), timeout=limit_s)
        _raise_error(results)
        return {partition_of(result): result for result in results if result.offset >= 0}

    def log_bounds(self, partitions: Collection[PartitionKey], limit_s: float) -> dict[PartitionKey, LogBounds]:
        starts, ends = (
            self._list_offsets(partitions, timestamp, limit_s) for timestamp in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP)
        )
        # Retention may move the start between the two queries, and past the last stable offset.
        return {each: LogBounds(start=min(starts[each], ends[each]), end=ends[each]) for each in partitions}

    def _list_offsets(
        self, partitions: Collection[PartitionKey], timestamp: int, limit_s: float
    ) -> dict[PartitionKey, int]:
        results = self._consumer.offsets_for_times(
            [TopicPartition(topic, partition, timestamp) for topic, partition in partitions], timeout=limit_s
        )
        _raise_error(results)
        return {partition_of(result): result.offset for result in results}

    def first_record_is_older(
        self, partitions: Collection[PartitionKey], time_ms: int, limit_s: float
    ) -> dict[PartitionKey, bool]:
        """Return whether each partition's first record is older than a time, without partitions of no timestamps.

        Of ListOffsets' responses, confluent-kafka's consumer returns the offset only. The first record is older if a
        later one is the first with at least that time.
        """
        since = self._list_offsets(partitions, time_ms, limit_s)
        # Queried second: if retention deletes records in between, the first record counts as new.
        first = self._list_offsets(partitions, 0, limit_s)
        return {each: since[each] < 0 or since[each] > at for each, at in first.items() if at >= 0}

    def group_metadata(self, limit_s: float) -> list[str | None]:
        """Return the metadata of all committed offsets of the group.

        An admin client could list them without the names of the topics; but librdkafka ends the process if brokers do
        not respond to that query in time.
        """
        topics = self._consumer.list_topics(timeout=limit_s).topics
        partitions = [(name, partition) for name, topic in topics.items() for partition in topic.partitions]
        return [each.metadata for each in self.committed(partitions, limit_s).values()] if partitions else []


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _raise_error(results: Iterable[TopicPartition]) -> None:
    for result in results:
        if result.error is not None:
            raise KafkaException(result.error)
