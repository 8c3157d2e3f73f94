"""A broker's data directory: opened before it serves, loaded while it does, kept up to date, closed in an orderly way.

Theory of operation. What clients change in offsets and groups goes through `LogRounds`; what they change in topics is
seen by the cluster's version, and the topics are remembered before the round that brought the change is answered for.
Loading is done in slices between rounds of the loop: a partition that is not loaded yet says so (LF-30), the others
serve.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.errors import LogError
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto_server.cluster.topics import TRANSACTION_TOPIC
from kproto_server.coordinator.change_log import UnsyncedChangeLog
from kproto_server.coordinator.coordinator import V0_PARTITION
from kproto_server.persistence.compaction_task import CompactionTask
from kproto_server.persistence.group_commit import GroupCommitLog, WorkerThread
from kproto_server.persistence.offsets_loading import OffsetsLoading
from kproto_server.persistence.topic_logs import TopicLogs
from kproto_server.storage.disk import RealDisk
from kproto_server.storage.log_dir import LogDir
from kproto_server.storage.topics_file import StoredTopic

if TYPE_CHECKING:
    from kproto_server.configuration.data_directory import DataDirectory
    from kproto_server.network.event_loop import Host
    from kproto_server.state import BrokerState

V0_LOG = "__zookeeper_offsets"
"""The log of what OffsetCommit v0 stores, beside those of topics: real brokers had it in ZooKeeper."""

PRODUCER_ID_BITS = 20
"""Ids of producers begin with the time: none is given out again after a start, however many there were before."""

logger = logging.getLogger("kproto.log")


class Persistence:
    """The data directory of one broker process."""

    def __init__(self, data: DataDirectory, state: BrokerState, host: Host) -> None:
        """Open the directory and take over what is in it.

        Raises:
            LogError: it is in use, damaged, or can't be read; one line that says what to do.
        """
        self._cluster = state.cluster
        self._host = host
        disk = RealDisk(data.path)
        try:
            disk.make_directory("")
            disk.lock()
            self.log_dir = LogDir(
                disk,
                durability=data.durability,
                repair=data.repair,
                segment_bytes=state.settings.current.int("offsets.topic.segment.bytes"),
                batch_size_max_bytes=state.settings.current.int("message.max.bytes"),
                opens=lambda topic: topic == OFFSETS_TOPIC,
                opens_existing=lambda topic: topic not in (OFFSETS_TOPIC, TRANSACTION_TOPIC),
                extra_logs=(V0_LOG,),
            )
        except OSError as error:
            raise LogError(f"can't use {data.path!r}: {error.strerror or error}") from None
        self._disk = disk
        self.log_dir.writer.on_failure = _tell_failure
        for line in self.log_dir.report:
            logger.warning("%s", line)
        self._sync_thread = WorkerThread(host.post)
        self._log: GroupCommitLog | UnsyncedChangeLog
        if data.durability == "fsync":
            self._log = GroupCommitLog(self.log_dir.writer, self._sync_thread)
        else:
            self._log = UnsyncedChangeLog(self.log_dir.writer)
        state.coordinator.log = self._log
        self._restore_topics()
        self._saved_version = -1 if self.log_dir.was_used_by_kafka else state.cluster.version
        state.log_manager.directory = str(Path(data.path).absolute())
        state.cluster.last_producer_id = int(time.time() * 1000) << PRODUCER_ID_BITS
        self._background = WorkerThread(host.post)
        """Does what takes long, beside the rounds."""
        self.topic_logs = TopicLogs(
            state.cluster, state.settings, self.log_dir, self._log, self._save_changed_topics, self._background.run
        )
        state.log_manager.data_of = self.topic_logs.data_of
        self._take_logs()
        self._compacting = CompactionTask(
            state.cluster, state.settings, state.clock, host, self._background, self.log_dir
        )
        state.coordinator.prepare_v0_log = self._prepare_v0_log
        loading = OffsetsLoading(state.coordinator, host, disk, dict(self._log.partitions))
        loading.then = self._compacting.start
        loading.start()

    def _restore_topics(self) -> None:
        cluster = self._cluster
        for topic in self.log_dir.topics:
            cluster.restore_topic(topic.name, topic.topic_id, topic.partition_count, topic.replicas, topic.configs)

    def _take_logs(self) -> None:
        logs = self.log_dir.logs
        partitions = {number: log for (topic, number), log in logs.items() if topic == OFFSETS_TOPIC}
        if (V0_LOG, 0) in logs:
            partitions[V0_PARTITION] = logs[V0_LOG, 0]
        self._log.partitions = partitions
        self.topic_logs.attach_offsets()

    def _prepare_v0_log(self) -> int:
        if (V0_LOG, 0) not in self.log_dir.logs:
            try:
                self.log_dir.create_logs(V0_LOG, 1)
            except OSError as error:
                logger.error("the log of OffsetCommit v0 can't be made: %s", error)
                return ErrorCode.KAFKA_STORAGE_ERROR
            self._take_logs()
        return 0

    def flush(self) -> None:
        """Called at the end of each round of the loop."""
        self._save_changed_topics()
        if isinstance(self._log, GroupCommitLog):
            self._log.flush()
        work = self.log_dir.writer.begin_background_sync()
        if work is not None:
            self._background.run(work.run, self.log_dir.writer.end_background_sync)

    def _save_changed_topics(self) -> None:
        if self._cluster.version != self._saved_version:
            self.save_topics()

    def drain(self) -> None:
        """Have everything that was appended settled before this returns."""
        if isinstance(self._log, GroupCommitLog):
            self._log.drain()

    def save_topics(self) -> None:
        """Remember the topics as they are, and make or remove the logs of those that have some here."""
        cluster = self._cluster
        self._saved_version = cluster.version
        stored = [
            StoredTopic(
                topic.name,
                topic.topic_id,
                tuple(tuple(partition.replicas) for partition in topic.partitions),
                topic.configs,
                len(topic.partitions),
            )
            for topic in cluster.topics.values()
        ]
        if stored == self.log_dir.topics:
            return
        try:
            gone = self.topic_logs.gone()
            if gone:
                self.drain()
                self.topic_logs.remove(gone)
            self.topic_logs.take_configs()
            self._compacting.wake()
            offsets = cluster.topics.get(OFFSETS_TOPIC)
            if offsets is not None:
                self.log_dir.create_logs(OFFSETS_TOPIC, len(offsets.partitions))
            elif self._log.partitions:
                self.drain()
                self.log_dir.remove_logs(OFFSETS_TOPIC)
            self.log_dir.save_topics(stored)
        except OSError as error:
            logger.error("topics can't be remembered: %s", error)
        else:
            self.log_dir.topics = stored
        self._take_logs()

    def reset(self) -> None:
        """Forget all offsets on disk: their logs are made anew."""
        self.drain()
        self.topic_logs.remove(self.topic_logs.forget_all())
        for topic in (OFFSETS_TOPIC, V0_LOG):
            self.log_dir.remove_logs(topic)
        self._log.partitions = {}
        self.log_dir.topics = []
        self._saved_version = -1
        self.save_topics()

    def close(self) -> None:
        """The end: everything that was appended is written, and noted as an orderly end."""
        self._compacting.stop()
        self.drain()
        self._sync_thread.stop()
        self._background.stop()
        self.topic_logs.save_start_offsets()
        try:
            self.log_dir.close()
        except OSError as error:
            logger.error("the data directory can't be closed in order: %s", error)
        self._disk.unlock()


def _tell_failure(reason: str) -> None:
    logger.critical("%s: no offset can be committed until the broker is started again", reason)
