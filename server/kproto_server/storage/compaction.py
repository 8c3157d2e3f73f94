"""Compaction: of every key the newest record stays, and what stays keeps its offset (LF-70 to LF-72).

Theory of operation. Only closed segments are touched, and only what is on the disk for good: up to the recovery point,
and up to the first transaction that has not ended. A first pass notes the keys of what was written since the last
compaction, as many as memory may take; a second one goes through all segments from the first, and `Survivors` says what
stays. Neighbours that are small are made one segment.

Cleaned content is written beside, synced, and takes the place of the old by a rename, the oldest segments first; so
there is never a tombstone gone before what is older. Where several segments become one, their content first gets the
name ``.swap``, durably; from then on a start does the rest (LF-63): removes the old ones, and gives it the name of the
first. A crash at any moment leaves a log that says the same.

Work is done in steps of a millisecond or so. What blocks is yielded, for a thread to do.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.records.segment import RELATIVE_OFFSET_MAX
from kproto_server.storage.fast_retained_records import FastRetainedRecords
from kproto_server.storage.interrupted_compaction import CLEANED_SUFFIX, SWAP_SUFFIX, finish_compaction, finish_swap
from kproto_server.storage.kafka_files import remove_index
from kproto_server.storage.retained_records import RetainedRecords
from kproto_server.storage.segment_reader import SegmentReader, first_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from kproto_server.storage.disk import Disk, File
    from kproto_server.storage.log_writer import LogWriter
    from kproto_server.storage.partition_log import PartitionLog, Segment

    Work = Callable[[], object]

STEP_SIZE = 24 << 10
"""Octets of the log that are gone through in one step: 250 small commits, at 2 microseconds each."""
WRITE_SIZE = 128 << 10
KEYS_MAX = 500_000
"""Keys noted in one pass, at about 200 bytes each; where there are more, a pass ends sooner, and the next one goes on
from there."""


class CompactionSettings(NamedTuple):
    """What the settings say."""

    delete_retention_ms: int
    """`delete.retention.ms`."""
    min_dirty_ratio: float
    """`min.cleanable.dirty.ratio`."""


class CompactionResult(NamedTuple):
    """What a compaction has done."""

    first_dirty_offset: int
    """Up to where the log is clean now."""
    size_before: int
    size_after: int


class Compaction:
    """One compaction of one log; `run` is a generator of its steps."""

    def __init__(
        self,
        disk: Disk,
        log: PartitionLog,
        writer: LogWriter[Any],
        terms: CompactionSettings,
        now_ms: int,
        *,
        keys_max: int = KEYS_MAX,
    ) -> None:
        self._disk = disk
        self._log = log
        self._writer = writer
        self._keys_max = keys_max
        self._survivors = RetainedRecords(now_ms, terms.delete_retention_ms)
        self._quick = FastRetainedRecords(self._survivors.newest)
        self._end_offset = 0
        """What is at it or after it is left as it is."""
        self.result: CompactionResult | None = None

    def run(self) -> Generator[Work | None]:
        """Go through all of it; yields None between small steps, and work that blocks, to be done before the next.

        Raises:
            DecodeError: while iterating: a segment is damaged. This and all others leave the log saying what it said.
            MissingPackage: while iterating: a compression needs a package that is not installed.
            OSError: while iterating: something can't be read or written.
        """
        log = self._log
        yield partial(finish_compaction, self._disk, log.directory)
        sync = self._writer.begin_sync(log) if log.closed_segments() else None
        if sync is not None:
            yield sync.run
            if not self._writer.end_sync(sync):
                return
        # Recovery looks at nothing below the recovery point: it would miss in a segment what compaction took out.
        self._end_offset = min(log.base_offset, log.synced.offset)
        closed = [segment for segment in log.closed_segments() if segment.base_offset < self._end_offset]
        if not closed:
            return
        yield lambda: self._writer.points.note({(log.topic, log.partition): log.synced})
        before = log.size
        yield from self._note_keys(closed)
        for group in self._groups(closed):
            yield from self._clean(group)
        self.result = CompactionResult(self._end_offset, before, log.size)

    # The first pass.

    def _note_keys(self, closed: list[Segment]) -> Iterator[None]:
        first_dirty = self._log.first_dirty_offset
        following = [segment.base_offset for segment in closed[1:]] + [self._end_offset]
        for segment, end in zip(closed, following, strict=True):
            if end > first_dirty:
                is_over = yield from self._note_segment(segment, first_dirty)
                if is_over:
                    break
        self._quick.settle()
        first_open = self._survivors.first_open
        if first_open is not None:
            self._end_offset = min(self._end_offset, first_open)

    def _note_segment(self, segment: Segment, first_dirty: int) -> Generator[None, None, bool]:
        """Return whether there is no room for more keys."""
        survivors = self._survivors
        reader = SegmentReader(self._disk, segment.path, segment.size)
        try:
            while reader.has_more():
                begin = reader.start
                if survivors.key_count >= self._keys_max:
                    self._end_offset = first_offset(reader.held[begin:])
                    return True
                reader.start = self._quick.note(reader.held, begin, begin + STEP_SIZE, first_dirty)
                if reader.start == begin:
                    batch = reader.take()
                    if first_offset(batch) >= first_dirty:
                        yield from survivors.note(batch)
                yield
        finally:
            reader.close()
        return False

    # The second pass.

    def _groups(self, closed: list[Segment]) -> Iterator[list[Segment]]:
        """Yield the segments that are made one."""
        group: list[Segment] = []
        size = 0
        for number, segment in enumerate(closed):
            if segment.base_offset >= self._end_offset:
                break
            end = closed[number + 1].base_offset if number + 1 < len(closed) else self._log.base_offset
            is_far = bool(group) and end - group[0].base_offset > RELATIVE_OFFSET_MAX
            if group and (size + segment.size > self._log.segment_bytes or is_far):
                yield group
                group, size = [], 0
            group.append(segment)
            size += segment.size
        if group:
            yield group

    def _clean(self, group: list[Segment]) -> Iterator[Work | None]:
        """Rewrite a group of segments, if it has to be."""
        output = _Output(self._disk, group[0].path + CLEANED_SUFFIX)
        try:
            changed = yield from self._rewrite(group, output)
            if not changed:
                return
            if output.size:
                output.flush()
                yield output.sync
        except Exception:
            output.discard()
            raise
        finally:
            output.close()
        if not output.size:
            yield from self._drop(group)
        elif len(group) == 1:
            yield from self._replace(group[0], output)
        else:
            yield from self._merge(group, output)

    def _rewrite(self, group: list[Segment], output: _Output) -> Generator[None, None, bool]:
        """Write what stays; return whether that is anything else than what there was."""
        if len(group) > 1:
            output.open()
        for segment in group:
            reader = SegmentReader(self._disk, segment.path, segment.size)
            try:
                while reader.has_more():
                    position, begin = reader.position, reader.start
                    stays = yield from self._step(reader)
                    if stays is not None and not output.is_open:
                        output.open()
                        yield from self._copy(segment, position, output)
                    if output.is_open:
                        output.put(reader.held[begin : reader.start] if stays is None else stays)
                    yield
            finally:
                reader.close()
        return output.is_open

    def _step(self, reader: SegmentReader) -> Generator[None, None, bytes | None]:
        """Go through some batches, or one; return what becomes of them, None: they stay as they are."""
        survivors, begin, held = self._survivors, reader.start, reader.held
        stop, ranges = self._quick.keep(held, begin, begin + STEP_SIZE, self._end_offset)
        if stop > begin:
            reader.start = stop
            return None if ranges == [(begin, stop)] else b"".join([held[start:end] for start, end in ranges])
        batch = reader.take()
        if first_offset(batch) >= self._end_offset:
            return None
        return (yield from survivors.what_stays(batch))

    def _copy(self, segment: Segment, size: int, output: _Output) -> Iterator[None]:
        """Write the beginning of a segment, which stays as it is."""
        file = self._disk.open(segment.path)
        try:
            for position in range(0, size, WRITE_SIZE):
                output.put(file.read_at(position, min(WRITE_SIZE, size - position)))
                yield
        finally:
            file.close()

    def _drop(self, group: list[Segment]) -> Iterator[Work]:
        """Nothing is left of these."""
        disk, log = self._disk, self._log
        with suppress(FileNotFoundError):
            disk.remove(group[0].path + CLEANED_SUFFIX)
        for segment in group:
            disk.remove(segment.path)
            remove_index(disk, segment.path)
            log.replace_closed(segment, 0)
        yield partial(disk.sync_directory, log.directory)

    def _replace(self, segment: Segment, output: _Output) -> Iterator[Work]:
        self._disk.rename(output.path, segment.path)
        self._log.replace_closed(segment, output.size)
        yield partial(self._disk.sync_directory, self._log.directory)

    def _merge(self, group: list[Segment], output: _Output) -> Iterator[Work]:
        """Have one segment take the place of several; nobody reads them meanwhile."""
        disk, directory = self._disk, self._log.directory
        swap = group[0].path + SWAP_SUFFIX
        disk.rename(output.path, swap)
        yield partial(disk.sync_directory, directory)
        for segment in group[1:]:
            self._log.replace_closed(segment, 0)
        self._log.replace_closed(group[0], output.size)
        yield partial(finish_swap, disk, directory, swap, [segment.path for segment in group])


class _Output:
    """The file that cleaned content is written to; made when there is some."""

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path
        self.size = 0
        self._disk = disk
        self._file: File | None = None
        self._waiting: list[bytes] = []
        self._waiting_size = 0

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def open(self) -> None:
        self._file = self._disk.open(self.path, create=True)
        self._file.truncate(0)

    def put(self, octets: bytes) -> None:
        self._waiting.append(octets)
        self._waiting_size += len(octets)
        self.size += len(octets)
        if self._waiting_size >= WRITE_SIZE:
            self.flush()

    def flush(self) -> None:
        assert self._file is not None, "it is open"
        octets = b"".join(self._waiting)
        self._file.write_at(self.size - len(octets), octets)
        self._waiting, self._waiting_size = [], 0

    def sync(self) -> None:
        assert self._file is not None, "it is open"
        self._file.sync()

    def discard(self) -> None:
        """Remove the file, if that can be done; the next start does it."""
        if self._file is not None:
            with suppress(OSError):
                self._disk.remove(self.path)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
