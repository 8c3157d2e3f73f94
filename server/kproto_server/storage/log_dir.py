"""A data directory (Kafka's log.dir): its topics, the logs of their partitions, and the writer of these logs.

Files, with the page that has their format:

=============================  ===================================================  ==================
file                           content                                              format
=============================  ===================================================  ==================
topics.json                    names, ids, replicas and configs of the topics       server/FORMAT.md
TOPIC-N/                       segments, indexes and leader epochs of a partition   Kafka's
kproto.journal.0, .1           the write-ahead log (``fsync`` mode)                 server/FORMAT.md
kproto.recovery                the recovery point of each log                       server/FORMAT.md
kproto.clean                   the end of each log, after a clean shutdown          server/FORMAT.md
cleaner-offset-checkpoint      the first dirty offset of each log                   Kafka's
log-start-offset-checkpoint    the start offset of each log that begins later       Kafka's
.lock                          locked by the broker that uses the directory         Kafka's, empty
=============================  ===================================================  ==================
"""

# Theory of operation. Opening goes from the files that say what can be trusted to the logs: was a real broker here,
# which topics are there, what is in the write-ahead log, where did each log end. Two steps have to be durable before
# the directory may change:
#
# - the clean shutdown marker is removed before anything is written, or a crash would leave a marker of an older state;
# - the segments are synced before the old write-ahead log is emptied, since until then it has the only durable copy of
#   acknowledged batches.

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

from kproto.errors import LogError
from kproto.records.segment_files import CLEANED, LEADER_EPOCHS, LOG_SUFFIX, START_OFFSETS
from kproto_server.storage.checkpoints import (
    RECOVERY_POINTS,
    LogPosition,
    LogPositions,
    is_damaged,
    read_log_positions,
    read_offset_checkpoint,
    write_epoch_checkpoint,
    write_offset_checkpoint,
)
from kproto_server.storage.clean_shutdown import CLEAN_SHUTDOWN, clean_end, losses, read_clean_ends, write_clean_ends
from kproto_server.storage.disk import read_all, replace_file
from kproto_server.storage.kafka_files import kafka_recovery_points, require_kafka_recovery, was_used_by_kafka
from kproto_server.storage.log_writer import UNSYNCED_MAX_BYTES, LogWriter
from kproto_server.storage.open_segments import OpenSegments
from kproto_server.storage.recovery import Recovery, RecoveryInputs
from kproto_server.storage.removal import Removal
from kproto_server.storage.segment_sync import LOG_START, RecoveryPoints
from kproto_server.storage.topics_file import NAME as TOPICS
from kproto_server.storage.topics_file import (
    NO_SETTINGS,
    TopicLines,
    partition_directories,
    read_settings,
    read_topics,
    write_topics,
)
from kproto_server.storage.write_ahead_log import NAMES, SIZE_BYTES, WriteAheadLog, remove_write_ahead_log
from kproto_server.storage.write_ahead_log_reader import read_write_ahead_log, sync_write_ahead_log

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from kproto_server.storage.checkpoints import PartitionOffsets
    from kproto_server.storage.clean_shutdown import CleanEnds
    from kproto_server.storage.disk import Disk
    from kproto_server.storage.log_writer import Durability
    from kproto_server.storage.partition_log import PartitionLog
    from kproto_server.storage.topics_file import StoredSettings, StoredTopic
    from kproto_server.storage.write_ahead_log_reader import LoggedBatch, WriteAheadLogContent


def _keys(topics: Iterable[StoredTopic]) -> set[tuple[str, int]]:
    return {(topic.name, partition) for topic in topics for partition in range(topic.partition_count)}


class LogDir:
    """An open data directory. The caller owns it, closes it, and holds the lock of the directory."""

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
        open_segments: OpenSegments | None = None,
    ) -> None:
        """Open the directory, and recover its logs.

        Args:
            repair: truncate damaged logs instead of raising `CorruptLog`.
            unsynced_max_bytes: bytes written in ``os`` mode between two background syncs.
            opens: whether the logs of a topic are opened, and created if they do not exist.
            opens_existing: whether those logs of a topic are opened that exist.
            extra_logs: names of logs with one partition and without a topic; opened if they exist.
            progress: called with the number of opened logs and of all logs.
            open_segments: bounds how many logs have their active segment open; None: there is no bound yet.

        Raises:
            LogError: the directory is damaged.
            OSError: a file cannot be read or written.
        """
        self.disk = disk
        self.syncs: bool = durability == "fsync"
        """Whether a change is durable before it is acknowledged."""
        self.open_segments: OpenSegments = open_segments or OpenSegments()
        self._recovery = Recovery(disk, segment_bytes=segment_bytes, repair=repair, open_segments=self.open_segments)
        self.on_roll: Callable[[], object] | None = None
        """Called when a segment of a log was closed."""
        self.logs: dict[tuple[str, int], PartitionLog] = {}
        directories = [
            name
            for topic, _, name in partition_directories(disk)
            if topic not in extra_logs and (opens(topic) or opens_existing(topic))
        ]
        own_files = (CLEAN_SHUTDOWN, RECOVERY_POINTS, *NAMES)
        self.was_used_by_kafka: bool = was_used_by_kafka(disk, directories, own_files)
        """Whether a real broker ran here since kproto did."""
        # Before anything is changed: an unknown version in the file refuses the directory.
        topics = read_topics(disk, include_directories=self.was_used_by_kafka)
        clean_ends = self._clean_ends(lambda topic: opens(topic) or opens_existing(topic) or topic in extra_logs)
        extra_keys = {(name, 0) for name in extra_logs}
        unknown = {key for key, found in clean_ends.items() if found.end.offset} - _keys(topics) - extra_keys
        if repair and unknown:
            topics = read_topics(disk, include_directories=True)
            missing = ", ".join(sorted({topic for topic, _ in unknown}))
            self.report.append(f"{TOPICS} lacks partitions of {missing}; repaired: took what its directories show")
        if self.was_used_by_kafka:
            # The broker has decided what the logs contain, and kproto's files about their ends are out of date.
            self._remove(*own_files)
        self.topics: list[StoredTopic] = [topic for topic in topics if topic.name not in extra_logs]
        self.settings: StoredSettings = read_settings(disk)
        """The dynamic configs by node id; those of all nodes have an empty one."""
        self._topic_lines = TopicLines()
        content = read_write_ahead_log(disk)
        if content.batches:
            sync_write_ahead_log(disk)
        existing = {*disk.names(""), *(batch.directory for batch in content.batches)}
        keys = [
            (topic.name, number)
            for topic in self.topics
            for number in range(topic.partition_count)
            if opens(topic.name) or (opens_existing(topic.name) and f"{topic.name}-{number}" in existing)
        ]
        keys += [(name, 0) for name in extra_logs if f"{name}-0" in existing]
        self.start_offsets: PartitionOffsets = self._read_start_offsets(refuses=bool(clean_ends) and not repair)
        """The start offsets in the file `START_OFFSETS`."""
        self._check_losses(clean_ends, _keys(topics) | extra_keys, repair=repair)
        inputs = self._recovery_inputs(keys, content, clean_ends)
        require_kafka_recovery(disk, keys)
        self._open_logs(inputs, progress, has_marker=bool(clean_ends))
        self._removal = Removal(disk)
        self._removal.remove_renamed()
        self._check_start_offsets()
        self._load_cleaner_points()
        self.recovery_points: RecoveryPoints = RecoveryPoints(
            disk, {key: log.recovery_point for key, log in self.logs.items()}
        )
        self._wal: WriteAheadLog | None = None
        limits = {"batch_size_max_bytes": batch_size_max_bytes, "unsynced_max_bytes": unsynced_max_bytes}
        self.writer: LogWriter[Any] = self._new_writer(durability, content, wal_size_bytes, limits)

    def _open_logs(
        self,
        inputs: Mapping[tuple[str, int], RecoveryInputs],
        progress: Callable[[int, int], object],
        *,
        has_marker: bool,
    ) -> None:
        """Remove the clean shutdown marker, and recover the logs.

        If that fails, the marker is written again: what was lost since the clean shutdown must not be forgotten because
        a start was refused. Until then, logs that the marker describes have not changed.
        """
        disk = self.disk
        marker = read_all(disk, CLEAN_SHUTDOWN) if has_marker else b""
        self._remove(CLEAN_SHUTDOWN)
        try:
            for number, (key, known) in enumerate(inputs.items()):
                progress(number, len(inputs))
                self.logs[key] = self._recovery.open(*key, known)
                self.logs[key].on_roll = self._segment_closed
        except (LogError, OSError):
            for log in self.logs.values():
                log.close()
            if marker:
                replace_file(disk, CLEAN_SHUTDOWN, marker)
            raise

    def _new_writer(
        self, durability: Durability, content: WriteAheadLogContent, wal_size_bytes: int, limits: dict[str, int]
    ) -> LogWriter[Any]:
        """Sync what recovery restored, then begin a new write-ahead log or remove the old one; return the writer.

        A killed process can have left acknowledged batches in the memory of the operating system only. The sync before
        the new write-ahead log covers those, in ``os`` mode too if the process before ran in ``fsync`` mode.
        """
        points = self.recovery_points
        if durability == "fsync" or content.exists:
            LogWriter(self.disk, None, self.logs, points, **limits).sync_everything()
        if durability == "fsync":
            self._wal = WriteAheadLog(
                self.disk, cycle=content.next_cycle, file_number=content.next_file_number, size_bytes=wal_size_bytes
            )
        else:
            remove_write_ahead_log(self.disk)
        return LogWriter(self.disk, self._wal, self.logs, points, **limits)

    @property
    def report(self) -> list[str]:
        """One line for each thing that recovery truncated or restored."""
        return self._recovery.report

    def _clean_ends(self, is_opened: Callable[[str], bool]) -> CleanEnds:
        """Return the ends of the logs of some topics at the clean shutdown; none after a crash."""
        if self.was_used_by_kafka or not self.disk.exists(CLEAN_SHUTDOWN):
            return {}
        if not self.disk.exists(TOPICS):
            self.report.append(f"{TOPICS} is missing: the topics are those of the directories, without their configs")
        ends = read_clean_ends(read_all(self.disk, CLEAN_SHUTDOWN))
        return {key: found for key, found in ends.items() if is_opened(key[0])}

    def _check_losses(self, clean_ends: CleanEnds, keys: Collection[tuple[str, int]], *, repair: bool) -> None:
        """Report what was lost since the clean shutdown; such logs are recovered as after a crash.

        Raises:
            LogError: something was lost, and ``repair`` is False.
        """
        found = list(losses(self.disk, clean_ends, keys, self.start_offsets))
        if found and not repair:
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            raise LogError(f"{found[0][1]}{more}; start with --repair to go on with what is there")
        for key, loss in found:
            self.report.append(f"{loss}; repaired: {key[0]}-{key[1]} goes on with what is there")
            end = clean_ends.pop(key, None)
            if end is not None:
                self.start_offsets[key] = end.start_offset or 0

    def _read_start_offsets(self, *, refuses: bool) -> PartitionOffsets:
        """Return the log start offsets of the checkpoint; a power loss in ``os`` mode can leave it without content.

        Raises:
            LogError: the file is damaged, and ``refuses`` is True.
        """
        if not self.disk.exists(START_OFFSETS):
            return {}
        data = read_all(self.disk, START_OFFSETS)
        if is_damaged(data):
            problem = f"{START_OFFSETS} is damaged: records that were deleted can be back"
            if refuses:
                raise LogError(f"{problem}; start with --repair to use the lines that can be read")
            self.report.append(f"{problem}; used the lines that can be read")
        return read_offset_checkpoint(data)

    def _check_start_offsets(self) -> None:
        """Let logs begin at their end at the latest: a power loss in ``os`` mode can take what was after it."""
        for key, log in self.logs.items():
            start_offset = self.start_offsets.get(key, 0)
            if start_offset > log.next_offset:
                self.report.append(f"{log.directory} begins with offset {start_offset}, but ends at {log.next_offset}")
                self.start_offsets[key] = log.next_offset

    def _recovery_inputs(
        self, keys: Iterable[tuple[str, int]], content: WriteAheadLogContent, clean_ends: CleanEnds
    ) -> dict[tuple[str, int], RecoveryInputs]:
        kafka_points = {key: LogPosition(offset) for key, offset in kafka_recovery_points(self.disk).items()}
        points = kafka_points | self._read_positions(RECOVERY_POINTS)
        by_directory: dict[str, list[LoggedBatch]] = {}
        for batch in content.batches:
            by_directory.setdefault(batch.directory, []).append(batch)
        return {
            (topic, partition): RecoveryInputs(
                clean_ends[topic, partition].end if (topic, partition) in clean_ends else None,
                points.get((topic, partition), LOG_START),
                by_directory.get(f"{topic}-{partition}", ()),
                has_wal=content.exists,
                was_used_by_kafka=self.was_used_by_kafka,
            )
            for topic, partition in keys
        }

    def _read_positions(self, name: str) -> LogPositions:
        return read_log_positions(read_all(self.disk, name)) if self.disk.exists(name) else {}

    def _remove(self, *names: str) -> None:
        """Remove those of these files that exist, durably."""
        existing = [name for name in names if self.disk.exists(name)]
        for name in existing:
            self.disk.remove(name)
        if existing:
            self.disk.sync_directory("")

    def create_logs(self, topic: str, partition_count: int) -> None:
        """Create the logs that a topic lacks. They are durable when `save_topics` has returned.

        They get no ``partition.metadata``: a real broker refuses a directory whose topic id it does not know (LF-54).

        Raises:
            OSError: some logs were not created.
        """
        for partition in range(partition_count):
            self.create_log(topic, partition)

    def create_log(self, topic: str, partition: int) -> None:
        """Create one log, unless it exists.

        Raises:
            OSError: the log was not created.
        """
        disk = self.disk
        if (topic, partition) in self.logs:
            return
        directory = f"{topic}-{partition}"
        if any(name.endswith(LOG_SUFFIX) and disk.size_of(f"{directory}/{name}") for name in disk.names(directory)):
            raise FileExistsError(errno.EEXIST, "records of a topic that is not known are in the way", directory)
        disk.make_directory(directory)
        path = f"{directory}/{LEADER_EPOCHS}"
        if not disk.exists(path):
            file = disk.open(path, create=True)
            try:
                file.write_at(0, write_epoch_checkpoint([(0, 0)]))
            finally:
                file.close()
        try:
            log = self.logs[topic, partition] = self._recovery.open(topic, partition)
        except LogError as error:
            raise FileExistsError(errno.EEXIST, str(error), directory) from None
        log.on_roll = self._segment_closed

    def _segment_closed(self) -> None:
        if self.on_roll is not None:
            self.on_roll()

    def remove_logs(self, topics: Collection[str]) -> None:
        """Remove all logs of topics. The writer must have no queued batches and no group commit in flight.

        Raises:
            OSError: all logs are still there.
        """
        self._forget_logs(topics, self._rename_logs(topics))

    def _rename_logs(self, topics: Collection[str]) -> dict[str, str]:
        directories = [log.directory for (topic, _), log in self.logs.items() if topic in topics]
        if directories:
            # The write-ahead log names directories: its batches of this topic would be restored into a later topic of
            # the same name. The sync empties it first.
            self.writer.sync_everything()
            self.recovery_points.forget(topics)
        return self._removal.rename(directories)

    def _forget_logs(self, topics: Collection[str], renamed: Mapping[str, str]) -> None:
        for key in [key for key in self.logs if key[0] in topics]:
            self.logs.pop(key).close()
        if renamed:
            self._removal.remove_renamed()

    def save_topics(
        self, topics: Sequence[StoredTopic], settings: StoredSettings = NO_SETTINGS, deleted: Collection[str] = ()
    ) -> None:
        """Write ``topics.json``, and remove the logs of deleted topics; return when the file is durable.

        Raises:
            OSError: all logs are still there; the file has its old content, or its new one until the next call.
        """
        renamed: dict[str, str] = {}
        try:
            write_topics(
                self.disk, topics, settings, lambda: renamed.update(self._rename_logs(deleted)), self._topic_lines
            )
        except OSError:
            self._removal.undo(renamed)
            raise
        self._forget_logs(deleted, renamed)
        self.topics = list(topics)
        self.settings = settings

    def retry_undo(self) -> None:
        """Give directories their old names again whose removal was not saved, and could not be undone."""
        self._removal.retry_undo()

    def _load_cleaner_points(self) -> None:
        cleaned = self._read_cleaner_points()
        for key, log in self.logs.items():
            log.first_dirty_offset = min(cleaned.get(key, 0), log.base_offset)

    def _read_cleaner_points(self) -> PartitionOffsets:
        return read_offset_checkpoint(read_all(self.disk, CLEANED)) if self.disk.exists(CLEANED) else {}

    def save_cleaner_points(self) -> None:
        """Save the first dirty offset of each log; lines of a real broker for other logs stay.

        Raises:
            OSError: the file has its old content.
        """
        offsets = self._read_cleaner_points()
        offsets.update((key, log.first_dirty_offset) for key, log in self.logs.items() if log.first_dirty_offset)
        replace_file(self.disk, CLEANED, write_offset_checkpoint(offsets))

    def save_start_offsets(self, start_offsets: PartitionOffsets, *, syncs: bool | None = None) -> None:
        """Write the file `START_OFFSETS`; ``syncs``: whether it is durable then, None: in ``fsync`` mode.

        Raises:
            OSError: the file has its old content.
        """
        syncs = self.syncs if syncs is None else syncs
        replace_file(self.disk, START_OFFSETS, write_offset_checkpoint(start_offsets), syncs=syncs)
        self.start_offsets = start_offsets

    def close(self) -> None:
        """Shut down cleanly: sync all logs, write the clean shutdown marker, and close the files.

        The writer must have no queued batches and no group commit in flight.

        Raises:
            OSError: the files are closed, but the next start has to recover the logs.
        """
        self.retry_undo()
        try:
            if self.writer.failure is None:
                self.writer.sync_everything()
                starts = self.start_offsets
                if starts:  # durable, as the marker is
                    self.save_start_offsets(starts, syncs=True)
                ends = {key: clean_end(self.disk, log, starts.get(key, 0)) for key, log in self.logs.items()}
                replace_file(self.disk, CLEAN_SHUTDOWN, write_clean_ends(ends))
        finally:
            for log in self.logs.values():
                log.close()
            if self._wal is not None:
                self._wal.close(is_needed=not self.disk.exists(CLEAN_SHUTDOWN))
