"""What the decisions need to know, asked of the brokers.

Each question has a time limit and raises `KafkaException` when it is over, or when the answer is an error; who asks
decides when to ask again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    TopicCollection,
    TopicPartition,
    Uuid,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # it is not in its __all__

from kproto.client.configuration import Configuration
from kproto.client.core.reset import Log
from kproto.client.places import Place, partitions_of, place_of

EARLIEST, LATEST = -2, -1
"""ListOffsets' words for a log's ends, in place of a timestamp."""
NO_ID = (str(None), str(Uuid(0, 0)))


class Facts:
    """Asks with the user's consumer and, for what a consumer can't ask, with an admin client made at first need."""

    def __init__(self, consumer: Consumer, configuration: Configuration) -> None:
        self._consumer = consumer
        self._configuration = configuration
        self._admin: AdminClient | None = None

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient(self._configuration.for_connection())
        return self._admin

    def partitions_of_topic(self, topic: str, limit_s: float) -> list[Place]:
        found = self._consumer.list_topics(topic, timeout=limit_s).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)
        return [(topic, partition) for partition in sorted(found.partitions)]

    def committed(self, places: Collection[Place], limit_s: float) -> dict[Place, TopicPartition]:
        """The group's offsets of these partitions; those that it has none of are left out."""
        answers = self._consumer.committed(partitions_of(places), timeout=limit_s)
        _raise_error(answers)
        return {place_of(answer): answer for answer in answers if answer.offset >= 0}

    def logs(self, places: Collection[Place], limit_s: float) -> dict[Place, Log]:
        """The bounds of these partitions; the end is the last stable offset for a consumer of committed records."""
        starts, ends = (self._list_offsets(places, which, limit_s) for which in (EARLIEST, LATEST))
        return {place: Log(start=min(starts[place], ends[place]), end=ends[place]) for place in places}

    def _list_offsets(self, places: Collection[Place], which: int, limit_s: float) -> dict[Place, int]:
        asked = [TopicPartition(topic, partition, which) for topic, partition in places]
        answers = self._consumer.offsets_for_times(asked, timeout=limit_s)
        _raise_error(answers)
        return {place_of(answer): answer.offset for answer in answers}

    def first_timestamps(self, places: Collection[Place], limit_s: float) -> dict[Place, int]:
        """The timestamp of the first record that has one, of the partitions that have such a record."""
        asked = {partition: OffsetSpec.for_timestamp(0) for partition in partitions_of(places)}
        futures = self.admin.list_offsets(asked, request_timeout=limit_s)
        answers = {place_of(partition): future.result() for partition, future in futures.items()}
        return {place: answer.timestamp for place, answer in answers.items() if answer.timestamp >= 0}

    def metadata_of_group(self, limit_s: float) -> list[str | None]:
        """The metadata of all committed offsets of the group."""
        group = ConsumerGroupTopicPartitions(self._configuration.group_id)
        (future,) = self.admin.list_consumer_group_offsets([group], request_timeout=limit_s).values()
        return [each.metadata for each in future.result().topic_partitions or ()]

    def topic_ids(self, topics: Collection[str], limit_s: float) -> dict[str, str]:
        """The ids of these topics; brokers before 2.8 have none."""
        futures = self.admin.describe_topics(TopicCollection(sorted(topics)), request_timeout=limit_s)
        found = {topic: str(future.result().topic_id) for topic, future in futures.items()}
        return {topic: topic_id for topic, topic_id in found.items() if topic_id not in NO_ID}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _raise_error(answers: Iterable[TopicPartition]) -> None:
    for answer in answers:
        if answer.error is not None:
            raise KafkaException(answer.error)
