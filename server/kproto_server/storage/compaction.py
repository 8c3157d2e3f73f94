"""Compaction of one log: of each key the record with the highest offset stays, with its offset (LF-70 to LF-72)."""

# Theory of operation. Compaction reads closed segments twice (`retained_records` has the rules) and writes the retained
# batches of one or several small segments to a new file, which then replaces them. The active segment is never touched.
#
# *What may be compacted.* Offsets below `_end_offset`, the lowest of: the recovery point, the first offset of an open
# transaction, and the first key that memory has no room for. The recovery point matters for crashes: recovery reads
# only what comes after it, and would take a batch that compaction removed there for a lost one. For the same reason the
# recovery point is saved before the first segment changes.
#
# *Crash windows.* At every moment the segments on disk give the same newest value for each key:
#
# - The new file has the suffix ``.cleaned`` until it is complete and synced. A crash before leaves the old segments.
# - One segment is replaced by a rename, which is atomic. After a power loss the name has the old or the new content;
#   both are complete and durable.
# - Several segments are replaced in steps: rename to ``.swap``, sync the directory (from here on the new content is
#   valid, and a start finishes the rest), remove the old segments durably, rename to ``.log``
#   (`interrupted_compaction`).
# - Segments are replaced oldest first, and each replacement is durable before the next one begins. So a tombstone never
#   disappears before the older record that it deletes.
#
# *Concurrency.* Compaction runs in the event loop in steps of about a millisecond: `Compaction.run` is a generator that
# yields between steps. Work that blocks (syncs, removals) is yielded as a function, for the caller to run in a thread
# before it continues. Appends and reads go on meanwhile. Appends do not touch closed segments. Reads open the segments
# that the `PartitionLog` lists, so its list and the files change together, between two yields, and a replacement is
# listed under its ``.swap`` name while the thread removes the old segments.
#
# *Failures.* An error leaves files and list in agreement. The next compaction of the log first removes files that are
# not listed, and finishes a replacement that is listed under its ``.swap`` name.

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.records.batches import first_offset
from kproto.records.segment import RELATIVE_OFFSET_MAX
from kproto_server.storage.fast_retained_records import FastRetainedRecords
from kproto_server.storage.interrupted_compaction import (
    CLEANED_SUFFIX,
    SWAP_SUFFIX,
    remove_covered_segments,
    remove_segments,
)
from kproto_server.storage.kafka_files import remove_index
from kproto_server.storage.retained_records import RetainedRecords
from kproto_server.storage.segment_reader import SegmentReader

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from kproto_server.storage.disk import Disk, File
    from kproto_server.storage.log_writer import LogWriter
    from kproto_server.storage.partition_log import PartitionLog, Segment

    Work = Callable[[], object]

STEP_SIZE_BYTES = 24 << 10
"""Bytes read in one step: 250 small commits, at 2 microseconds each."""
WRITE_SIZE_BYTES = 128 << 10
KEYS_MAX = 500_000
"""Keys in the offset map of one compaction, at about 200 bytes each. A log with more keys takes several compactions."""


class CompactionResult(NamedTuple):
    """The effect of one compaction."""

    first_dirty_offset: int
    """The log is compacted up to here."""
    size_before: int
    size_after: int


class Compaction:
    """One compaction of one log."""

    def __init__(
        self,
        disk: Disk,
        log: PartitionLog,
        writer: LogWriter[Any],
        delete_retention_ms: int,
        now_ms: int,
        *,
        keys_max: int = KEYS_MAX,
    ) -> None:
        self._disk = disk
        self._log = log
        self._writer = writer
        self._keys_max = keys_max
        self._retained = RetainedRecords(now_ms, delete_retention_ms)
        self._fast = FastRetainedRecords(self._retained.offset_map)
        self._end_offset = 0
        """Batches from this offset on are not changed."""
        self.result: CompactionResult | None = None
        """Set at the end of `run`; None if nothing could be compacted."""

    def run(self) -> Generator[Work | None]:
        """Compact the log; yield None between steps, or blocking work to run before the next step.

        Closing the generator early is safe: the next start, or the next compaction of the log, finishes its work.

        Raises:
            DecodeError: while iterating: a segment is damaged. After any exception the log has its old meaning.
            MissingPackage: while iterating: a compression needs a package that is not installed.
            OSError: while iterating: a file cannot be read or written.
        """
        log = self._log
        yield from self._finish_failed_compaction()
        # Compaction reads what is durable. This sync moves the recovery point to the end of the closed segments.
        segment_sync = self._writer.begin_sync(log) if log.closed_segments() else None
        if segment_sync is not None:
            yield segment_sync.run
            if not self._writer.end_sync(segment_sync):
                return
        # Appends went on during the sync, and the active segment may have been rolled: take what is durable now.
        self._end_offset = min(log.base_offset, log.recovery_point.offset)
        closed = [segment for segment in log.closed_segments() if segment.base_offset < self._end_offset]
        if not closed:
            return
        # Durable before the first segment changes: a start with an older recovery point would look for offsets that
        # are gone.
        yield lambda: self._writer.points.advance({(log.topic, log.partition): log.recovery_point})
        size_before = log.size
        yield from self._build_offset_map(closed)
        # From here on `_end_offset` is final. All segments are rewritten under the same map: a record that one group
        # drops has its newer record in a later group, or in the same one.
        for group in self._groups(closed):
            yield from self._clean(group)
        self.result = CompactionResult(self._end_offset, size_before, log.size)

    def _finish_failed_compaction(self) -> Iterator[Work]:
        """Remove the files that an earlier, failed compaction left, and finish the replacement that it began."""
        disk, log = self._disk, self._log
        listed = {segment.path for segment in log.closed_segments()}
        paths = [f"{log.directory}/{name}" for name in disk.names(log.directory)]
        # A new file that is not listed replaces nothing yet: all its old segments are listed and there.
        for path in paths:
            if path.endswith((CLEANED_SUFFIX, SWAP_SUFFIX)) and path not in listed:
                disk.remove(path)
        # A listed one has replaced the old segments, some of which may still be there.
        for segment in log.closed_segments():
            if segment.path.endswith(SWAP_SUFFIX):
                yield partial(remove_covered_segments, disk, segment.path)
                yield from self._rename_swap(segment)

    # First pass: the offset map.

    def _build_offset_map(self, closed: list[Segment]) -> Iterator[None]:
        # Clean segments have at most one record of each key, so only keys of dirty segments can make a record obsolete.
        # Clean segments are read in the second pass only.
        first_dirty = self._log.first_dirty_offset
        next_bases = [segment.base_offset for segment in closed[1:]] + [self._end_offset]
        for segment, next_base in zip(closed, next_bases, strict=True):
            if next_base > first_dirty:
                is_full = yield from self._add_segment(segment, first_dirty)
                if is_full:
                    break
        # In the order of the passes: the fast path keeps its newest offsets to itself until all batches are known.
        self._fast.settle()
        first_unstable_offset = self._retained.first_unstable_offset
        if first_unstable_offset is not None:
            self._end_offset = min(self._end_offset, first_unstable_offset)

    def _add_segment(self, segment: Segment, first_dirty: int) -> Generator[None, None, bool]:
        """Add the keys of a segment; return whether the offset map is full."""
        retained = self._retained
        file = self._disk.open(segment.path)
        reader = SegmentReader(file, segment.path, segment.size)
        try:
            while reader.has_more():
                begin = reader.start
                if retained.key_count >= self._keys_max:
                    # The rest of the log is not in the map, so nothing from here on may be dropped for being old.
                    self._end_offset = first_offset(reader.buffer[begin:])
                    return True
                reader.start = self._fast.note(reader.buffer, begin, begin + STEP_SIZE_BYTES, first_dirty)
                if reader.start == begin:
                    # The fast path does not take the next batch.
                    batch = reader.take()
                    if first_offset(batch) >= first_dirty:
                        yield from retained.add_to_offset_map(batch)
                yield
        finally:
            file.close()
        return False

    # Second pass: the new segments.

    def _groups(self, closed: list[Segment]) -> Iterator[list[Segment]]:
        """Yield groups of neighboring segments, each small enough for one new segment even if all records stay."""
        group: list[Segment] = []
        size = 0
        for index, segment in enumerate(closed):
            if segment.base_offset >= self._end_offset:
                break
            # Offsets in a segment's indexes are int32 from its base offset (LF-56): a real broker would refuse more.
            end = closed[index + 1].base_offset if index + 1 < len(closed) else self._log.base_offset
            is_far = bool(group) and end - group[0].base_offset > RELATIVE_OFFSET_MAX
            if group and (size + segment.size > self._log.segment_bytes or is_far):
                yield group
                group, size = [], 0
            group.append(segment)
            size += segment.size
        if group:
            yield group

    def _clean(self, group: list[Segment]) -> Iterator[Work | None]:
        """Write the retained batches of a group of segments, and replace the group, unless nothing would change."""
        # Named by the first segment, whose place it takes: the name of a segment is its base offset.
        cleaned = _CleanedFile(self._disk, group[0].path + CLEANED_SUFFIX)
        try:
            is_changed = yield from self._write_retained(group, cleaned)
            if not is_changed:
                return  # nothing was dropped: the segment keeps its file
            if cleaned.size:
                cleaned.flush()
                # Before any rename: a name with content that is not durable would replace durable segments.
                yield cleaned.sync
        except Exception:
            cleaned.discard()
            raise
        finally:
            cleaned.close()
        if not cleaned.size:
            if group[0] is self._log.closed_segments()[0]:
                # The oldest segment stays, without content, as in Kafka: the log begins with its base offset.
                yield from self._replace_one(group.pop(0), cleaned)
            else:
                self._disk.remove(cleaned.path)
            yield from self._remove(group)
        elif len(group) == 1:
            yield from self._replace_one(group[0], cleaned)
        else:
            yield from self._replace_several(group, cleaned)

    def _write_retained(self, group: list[Segment], cleaned: _CleanedFile) -> Generator[None, None, bool]:
        """Write the retained batches; return False if a single segment stays as it is.

        The file is created at the first change, and gets the unchanged beginning of the segment then. A compacted
        segment at the beginning of a log, which rarely changes, is so read and not written.
        """
        if len(group) > 1:
            cleaned.open()
        for segment in group:
            file = self._disk.open(segment.path)
            reader = SegmentReader(file, segment.path, segment.size)
            try:
                while reader.has_more():
                    position, begin = reader.position, reader.start
                    # None: unchanged. Bytes: what is left of these batches, maybe nothing.
                    retained = yield from self._filter_next(reader)
                    if retained is not None and not cleaned.is_open:
                        cleaned.open()
                        yield from self._copy_beginning(segment, position, cleaned)
                    if cleaned.is_open:
                        cleaned.put(reader.buffer[begin : reader.start] if retained is None else retained)
                    yield
            finally:
                file.close()
        return cleaned.is_open

    def _filter_next(self, reader: SegmentReader) -> Generator[None, None, bytes | None]:
        """Read the next batches; return their retained bytes, or None if they stay as they are."""
        begin, buffer = reader.start, reader.buffer
        stop, ranges = self._fast.keep(buffer, begin, begin + STEP_SIZE_BYTES, self._end_offset)
        if stop > begin:
            # One range with all bytes means that nothing was dropped.
            reader.start = stop
            return None if ranges == [(begin, stop)] else b"".join([buffer[start:end] for start, end in ranges])
        batch = reader.take()
        if first_offset(batch) >= self._end_offset:
            return None  # not compacted yet: the next compaction decides
        return (yield from self._retained.filter_batch(batch))

    def _copy_beginning(self, segment: Segment, size: int, cleaned: _CleanedFile) -> Iterator[None]:
        file = self._disk.open(segment.path)
        try:
            for position in range(0, size, WRITE_SIZE_BYTES):
                cleaned.put(file.read_at(position, min(WRITE_SIZE_BYTES, size - position)))
                yield
        finally:
            file.close()

    def _remove(self, group: list[Segment]) -> Iterator[Work]:
        """Remove segments without a retained record."""
        disk, log = self._disk, self._log
        # One sync for all of them: a segment that comes back after a power loss has only superseded records.
        for segment in group:
            disk.remove(segment.path)
            log.remove_closed(segment)
            remove_index(disk, segment.path)
        yield partial(disk.sync_directory, log.directory)

    def _replace_one(self, segment: Segment, cleaned: _CleanedFile) -> Iterator[Work]:
        # An atomic replacement: readers that have the old file open go on reading it.
        self._disk.rename(cleaned.path, segment.path)
        self._log.replace_closed(segment, segment.path, cleaned.size)
        yield partial(self._disk.sync_directory, self._log.directory)

    def _replace_several(self, group: list[Segment], cleaned: _CleanedFile) -> Iterator[Work]:
        disk, log = self._disk, self._log
        first, *others = group
        # The steps are those of `interrupted_compaction`, with the list of segments in between.
        swap = first.path + SWAP_SUFFIX
        disk.rename(cleaned.path, swap)
        # With the name durable, a start finishes the replacement, and the old segments may go.
        yield partial(disk.sync_directory, log.directory)
        # The list changes before the files: from now on reads use the new segment, and no reader opens the old ones.
        for segment in others:
            log.remove_closed(segment)
        swapped = log.replace_closed(first, swap, cleaned.size)
        yield partial(remove_segments, disk, log.directory, [segment.path for segment in others])
        yield from self._rename_swap(swapped)

    def _rename_swap(self, segment: Segment) -> Iterator[Work]:
        """Give a segment with a ``.swap`` name its final name; the segments that it replaces are removed."""
        final = segment.path.removesuffix(SWAP_SUFFIX)
        self._disk.rename(segment.path, final)
        self._log.replace_closed(segment, final, segment.size)
        yield partial(self._disk.sync_directory, self._log.directory)


class _CleanedFile:
    """The file for retained batches; `open` creates it, and `close` closes it."""

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path
        self.size = 0
        self._disk = disk
        self._file: File | None = None
        self._buffer: list[bytes] = []
        self._buffer_size = 0

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def open(self) -> None:
        self._file = self._disk.open(self.path, create=True)
        self._file.truncate(0)

    def put(self, data: bytes) -> None:
        self._buffer.append(data)
        self._buffer_size += len(data)
        self.size += len(data)
        # Buffered: a step can retain a few bytes only, and a write for each would cost more than the step.
        if self._buffer_size >= WRITE_SIZE_BYTES:
            self.flush()

    def flush(self) -> None:
        assert self._file is not None, "the file is open"
        data = b"".join(self._buffer)
        self._file.write_at(self.size - len(data), data)
        self._buffer, self._buffer_size = [], 0

    def sync(self) -> None:
        assert self._file is not None, "the file is open"
        self._file.sync()

    def discard(self) -> None:
        """Remove the file; if that fails, the next start does it."""
        if self._file is not None:
            with suppress(OSError):
                self._disk.remove(self.path)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
