"""The log of one partition: batches appended to its newest segment, in Kafka's files (LF-50, LF-56).

Theory of operation. `append` gives a batch its place in the log and queues it; `write` writes what is queued, with one
write, behind what the newest segment has. A write that fails changes nothing: the segment is cut off where it was, and
the offsets are given out again. Which segments have writes that may not be on the disk is noted, so that a sync syncs
no more than it must, and directories too where files were made.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kproto.records.checksum import crc32c
from kproto.records.record_batch import CHECKED_FROM, LOG_OVERHEAD, MAGIC, UNCHECKED
from kproto.records.segment import RELATIVE_OFFSET_MAX
from kproto.records.segment_files import LEADER_EPOCHS, segment_name
from kproto_server.storage.checkpoints import LogPosition, read_epoch_checkpoint, write_epoch_checkpoint
from kproto_server.storage.disk import read_all, replace_file
from kproto_server.storage.kafka_files import add_index, remove_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kproto_server.storage.disk import Disk, File

EPOCH_END = 16
pack_unchecked = UNCHECKED.pack
NO_NEW_FILES = -1


class Segment(NamedTuple):
    """One ``.log`` file."""

    base_offset: int
    path: str
    size: int
    is_active: bool
    """Whether it is the newest, which is appended to."""


class LogSync(NamedTuple):
    """What is to be synced of one log; `run` may be called in a thread of its own."""

    log: PartitionLog
    paths: tuple[str, ...]
    has_new_files: bool
    point: LogPosition
    """Where the log ended when this was taken."""
    number: int
    """How many syncs of the log were begun before."""

    def run(self, disk: Disk) -> None:
        """Sync.

        Raises:
            OSError: nobody knows what has reached the disk.
        """
        for path in self.paths:
            with suppress(FileNotFoundError):  # it was removed, or compaction has put another one, synced, in its place
                file = disk.open(path)
                try:
                    file.sync()
                finally:
                    file.close()
        if self.has_new_files:
            with suppress(FileNotFoundError):
                disk.sync_directory(self.log.directory)


class PartitionLog:
    """One partition's log on disk. Made by `Recovery`, which knows what is there."""

    __slots__ = (
        "_closed",
        "_dirty",
        "_disk",
        "_epoch_bytes",
        "_file",
        "_is_active_dirty",
        "_must_truncate",
        "_new_files_number",
        "_next_written",
        "_position",
        "_queue",
        "_sync_number",
        "base_offset",
        "directory",
        "directory_bytes",
        "epoch",
        "first_dirty_offset",
        "next_offset",
        "on_roll",
        "partition",
        "queued_size",
        "segment_bytes",
        "skips_size_check",
        "start_offset",
        "synced",
        "topic",
        "version",
    )  # fmt: skip

    def __init__(
        self,
        disk: Disk,
        topic: str,
        partition: int,
        *,
        closed: list[Segment],
        active: Segment | None,
        next_offset: int,
        epoch: int,
        segment_bytes: int,
        synced: LogPosition,
        unsynced: Iterable[str],
    ) -> None:
        """``synced``: up to where the log is known to be on the disk; ``unsynced``: segments with more than that."""
        self._disk = disk
        self.topic = topic
        self.partition = partition
        self.directory = f"{topic}-{partition}"
        self.directory_bytes = self.directory.encode()
        self.epoch = epoch
        """The leader epoch that batches get: the newest in the partition's checkpoint."""
        self._epoch_bytes = epoch.to_bytes(4, "big")
        self.segment_bytes = segment_bytes
        self._closed = closed
        self.version = 0
        """Rises when segments are rewritten or removed: their content stands elsewhere then."""
        self.skips_size_check = False
        """Whether batches are of a size that was judged before."""
        self.first_dirty_offset = 0
        """Everything below it was compacted."""
        self.on_roll: Callable[[], object] | None = None
        """Told when a segment was closed."""
        self.start_offset = closed[0].base_offset if closed else (active.base_offset if active else next_offset)
        self.next_offset = next_offset
        """The one that the next record gets, with what is queued."""
        self._next_written = next_offset
        self.base_offset = active.base_offset if active else next_offset
        self._file: File | None = None
        self._position = active.size if active else 0
        self.synced = synced
        """Up to where the log is known to be on the disk."""
        self._queue: list[bytes] = []
        self.queued_size = 0
        self._sync_number = 0
        """How many syncs were begun. They may overlap, and some never end: what each covers is dirty until one has."""
        self._dirty = dict.fromkeys(unsynced, 0)
        """Paths of segments with writes that are not synced, and how many syncs were begun before the last of them."""
        self._new_files_number = 0 if active is None or self._dirty else NO_NEW_FILES
        """The same of the names in the directory."""
        self._is_active_dirty = self.active_path in self._dirty
        """Whether the next sync covers the newest segment anyway."""
        self._must_truncate = False
        """Whether something stands behind the end of the newest segment that could not be cut off."""

    @property
    def active_path(self) -> str:
        return f"{self.directory}/{segment_name(self.base_offset)}"

    @property
    def synced_offset(self) -> int:
        """Everything below it is on the disk."""
        return self.synced.offset

    @property
    def is_dirty(self) -> bool:
        """Whether something was written that is not synced."""
        return bool(self._dirty) or self._new_files_number != NO_NEW_FILES

    def append(self, batch: bytes, record_count: int) -> int:
        """Queue a batch; return its base offset. Neither it nor the leader epoch is covered by the checksum."""
        base_offset = self.next_offset
        placed = base_offset.to_bytes(8, "big") + batch[8:LOG_OVERHEAD] + self._epoch_bytes + batch[EPOCH_END:]
        self._queue.append(placed)
        self.queued_size += len(placed)
        self.next_offset = base_offset + record_count
        return base_offset

    @property
    def queued(self) -> list[bytes]:
        """The batches that `write` will write."""
        return self._queue

    def write(self) -> None:
        """Write what is queued, all of it to one segment.

        Raises:
            OSError: nothing was; the queue is dropped, and its offsets are free again.
        """
        if not self._queue:
            return
        queue, size = self._queue, self.queued_size
        self._queue, self.queued_size = [], 0
        try:
            if self._must_truncate:
                self._truncate_tail()
            if self._position + size > self.segment_bytes or self.next_offset - self.base_offset > RELATIVE_OFFSET_MAX:
                self._roll_unless_empty()
            file = self._file or self._open()
            if not self._is_active_dirty:
                self._is_active_dirty = True
                self._dirty[self.active_path] = self._sync_number
            file.write_at(self._position, queue[0] if len(queue) == 1 else b"".join(queue))
        except OSError:
            self._take_back_write()
            raise
        self._position += size
        self._next_written = self.next_offset

    def write_now(self, checked: bytes, record_count: int) -> int:
        """Append and write one batch, of which this is what the checksum covers: the same with less to do.

        Return the size of the batch.

        Raises:
            OSError: it is as if it never had been.
        """
        base_offset, position, file = self.next_offset, self._position, self._file
        size = CHECKED_FROM + len(checked)
        next_offset, end = base_offset + record_count, position + size
        batch = pack_unchecked(base_offset, size - LOG_OVERHEAD, self.epoch, MAGIC, crc32c(checked)) + checked
        if (
            file is None
            or end > self.segment_bytes
            or next_offset - self.base_offset > RELATIVE_OFFSET_MAX
            or self._queue
            or self._must_truncate
            or not self._is_active_dirty
        ):
            self.append(batch, record_count)
            self.write()
            return size
        try:
            file.write_at(position, batch)
        except OSError:
            self._take_back_write()
            raise
        self._position = end
        self.next_offset = self._next_written = next_offset
        return size

    def _take_back_write(self) -> None:
        self.next_offset = self._next_written
        with suppress(OSError):  # then it is tried again before the next write
            self._truncate_tail()

    def drop_queue(self) -> None:
        """Forget what is queued; its offsets are free again."""
        self._queue, self.queued_size = [], 0
        self.next_offset = self._next_written

    def place(self) -> tuple[int, int, int]:
        """Return where the log ends, for `undo_to`."""
        return self.base_offset, self._position, self._next_written

    def truncate_to(self, place: tuple[int, int, int]) -> None:
        """Take back what was written since `place` gave this, as far as that can be done; what is queued is kept."""
        base_offset, size, next_offset = place
        self._position = size if base_offset == self.base_offset else 0
        if not self._queue:
            self.next_offset = next_offset
        self._next_written = next_offset
        with suppress(OSError):
            self._truncate_tail()

    def _truncate_tail(self) -> None:
        """Cut off what stands behind the end. What a failed write leaves there must not be taken for a batch later."""
        if self._file is not None:
            self._must_truncate = True
            self._file.truncate(self._position)
            self._must_truncate = False

    def _roll_unless_empty(self) -> None:
        if self._position:
            self._roll()

    def _roll(self) -> None:
        """Close the newest segment and begin the next one, which is named by its first offset."""
        path = f"{self.directory}/{segment_name(self._next_written)}"
        made = self._disk.open(path, create=True)
        try:
            made.truncate(0)
            add_index(self._disk, path)
        except OSError:
            made.close()
            with suppress(OSError):  # it is empty, and recovery removes it
                self._disk.remove(path)
            raise
        self._closed.append(Segment(self.base_offset, self.active_path, self._position, is_active=False))
        if self._file is not None:
            self._file.close()
        self.base_offset = self._next_written
        self._file, self._position = made, 0
        self._dirty[path] = self._new_files_number = self._sync_number
        self._is_active_dirty = True
        if self.on_roll is not None:
            self.on_roll()

    def _open(self) -> File:
        path = self.active_path
        if not self._disk.exists(path):
            self._new_files_number = self._sync_number
        self._file = self._disk.open(path, create=True)
        add_index(self._disk, path)
        return self._file

    def begin_sync(self) -> LogSync | None:
        """Return what is to be synced for everything written so far to survive power loss; None if it does."""
        if not self.is_dirty:
            return None
        point = LogPosition(self._next_written, self.base_offset, self._position)
        has_new_files = self._new_files_number != NO_NEW_FILES
        work = LogSync(self, tuple(self._dirty), has_new_files, point, self._sync_number)
        self._sync_number += 1
        self._is_active_dirty = False
        return work

    def end_sync(self, work: LogSync) -> None:
        """Take note of a sync that has succeeded."""
        self.synced = max(self.synced, work.point)
        for path in work.paths:
            if self._dirty.get(path, work.number + 1) <= work.number:
                del self._dirty[path]
        if self._new_files_number <= work.number:
            self._new_files_number = NO_NEW_FILES

    def close(self) -> None:
        """Close the files."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def roll(self) -> None:
        """Close the newest segment, if it has anything, so that it can be compacted.

        Raises:
            OSError: it goes on to be the newest.
        """
        if self._must_truncate:
            self._truncate_tail()
        self._roll_unless_empty()

    def closed_segments(self) -> list[Segment]:
        """Return the segments that are appended to no more, the oldest first."""
        return list(self._closed)

    def replace_closed(self, segment: Segment, size: int) -> None:
        """A closed segment was rewritten and has another size; none: it is gone."""
        self.version += 1
        index = self._closed.index(segment)
        self._closed[index : index + 1] = [segment._replace(size=size)] if size else []

    def drop_oldest(self) -> Segment:
        """Remove the oldest closed segment.

        Raises:
            OSError: it stays.
        """
        segment = self._closed[0]
        self._disk.remove(segment.path)
        remove_index(self._disk, segment.path)
        del self._closed[0]
        self._dirty.pop(segment.path, None)
        self.version += 1
        self.start_offset = self._closed[0].base_offset if self._closed else self.base_offset
        return segment

    def begin_epoch(self, epoch: int) -> None:
        """Give batches a newer leader epoch from now on, and note where it begins (LF-53).

        Raises:
            OSError: it goes on with the one it had.
        """
        path = f"{self.directory}/{LEADER_EPOCHS}"
        epochs = read_epoch_checkpoint(read_all(self._disk, path)) if self._disk.exists(path) else []
        replace_file(self._disk, path, write_epoch_checkpoint([*epochs, (epoch, self.next_offset)]))
        self.epoch = epoch
        self._epoch_bytes = epoch.to_bytes(4, "big")

    def segment_path(self, base_offset: int) -> str:
        return f"{self.directory}/{segment_name(base_offset)}"

    def segments(self) -> list[Segment]:
        """Return the segments, the oldest first."""
        return [*self._closed, Segment(self.base_offset, self.active_path, self._position, is_active=True)]

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self._closed) + self._position
