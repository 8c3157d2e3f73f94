"""The cleaner of partitions in memory: compacts topics by the broker's clock, as Kafka's log cleaner does.

The logs on disk have a cleaner of their own (`persistence.compaction_task`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.clock import PeriodicTask
from kproto_server.configuration.topic_configs import topic_config
from kproto_server.log_manager.retention_task import retention_config
from kproto_server.partition_log.retention import STEP_BATCHES, SegmentBuilder
from kproto_server.partition_log.stored_data import OffsetsTopicData, StoredData

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kproto_server.clock import Clock
    from kproto_server.cluster.topics import Topic
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.configuration.settings import Settings
    from kproto_server.partition_log.partition_data import PartitionData

STEP_PARTITIONS = 1000
"""Partitions of topics with compaction, and other topics, that are looked at in one step: 2 ms."""


class MemoryCleaner(PeriodicTask):
    """Compacts partitions every `log.cleaner.backoff.ms`, from `start` on: those of which enough is dirty.

    An altered interval counts from the next run on.
    """

    def __init__(self, settings: DynamicSettings, topics: Mapping[str, Topic], clock: Clock) -> None:
        super().__init__(clock, settings.current.int("log.cleaner.backoff.ms"), self.compact_all)
        self._settings = settings
        self._topics = topics

    def start(self) -> None:
        self._interval_ms = self._settings.current.int("log.cleaner.backoff.ms")
        super().start()

    def compact_all(self, now_ms: int) -> Iterator[None]:
        """Compact the partitions in memory of all topics with compaction, in steps."""
        settings = self._settings.current
        if not settings.bool("log.cleaner.enable"):
            return
        left = STEP_PARTITIONS
        for topic in list(self._topics.values()):
            is_compacted = "compact" in topic_config(settings, topic.configs, "cleanup.policy")
            left -= len(topic.partitions) if is_compacted else 1
            if left < 0:
                left = STEP_PARTITIONS
                yield
            for partition in list(topic.partitions) if is_compacted else ():
                data = partition.data
                if isinstance(data, (OffsetsTopicData, StoredData)) or data.next_offset == data.searched_offset:
                    continue
                yield from _compact(data, settings, topic, now_ms)
                if self._topics.get(topic.name) is not topic:
                    break  # deleted between two steps


def _compact(data: PartitionData, settings: Settings, topic: Topic, now_ms: int) -> Iterator[None]:
    """Compact the closed segments of a partition, if the share of dirty bytes is `min.cleanable.dirty.ratio`.

    The active segment is never compacted.
    """
    config, _ = retention_config(settings, topic)
    end_offset, segments, closed = data.next_offset, SegmentBuilder(config), []
    for count, batch in enumerate(data.batches(), 1):
        ended = segments.add(*batch)
        if ended is not None:
            closed.append(ended)
        if not count % STEP_BATCHES:
            yield
    data.searched_offset = end_offset
    dirty_bytes = sum(one.size_bytes for one in closed if one.next_offset > data.compacted_offset)
    ratio = float(topic_config(settings, topic.configs, "min.cleanable.dirty.ratio"))
    if dirty_bytes and dirty_bytes >= ratio * sum(one.size_bytes for one in closed):
        from kproto_server.partition_log.memory_compaction import compaction  # rarely used: not imported at the start

        delete_retention_ms = int(topic_config(settings, topic.configs, "delete.retention.ms"))
        yield from compaction(data, closed[-1].next_offset, now_ms, delete_retention_ms)
        data.compacted_offset = closed[-1].next_offset
