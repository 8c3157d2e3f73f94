"""The retention task: deletes expired records, by the broker's clock.

It checks all partitions every `log.retention.check.interval.ms`. The records of partitions in memory are deleted at
once. The owner of the logs on disk rolls and deletes their segments (``delete_stored``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.clock import PeriodicTask
from kproto_server.configuration.topic_configs import topic_config
from kproto_server.deferred import at_once
from kproto_server.partition_log.retention import STEP_BATCHES, UNLIMITED, RetentionConfig, expired_end
from kproto_server.partition_log.stored_data import OffsetsTopicData, StoredData

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from kproto_server.clock import Clock
    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.configuration.settings import Settings


STEP_PARTITIONS = 1000
"""Partitions that are checked in one step, of which no batch expires: 2 ms."""


def retention_config(settings: Settings, topic: Topic) -> tuple[RetentionConfig, bool]:
    """Return the configs of retention of a topic on a broker, and whether the topic is compacted."""

    def config(name: str) -> str:
        return topic_config(settings, topic.configs, name)

    policy = config("cleanup.policy")
    deletes = "delete" in policy
    return RetentionConfig(
        retention_ms=int(config("retention.ms")) if deletes else UNLIMITED,
        retention_bytes=int(config("retention.bytes")) if deletes else UNLIMITED,
        segment_bytes=int(config("segment.bytes")),
        segment_ms=int(config("segment.ms")),
    ), "compact" in policy


class RetentionTask(PeriodicTask):
    """Checks all partitions periodically, from `start` on."""

    def __init__(
        self,
        settings: DynamicSettings,
        topics: Mapping[str, Topic],
        clock: Clock,
        delete_stored: Callable[[StoredData, RetentionConfig, int], Generator[int, None, int]] | None = None,
    ) -> None:
        """``delete_stored``: as `_check`, for a partition on disk."""
        super().__init__(clock, settings.current.int("log.retention.check.interval.ms"), self.check_all)
        self._settings = settings
        self._topics = topics
        self._delete_stored = delete_stored

    def check_all(self, now_ms: int) -> Iterator[None]:
        """Delete expired records in all partitions but those of the offsets topic, in steps."""
        left = STEP_PARTITIONS
        for topic in list(self._topics.values()):
            configs: dict[int, tuple[RetentionConfig, bool]] = {}
            for partition in list(topic.partitions):
                left -= 1
                if left < 0:
                    left = STEP_PARTITIONS - 1
                    yield
                if self._topics.get(topic.name) is not topic:
                    break  # deleted between two steps
                for batch_count in self._check(topic, partition, configs, now_ms):
                    cost = batch_count * STEP_PARTITIONS // STEP_BATCHES
                    left -= cost
                    if cost and left <= 0:
                        left = STEP_PARTITIONS
                        yield

    def check_topic(self, topic: Topic, now_ms: int) -> dict[int, int]:
        """Delete expired records of one topic; return the log start offset of each partition, that on disk soon."""
        configs: dict[int, tuple[RetentionConfig, bool]] = {}
        ends = {}
        for partition in topic.partitions:
            expired_end = at_once(self._check(topic, partition, configs, now_ms))
            ends[partition.index] = max(partition.log_start_offset, expired_end)
        return ends

    def _check(
        self, topic: Topic, partition: Partition, configs: dict[int, tuple[RetentionConfig, bool]], now_ms: int
    ) -> Generator[int, None, int]:
        """Check one partition; return the offset after its expired segments. Yields as `expired_end`.

        ``configs``: those of the topic so far, by leader.
        """
        data, leader = partition.data, partition.leader
        if isinstance(data, OffsetsTopicData) or data.next_offset == 0:
            return 0
        if leader not in configs:
            configs[leader] = retention_config(self._settings.of(leader), topic)
        config, is_compacted = configs[leader]
        if isinstance(data, StoredData):
            # DEVIATION: records of compacted topics on disk do not expire: the cleaner may use the segments.
            if self._delete_stored is None or is_compacted:
                return 0
            return (yield from self._delete_stored(data, config, now_ms))
        end_offset = yield from expired_end(data, config, now_ms)
        if end_offset:
            data.delete_before(end_offset)
        return end_offset


class ProducerExpirationTask(PeriodicTask):
    """Removes idempotent producers without an append for `producer.id.expiration.ms`, from `start` on."""

    def __init__(self, settings: DynamicSettings, topics: Mapping[str, Topic], clock: Clock) -> None:
        super().__init__(clock, settings.current.int("producer.id.expiration.check.interval.ms"), self.remove_expired)
        self._settings = settings
        self._topics = topics

    def remove_expired(self, now_ms: int) -> Iterator[None]:
        """Remove the expired producers of all partitions, in steps."""
        before_ms = now_ms - self._settings.current.int("producer.id.expiration.ms")
        left = STEP_PARTITIONS
        for topic in list(self._topics.values()):
            for partition in list(topic.partitions):
                left -= 1
                if left < 0:
                    left = STEP_PARTITIONS - 1
                    yield
                if not isinstance(partition.data, OffsetsTopicData):
                    partition.data.known_producers.remove_expired(before_ms)
