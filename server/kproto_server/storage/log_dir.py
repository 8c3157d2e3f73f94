"""A data directory: its topics, the logs of their partitions, and what was written to them last.

topics.json                       names, ids, partitions, configs
__consumer_offsets-N/             Kafka's own: segments, leader-epoch-checkpoint
kproto.recovery                   up to where each log is known to be on the disk
kproto.journal.0, .1              what the segments may lack after a power loss (``fsync``)
kproto.clean                      after an orderly end: where each log ends, so that nothing has to be looked for
.lock                             held by the process that has the directory, ours or a real broker
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.records.segment_files import LEADER_EPOCHS
from kproto_server.storage.checkpoints import (
    CLEANER_POINTS,
    RECOVERY_POINTS,
    LogPosition,
    LogPositions,
    read_log_positions,
    read_offset_checkpoint,
    write_epoch_checkpoint,
    write_log_positions,
    write_offset_checkpoint,
)
from kproto_server.storage.disk import read_all, replace_file
from kproto_server.storage.kafka_files import recovery_points, take_over, was_used_by_kafka
from kproto_server.storage.log_writer import UNSYNCED_MAX_BYTES, LogWriter
from kproto_server.storage.recovery import Recovery, RecoveryInputs
from kproto_server.storage.segment_sync import START, RecoveryPoints
from kproto_server.storage.topics_file import partition_directories, read_topics, write_topics
from kproto_server.storage.write_ahead_log import NAMES, SIZE_BYTES, WriteAheadLog, remove_write_ahead_log
from kproto_server.storage.write_ahead_log_reader import read_write_ahead_log

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from kproto_server.storage.checkpoints import Offsets
    from kproto_server.storage.disk import Disk
    from kproto_server.storage.log_writer import Durability
    from kproto_server.storage.partition_log import PartitionLog
    from kproto_server.storage.topics_file import StoredTopic
    from kproto_server.storage.write_ahead_log_reader import LoggedBatch, WriteAheadLogContent

CLEAN_END = "kproto.clean"


class LogDir:
    """An open data directory."""

    def __init__(
        self,
        disk: Disk,
        *,
        durability: Durability,
        repair: bool = False,
        segment_bytes: int = 104857600,
        batch_size_max_bytes: int = 1048588,
        wal_size_bytes: int = SIZE_BYTES,
        unsynced_max_bytes: int = UNSYNCED_MAX_BYTES,
        opens: Callable[[str], bool] = lambda topic: True,
        opens_existing: Callable[[str], bool] = lambda topic: False,
        extra_logs: Collection[str] = (),
        progress: Callable[[int, int], object] = lambda done, total: None,
    ) -> None:
        """Open the directory, and bring its logs to their valid ends.

        Args:
            unsynced_max_bytes: in ``os`` mode, of segments, until a sync in the background is due.
            keeps: whether the logs of a topic are opened, and made.
            if_there: whether those of its logs are opened that there are.
            beside: names of logs that belong to no topic; each has one partition, and is opened if it is there.
            progress: told how many logs of how many are open.

        Raises:
            LogError: it is damaged.
            OSError: it can't be read or written.
        """
        self.disk = disk
        self._recovery = Recovery(disk, segment_bytes=segment_bytes, repair=repair)
        self.on_roll: Callable[[], object] | None = None
        """Told when a segment of a log was closed."""
        self.logs: dict[tuple[str, int], PartitionLog] = {}
        self.was_used_by_kafka = self._forget_if_kafka_was_here(lambda topic: opens(topic) or opens_existing(topic))
        """Whether a real broker has run here since we last did."""
        self.topics: list[StoredTopic] = read_topics(disk, of_directories=self.was_used_by_kafka)
        self.topics = [topic for topic in self.topics if topic.name not in extra_logs]
        content = read_write_ahead_log(disk)
        there = {*disk.names(""), *(batch.directory for batch in content.batches)}
        wanted = [
            (topic.name, number)
            for topic in self.topics
            for number in range(topic.partition_count)
            if opens(topic.name) or (opens_existing(topic.name) and f"{topic.name}-{number}" in there)
        ]
        wanted += [(name, 0) for name in extra_logs if disk.names(f"{name}-0")]
        known = self._all_known(wanted, content)
        take_over(disk, wanted)
        self._remove(CLEAN_END)
        for number, key in enumerate(wanted):
            progress(number, len(wanted))
            self.logs[key] = self._recovery.open(*key, known[key])
            self.logs[key].on_roll = self._rolled
        self._restore_cleaner_points()
        self.recovery_points = RecoveryPoints(disk, {key: log.synced for key, log in self.logs.items()})
        self._wal: WriteAheadLog | None = None
        limits = {"batch_size_max_bytes": batch_size_max_bytes, "unsynced_max_bytes": unsynced_max_bytes}
        self.writer: LogWriter[Any] = self._log_writer(durability, content, wal_size_bytes, limits)

    def _log_writer(
        self,
        durability: Durability,
        content: WriteAheadLogContent,
        wal_size_bytes: int,
        limits: dict[str, int],
    ) -> LogWriter[Any]:
        """Return the writing side. Whatever was acknowledged as synced is so before the journal is written anew."""
        points = self.recovery_points
        if durability == "fsync" or content.exists:
            LogWriter(self.disk, None, self.logs, points, **limits).sync_everything()
        if durability == "fsync":
            self._wal = WriteAheadLog(
                self.disk,
                cycle=content.next_cycle,
                file_number=content.next_file_number,
                size_bytes=wal_size_bytes,
            )
        else:
            remove_write_ahead_log(self.disk)
        return LogWriter(self.disk, self._wal, self.logs, points, **limits)

    @property
    def report(self) -> list[str]:
        """What recovery dropped, and what it put back: a line each."""
        return self._recovery.report

    def _forget_if_kafka_was_here(self, opens: Callable[[str], bool]) -> bool:
        """Where a real broker has run, our notes are no longer true: that broker has decided what the logs have."""
        disk = self.disk
        found = [directory for topic, _, directory in partition_directories(disk) if opens(topic)]
        if not was_used_by_kafka(disk, found):
            return False
        self._remove(CLEAN_END, RECOVERY_POINTS, *NAMES)
        return True

    def _all_known(
        self, wanted: Iterable[tuple[str, int]], content: WriteAheadLogContent
    ) -> dict[tuple[str, int], RecoveryInputs]:
        ends = self._points(CLEAN_END)
        points = {key: LogPosition(offset) for key, offset in recovery_points(self.disk).items()} | self._points(
            RECOVERY_POINTS
        )
        by_directory: dict[str, list[LoggedBatch]] = {}
        for batch in content.batches:
            by_directory.setdefault(batch.directory, []).append(batch)
        return {
            (topic, partition): RecoveryInputs(
                ends.get((topic, partition)),
                points.get((topic, partition), START),
                by_directory.get(f"{topic}-{partition}", ()),
                has_wal=content.exists,
                was_used_by_kafka=self.was_used_by_kafka,
            )
            for topic, partition in wanted
        }

    def _points(self, name: str) -> LogPositions:
        return read_log_positions(read_all(self.disk, name)) if self.disk.exists(name) else {}

    def _remove(self, *names: str) -> None:
        """Remove those of our files that are there, durably."""
        there = [name for name in names if self.disk.exists(name)]
        for name in there:
            self.disk.remove(name)
        if there:
            self.disk.sync_directory("")

    def create_logs(self, topic: str, partition_count: int) -> None:
        """Make the logs that a topic lacks.

        They have no `partition.metadata`: it would tell a real broker that gets them that they are of another topic.
        Power loss may take what is made here, until `save_topics` has returned.

        Raises:
            OSError: not all of them could be made.
        """
        for partition in range(partition_count):
            self.create_log(topic, partition)

    def create_log(self, topic: str, partition: int) -> None:
        """Make one log, unless it is there.

        Raises:
            OSError: it could not be made.
        """
        disk = self.disk
        if (topic, partition) in self.logs:
            return
        directory = f"{topic}-{partition}"
        disk.make_directory(directory)
        path = f"{directory}/{LEADER_EPOCHS}"
        if not disk.exists(path):
            file = disk.open(path, create=True)
            try:
                file.write_at(0, write_epoch_checkpoint([(0, 0)]))
            finally:
                file.close()
        log = self.logs[topic, partition] = self._recovery.open(topic, partition)
        log.on_roll = self._rolled

    def _rolled(self) -> None:
        if self.on_roll is not None:
            self.on_roll()

    def remove_logs(self, topic: str) -> None:
        """Remove all logs of a topic; nothing may be queued, or under way.

        Raises:
            OSError: not all of them could be removed.
        """
        self.writer.sync_everything()  # else the journal would give its batches to a topic of the same name
        for key in [key for key in self.logs if key[0] == topic]:
            log = self.logs.pop(key)
            log.close()
            for name in self.disk.names(log.directory):
                self.disk.remove(f"{log.directory}/{name}")
            self.disk.remove(log.directory)
        self.recovery_points.forget(topic)

    def save_topics(self, topics: Iterable[StoredTopic]) -> None:
        """Remember these topics; returns when they survive power loss.

        Raises:
            OSError: what was remembered before still is.
        """
        write_topics(self.disk, topics)

    def _restore_cleaner_points(self) -> None:
        cleaned = self._cleaner_points()
        for key, log in self.logs.items():
            log.first_dirty_offset = min(cleaned.get(key, 0), log.base_offset)

    def _cleaner_points(self) -> Offsets:
        return read_offset_checkpoint(read_all(self.disk, CLEANER_POINTS)) if self.disk.exists(CLEANER_POINTS) else {}

    def save_cleaner_points(self) -> None:
        """Note how far each log is compacted; what a real broker noted of other topics stays."""
        offsets = self._cleaner_points()
        offsets.update((key, log.first_dirty_offset) for key, log in self.logs.items() if log.first_dirty_offset)
        replace_file(self.disk, CLEANER_POINTS, write_offset_checkpoint(offsets))

    def close(self) -> None:
        """An orderly end: everything written, synced, and noted. Nothing may be queued, or under way.

        Raises:
            OSError: not everything could be; the next start looks for the ends of the logs.
        """
        try:
            if self.writer.failure is None:
                self.writer.sync_everything()
                ends = {key: log.synced for key, log in self.logs.items()}
                replace_file(self.disk, CLEAN_END, write_log_positions(ends))
        finally:
            for log in self.logs.values():
                log.close()
            if self._wal is not None:
                self._wal.close(is_needed=not self.disk.exists(CLEAN_END))
