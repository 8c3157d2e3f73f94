"""A data directory: its topics, the logs of their partitions, and what was written to them last.

topics.json                       names, ids, partitions, configs
__consumer_offsets-N/             Kafka's own: segments, leader-epoch-checkpoint
kproto.recovery                   up to where each log is known to have survived
kproto.journal                    what the segments may lack after a power loss (``fsync``)
kproto.clean                      after an orderly end: where each log ends, so that nothing has to be looked for
.lock                             held by the process that has the directory, ours or a real broker
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kproto.records.segment_files import LEADER_EPOCHS
from kproto_server.storage.checkpoints import (
    CLEANER_POINTS,
    FIRST_EPOCH,
    RECOVERY_POINTS,
    read_offsets,
    write_offsets,
)
from kproto_server.storage.disk import read_all, replace_file
from kproto_server.storage.durable_log import DurableLog
from kproto_server.storage.journal import NAME as JOURNAL
from kproto_server.storage.journal import SIZE_BYTES, Journal, read_journal
from kproto_server.storage.kafkas_files import kafka_was_here, recovery_points, take_over
from kproto_server.storage.recovery import Recovery
from kproto_server.storage.topics_file import partition_directories, read_topics, write_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kproto_server.storage.checkpoints import Offsets
    from kproto_server.storage.disk import Disk
    from kproto_server.storage.durable_log import Durability
    from kproto_server.storage.journal import Journaled
    from kproto_server.storage.partition_log import PartitionLog
    from kproto_server.storage.topics_file import StoredTopic

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
        journal_size_bytes: int = SIZE_BYTES,
        keeps: Callable[[str], bool] = lambda topic: True,
        progress: Callable[[int, int], object] = lambda done, total: None,
    ) -> None:
        """Open the directory, and bring its logs to their valid ends.

        Args:
            keeps: whether the logs of a topic are opened.
            progress: told how many logs of how many are open.

        Raises:
            StorageError: it is damaged.
            OSError: it can't be read or written.
        """
        self.disk = disk
        self._recovery = Recovery(disk, segment_bytes=segment_bytes, repair=repair)
        self.logs: dict[tuple[str, int], PartitionLog] = {}
        found = [directory for topic, _, directory in partition_directories(disk) if keeps(topic)]
        self.is_kafkas = kafka_was_here(disk, found)
        """Whether a real broker has run here since we last did."""
        if self.is_kafkas:
            self._remove(CLEAN_END, JOURNAL)
        self.topics: list[StoredTopic] = read_topics(disk, of_directories=self.is_kafkas)
        points = {**self._offsets_in(RECOVERY_POINTS), **recovery_points(disk)}
        ends = self._clean_ends()
        journaled, cycle = read_journal(disk)
        by_directory: dict[str, list[Journaled]] = {}
        for batch in journaled:
            by_directory.setdefault(batch.directory, []).append(batch)
        wanted = [(t.name, n) for t in self.topics if keeps(t.name) for n in range(t.partition_count)]
        for number, (topic, partition) in enumerate(wanted):
            progress(number, len(wanted))
            directory = f"{topic}-{partition}"
            self.logs[topic, partition] = self._recovery.open(
                topic,
                partition,
                by_directory.get(directory, ()),
                known_end=ends.get(directory),
                recovery_point=points.get((topic, partition), 0),
            )
        cleaned = self._offsets_in(CLEANER_POINTS)
        for key, log in self.logs.items():
            log.first_dirty_offset = min(cleaned.get(key, 0), log.base_offset)
        take_over(disk, self.logs)
        self._remove(CLEAN_END)
        self._sync_all()
        self._journal = None
        if durability == "fsync":
            self._journal = Journal(disk, cycle=cycle + 1, size_bytes=journal_size_bytes)
        else:
            self._remove(JOURNAL)
        self.durable: DurableLog[Any] = DurableLog(
            disk, self._journal, self.logs, batch_size_max_bytes=batch_size_max_bytes
        )

    @property
    def report(self) -> list[str]:
        """What recovery dropped, and what it put back: a line each."""
        return self._recovery.report

    def _remove(self, *names: str) -> None:
        """Remove those of our files that are there, durably."""
        there = [name for name in names if self.disk.exists(name)]
        for name in there:
            self.disk.remove(name)
        if there:
            self.disk.sync_directory("")

    def _offsets_in(self, checkpoint: str) -> Offsets:
        return read_offsets(read_all(self.disk, checkpoint)) if self.disk.exists(checkpoint) else {}

    def _clean_ends(self) -> dict[str, tuple[int, int]]:
        """Return size of the newest segment and next offset by directory, as an orderly end has left them."""
        if not self.disk.exists(CLEAN_END):
            return {}
        try:
            read = json.loads(read_all(self.disk, CLEAN_END))
            return {str(directory): (int(end[0]), int(end[1])) for directory, end in read.items()}
        except (ValueError, TypeError, IndexError, AttributeError):
            return {}  # then the ends are looked for, as after a crash

    def create_logs(self, topic: str, partition_count: int) -> None:
        """Make the logs that a topic lacks.

        They have no `partition.metadata`: it would tell a real broker that gets them that they are of another topic.

        Raises:
            OSError: not all of them could be made.
        """
        disk = self.disk
        for partition in range(partition_count):
            if (topic, partition) in self.logs:
                continue
            directory = f"{topic}-{partition}"
            disk.make_directory(directory)
            file = disk.open(f"{directory}/{LEADER_EPOCHS}", create=True)
            file.write_at(0, FIRST_EPOCH)
            file.close()
            self.logs[topic, partition] = self._recovery.open(topic, partition)

    def remove_logs(self, topic: str) -> None:
        """Remove all logs of a topic.

        Raises:
            OSError: not all of them could be removed.
        """
        self.checkpoint()  # else the journal would give its batches to a topic of the same name
        for key in [key for key in self.logs if key[0] == topic]:
            log = self.logs.pop(key)
            log.close()
            for name in self.disk.names(log.directory):
                self.disk.remove(f"{log.directory}/{name}")
            self.disk.remove(log.directory)

    def save_topics(self, topics: Iterable[StoredTopic]) -> None:
        """Remember these topics; returns when they survive power loss.

        Raises:
            OSError: what was remembered before still is.
        """
        write_topics(self.disk, topics)

    def checkpoint(self) -> None:
        """Sync all logs, note how far, and begin the journal anew.

        Raises:
            OSError: nobody knows what has reached the disk.
        """
        self._sync_all()
        self.save_recovery_points()
        if self._journal is not None:
            self._journal.begin_anew()

    def save_cleaner_points(self) -> None:
        """Note how far each log is compacted; what a real broker noted of other topics stays."""
        offsets = self._offsets_in(CLEANER_POINTS)
        offsets.update((key, log.first_dirty_offset) for key, log in self.logs.items() if log.first_dirty_offset)
        replace_file(self.disk, CLEANER_POINTS, write_offsets(offsets))

    def save_recovery_points(self) -> None:
        """Note how far each log is synced."""
        offsets = {key: log.synced_offset for key, log in self.logs.items()}
        replace_file(self.disk, RECOVERY_POINTS, write_offsets(offsets))

    def _sync_all(self) -> None:
        for log in self.logs.values():
            work = log.begin_sync()
            if work is not None:
                work.run(self.disk)
                log.end_sync(work)

    def close(self) -> None:
        """An orderly end: everything written, synced, and noted.

        Raises:
            OSError: not everything could be; the next start looks for the ends of the logs.
        """
        failed = self.durable.failed is not None
        if not failed:
            self._sync_all()
            self.save_recovery_points()
            ends = {log.directory: (log.segments()[-1].size, log.next_offset) for log in self.logs.values()}
            replace_file(self.disk, CLEAN_END, json.dumps(ends).encode())
        for log in self.logs.values():
            log.close()
        if self._journal is not None:
            self._journal.close(is_needed=failed)
