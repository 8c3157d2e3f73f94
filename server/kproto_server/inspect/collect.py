"""`kproto log collect`: copy from a broker's log.dir what the other commands read, while the broker runs.

Theory of operation. Of the coordinators' topics all segments are copied: older ones whole, the newest one up to its
last whole batch. Of each other topic only the last batches are, as a segment that begins with them: `lag` and `stalled`
need no more than the end of the log. So the copy has the layout of a log.dir.

A file ``collected.json`` in the copy has the inode and the size of each copied segment, and the position of its last
batch. A broker appends to a segment, truncates it, or replaces it by a file of the same name. So a segment with the
same inode whose last copied batch is still in its place has only new bytes behind it; any other is copied again, to a
file beside the copy that replaces it at the end.

The copy can lie in an object store, where an object cannot grow: a segment with new bytes is uploaded again, in parts.
An object appears when its upload ends, whole or not at all, which replaces the rename.

A segment can be gone when it is opened, and the cleaner replaces several segments by one. So the directory is listed
again at the end, and what differs from the first list is copied once more. Files that the broker no longer has are
removed last. Nothing is locked or written in the log.dir.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import DecodeError, UsageError
from kproto.logs.files import PartitionDirectory, find_partitions, survey
from kproto.logs.identity import BROKER_FILE, TOPIC_FILE
from kproto.logs.index import tail_of
from kproto.logs.locations import LocalFile, Location, is_remote, local_path, names_in, open_file
from kproto.logs.remote import RemotePath, check_written
from kproto.records.batch_header import HEADER_SIZE, LOG_OVERHEAD
from kproto.records.batches import batch_end, batch_size
from kproto.records.segment_files import (
    CLEANED,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_SUFFIX,
    START_OFFSETS,
    segment_base_offset,
    segment_name,
)
from kproto_server.inspect.directory import TOPICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kproto.logs.files import SegmentFile
    from kproto.logs.locations import LogFile
    from kproto_server.inspect.progress import Progress

    Notify = Callable[[str], None]
    Listing = list[tuple[int, int]]
    """Base offset and inode of each segment."""

COLLECTED = "collected.json"
PART_SUFFIX = ".part"
LOG_DIR_FILES = (BROKER_FILE, HIGH_WATERMARKS, START_OFFSETS, CLEANED)
PARTITION_FILES = (LEADER_EPOCHS, TOPIC_FILE)
CHUNK_BYTES = 1 << 20
LISTINGS_MAX = 10
"""How often a directory is listed before a copy is left as it is: a busy broker rolls or cleans every few seconds."""

BUSY = "{}: the broker replaces its segments all the time; collect again"


class CopiedSegment(NamedTuple):
    """A segment of the log.dir, as far as it is copied."""

    inode: int
    size: int
    """Copied bytes."""
    last: int
    """Position of the last copied batch, in bytes."""


class Collected(NamedTuple):
    """Counts of what a run has copied."""

    partitions: int
    """Partitions of the coordinators' topics."""
    ends: int
    """Partitions of other topics, of which the last batches are copied."""
    new_bytes: int
    size: int
    """Bytes of all copied segments of the coordinators' topics."""
    destination: str

    def __str__(self) -> str:
        return (
            f"{self.new_bytes} bytes copied to {self.destination}: it has {self.size} bytes of coordinators' logs "
            f"(partitions: {self.partitions}), and the ends of other logs (partitions: {self.ends})"
        )


def collect(source: str, destination: str, note: Notify, progress: Callable[[int], Progress]) -> Collected:
    """Copy what is new in a log.dir to a directory; ``progress`` makes the bar for a number of bytes.

    Raises:
        NoLog: there are no partitions in the log.dir.
        UsageError: the directory is no copy that this function has made, or cannot be written.
        OSError: a file of the log.dir cannot be read.
    """
    if is_remote(source):
        raise UsageError(f"{source}: give the log.dir of a broker on this machine")
    partitions = find_partitions(source, None)
    if local_path(source).is_file():
        raise UsageError(f"{source} is a file: give a log.dir")
    coordinators = [partition for partition in partitions if partition.topic in TOPICS]
    others = [partition for partition in partitions if partition.topic not in TOPICS]
    bar = progress(survey(coordinators).size)

    def note_below(text: str) -> None:
        bar.clear()
        note(text)

    copy = Copy(_destination(source, destination), bar)
    try:
        for partition in coordinators:
            copy.segments_of(partition, note_below)
        for partition in others:
            copy.end_of(partition, note_below)
        for name in LOG_DIR_FILES:
            copy.small_file(local_path(source) / name, name)
        copy.save()
    finally:
        bar.clear()
    for name in copy.stale(partitions):
        note(f"{name} is no longer in the log.dir; its copy stays")
    size = sum(copied.size for copied in copy.copied.values())
    return Collected(len(coordinators), len(others), copy.new_bytes, size, destination)


def _destination(source: str, destination: str) -> Location:
    """Return the directory of the copy, made if necessary.

    Raises:
        UsageError: it cannot be made, or holds something else.
    """
    if is_remote(destination):
        return _destination_in_store(destination)
    log_dir, target = local_path(source).resolve(), local_path(destination).resolve()
    if target == log_dir or log_dir in target.parents or target in log_dir.parents:
        raise UsageError(f"{destination} and the log.dir lie in each other: give a directory apart")
    try:
        target.mkdir(parents=True, exist_ok=True)
        if any(target.iterdir()) and not (target / COLLECTED).exists():
            raise UsageError(f"{destination} is not empty, and no copy of a log.dir: give another directory")
        if not (target / COLLECTED).exists():
            _write(target / COLLECTED, b"{}")
    except OSError as error:
        raise UsageError(f"can't write {destination}: {error.strerror}") from None
    return target


def _destination_in_store(destination: str) -> RemotePath:
    check_written(destination)
    target = RemotePath(destination)
    if not (target / COLLECTED).exists():
        if target.exists():
            raise UsageError(f"{destination} is not empty, and no copy of a log.dir: give another directory")
        (target / COLLECTED).write([b"{}"])
    return target


class NewBytes:
    """The bytes of a segment that are not copied yet. Iterate once, then read `size` and `last`."""

    def __init__(self, source: LogFile, known: CopiedSegment | None, *, is_newest: bool) -> None:
        self.size: int = known.size if known else 0
        self.last: int = known.last if known else 0
        self._source = source
        self._is_newest = is_newest

    def __iter__(self) -> Iterator[bytes]:
        for data, last_start in _whole_batches(self._source, self.size):
            self.last = self.size + last_start
            self.size += len(data)
            yield data
        if not self._is_newest:  # a broker appends to the newest only: what else is here stays
            self._source.seek(self.size)
            while data := self._source.read(CHUNK_BYTES):
                self.size += len(data)
                yield data


class Copy:
    """The copy of a log.dir."""

    def __init__(self, directory: Location, bar: Progress) -> None:
        self.directory: Location = directory
        self.copied: dict[str, CopiedSegment] = _read_copied(directory / COLLECTED)
        """By path within the copy."""
        self.new_bytes: int = 0
        self._bar = bar

    def save(self) -> None:
        """Write which segments are copied."""
        _write(self.directory / COLLECTED, json.dumps(self.copied, indent=0).encode())

    def stale(self, partitions: list[PartitionDirectory]) -> list[str]:
        """Return the names of the copied directories that are none of these partitions."""
        names = {entry.name for entry in self.directory.iterdir() if entry.is_dir()}
        return sorted(names - {partition.path.name for partition in partitions})

    def segments_of(self, partition: PartitionDirectory, note: Notify) -> None:
        """Copy what is new in all segments of a partition."""
        folder = self._folder(partition)
        for _ in range(LISTINGS_MAX):
            try:
                segments = partition.segments()
                listed = [(segment.base_offset, self._copy(segment, folder)) for segment in segments]
                if _listing(partition)[: len(listed)] == listed:
                    break
            except FileNotFoundError:  # the broker has replaced or removed a segment
                continue
        else:
            note(BUSY.format(folder.name))
            return
        self._keep_only(folder, {segment_name(segment.base_offset) for segment in segments})

    def end_of(self, partition: PartitionDirectory, note: Notify) -> None:
        """Copy the last batches of a partition, as a segment that begins with them."""
        folder = self._folder(partition)
        for _ in range(LISTINGS_MAX):
            try:
                tail = tail_of(partition)
                if tail is None:
                    self._keep_only(folder, set())
                    return
                with open_file(tail.segment.path) as file:
                    data = b"".join(data for data, _ in _whole_batches(file, tail.position))
                break
            except FileNotFoundError:
                continue
        else:
            note(BUSY.format(folder.name))
            return
        name = segment_name(tail.first_offset)
        if _write_new(folder / name, data):
            self.new_bytes += len(data)
        self._keep_only(folder, {name})

    def small_file(self, path: Location, name: str) -> None:
        """Copy a checkpoint, if it exists."""
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return
        _write_new(self.directory / name, data)

    def _folder(self, partition: PartitionDirectory) -> Location:
        folder = self.directory / partition.path.name
        if isinstance(folder, Path):
            folder.mkdir(exist_ok=True)
        for name in PARTITION_FILES:
            self.small_file(partition.path / name, f"{partition.path.name}/{name}")
        return folder

    def _keep_only(self, folder: Location, names: set[str]) -> None:
        """Remove the copies of other segments, and what an interrupted run has left."""
        if isinstance(folder, RemotePath) and not folder.exists():  # without objects there is no directory
            return
        for name in sorted(names_in(folder)):
            is_segment = name.endswith(LOG_SUFFIX) and segment_base_offset(name) is not None
            if name.endswith(PART_SUFFIX) or (is_segment and name not in names):
                (folder / name).unlink()
                self.copied.pop(f"{folder.name}/{name}", None)

    def _copy(self, segment: SegmentFile, folder: Location) -> int:
        """Copy what is new in a segment; return its inode."""
        name = segment_name(segment.base_offset)
        key = f"{folder.name}/{name}"
        with LocalFile(str(segment.path)) as source:
            inode = os.fstat(source.fileno()).st_ino
            known = self.copied.get(key)
            if known is not None and not _is_beginning(known, inode, source, folder / name):
                known = None
            new = NewBytes(source, known, is_newest=segment.is_newest)
            if isinstance(folder, RemotePath):
                if known is not None and next(iter(new), None) is None:
                    self._bar.add(known.size)
                    return inode
                new = NewBytes(source, None, is_newest=segment.is_newest)
                (folder / name).write(self._counted(new))
            else:
                self._append(folder / name, new, is_known=known is not None)
        self.copied[key] = CopiedSegment(inode, new.size, new.last)
        return inode

    def _append(self, path: Path, new: NewBytes, *, is_known: bool) -> None:
        target = path if is_known else path.with_name(f"{path.name}{PART_SUFFIX}")
        with open(target, "r+b" if is_known else "wb") as copy:
            self._bar.add(new.size)
            copy.truncate(new.size)
            copy.seek(new.size)
            for data in self._counted(new):
                copy.write(data)
        if not is_known:
            target.replace(path)

    def _counted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for data in pieces:
            yield data
            self._count(len(data))

    def _count(self, size: int) -> None:
        self.new_bytes += size
        self._bar.add(size)


def _listing(partition: PartitionDirectory) -> Listing:
    return [(segment.base_offset, os.stat(str(segment.path)).st_ino) for segment in partition.segments()]


def _is_beginning(known: CopiedSegment, inode: int, source: LogFile, copy: Location) -> bool:
    """Return whether a copy is the beginning of a segment: its last batch, checksum included, is still in its place."""
    if known.inode != inode:
        return False
    compared = min(HEADER_SIZE, known.size - known.last)
    try:
        with open_file(copy) as file:
            its = file.pread(compared, known.last)
            return file.size >= known.size and its == source.pread(compared, known.last)
    except FileNotFoundError:
        return False


def _whole_batches(source: LogFile, position: int) -> Iterator[tuple[bytes, int]]:
    """Yield pieces of whole batches from a position on, and the position of the last batch in each piece.

    They end before a batch that is not whole, or that has an impossible size.
    """
    source.seek(position)
    data = b""
    wanted = CHUNK_BYTES
    while chunk := source.read(wanted):
        data += chunk
        end = last = 0
        has_ended = False
        try:
            while (following := batch_end(data, end)) is not None:
                end, last = following, end
        except DecodeError:  # zeros of a preallocated file; or damage, and `kproto log verify` says which
            has_ended = True
        if end:
            yield data[:end], last
            data = data[end:]
        if has_ended:
            return
        wanted = (
            max(CHUNK_BYTES, batch_size(data) + LOG_OVERHEAD - len(data)) if len(data) >= LOG_OVERHEAD else CHUNK_BYTES
        )


def _read_copied(path: Location) -> dict[str, CopiedSegment]:
    """Read the file of a copy. What is damaged is copied again."""
    try:
        return {str(name): CopiedSegment(*map(int, values)) for name, values in json.loads(path.read_bytes()).items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def _write_new(path: Location, data: bytes) -> bool:
    """Replace the content of a file if it differs; return whether it did."""
    try:
        if path.read_bytes() == data:
            return False
    except FileNotFoundError:
        pass
    _write(path, data)
    return True


def _write(path: Location, data: bytes) -> None:
    """Replace the content of a file, completely or not at all."""
    if isinstance(path, RemotePath):
        path.write([data])
        return
    part = path.with_name(f"{path.name}{PART_SUFFIX}")
    part.write_bytes(data)
    part.replace(path)
