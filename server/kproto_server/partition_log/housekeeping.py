"""What happens to records by themselves: they expire, and topics are compacted, by the broker's clock.

Every `log.retention.check.interval.ms` all partitions are looked at. In memory what is to go goes at once; logs on disk
are rolled and cut by whoever has them (`drop_stored`), and compacted by the cleaner of the offsets topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.configuration.topic_configs import topic_config
from kproto_server.partition_log.memory_compaction import compacted
from kproto_server.partition_log.retention import UNLIMITED, Limits, expired_count, runs_of
from kproto_server.partition_log.stored_data import OffsetsTopicData, StoredData

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kproto_server.clock import Clock, Timer
    from kproto_server.cluster.topics import Topic
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.partition_log.partition_data import PartitionData
    from kproto_server.releases.kafka_version import KafkaVersion

EXPIRATION_MS = 86_400_000
"""`producer.id.expiration.ms`: how long a producer that writes nothing is known."""


class Housekeeping:
    """Looks after all partitions, again and again."""

    def __init__(
        self,
        kafka_version: KafkaVersion,
        settings: DynamicSettings,
        topics: Mapping[str, Topic],
        clock: Clock,
        drop_stored: Callable[[StoredData, Limits, int], object] | None = None,
    ) -> None:
        self._kafka_version = kafka_version
        self._settings = settings
        self._topics = topics
        self._clock = clock
        self._drop_stored = drop_stored
        self._interval_ms = settings.current.int("log.retention.check.interval.ms")
        self._timer: Timer | None = None

    def start(self) -> None:
        """Look from now on."""
        clock = self._clock
        self._timer = clock.call_at(clock.now_ms() + self._interval_ms, self._look, in_background=True)

    def _look(self) -> None:
        self.look(self._clock.now_ms())
        self.start()

    def look(self, now_ms: int) -> None:
        """Drop and compact what is due."""
        for topic in self._topics.values():
            for partition in topic.partitions:
                data = partition.data
                if isinstance(data, OffsetsTopicData) or data.next_offset == 0:
                    continue
                limits, is_compacted = self._limits(topic, partition.leader)
                data.known_producers.forget_silent(now_ms - EXPIRATION_MS)
                if isinstance(data, StoredData):
                    # DEVIATION: on disk what is compacted does not expire: the cleaner may be at those segments.
                    if self._drop_stored is not None and not is_compacted:
                        self._drop_stored(data, limits, now_ms)
                else:
                    self._keep_memory(data, limits, now_ms, is_compacted=is_compacted, topic=topic)

    def _limits(self, topic: Topic, leader: int) -> tuple[Limits, bool]:
        kafka_version, settings = self._kafka_version, self._settings.of(leader)

        def config(name: str) -> str:
            return topic_config(kafka_version, settings, topic.configs, name)

        policy = config("cleanup.policy")
        deletes = "delete" in policy
        return Limits(
            retention_ms=int(config("retention.ms")) if deletes else UNLIMITED,
            retention_bytes=int(config("retention.bytes")) if deletes else UNLIMITED,
            segment_bytes=int(config("segment.bytes")),
            segment_ms=int(config("segment.ms")),
        ), "compact" in policy

    def _keep_memory(
        self, data: PartitionData, limits: Limits, now_ms: int, *, is_compacted: bool, topic: Topic
    ) -> None:
        runs = runs_of(data.batches(), limits)
        count = expired_count(runs, now_ms, data.start_offset, limits)
        if count:
            data.delete_before(runs[count - 1].next_offset)
        if is_compacted and len(runs) - count > 1:
            settings = self._settings.current
            kept_ms = int(topic_config(self._kafka_version, settings, topic.configs, "delete.retention.ms"))
            delete_before_ms = now_ms - kept_ms
            data.rewrite(lambda batches: compacted(batches, delete_before_ms), runs[-2].next_offset)
