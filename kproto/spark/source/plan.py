"""Cut logs into tasks: large segments are split and small ones combined, so that no partition bounds a cluster.

A part is a range of offsets (`OffsetRange`), not a range of a file: the worker that reads it finds the segment that
holds it at that time. Index positions only decide where parts of about equal size begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.datasource import InputPartition

from kproto.errors import NoLog
from kproto.logs.files import SegmentFile, find_partitions, size_of, survey
from kproto.logs.index import OffsetIndex
from kproto.logs.ranges import OffsetRange
from kproto.records.partitioning import OFFSETS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kproto.logs.files import PartitionDirectory
    from kproto.spark.source.options import Options


class Part(NamedTuple):
    """A range and its approximate size in bytes."""

    range: OffsetRange
    size: int


class Task(InputPartition):
    """The ranges that one Spark task reads, of one or more partitions."""

    def __init__(self, ranges: tuple[OffsetRange, ...]) -> None:
        super().__init__(None)
        self.ranges = ranges

    def __repr__(self) -> str:
        return f"Task({self.ranges!r})"


def partitions_of(options: Options) -> list[PartitionDirectory]:
    """Return the partitions that the options select; an empty list only with ``allowEmpty``.

    Raises:
        NoLog: there are no partitions, or all of them are empty.
        OSError: a directory cannot be read.
    """
    try:
        found = find_partitions(options.path, options.topics)
    except NoLog:
        if options.allow_empty:
            return []
        raise
    counted = survey(found)
    if not counted.size and not options.allow_empty:
        reason = f"{counted.partitions} partitions with {counted.files} segments, all empty"
        raise NoLog(f"{options.path}: {reason} (option allowEmpty returns no rows instead of this error)")
    return found


def key_of(partition: PartitionDirectory) -> str:
    """Return the name of a partition in offsets: its number in the offsets topic, its directory in other topics."""
    if partition.topic == OFFSETS_TOPIC and partition.number is not None:
        return str(partition.number)
    return partition.path.name


def offset_for(offsets: Mapping[str, int], partition: PartitionDirectory) -> int | None:
    """Return the offset given for a partition, by number or by directory."""
    return offsets.get(key_of(partition), offsets.get(partition.path.name))


def parts_of(wanted: OffsetRange, part_size: int) -> Iterator[Part]:
    """Yield the parts of a range: at most one segment each, and about ``part_size`` bytes.

    Raises:
        OSError: while iterating: the directory cannot be read.
    """
    start, end = wanted.start_offset, wanted.end_offset
    segments = wanted.partition.segments()
    if not segments:
        return  # nothing has been written to the partition yet
    limits: list[int | None] = [*(segment.base_offset for segment in segments[1:]), None]
    for segment, limit in zip(segments, limits, strict=True):
        if (limit is not None and limit <= start) or (end is not None and segment.base_offset >= end):
            continue
        last = end if limit is None or (end is not None and end < limit) else limit
        first = start if start > segment.base_offset or segment is segments[0] else segment.base_offset
        yield from _parts_of_segment(segment, OffsetRange(wanted.partition, first, last), part_size)


def _parts_of_segment(segment: SegmentFile, wanted: OffsetRange, part_size: int) -> Iterator[Part]:
    size = size_of(segment)
    with OffsetIndex(segment) as index:
        begin = index.last_up_to(wanted.start_offset, column=0)
        position = 0 if begin is None else begin[1]
        if wanted.end_offset is not None and (end := index.last_up_to(wanted.end_offset, column=0)) is not None:
            size = min(size, end[1] + part_size // 16)  # index entries are close together beside the size of a part
        start = wanted.start_offset
        while size - position > 2 * part_size:
            cut = index.last_up_to(position + part_size, column=1)
            if cut is None or cut[1] <= position or cut[0] <= start:
                break
            yield Part(wanted._replace(start_offset=start, end_offset=cut[0]), cut[1] - position)
            start, position = cut
    yield Part(wanted._replace(start_offset=start), max(0, size - position))


def tasks_of(parts: Iterable[Part], task_bytes: int) -> list[Task]:
    """Combine parts, in order, to tasks of about ``task_bytes``.

    There is always one task: of an empty list Spark makes a task of its own, which has no ranges.
    """
    tasks: list[Task] = []
    ranges: list[OffsetRange] = []
    size = 0
    for part in parts:
        if ranges and size + part.size > task_bytes:
            tasks.append(Task(tuple(ranges)))
            ranges, size = [], 0
        ranges.append(part.range)
        size += part.size
    return [*tasks, Task(tuple(ranges))] if ranges or not tasks else tasks
