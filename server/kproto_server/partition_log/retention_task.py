"""The retention task: deletes expired records and compacts topics in memory, by the broker's clock.

It checks all partitions every `log.retention.check.interval.ms`. The records of partitions in memory are deleted at
once. The owner of the logs on disk rolls and deletes their segments (``delete_stored``), and the cleaner of the offsets
topic compacts them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.configuration.topic_configs import topic_config
from kproto_server.partition_log.memory_compaction import compacted
from kproto_server.partition_log.retention import UNLIMITED, RetentionConfig, expired_count, memory_segments
from kproto_server.partition_log.stored_data import OffsetsTopicData, StoredData

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kproto_server.clock import Clock, Timer
    from kproto_server.cluster.topics import Topic
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.partition_log.partition_data import PartitionData

PRODUCER_EXPIRATION_MS = 86_400_000
"""The default of `producer.id.expiration.ms`."""


class RetentionTask:
    """Checks all partitions periodically, from `start` on."""

    def __init__(
        self,
        settings: DynamicSettings,
        topics: Mapping[str, Topic],
        clock: Clock,
        delete_stored: Callable[[StoredData, RetentionConfig, int], object] | None = None,
    ) -> None:
        """``delete_stored``: deletes the expired segments of a partition on disk."""
        self._settings = settings
        self._topics = topics
        self._clock = clock
        self._delete_stored = delete_stored
        self._interval_ms = settings.current.int("log.retention.check.interval.ms")
        self._timer: Timer | None = None

    def start(self) -> None:
        """Start the timer of the next check; a second call, after the clock was reset, starts it again."""
        if self._timer is not None:
            self._timer.cancel()
        clock = self._clock
        due_ms = clock.now_ms() + self._interval_ms
        self._timer = clock.call_at(due_ms, self._run, in_background=True, next_run_ms=self._next_run_ms)

    def _next_run_ms(self, due_ms: int, quiet_until_ms: int) -> int:
        """Return the last of the runs until a time: it deletes what those before it would have deleted."""
        return quiet_until_ms - (quiet_until_ms - due_ms) % self._interval_ms

    def _run(self) -> None:
        self.check_all(self._clock.now_ms())
        self.start()

    def check_all(self, now_ms: int) -> None:
        """Delete and compact records in all partitions but those of the offsets topic."""
        for topic in self._topics.values():
            for partition in topic.partitions:
                data = partition.data
                if isinstance(data, OffsetsTopicData) or data.next_offset == 0:
                    continue
                config, is_compacted = self._config(topic, partition.leader)
                data.known_producers.remove_expired(now_ms - PRODUCER_EXPIRATION_MS)
                if isinstance(data, StoredData):
                    # DEVIATION: records of compacted topics on disk do not expire: the cleaner may use the segments.
                    if self._delete_stored is not None and not is_compacted:
                        self._delete_stored(data, config, now_ms)
                else:
                    self._check_memory(data, config, now_ms, is_compacted=is_compacted, topic=topic)

    def _config(self, topic: Topic, leader: int) -> tuple[RetentionConfig, bool]:
        settings = self._settings.of(leader)

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

    def _check_memory(
        self, data: PartitionData, config: RetentionConfig, now_ms: int, *, is_compacted: bool, topic: Topic
    ) -> None:
        segments = memory_segments(data.batches(), config)
        count = expired_count(segments, now_ms, data.start_offset, config)
        if count:
            data.delete_before(segments[count - 1].next_offset)
        if is_compacted and len(segments) - count > 1:
            # The active segment is never compacted.
            settings = self._settings.current
            retention_ms = int(topic_config(settings, topic.configs, "delete.retention.ms"))
            delete_before_ms = now_ms - retention_ms
            data.rewrite(lambda batches: compacted(batches, delete_before_ms), segments[-2].next_offset)
