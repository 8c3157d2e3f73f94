"""The clean shutdown marker: the end, the segments and the start offset of each log (server/FORMAT.md).

A start trusts a log that ends where the marker says, and reads nothing of it. So it compares the names and sizes of all
segments with the marker: a segment that is missing or shorter was lost after the shutdown, and no crash explains that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.records.segment_files import START_OFFSETS, segment_name
from kproto_server.storage.checkpoints import LogPosition, is_number, lines_of, write_lines
from kproto_server.storage.disk import require_directory, require_file
from kproto_server.storage.interrupted_compaction import SWAP_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from kproto_server.storage.checkpoints import PartitionOffsets
    from kproto_server.storage.disk import Disk
    from kproto_server.storage.partition_log import PartitionLog

CLEAN_SHUTDOWN = "kproto.clean"
START = "@"
"""Before the start offset in a line."""


class CleanEnd(NamedTuple):
    """A log at the clean shutdown."""

    end: LogPosition
    segments: tuple[tuple[int, int], ...] = ()
    """Base offset and size of each segment that is not empty; none if a compaction was interrupted."""
    start_offset: int | None = None
    """The offset of the log in ``log-start-offset-checkpoint``, 0 if it had none; None: unknown."""


CleanEnds = dict[tuple[str, int], CleanEnd]


def clean_end(disk: Disk, log: PartitionLog, start_offset: int) -> CleanEnd:
    """Return the end of a log whose writes are durable; ``start_offset``: as in `CleanEnd`."""
    is_compacted = any(name.endswith(SWAP_SUFFIX) for name in disk.names(log.directory))
    segments = () if is_compacted else tuple((one.base_offset, one.size) for one in log.segments() if one.size)
    return CleanEnd(log.recovery_point, segments, start_offset)


def write_clean_ends(ends: CleanEnds) -> bytes:
    """Return the content of ``kproto.clean``."""
    return write_lines(
        " ".join([topic, str(partition), *map(str, found.end), *_optional_fields(found)])
        for (topic, partition), found in sorted(ends.items())
    )


def _optional_fields(found: CleanEnd) -> list[str]:
    segments = [f"{base}:{size}" for base, size in found.segments]
    return segments if found.start_offset is None else [*segments, f"{START}{found.start_offset}"]


def read_clean_ends(data: bytes) -> CleanEnds:
    """Return the ends of ``kproto.clean``, without lines that are malformed."""
    ends: CleanEnds = {}
    for topic, *fields in filter(None, lines_of(data)):
        start = fields.pop().removeprefix(START) if fields and fields[-1].startswith(START) else None
        numbers = [number for field in fields for number in field.split(":")]
        if (
            len(fields) >= 4
            and len(numbers) == 2 * len(fields) - 4
            and all(map(is_number, [*numbers, "0" if start is None else start]))
        ):
            partition, *values = map(int, numbers)
            segments = tuple(zip(values[3::2], values[4::2], strict=True))
            ends[topic, partition] = CleanEnd(LogPosition(*values[:3]), segments, None if start is None else int(start))
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
        start_offset = start_offsets.get(key, 0)
        if start_offset > found.end.offset:
            problem = f"{directory} begins with offset {start_offset}, but it ended at {found.end.offset}"
            yield key, f"{START_OFFSETS}: {problem}"
        elif found.start_offset not in (None, start_offset):
            problem = f"{directory} began with offset {found.start_offset} at the clean shutdown, not {start_offset}"
            yield key, f"{START_OFFSETS}: {problem}"


def _expected(found: CleanEnd) -> Iterable[tuple[str, int]]:
    """Return the name and the size of each segment that must be there: the newest one even if it is empty."""
    sizes = dict(found.segments)
    if found.end.offset and sizes:
        sizes.setdefault(found.end.base_offset, 0)
    return ((segment_name(base), size) for base, size in sizes.items())
