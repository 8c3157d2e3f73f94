"""The clean shutdown marker: the end and the segments of each log, and what a start finds of them (server/FORMAT.md).

A start trusts a log that ends where the marker says, and reads nothing of it. So it compares the names and sizes of all
segments with the marker: a segment that is missing or shorter was lost after the shutdown, and no crash explains that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.records.segment_files import segment_name
from kproto_server.storage.checkpoints import LogPosition, is_number, lines_of, write_lines
from kproto_server.storage.disk import require_directory, require_file
from kproto_server.storage.interrupted_compaction import SWAP_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from kproto_server.storage.checkpoints import PartitionOffsets
    from kproto_server.storage.disk import Disk
    from kproto_server.storage.partition_log import PartitionLog

CLEAN_SHUTDOWN = "kproto.clean"


class CleanEnd(NamedTuple):
    """A log at the clean shutdown."""

    end: LogPosition
    segments: tuple[tuple[int, int], ...] = ()
    """Base offset and size of each segment that is not empty; none if a compaction was interrupted."""


CleanEnds = dict[tuple[str, int], CleanEnd]


def clean_end(disk: Disk, log: PartitionLog) -> CleanEnd:
    """Return the end of a log whose writes are durable."""
    is_compacted = any(name.endswith(SWAP_SUFFIX) for name in disk.names(log.directory))
    segments = () if is_compacted else tuple((one.base_offset, one.size) for one in log.segments() if one.size)
    return CleanEnd(log.recovery_point, segments)


def write_clean_ends(ends: CleanEnds) -> bytes:
    """Return the content of ``kproto.clean``."""
    return write_lines(
        " ".join([topic, str(partition), *map(str, found.end), *(f"{base}:{size}" for base, size in found.segments)])
        for (topic, partition), found in sorted(ends.items())
    )


def read_clean_ends(data: bytes) -> CleanEnds:
    """Return the ends of ``kproto.clean``, without lines that are malformed."""
    ends: CleanEnds = {}
    for topic, *fields in filter(None, lines_of(data)):
        numbers = [number for field in fields for number in field.split(":")]
        if len(fields) >= 4 and len(numbers) == 2 * len(fields) - 4 and all(map(is_number, numbers)):
            partition, *values = map(int, numbers)
            segments = tuple(zip(values[3::2], values[4::2], strict=True))
            ends[topic, partition] = CleanEnd(LogPosition(*values[:3]), segments)
    return ends


def losses(
    disk: Disk, ends: CleanEnds, keys: Collection[tuple[str, int]], start_offsets: PartitionOffsets
) -> Iterator[tuple[tuple[str, int], str]]:
    """Yield each log that has lost something since the clean shutdown, and what; ``keys``: the logs of the topics."""
    for (topic, partition), found in ends.items():
        directory = f"{topic}-{partition}"
        key = topic, partition
        if found.end.offset and key not in keys:
            yield key, f"topics.json has no {directory}, which had records at the clean shutdown"
            continue
        require_directory(disk, directory)
        sizes = {name: disk.size_of(f"{directory}/{name}") for name in disk.names(directory) if name.endswith(".log")}
        for name, size in _expected(found):
            if name not in sizes:
                yield key, f"{directory}/{name} with {size} bytes is missing since the clean shutdown"
            elif require_file(disk, f"{directory}/{name}") and sizes[name] < size:
                yield key, f"{directory}/{name} has {sizes[name]} of the {size} bytes of the clean shutdown"
        if start_offsets.get(key, 0) > found.end.offset:
            yield (
                key,
                (
                    f"log-start-offset-checkpoint: {directory} begins with offset {start_offsets[key]}, "
                    f"but it ended at {found.end.offset}"
                ),
            )


def _expected(found: CleanEnd) -> Iterable[tuple[str, int]]:
    """Return the name and the size of each segment that must be there: the newest one even if it is empty."""
    sizes = dict(found.segments)
    if found.end.offset and sizes:
        sizes.setdefault(found.end.base_offset, 0)
    return ((segment_name(base), size) for base, size in sizes.items())
