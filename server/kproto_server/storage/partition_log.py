"""The log of one partition on disk: segments in Kafka's file format, appended to at the end (LF-50, LF-56)."""

# Theory of operation. An append has two steps. `place` gives a batch its base offset and leader epoch; `write` writes
# placed batches, in their order, with one write to the active segment. `write_checked` does both for one batch.
#
# *Failed writes.* A write that fails changes nothing: the segment is truncated to its old size, and the offsets of the
# placed batches are free again. If the truncation fails too (a full or failing disk), it is repeated before the next
# write, because a whole batch of the failed write could otherwise follow a shorter, later batch and be read as valid.
#
# *Syncs.* A log notes which segment files have writes that are not durable yet, and whether its directory has new
# names. `begin_sync` takes a snapshot of both as a `LogSync`, which a thread runs while the event loop goes on writing;
# `end_sync` marks them durable. Syncs of one log can overlap and can fail, so every dirty file carries the number of
# syncs that had begun before its last write: a sync makes a file clean only if no write came after the sync began.
#
# *Threads.* Everything except `LogSync.run` belongs to the event loop.

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kproto.records.batch_header import CHECKED_FROM, LOG_OVERHEAD, MAGIC, MAGIC_POSITION, SIZE_POSITION, UNCHECKED
from kproto.records.checksum import crc32c
from kproto.records.segment import RELATIVE_OFFSET_MAX
from kproto.records.segment_files import LEADER_EPOCHS, segment_name
from kproto_server.storage.checkpoints import LogPosition, read_epoch_checkpoint, write_epoch_checkpoint
from kproto_server.storage.disk import read_all, replace_file
from kproto_server.storage.kafka_files import add_index, remove_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kproto_server.storage.disk import Disk, File
    from kproto_server.storage.open_segments import OpenSegments

NO_NEW_FILES = -1
pack_unchecked: Callable[..., bytes] = UNCHECKED.pack


class Segment(NamedTuple):
    """One ``.log`` file."""

    base_offset: int
    path: str
    size: int
    is_active: bool
    """Whether it is the newest segment, which batches are appended to."""


class LogSync(NamedTuple):
    """One sync of one log. `run` may be called in another thread."""

    log: PartitionLog
    paths: tuple[str, ...]
    has_new_files: bool
    end: LogPosition
    """The end of the log when this was made."""
    number: int
    """Number of syncs of the log that began before this one."""

    def run(self, disk: Disk) -> None:
        """Sync the segments, then the directory. Blocks.

        Raises:
            OSError: it is unknown what is on the disk.
        """
        for path in self.paths:
            # The segment may be gone: removed by retention, or replaced by compaction, which syncs its result.
            with suppress(FileNotFoundError):
                disk.sync_file(path)
        if self.has_new_files:
            # The content of a new file survives a power loss only if its name does.
            with suppress(FileNotFoundError):
                disk.sync_directory(self.log.directory)


class PartitionLog:
    """The log of one partition. `Recovery.open` makes it, and its owner closes it."""

    __slots__ = (
        "_closed", "_dirty", "_disk", "_epoch_bytes", "_file", "_is_active_dirty", "_must_truncate",
        "_new_files_number", "_next_written", "_open_segments", "_position", "_sync_count",
        "base_offset", "directory", "directory_bytes", "epoch", "first_dirty_offset", "next_offset", "on_compacted",
        "on_roll", "partition", "recovery_point", "segment_bytes", "skips_size_check", "start_offset",
        "topic", "version", "writes_first",
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
        recovery_point: LogPosition,
        unsynced_paths: Iterable[str],
        open_segments: OpenSegments,
    ) -> None:
        self._disk = disk
        self._open_segments = open_segments
        self.topic: str = topic
        self.partition: int = partition
        self.directory: str = f"{topic}-{partition}"
        self.directory_bytes: bytes = self.directory.encode()
        self.epoch: int = epoch
        """The leader epoch of new batches: the newest in the partition's ``leader-epoch-checkpoint``."""
        self._epoch_bytes = epoch.to_bytes(4, "big")
        self.segment_bytes: int = segment_bytes
        self._closed = closed
        self.version: int = 0
        """Rises when the list of closed segments changes: paths of and positions in segments are no longer valid."""
        self.skips_size_check: bool = False
        """Whether the caller has checked the size of batches."""
        self.writes_first: bool = False
        """Whether batches of other logs may rely on those of this log: if it cannot be written, they fail, too."""
        self.first_dirty_offset: int = 0
        """Compaction covered everything below this offset."""
        self.on_roll: Callable[[], object] | None = None
        """Called when a segment was closed."""
        self.on_compacted: Callable[[], object] | None = None
        """Called when a closed segment has got another file: its batches have other positions."""
        self.start_offset: int = closed[0].base_offset if closed else (active.base_offset if active else next_offset)
        self.next_offset: int = next_offset
        """The offset of the next record, after the placed batches."""
        self._next_written = next_offset
        """The offset of the next record, after the written batches."""
        self.base_offset: int = active.base_offset if active else next_offset
        self._file: File | None = None
        """The active segment, opened at the first write, and at the next one after it was closed."""
        self._position = active.size if active else 0
        self.recovery_point: LogPosition = recovery_point
        """The log is durable up to here."""
        self._sync_count = 0
        """Number of syncs that were begun."""
        self._dirty = dict.fromkeys(unsynced_paths, 0)
        """Paths of segments with unsynced writes, each with `_sync_count` at its last write."""
        self._new_files_number = 0 if active is None or self._dirty else NO_NEW_FILES
        """`_sync_count` when the last file was created, if its name is not durable yet."""
        self._is_active_dirty = self.active_path in self._dirty
        """Whether `_dirty` has the active segment with the current `_sync_count`: saves a look-up for each write."""
        self._must_truncate = False
        """Whether a failed write left bytes after the end of the active segment."""

    @property
    def key(self) -> tuple[str, int]:
        """Topic and partition."""
        return self.topic, self.partition

    @property
    def active_path(self) -> str:
        return self._segment_path(self.base_offset)

    @property
    def is_dirty(self) -> bool:
        """Whether there are unsynced writes."""
        return bool(self._dirty) or self._new_files_number != NO_NEW_FILES

    def place(self, batch: bytes, record_count: int) -> bytes:
        """Return a batch with its base offset and leader epoch, for `write`; `forget_placed` frees its offsets."""
        base_offset = self.next_offset
        self.next_offset = base_offset + record_count
        # The checksum covers neither of the two.
        size = batch[SIZE_POSITION:LOG_OVERHEAD]
        return base_offset.to_bytes(8, "big") + size + self._epoch_bytes + batch[MAGIC_POSITION:]

    def forget_placed(self) -> None:
        """Free the offsets of the batches that were placed and are not written."""
        self.next_offset = self._next_written

    def restore(self, data: bytes, next_offset: int) -> None:
        """Write batches that were placed before a crash."""
        self.next_offset = next_offset
        self.write(data, next_offset)

    def write_checked(self, checked: bytes, record_count: int) -> int:
        """Append a batch given as the bytes that its checksum covers, and write it; return the size of the batch.

        All placed batches must be written. To build a whole batch and to replace its offset would take 0.6 microseconds
        more, a tenth of a cached commit in ``os`` mode; a call of `write` where it has nothing to decide, 0.1.

        Raises:
            OSError: nothing was written.
        """
        base_offset, position, file = self.next_offset, self._position, self._file
        size = CHECKED_FROM + len(checked)
        next_offset, end = base_offset + record_count, position + size
        batch = pack_unchecked(base_offset, size - LOG_OVERHEAD, self.epoch, MAGIC, crc32c(checked)) + checked
        self.next_offset = next_offset
        if (
            file is None
            or not self._is_active_dirty
            or self._must_truncate
            or end > self.segment_bytes
            or next_offset - self.base_offset > RELATIVE_OFFSET_MAX
        ):
            self.write(batch, next_offset)
            return size
        try:
            file.write_at(position, batch)
        except OSError:
            self._undo_write()
            raise
        self._position = end
        self._next_written = next_offset
        return size

    def write(self, data: bytes, next_offset: int) -> None:
        """Write placed batches to the active segment, rolled if they do not fit; ``next_offset`` is the one after them.

        Raises:
            OSError: nothing was written; the offsets of all placed batches are free again.
        """
        try:
            if self._must_truncate:
                self._truncate_tail()
            if self._position + len(data) > self.segment_bytes or next_offset - self.base_offset > RELATIVE_OFFSET_MAX:
                self._roll_unless_empty()
            file = self._file or self._open()
            # Before the write: a failed write may have changed the file.
            if not self._is_active_dirty:
                self._is_active_dirty = True
                self._dirty[self.active_path] = self._sync_count
            file.write_at(self._position, data)
        except OSError:
            self._undo_write()
            raise
        self._position += len(data)
        self._next_written = next_offset

    def _undo_write(self) -> None:
        """Free the offsets of all placed batches, and truncate the part of them that a failed write left."""
        self.next_offset = self._next_written
        with suppress(OSError):  # `_must_truncate` is set then, and the next write truncates first
            self._truncate_tail()

    @property
    def end(self) -> LogPosition:
        """The end of the written batches."""
        return LogPosition(self._next_written, self.base_offset, self._position)

    def _truncate_tail(self) -> None:
        """Truncate the active segment to its valid end: nothing after it may ever be read as a batch."""
        if self._file is not None:
            self._must_truncate = True
            self._file.truncate(self._position)
            self._must_truncate = False

    def _roll_unless_empty(self) -> None:
        if self._position:
            self._roll()

    def _roll(self) -> None:
        """Close the active segment and create the next one, which is named by its first offset.

        The new file is created first: if that fails, the old segment stays the active one and nothing has changed.
        """
        path = self._segment_path(self._next_written)
        created = self._open_segments.open(self, partial(self._disk.open, path, create=True))
        try:
            created.truncate(0)
            self._add_index(path)
        except OSError:
            created.close()
            with suppress(OSError):  # recovery removes an empty segment
                self._disk.remove(path)
            raise
        self._closed.append(Segment(self.base_offset, self.active_path, self._position, is_active=False))
        if self._file is not None:
            self._file.close()
        self.base_offset = self._next_written
        self._file, self._position = created, 0
        self._dirty[path] = self._new_files_number = self._sync_count
        self._is_active_dirty = True
        if self.on_roll is not None:
            self.on_roll()

    def _open(self) -> File:
        path = self.active_path
        if not self._disk.exists(path):
            self._new_files_number = self._sync_count
        self._file = self._open_segments.open(self, partial(self._disk.open, path, create=True))
        self._add_index(path)
        return self._file

    def _add_index(self, path: str) -> None:
        self._open_segments.attempt(self, partial(add_index, self._disk, path))

    def open_segment(self, path: str) -> File:
        """Open a segment for reading; the caller closes it.

        Raises:
            OSError: it can't be opened.
        """
        return self._open_segments.attempt(self, partial(self._disk.open, path))

    def begin_sync(self) -> LogSync | None:
        """Return the sync that makes all writes so far durable; None if they are."""
        if not self.is_dirty:
            return None
        has_new_files = self._new_files_number != NO_NEW_FILES
        log_sync = LogSync(self, tuple(self._dirty), has_new_files, self.end, self._sync_count)
        self._sync_count += 1
        # The next write has to enter the segment with the new count, or `end_sync` would take it for durable.
        self._is_active_dirty = False
        return log_sync

    def end_sync(self, log_sync: LogSync) -> None:
        """Mark what a successful sync covered as durable."""
        self.recovery_point = max(self.recovery_point, log_sync.end)
        for path in log_sync.paths:
            if self._dirty.get(path, log_sync.number + 1) <= log_sync.number:
                del self._dirty[path]
        if self._new_files_number <= log_sync.number:
            self._new_files_number = NO_NEW_FILES

    @property
    def can_close(self) -> bool:
        """Whether the active segment may be closed before the next write: what a failed write left must go first."""
        return not self._must_truncate

    def close(self) -> None:
        """Close the active segment, without a sync; the next write opens it again."""
        self._open_segments.forget(self)
        if self._file is not None:
            self._file.close()
            self._file = None

    def roll(self) -> None:
        """Close the active segment, unless it is empty, so that it can be compacted or removed.

        Raises:
            OSError: it stays the active segment.
        """
        if self._must_truncate:
            self._truncate_tail()
        self._roll_unless_empty()

    def closed_segments(self) -> list[Segment]:
        """Return all segments but the active one, oldest first."""
        return list(self._closed)

    def replace_closed(self, segment: Segment, path: str, size: int) -> Segment:
        """List another file in place of that of a closed segment; return the changed segment."""
        self.version += 1
        replacement = segment._replace(path=path, size=size)
        self._closed[self._closed.index(segment)] = replacement
        if self.on_compacted is not None:
            self.on_compacted()
        return replacement

    def remove_closed(self, segment: Segment) -> None:
        """Remove a closed segment from the list."""
        self.version += 1
        self._closed.remove(segment)

    def drop_oldest(self) -> Segment:
        """Remove the oldest closed segment, and return it.

        Raises:
            OSError: the segment or its index is still there.
        """
        segment = self._closed[0]
        self._disk.remove(segment.path)
        self.remove_closed(segment)
        self._dirty.pop(segment.path, None)
        self.start_offset = self._closed[0].base_offset if self._closed else self.base_offset
        remove_index(self._disk, segment.path)
        return segment

    def begin_epoch(self, epoch: int) -> None:
        """Give new batches a newer leader epoch, and save where it begins (LF-53).

        The epoch is durable then, whatever is lost of the batches: those of other logs may rely on it.

        Raises:
            OSError: new batches get the old epoch.
        """
        path = f"{self.directory}/{LEADER_EPOCHS}"
        epochs = read_epoch_checkpoint(read_all(self._disk, path)) if self._disk.exists(path) else []
        replace_file(self._disk, path, write_epoch_checkpoint([*epochs, (epoch, self.next_offset)]))
        if self._new_files_number != NO_NEW_FILES:
            self._disk.sync_directory("")  # the directory may be new, too
        self.epoch = epoch
        self._epoch_bytes = epoch.to_bytes(4, "big")

    def _segment_path(self, base_offset: int) -> str:
        return f"{self.directory}/{segment_name(base_offset)}"

    def path_of(self, base_offset: int) -> str:
        """Return the current path of the segment with this base offset."""
        return next((segment.path for segment in self._closed if segment.base_offset == base_offset), self.active_path)

    def segments(self) -> list[Segment]:
        """Return all segments, oldest first."""
        return [*self._closed, Segment(self.base_offset, self.active_path, self._position, is_active=True)]

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self._closed) + self._position
