"""The data directory of a broker process: opened before the broker serves, loaded while it does, closed at its end."""

# Theory of operation. Changes of offsets and groups go through a `ChangeLog`: `GroupCommitLog` in ``fsync`` mode,
# `UnsyncedChangeLog` in ``os`` mode. A connection calls `Cluster.save` after each request that has changed topics or
# configs; what cannot be saved is undone, and the response is an error. Offsets partitions load in slices between
# iterations: one that is not loaded returns COORDINATOR_LOAD_IN_PROGRESS (LF-30), the others serve.
#
# Two threads run blocking work: one only the syncs of group commits, so that these never wait for the other, which runs
# background syncs, compaction and the removal of old segments.

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kproto.codes import ErrorCode
from kproto.errors import LogError
from kproto.records.partitioning import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from kproto_server.cluster.topics import TopicsNotStored
from kproto_server.configuration.dynamic_settings import ALL_NODES
from kproto_server.configuration.settings import SETTINGS, SettingError
from kproto_server.configuration.topic_configs import InvalidValue, config_problem, topic_configs
from kproto_server.coordinator.coordinator import V0_PARTITION
from kproto_server.persistence.compaction_task import CompactionTask
from kproto_server.persistence.group_commit import GroupCommitLog
from kproto_server.persistence.loading import Surroundings
from kproto_server.persistence.offsets_loading import OffsetsLoading
from kproto_server.persistence.topic_logs import TopicLogs
from kproto_server.persistence.unsynced_log import UnsyncedChangeLog
from kproto_server.persistence.worker_thread import WorkerThread
from kproto_server.storage.disk import RealDisk
from kproto_server.storage.log_dir import LogDir
from kproto_server.storage.topics_file import ScramRow, StoredSettings, StoredTopic, read_settings, read_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from kproto_server.configuration.data_directory import DataDirectory
    from kproto_server.persistence.loading import Loading
    from kproto_server.persistence.worker_thread import Post, Worker
    from kproto_server.releases.kafka_version import KafkaVersion
    from kproto_server.state import BrokerState
    from kproto_server.storage.disk import Disk

V0_LOG = "__zookeeper_offsets"
"""The log of offsets committed with OffsetCommit v0, which real brokers stored in ZooKeeper."""

NOT_SAVED = -1
"""Instead of the version of the cluster whose topics were saved."""

PRODUCER_ID_BITS = 20
"""Producer ids begin with the time of the start in their high bits, so that no id is used twice across restarts."""

logger = logging.getLogger("kproto.log")


class Persistence:
    """The data directory of one broker process. The server owns it and calls `close`."""

    def __init__(
        self,
        data: DataDirectory,
        state: BrokerState,
        post: Post,
        disk: Disk | None = None,
        *,
        make_worker: Callable[[Post], Worker] = WorkerThread,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open the directory, restore its topics, and begin to load offsets and groups.

        Args:
            post: runs a function in the event loop.
            disk: the disk with the directory; None: that of the operating system.
            make_worker: makes what runs blocking work.
            monotonic_s: returns real time, which ends the turns of loading and compaction.

        Raises:
            LogError: the directory is in use, damaged, or not accessible; one line of text with what to do.
        """
        self._cluster = state.cluster
        disk = disk or real_disk(data.path)
        try:
            disk.make_directory("")
            disk.lock()
        except OSError as error:
            raise _unusable(data.path, error) from None
        try:
            _check_configs(disk, state.kafka_version)
            self.log_dir: LogDir = LogDir(
                disk,
                durability=data.durability,
                repair=data.repair,
                segment_bytes=state.settings.current.int("offsets.topic.segment.bytes"),
                batch_size_max_bytes=state.settings.current.int("message.max.bytes"),
                opens=lambda topic: topic == OFFSETS_TOPIC,
                opens_existing=lambda topic: topic != OFFSETS_TOPIC,
                extra_logs=(V0_LOG,),
            )
        except OSError as error:
            disk.unlock()
            raise _unusable(data.path, error) from None
        except BaseException:
            disk.unlock()
            raise
        self._disk = disk
        self.log_dir.writer.on_failure = _log_failure
        for line in self.log_dir.report:
            logger.warning("%s", line)
        self._sync_thread = make_worker(post)
        self._log: GroupCommitLog | UnsyncedChangeLog
        if data.durability == "fsync":
            self._log = GroupCommitLog(self.log_dir.writer, self._sync_thread)
        else:
            self._log = UnsyncedChangeLog(self.log_dir.writer)
        state.coordinator.log = self._log
        self._settings = state.settings
        self._log.create_missing = self._create_missing_logs
        self._restore_topics()
        self._save_failure = ""
        """Why the topics could not be saved; empty if they were."""
        self._saved_version = NOT_SAVED if self.log_dir.was_used_by_kafka else state.cluster.version
        state.log_manager.directory = str(Path(data.path).absolute())
        state.cluster.last_producer_id = state.clock.now_ms() << PRODUCER_ID_BITS
        self._background = make_worker(post)
        self.topic_logs: TopicLogs = TopicLogs(
            state.cluster,
            state.settings,
            self.log_dir,
            self._log,
            self.save_changed_topics,
            self._background.run,
            state.log_manager.note_unindexed,
        )
        state.log_manager.data_of = self.topic_logs.data_of
        state.log_manager.save_start_offsets = self.topic_logs.save_start_offsets
        self._attach_logs()
        self._compaction_task = CompactionTask(
            state.cluster, state.settings, state.clock, post, self._background, self.log_dir, monotonic_s
        )
        state.cluster.store = self._store_topics
        state.coordinator.prepare_v0_log = self._prepare_v0_log
        # Compaction begins after loading, which reads the same segments.
        self._loadings: list[Loading[Any]] = []
        surroundings = Surroundings(post, disk, monotonic_s)
        partitions = dict(self._log.partitions)
        transactions = {number: log for (topic, number), log in self.log_dir.logs.items() if topic == TRANSACTION_TOPIC}
        on_loaded = self._compaction_task.start
        share_states = {number: log for (topic, number), log in self.log_dir.logs.items() if topic == SHARE_STATE_TOPIC}
        if any(log.size for log in share_states.values()):
            from kproto_server.persistence.share_states_loading import ShareStatesLoading

            store = state.share_groups.store
            share_states_loading = ShareStatesLoading(store, surroundings, share_states, on_loaded)
            self._loadings.append(share_states_loading)
            on_loaded = share_states_loading.start
        if any(log.size for log in transactions.values()):
            from kproto_server.persistence.transactions_loading import TransactionsLoading

            coordinator, now_ms = state.transactions, state.clock.now_ms
            transactions_loading = TransactionsLoading(coordinator, now_ms, surroundings, transactions, on_loaded)
            self._loadings.append(transactions_loading)
            on_loaded = transactions_loading.start
        offsets_loading = OffsetsLoading(state.coordinator, surroundings, partitions, on_loaded)
        self._loadings.append(offsets_loading)
        offsets_loading.start()

    def finish_loading(self) -> None:
        """Have all that the logs have, at once. Blocks."""
        for loading in reversed(self._loadings):  # in the order in which one starts the next
            loading.finish()

    def _changed_settings(self) -> StoredSettings:
        """Return the configs of brokers and groups, and the features, without those of a new cluster."""
        settings = self._settings
        initial = {ALL_NODES: settings.current.first_dynamic_configs()}
        brokers = {} if settings.configs == initial else {name: dict(one) for name, one in settings.configs.items()}
        groups = {group_id: dict(configs) for group_id, configs in settings.groups.items()}
        changes = self._cluster.scram_changes
        scram = tuple(ScramRow(user, mechanism, one) for (user, mechanism), one in changes.items())
        authorizer = self._cluster.authorizer
        acls = self.log_dir.settings.acls if authorizer is None else tuple(map(tuple, authorizer.acls))
        quotas, kept = self._cluster.client_quotas, self._cluster.delegation_tokens
        tokens = self.log_dir.settings.tokens if kept is None else tuple(token.as_stored() for token in kept.tokens)
        client_metrics = {name: dict(configs) for name, configs in settings.client_metrics.items()}
        levels = self._cluster.features.changed_levels
        return StoredSettings(brokers, levels, groups, scram, acls, quotas, tokens, client_metrics)

    def _restore_topics(self) -> None:
        cluster = self._cluster
        for name, configs in self.log_dir.settings.brokers.items():
            self._settings.change(name, _checked_settings(configs))
        for group_id, configs in self.log_dir.settings.groups.items():
            self._settings.change_group(group_id, dict(configs))
        for name, configs in self.log_dir.settings.client_metrics.items():
            self._settings.change_client_metrics(name, dict(configs))
        cluster.features.restore(self.log_dir.settings.features)
        if self.log_dir.settings.scram:
            from kproto_server.security.users import ScramCredential

            cluster.scram_credentials.changes = {
                (user, mechanism): None if one is None else ScramCredential(*one)
                for user, mechanism, one in self.log_dir.settings.scram
            }
        if cluster.authorizer is not None and self.log_dir.settings.acls:
            from kproto_server.security.acls import Acl

            cluster.authorizer.replace(Acl(*fields) for fields in self.log_dir.settings.acls)
        if cluster.delegation_tokens is not None and self.log_dir.settings.tokens:
            from kproto_server.security.delegation_tokens import Token

            cluster.delegation_tokens.replace(Token.of_stored(*fields) for fields in self.log_dir.settings.tokens)
        cluster.set_client_quotas(self.log_dir.settings.quotas)
        for topic in self.log_dir.topics:
            cluster.restore_topic(topic.name, topic.topic_id, topic.partition_count, topic.replicas, topic.configs)

    def _attach_logs(self) -> None:
        logs = self.log_dir.logs
        # The logs of a deleted offsets topic stay until they can be removed: nothing more is appended to them.
        name = None if OFFSETS_TOPIC in self.topic_logs.deleted_topics() else OFFSETS_TOPIC
        partitions = {number: log for (topic, number), log in logs.items() if topic == name}
        if (V0_LOG, 0) in logs:
            partitions[V0_PARTITION] = logs[V0_LOG, 0]
        self._log.partitions = partitions
        self.topic_logs.attach_offsets_topic()

    def _create_missing_logs(self) -> None:
        self.save_changed_topics()
        self._attach_logs()

    def _prepare_v0_log(self) -> int:
        if (V0_LOG, 0) not in self.log_dir.logs:
            try:
                self.log_dir.create_logs(V0_LOG, 1)
            except OSError as error:
                logger.error("the log of OffsetCommit v0 can't be created: %s", error)
                return ErrorCode.KAFKA_STORAGE_ERROR
            self._create_missing_logs()
        return 0

    @property
    def syncs_before_sending(self) -> bool:
        """Whether `flush` has a group commit to begin: the earlier, the sooner its responses are sent."""
        return isinstance(self._log, GroupCommitLog)

    def flush(self) -> None:
        """Save what no request has saved, begin a group commit and a background sync; called after each iteration."""
        self.log_dir.retry_undo()
        self.save_changed_topics()
        if isinstance(self._log, GroupCommitLog):
            self._log.flush()
        segment_sync = self.log_dir.writer.begin_background_sync()
        if segment_sync is not None:
            self._background.run(segment_sync.run, self.log_dir.writer.end_background_sync)

    def save_changed_topics(self) -> None:
        """Save topics and broker configs if they have changed without a request: after a start, or a reset."""
        if self._cluster.version != self._saved_version:
            with suppress(TopicsNotStored):
                self._cluster.save()

    def drain(self) -> None:
        """Settle everything that was appended before this returns. Blocks."""
        if isinstance(self._log, GroupCommitLog):
            self._log.drain()

    def _settle_all(self) -> None:
        """Settle everything, and end the background work, which would change files of later topics by name. Blocks."""
        self.drain()
        self._background.wait()

    def _store_topics(self) -> None:
        """Save topics and broker configs; create logs of the offsets topic, and remove logs of deleted topics.

        Raises:
            TopicsNotStored: the disk does not take them; the changes are undone.
        """
        cluster = self._cluster
        if self.topic_logs.deleted_topics():
            undone = cluster.undone_count
            self._settle_all()  # first: what is settled may append to a partition without a log, and so come here
            if cluster.undone_count != undone:
                raise TopicsNotStored(self._save_failure)
        version = cluster.version
        stored = [
            StoredTopic(
                topic.name,
                topic.topic_id,
                tuple([tuple(partition.replicas) for partition in topic.partitions]),
                topic.configs,
                len(topic.partitions),
            )
            for topic in cluster.topics.values()
        ]
        settings = self._changed_settings()
        is_saved = stored == self.log_dir.topics and settings == self.log_dir.settings
        if not is_saved or self._saved_version == NOT_SAVED:
            deleted = self.topic_logs.deleted_topics()
            offsets = cluster.topics.get(OFFSETS_TOPIC)
            try:
                if offsets is not None:
                    self.log_dir.create_logs(OFFSETS_TOPIC, len(offsets.partitions))
                self.log_dir.save_topics(stored, settings, deleted)
            except OSError as error:
                if str(error) != self._save_failure:
                    logger.error("topics can't be saved: %s", error)
                # The file can have its new content: it is written again by the next `flush`.
                self._saved_version, self._save_failure = NOT_SAVED, str(error)
                cluster.undo()
                raise TopicsNotStored(str(error)) from None
            self._forget_logs(deleted)
            self.topic_logs.apply_configs()
            self._compaction_task.wake()
            self._attach_logs()
        self._saved_version, self._save_failure = version, ""

    def _forget_logs(self, topics: Collection[str], *extra_logs: str) -> None:
        self.topic_logs.forget(topics)
        for loading in self._loadings:
            loading.leave_out([*topics, *extra_logs])

    def reset(self) -> None:
        """Remove all logs, and create empty logs for the topics that the cluster has now."""
        self._settle_all()
        self._compaction_task.end_backoff()
        topics = self.topic_logs.topics()
        self.log_dir.remove_logs([*topics, V0_LOG])
        self._forget_logs(topics, V0_LOG)
        self._saved_version = NOT_SAVED
        self.save_changed_topics()

    def close(self) -> None:
        """Shut down cleanly: settle everything, stop the threads, write the clean shutdown marker, release the lock."""
        self._compaction_task.stop()
        self.drain()
        self._sync_thread.stop()
        self._background.stop()
        self.topic_logs.save_start_offsets()
        try:
            self.log_dir.close()
        except OSError as error:
            logger.error("the data directory can't be shut down cleanly: %s", error)
        self._disk.unlock()


def _check_configs(disk: Disk, kafka_version: KafkaVersion) -> None:
    """Refuse invalid values of configs in ``topics.json``; configs that only other releases have do nothing."""
    known = topic_configs(kafka_version)
    for topic in read_topics(disk):
        given = {name: value for name, value in topic.configs.items() if name in known}
        problem = config_problem(kafka_version, given)
        if problem is not None:
            raise LogError(f"topics.json: topic {topic.name}: {problem}")
    settings = read_settings(disk)
    for name, configs in settings.brokers.items():
        try:
            _checked_settings(configs)
        except SettingError as error:
            raise LogError(f"topics.json: broker {name!r}: {error}") from None
    for group_id, configs in settings.groups.items():
        from kproto_server.configuration.group_configs import parsed  # few directories have configs of groups

        try:
            parsed(kafka_version, configs)
        except InvalidValue as error:
            raise LogError(f"topics.json: group {group_id!r:.300}: {error}") from None
    for name, configs in settings.client_metrics.items():
        from kproto_server.client_metrics.configs import InvalidConfigs, subscription

        try:
            subscription(configs, kafka_version)
        except InvalidConfigs as error:
            raise LogError(f"topics.json: client metrics {name!r:.300}: {error}") from None


def _checked_settings(configs: Mapping[str, str]) -> dict[str, str]:
    """Return dynamic settings of a broker with Kafka's notation of their values; those of plugins may have any.

    Raises:
        SettingError: a setting cannot have its value.
    """
    return {one: SETTINGS[one].check(value) if one in SETTINGS else value for one, value in configs.items()}


def real_disk(path: str) -> RealDisk:
    """Return the disk of a data directory.

    Raises:
        LogError: the path cannot be that of a directory.
    """
    if not path or "\0" in path:
        raise LogError(f"{path!r} is no path of a directory")
    return RealDisk(path)


def _unusable(path: str, error: OSError) -> LogError:
    """Return the error for a directory in which a file cannot be used; it names the file."""
    name = os.path.relpath(error.filename, path) if isinstance(error.filename, str) else "."
    where = "" if name == "." else f"{name}: "
    return LogError(f"can't use {path!r}: {where}{error.strerror or error}")


def _log_failure(reason: str) -> None:
    logger.critical("%s: no offset can be committed until the broker is started again", reason)
