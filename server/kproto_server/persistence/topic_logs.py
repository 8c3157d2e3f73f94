"""The logs of topics in a data directory, kept in step with the topics of the cluster.

The log of a partition is created at the first write: most topics of a test never get one. The log of a deleted topic,
or of an earlier topic of the same name, is removed before the response to the request that deleted or created it.
"""

from __future__ import annotations

import errno
import logging
from functools import partial
from typing import TYPE_CHECKING

from kproto.records.partitioning import OFFSETS_TOPIC, TRANSACTION_TOPIC
from kproto_server.configuration.topic_configs import topic_config
from kproto_server.partition_log.partition_data import NO_DATA
from kproto_server.partition_log.retention import expired_end
from kproto_server.partition_log.stored_data import SETTLED_MAX, OffsetsTopicData, StoredData
from kproto_server.storage.errors import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Mapping

    from kproto_server.cluster.cluster import Cluster
    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.partition_log.partition_data import PartitionData
    from kproto_server.partition_log.retention import RetentionConfig
    from kproto_server.partition_log.stored_data import BatchWriter
    from kproto_server.storage.log_dir import LogDir
    from kproto_server.storage.partition_log import PartitionLog
    from kproto_server.storage.segment_sync import SegmentSync

logger = logging.getLogger("kproto.log")

NO_OFFSETS: Mapping[tuple[str, int], int] = {}
EXPIRED_MAX = 100
"""Logs whose expired segments are removed together: 20 ms."""


class TopicLogs:
    """The logs of all topics."""

    def __init__(
        self,
        cluster: Cluster,
        settings: DynamicSettings,
        log_dir: LogDir,
        writer: BatchWriter,
        save_topics: Callable[[], object],
        run: Callable[[Callable[[], object], Callable[[], object]], object],
        note_unindexed: Callable[[str, PartitionData], object],
    ) -> None:
        """``save_topics``: saves changed topics; ``run``: runs blocking work, then a function in the event loop;
        ``note_unindexed``: takes a topic and the data of a partition that readers have to index in steps."""
        self._run = run
        self._cluster = cluster
        self._settings = settings
        self._log_dir = log_dir
        self._writer = writer
        self._save_topics = save_topics
        self._expired: dict[StoredData, int] = {}
        """The logs with expired segments that are not synced yet, each with the offset after these."""
        self._note_unindexed = note_unindexed
        self._topic_ids: dict[str, bytes] = {}
        """Topic ids of the topics with logs."""
        for (name, number), log in log_dir.logs.items():
            topic = cluster.topic(name)
            partition = topic and topic.partition(number)
            if topic and partition:
                self._attach(topic, partition, log)

    def data_of(self, topic: Topic, partition: Partition) -> PartitionData:
        """Return the data of a partition with a log, created if necessary.

        Raises:
            OSError: the log cannot be created.
        """
        if not isinstance(partition.data, StoredData):
            self._save_topics()
            if self._log_dir.start_offsets.get((topic.name, partition.index)) and not self.save_start_offsets():
                raise OSError(errno.EIO, "the start offset of an earlier topic of this name is saved", topic.name)
            log_dir = self._log_dir
            log_dir.create_log(topic.name, partition.index)
            self._attach(topic, partition, log_dir.logs[topic.name, partition.index])
        return partition.data

    def _attach(self, topic: Topic, partition: Partition, log: PartitionLog) -> None:
        self._topic_ids[topic.name] = topic.topic_id
        data_class = OffsetsTopicData if topic.name == OFFSETS_TOPIC else StoredData
        start_offset = self._log_dir.start_offsets.get((topic.name, partition.index), 0)
        data = data_class(log, self._writer, start_offset)
        if partition.data is not NO_DATA:  # otherwise all partitions would have the same waiters
            data.waiters = partition.data.waiters
        partition.data = data
        partition.leader_epoch = max(partition.leader_epoch, log.epoch)
        note = partial(self._note_if_long, topic.name, data)
        note()
        log.on_compacted = note
        if data_class is StoredData:
            log.skips_size_check = True
            # A batch must not be in a log without the transaction that it belongs to.
            log.writes_first = topic.name == TRANSACTION_TOPIC
            log.segment_bytes = self._segment_bytes(topic, partition)

    def _note_if_long(self, name: str, data: StoredData) -> None:
        """Have readers of a partition index it in steps, if it may have more batches than one step takes."""
        if data.next_offset - data.start_offset > SETTLED_MAX:
            self._note_unindexed(name, data)

    def _segment_bytes(self, topic: Topic, partition: Partition) -> int:
        settings = self._settings.of(partition.leader)
        return int(topic_config(settings, topic.configs, "segment.bytes"))

    def apply_configs(self) -> None:
        """Apply the current configs of the topics to their logs."""
        for topic, partition, data in self._stored():
            data.log.segment_bytes = self._segment_bytes(topic, partition)

    def attach_offsets_topic(self) -> None:
        """Make the logs of the offsets topic readable by Fetch, like those of any topic."""
        topic = self._cluster.topic(OFFSETS_TOPIC)
        for partition in topic.partitions if topic else ():
            log = self._log_dir.logs.get((OFFSETS_TOPIC, partition.index))
            if topic and log and not (isinstance(partition.data, StoredData) and partition.data.log is log):
                self._attach(topic, partition, log)

    def deleted_topics(self) -> list[str]:
        """Return the names of topics with logs that were deleted, or deleted and created again with another id."""
        topics = self._cluster.topics
        return [
            name
            for name, topic_id in self._topic_ids.items()
            if name not in topics or topics[name].topic_id != topic_id
        ]

    def forget(self, names: Collection[str]) -> None:
        """Note that the logs of topics were removed."""
        for name in names:
            del self._topic_ids[name]
        if any(topic in names for topic, _ in self._log_dir.start_offsets):
            self.save_start_offsets()

    def topics(self) -> list[str]:
        """Return the names of all topics with logs."""
        return list(self._topic_ids)

    def _stored(self) -> list[tuple[Topic, Partition, StoredData]]:
        return [
            (topic, partition, partition.data)
            for topic in self._cluster.topics.values()
            for partition in topic.partitions
            if isinstance(partition.data, StoredData) and not isinstance(partition.data, OffsetsTopicData)
        ]

    def drop_expired(self, data: StoredData, config: RetentionConfig, now_ms: int) -> Generator[int, None, int]:
        """Roll a segment that is old or has only expired records, and remove the expired segments, soon; return the
        offset after them, or 0. Yields as `expired_end`.

        They are synced first: recovery reads from the recovery point on, and would take removed segments after it for
        lost ones. A log that cannot be read keeps its segments.
        """
        log = data.log
        try:
            end_offset = yield from expired_end(data, config, now_ms)
        except UNREADABLE as error:
            logger.error("records of %s can't expire, it can't be read: %s", log.directory, error)
            return 0
        if self._log_dir.logs.get(log.key) is not log:
            return 0  # deleted between two steps
        try:
            is_old = 0 <= data.first_timestamp_of_newest() < now_ms - config.segment_ms
            if is_old or end_offset == data.next_offset:
                log.roll()
        except OSError as error:
            logger.error("segment of %s can't be rolled: %s", log.directory, error)
            return 0
        if end_offset:
            self._expired[data] = end_offset
            if len(self._expired) == 1:
                self._run(_do_nothing, self._sync_expired)
            elif len(self._expired) == EXPIRED_MAX:
                self._sync_expired()
        return end_offset

    def _sync_expired(self) -> None:
        """Sync the logs that have expired segments together, and then remove these."""
        expired = {data: end for data, end in self._expired.items() if self._log_dir.logs.get(data.log.key) is data.log}
        self._expired.clear()
        sync = self._log_dir.writer.begin_sync(*(data.log for data in expired))
        if sync is None:
            self._drop(expired)
        else:
            self._run(sync.run, partial(self._synced, sync, expired))

    def _synced(self, sync: SegmentSync, expired: Mapping[StoredData, int]) -> None:
        if self._log_dir.writer.end_sync(sync):
            self._drop(expired)

    def _drop(self, expired: Mapping[StoredData, int]) -> None:
        """Remove the segments of logs below an offset of each, and save where the logs begin."""
        for data, end_offset in expired.items():
            log = data.log
            if self._log_dir.logs.get(log.key) is not log:
                continue  # the topic was deleted meanwhile: the files are those of another topic of its name
            try:
                data.delete_before(end_offset)
            except UNREADABLE as error:
                logger.error("old segments of %s can't be removed: %s", log.directory, error)
                continue
            try:
                while log.closed_segments() and data.begins_after(log.closed_segments()[0]):
                    log.drop_oldest()
            except OSError as error:
                logger.error("old segments of %s can't be removed: %s", log.directory, error)
            data.keep_index()
        self.save_start_offsets()

    def save_start_offsets(self, wanted: Mapping[tuple[str, int], int] = NO_OFFSETS) -> bool:
        """Save the start offsets of logs that begin within a segment; return whether that succeeded.

        ``wanted``: start offsets that logs get when they are saved, by topic and partition.

        A log that was in the file once stays there: its oldest segments can come back after a power loss, because
        their removal is not synced.
        """
        start_offsets = {
            data.log.key: data.start_offset
            for _, _, data in self._stored()
            if data.start_offset > data.log.start_offset or data.log.key in self._log_dir.start_offsets
        }
        start_offsets.update(wanted)
        if start_offsets != self._log_dir.start_offsets:
            try:
                self._log_dir.save_start_offsets(start_offsets)
            except OSError as error:
                logger.error("the start offsets can't be saved: %s; deleted records can come back", error)
                return False
        return True


def _do_nothing() -> None:
    """The work of the worker, if only what follows in the event loop counts: all partitions of a check come first."""
