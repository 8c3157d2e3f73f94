"""What a running cluster says of its topics: ids and the ends of their logs, by Kafka's own Java client.

The client comes with Spark's Kafka connector, so a cluster needs no other settings than those of the connector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kproto.errors import NoLog
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.spark.java import cause_of, first_line, java_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""Kafka's text of the id of a topic that has none, as before 2.8."""
NO_END = -1


@dataclass(frozen=True)
class ClusterTopics:
    """The topics of a cluster at one time."""

    cluster_id: str
    topic_ids: Mapping[str, str]
    ends: Mapping[tuple[str, int], int]
    """The offset after the last record of each partition that has a leader."""
    stable_ends: Mapping[int, int]
    """Of each partition of the offsets topic: the first offset of its first open transaction, or else its end."""

    @property
    def waiting(self) -> int:
        """Offsets of the offsets topic that wait for the end of a transaction."""
        return sum(self.ends[OFFSETS_TOPIC, number] - stable for number, stable in self.stable_ends.items())


def read_topics(spark: SparkSession, settings: Mapping[str, str]) -> ClusterTopics:
    """Ask a cluster for its topics.

    Args:
        settings: of Kafka's client, with ``bootstrap.servers``.

    Raises:
        NoLog: the client cannot reach the cluster, or the user lacks a right; or there is no offsets topic.
    """
    java = java_of(spark)
    try:
        client = java.org.apache.kafka.clients.admin.AdminClient.create(java.java.util.HashMap(dict(settings)))
        try:
            found = _read(java.org.apache.kafka, java.java.util, client)
        finally:
            client.close()
    except Exception as error:
        cause = cause_of(error)
        if cause is None:
            raise
        while cause.getCause() is not None:
            cause = cause.getCause()
        raise NoLog(f"{settings['bootstrap.servers']}: {first_line(cause)}") from None
    if not found.stable_ends:
        raise NoLog(f"{settings['bootstrap.servers']}: the cluster has no {OFFSETS_TOPIC} yet")
    return found


def _read(kafka: Any, util: Any, client: Any) -> ClusterTopics:
    cluster_id = client.describeCluster().clusterId().get()
    listing = kafka.clients.admin.ListTopicsOptions().listInternal(True)
    names = client.listTopics(listing).names().get()
    described = client.describeTopics(names).allTopicNames().get()
    topic_ids, latest, of_offsets = {}, util.HashMap(), util.HashMap()
    for topic, description in described.items():
        topic_id = str(description.topicId().toString())
        if topic_id != NO_ID:
            topic_ids[topic] = topic_id
        for partition in description.partitions():
            if topic == OFFSETS_TOPIC or partition.leader() is not None:  # without a leader, the request would wait
                key = kafka.common.TopicPartition(topic, partition.partition())
                latest.put(key, kafka.clients.admin.OffsetSpec.latest())
                if topic == OFFSETS_TOPIC:
                    of_offsets.put(key, kafka.clients.admin.OffsetSpec.latest())
    committed = kafka.clients.admin.ListOffsetsOptions(kafka.common.IsolationLevel.READ_COMMITTED)
    stable = _offsets(client.listOffsets(of_offsets, committed))  # first: ends only rise
    return ClusterTopics(
        cluster_id,
        topic_ids,
        _offsets(client.listOffsets(latest)),
        {number: offset for (_, number), offset in stable.items()},
    )


def _offsets(result: Any) -> dict[tuple[str, int], int]:
    found = {(key.topic(), key.partition()): int(info.offset()) for key, info in result.all().get().items()}
    return {key: offset for key, offset in found.items() if offset != NO_END}
