"""Finding logs on a disk that a broker may be changing: directories of partitions, and the segments of one (LF-50).

What a broker does to them. It appends to the newest segment; it rolls to a new one; retention renames the oldest to
``.deleted``; the cleaner writes new ones beside the old (``.cleaned``), renames them to ``.swap``, renames the old ones
to ``.deleted`` and the ``.swap`` to its final name. So between two renames a segment may be there as ``.swap`` alone.
Nobody may rest on a path that was listed before: places in a log are offsets, and what holds them is looked up anew.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from kproto.errors import DecodeError, NoLog
from kproto.records.batches import LOG_OVERHEAD, SIZE_POSITION, read_batch
from kproto.records.segment_files import INDEX_ENTRY_SIZE, INDEX_SUFFIX, LOG_SUFFIX, index_entry, segment_base_offset
from kproto.spark.decode.blocks import first_field

OFFSETS_TOPIC = "__consumer_offsets"
PARTITION_NAME = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")
SWAP_SUFFIX = ".swap"


class SegmentFile(NamedTuple):
    """A ``.log`` file as it was listed."""

    path: Path
    base_offset: int
    is_newest: bool
    """Whether a broker appends to it."""

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"{self.path.parent.name}/{self.path.name}"


class Partition(NamedTuple):
    """A directory with the log of a partition, or one segment of it."""

    topic: str
    number: int | None
    """None: the directory's name does not tell."""
    path: Path
    only: str | None = None
    """Name of the one segment that was asked for."""

    def segments(self) -> list[SegmentFile]:
        """Return the segments that are there now, by their base offset.

        Raises:
            OSError: the directory can't be read.
        """
        found: dict[int, str] = {}
        for entry in sorted(os.listdir(self.path), reverse=True):
            name = entry.removesuffix(SWAP_SUFFIX)  # a final name comes after its .swap, and wins
            base_offset = segment_base_offset(name)
            if base_offset is not None:
                found[base_offset] = entry
        newest = max(found, default=None)
        return [
            SegmentFile(self.path / name, base_offset, base_offset == newest)
            for base_offset, name in sorted(found.items())
            if self.only in (None, name)
        ]

    def sizes(self) -> list[tuple[SegmentFile, int]]:
        """Return the segments and their bytes."""
        return [(segment, size_of(segment)) for segment in self.segments()]


class Survey(NamedTuple):
    """What a path holds, by its files alone."""

    partitions: int
    files: int
    size: int
    """Bytes of all segments; those of a newest segment may not be written yet."""


def find_partitions(path: str, topic: str | None = OFFSETS_TOPIC) -> list[Partition]:
    """Return the partitions of a topic (None: of all topics) in a log.dir; or the one whose directory or segment it is.

    A directory that is not named as partitions are counts as one of the topic asked for, if it holds segments.

    Raises:
        NoLog: there is none; the text says what is there instead.
    """
    place = local_path(path)
    if not place.exists():
        raise NoLog(f"{path}: no such file or directory")
    if place.is_file():
        if segment_base_offset(place.name) is None:
            raise NoLog(f"{path}: no segment: those are named by 20 digits and {LOG_SUFFIX}")
        return [_named(place.parent, topic)._replace(only=place.name)]
    if any(place.glob(f"*{LOG_SUFFIX}")) or PARTITION_NAME.fullmatch(place.name):
        return [_named(place, topic)]
    directories = [entry for entry in place.iterdir() if entry.is_dir() and PARTITION_NAME.fullmatch(entry.name)]
    found = [_named(entry, None) for entry in directories]
    wanted = [partition for partition in found if topic in (None, partition.topic)]
    if not wanted:
        others = ", ".join(sorted({partition.topic for partition in found})[:5])
        there = f"partitions of {others}" if others else "no directories like that"
        raise NoLog(f"{path}: no segments and no directories like {topic or 'TOPIC'}-0 in it; it has {there}")
    return sorted(wanted, key=lambda partition: (partition.topic, partition.number))


def local_path(path: str) -> Path:
    """Return the path; ``file:`` URLs have one too.

    Raises:
        NoLog: the path is of another kind of store.
    """
    scheme, colon, rest = path.partition(":")
    if colon and len(scheme) > 1 and "/" not in scheme:
        if scheme != "file":
            raise NoLog(f"{path}: only directories that each worker can open are read; mount it, or copy it to a disk")
        path = re.sub("^//[^/]*/", "/", rest)
    return Path(path).absolute()


def _named(directory: Path, topic: str | None) -> Partition:
    match = PARTITION_NAME.fullmatch(directory.name)
    if match is None:
        return Partition(topic or OFFSETS_TOPIC, None, directory)
    return Partition(match[1], int(match[2]), directory)


def survey(partitions: list[Partition]) -> Survey:
    """Count files and bytes.

    Raises:
        OSError: a directory can't be read.
    """
    files = size = 0
    for partition in partitions:
        for _, segment_size in partition.sizes():
            files += 1
            size += segment_size
    return Survey(len(partitions), files, size)


def size_of(segment: SegmentFile) -> int:
    """Return the bytes of a segment; 0 if it is gone."""
    try:
        return segment.path.stat().st_size
    except FileNotFoundError:
        return 0


class OffsetIndex:
    """A segment's ``.index``: offsets, and positions at which to look for them. Without the file it has no entries.

    Behind the entries may stand zeros: that of the newest segment is preallocated, to 10 MiB by default. So entries
    are read one by one, as a search needs them.
    """

    def __init__(self, segment: SegmentFile) -> None:
        self._base_offset = segment.base_offset
        name = segment.path.name.replace(LOG_SUFFIX, INDEX_SUFFIX)
        self._file: FileIO | None = None
        with suppress(FileNotFoundError):
            self._file = FileIO(segment.path.parent / name)

    def __enter__(self) -> OffsetIndex:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._file is not None:
            self._file.close()

    def entry(self, number: int) -> tuple[int, int] | None:
        """Return ``(offset, position)``; None behind the last entry."""
        assert self._file is not None, "the caller asked for the size"
        data = os.pread(self._file.fileno(), INDEX_ENTRY_SIZE, number * INDEX_ENTRY_SIZE)
        if len(data) < INDEX_ENTRY_SIZE or not any(data):
            return None
        entry = index_entry(data)
        return self._base_offset + entry.relative_offset, entry.position

    def before(self, place: int, *, column: int) -> tuple[int, int] | None:
        """Return the last entry whose offset (column 0) or position (column 1) is not above ``place``."""
        if self._file is None:
            return None
        found = None
        low, high = 0, os.fstat(self._file.fileno()).st_size // INDEX_ENTRY_SIZE
        while low < high:
            middle = (low + high) // 2
            entry = self.entry(middle)
            if entry is not None and entry[column] <= place:
                found, low = entry, middle + 1
            else:
                high = middle
        return found


def position_of(segment: SegmentFile, descriptor: int, offset: int) -> int:
    """Return a position at which a batch begins, before which all offsets are below this one; 0 if none is known.

    An index may be of another generation of the segment than the file that is open. So it is a hint: what it points
    at has to be a whole batch with the right checksum, and one of a lower or the same offset.
    """
    if offset <= segment.base_offset:
        return 0
    with OffsetIndex(segment) as index:
        entry = index.before(offset, column=0)
    if entry is None:
        return 0
    position = entry[1]
    head = os.pread(descriptor, LOG_OVERHEAD, position)
    if len(head) < LOG_OVERHEAD or not segment.base_offset <= first_field(head, 0) <= offset:
        return 0
    try:
        found = read_batch(os.pread(descriptor, LOG_OVERHEAD + int.from_bytes(head[SIZE_POSITION:], "big"), position))
    except DecodeError:
        return 0
    return 0 if found is None else position
