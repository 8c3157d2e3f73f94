"""Find partitions and their segments in directories that a broker may be changing (LF-50).

A broker appends to the newest segment and rolls to a new one. Retention renames the oldest segment to ``.deleted``. The
cleaner writes new segments as ``.cleaned``, renames them to ``.swap``, renames the old segments to ``.deleted``, and
then renames the new ones to their final names. So a listed file can be gone when a reader opens it, and between two
renames a segment exists as ``.swap`` only. Readers keep offsets, never paths, and list the directory again to find the
file that holds an offset.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from kproto.errors import NoLog
from kproto.logs.locations import Location, listed, location, names_in, with_listing
from kproto.logs.remote import RemotePath
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.records.segment_files import LOG_SUFFIX, segment_base_offset

PARTITION_NAME = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")
PARTITION_MAX = 2**31 - 1
"""The greatest number of a partition: Kafka's int32."""
SWAP_SUFFIX = ".swap"
LISTINGS_AT_ONCE = 16
"""How many directories of a store are listed at the same time: a listing is mostly waiting."""


class SegmentFile(NamedTuple):
    """A ``.log`` file, as listed."""

    path: Location
    base_offset: int
    is_newest: bool
    """True for the segment to which a broker appends."""

    @property
    def label(self) -> str:
        """The name of the file in messages."""
        return f"{self.path.parent.name}/{self.path.name}"


class PartitionDirectory(NamedTuple):
    """The directory of a partition, or one segment in it."""

    topic: str
    number: int | None
    """None: the directory is not named like a partition."""
    path: Location
    """In a store, perhaps with a listing (`listed`)."""
    only: str | None = None
    """The name of the one segment to read; None: all."""

    def listed(self) -> PartitionDirectory:
        """Return the partition with a new listing; in a store, it knows its segments and their sizes from it.

        Raises:
            OSError, StoreError: the directory cannot be read.
        """
        return self._replace(path=listed(self.path))

    def listed_if_local(self) -> PartitionDirectory:
        """Return the partition, on this machine with a new listing, in a store with the one that it has."""
        return self if isinstance(self.path, RemotePath) else self.listed()

    def with_listing(self) -> PartitionDirectory:
        """Return the partition, in a store with the listing that it has, or a new one."""
        return self._replace(path=with_listing(self.path))

    def segments(self) -> list[SegmentFile]:
        """List the segments by base offset: those that exist now, or those of its listing (`listings_kept`).

        Raises:
            OSError, StoreError: the directory cannot be read.
        """
        found: dict[int, str] = {}
        directory = with_listing(self.path)
        for entry in sorted(names_in(directory), reverse=True):
            name = entry.removesuffix(SWAP_SUFFIX)  # a final name sorts before its .swap, so it comes last and wins
            base_offset = segment_base_offset(name)
            if base_offset is not None:
                found[base_offset] = entry
        newest = max(found, default=None)
        return [
            SegmentFile(directory / name, base_offset, base_offset == newest)
            for base_offset, name in sorted(found.items())
            if self.only in (None, name)
        ]

    def sizes(self) -> list[tuple[SegmentFile, int]]:
        """List the segments with their sizes in bytes."""
        return [(segment, size_of(segment)) for segment in self.segments()]


class Survey(NamedTuple):
    """Counts of what a path holds, from file metadata alone."""

    partitions: int
    files: int
    size: int
    """Bytes of all segments. A broker may not have written all of a newest segment's bytes yet."""


def partition_of_name(name: str) -> tuple[str, int] | None:
    """Return the topic and the number in the name of a partition's directory; None for the name of something else."""
    match = PARTITION_NAME.fullmatch(name)
    if match is None or int(match[2]) > PARTITION_MAX:
        return None
    return match[1], int(match[2])


def find_partitions(path: str, topics: Collection[str] | None = (OFFSETS_TOPIC,)) -> list[PartitionDirectory]:
    """Return the partitions of some topics (None: of all) in a log.dir, by topic and number.

    ``path`` may also be the directory of one partition or one segment: then that partition is returned, whatever its
    topic. A directory that is not named like a partition counts as one of the first topic if it holds segments. It may
    also be a text of several directories of partitions, one on each line: those of the topics are returned.

    Raises:
        NoLog: there is none; the text says what the path holds instead.
        OSError: the path cannot be read.
    """
    default_topic = next(iter(topics or ()), OFFSETS_TOPIC)
    if "\n" in path:
        return _of_topics([_named(location(line), default_topic) for line in path.split("\n")], path, topics)
    root = location(path)
    if not root.exists():
        raise NoLog(f"{path}: no such file or directory")
    if root.is_file():
        if segment_base_offset(root.name) is None:
            raise NoLog(f"{path}: not a segment: the name of a segment is 20 digits and {LOG_SUFFIX}")
        return [_named(root.parent, default_topic)._replace(only=root.name)]
    log_dir = with_listing(root)
    names = names_in(log_dir)
    if any(name.endswith(LOG_SUFFIX) for name in names):
        return [_named(root, default_topic)]
    directories = [log_dir / name for name in names if partition_of_name(name)]
    found = [_named(entry, default_topic) for entry in directories if entry.is_dir()]
    if partition_of_name(root.name) and not found:  # a log.dir may have a name like broker-1
        return [_named(root, default_topic)]
    return _of_topics(found, path, topics)


def _of_topics(found: list[PartitionDirectory], path: str, topics: Collection[str] | None) -> list[PartitionDirectory]:
    wanted = [partition for partition in found if topics is None or partition.topic in topics]
    if not wanted:
        others = ", ".join(sorted({partition.topic for partition in found})[:5])
        there = f"partitions of {others}" if others else "no partition directories"
        like = next(iter(topics or ()), "TOPIC")
        (first, *others_of_path) = path.split("\n")
        shown = f"{first} and {len(others_of_path)} others" if others_of_path else path
        raise NoLog(f"{shown}: no segments and no directories like {like}-0; it holds {there}")
    return sorted(wanted, key=lambda partition: (partition.topic, partition.number))


def with_listings(partitions: Sequence[PartitionDirectory]) -> list[PartitionDirectory]:
    """Return the partitions, those in a store with the listing that they have or a new one.

    Raises:
        OSError, StoreError: a directory cannot be read.
    """
    if not any(isinstance(partition.path, RemotePath) for partition in partitions):
        return list(partitions)
    with ThreadPoolExecutor(LISTINGS_AT_ONCE) as threads:
        return list(threads.map(PartitionDirectory.with_listing, partitions))


def _named(directory: Location, default_topic: str) -> PartitionDirectory:
    named = partition_of_name(directory.name) or partition_of_name(directory.resolve().name)
    if named is None:
        return PartitionDirectory(default_topic, None, directory)
    return PartitionDirectory(*named, directory)


def survey(partitions: list[PartitionDirectory]) -> Survey:
    """Count files and bytes.

    Raises:
        OSError: a directory cannot be read.
    """
    sizes = [size for partition in partitions for _, size in partition.sizes()]
    return Survey(len(partitions), len(sizes), sum(sizes))


def size_of(segment: SegmentFile) -> int:
    """Return the size of a segment in bytes; 0 if it no longer exists."""
    try:
        return segment.path.stat().st_size
    except FileNotFoundError:
        return 0
