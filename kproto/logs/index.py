"""Search the ``.index`` of a segment: an offset, and a position from which to look for it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import DecodeError
from kproto.logs.locations import open_file
from kproto.records.batch_header import LOG_OVERHEAD
from kproto.records.batches import SIZE_MIN, batch_size, first_offset, read_batch
from kproto.records.segment import BATCH_SIZE_MAX
from kproto.records.segment_files import INDEX_ENTRY_SIZE, INDEX_SUFFIX, LOG_SUFFIX, index_entry

if TYPE_CHECKING:
    from kproto.logs.files import PartitionDirectory, SegmentFile
    from kproto.logs.locations import LogFile

OFFSET_MAX = 2**63 - 1


class OffsetIndex:
    """The entries of an ``.index``; none if the file is missing. A context manager that closes the file.

    The index of the newest segment is preallocated, by default 10 MiB, with zeros after the entries. A binary search
    therefore reads entries one by one instead of loading the file.
    """

    def __init__(self, segment: SegmentFile) -> None:
        self._base_offset = segment.base_offset
        name = segment.path.name.replace(LOG_SUFFIX, INDEX_SUFFIX)
        self._file: LogFile | None = None
        with suppress(FileNotFoundError):
            self._file = open_file(segment.path.parent / name)

    def __enter__(self) -> OffsetIndex:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._file is not None:
            self._file.close()

    def entry(self, number: int) -> tuple[int, int] | None:
        """Return ``(offset, position)`` of an entry; None after the last one, and for one that is damaged."""
        assert self._file is not None, "the file has a size, so it is open"
        data = self._file.pread(INDEX_ENTRY_SIZE, number * INDEX_ENTRY_SIZE)
        if len(data) < INDEX_ENTRY_SIZE or not any(data):
            return None
        entry = index_entry(data)
        if entry.relative_offset < 0 or entry.position < 0:
            return None
        return self._base_offset + entry.relative_offset, entry.position

    def last_up_to(self, limit: int, *, column: int) -> tuple[int, int] | None:
        """Return the last entry whose offset (column 0) or position (column 1) is at most ``limit``."""
        if self._file is None:
            return None
        found = None
        low, high = 0, self._file.size // INDEX_ENTRY_SIZE
        while low < high:
            middle = (low + high) // 2
            entry = self.entry(middle)
            if entry is not None and entry[column] <= limit:
                found, low = entry, middle + 1
            else:
                high = middle
        return found


def position_of(segment: SegmentFile, file: LogFile, offset: int) -> int:
    """Return the position of a batch before which all offsets are lower than ``offset``; 0 if none is known.

    The index is only a hint: the cleaner may have replaced it after ``file`` was opened. An entry counts if a
    whole batch with a valid checksum is at its position and begins at ``offset`` or lower.
    """
    if offset <= segment.base_offset:
        return 0
    with OffsetIndex(segment) as index:
        entry = index.last_up_to(offset, column=0)
    if entry is None:
        return 0
    position = entry[1]
    head = file.pread(LOG_OVERHEAD, position)
    if len(head) < LOG_OVERHEAD or not segment.base_offset <= first_offset(head, 0) <= offset:
        return 0
    size = batch_size(head)
    if not SIZE_MIN <= size <= BATCH_SIZE_MAX:
        return 0
    try:
        found = read_batch(file.pread(LOG_OVERHEAD + size, position))
    except DecodeError:
        return 0
    return 0 if found is None else position


class Tail(NamedTuple):
    """A batch close to the end of a log: everything before it can be left out to find the end."""

    segment: SegmentFile
    position: int
    """Of the batch in its segment, in bytes."""
    first_offset: int
    """Of the batch, or the base offset of the segment."""


def tail_of(partition: PartitionDirectory) -> Tail | None:
    """Return the last batch that the index of a log's newest segment has, or the beginning of that segment.

    None: the directory has no segments.

    Raises:
        OSError: the directory or its newest segment cannot be read.
    """
    segments = partition.segments()
    if not segments:
        return None
    newest = segments[-1]
    beginning = Tail(newest, 0, newest.base_offset)
    with OffsetIndex(newest) as index:
        entry = index.last_up_to(OFFSET_MAX, column=0)
    if entry is None:
        return beginning
    with open_file(newest.path) as file:
        position = position_of(newest, file, entry[0])
        if position == 0:
            return beginning
        return Tail(newest, position, first_offset(file.pread(LOG_OVERHEAD, position)))


def tail_offset(partition: PartitionDirectory) -> int | None:
    """Return the first offset of the tail of a log (`tail_of`); None if the directory has no segments."""
    tail = tail_of(partition)
    return None if tail is None else tail.first_offset
