"""Cutting logs into tasks: parts of segments, small ones put together, so that no partition bounds a cluster.

A part is a range of offsets (`kproto.spark.decode.reading.Range`), not of a file: whoever reads it finds the segment
that has it then. Positions in indexes only tell where about equal parts begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.datasource import InputPartition

from kproto.spark.decode.files import OFFSETS_TOPIC, OffsetIndex, SegmentFile, size_of
from kproto.spark.decode.reading import Range

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kproto.spark.decode.files import Partition


class Part(NamedTuple):
    """A range, and about how many bytes it has."""

    range: Range
    size: int


class Task(InputPartition):
    """What one Spark task reads: ranges of one or more partitions."""

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        super().__init__(None)
        self.ranges = ranges

    def __repr__(self) -> str:
        return f"Task({self.ranges!r})"


def key_of(partition: Partition) -> str:
    """Return how offsets name a partition: by number in the offsets topic, by directory in others."""
    if partition.topic == OFFSETS_TOPIC and partition.number is not None:
        return str(partition.number)
    return partition.path.name


def offset_for(offsets: Mapping[str, int], partition: Partition) -> int | None:
    """Return the offset that is given for a partition, by number or by directory."""
    return offsets.get(key_of(partition), offsets.get(partition.path.name))


def parts_of(wanted: Range, part_size: int) -> Iterator[Part]:
    """Yield the parts of a range: at most a segment each, and about ``part_size`` bytes.

    Raises:
        OSError: while iterating: the directory can't be read.
    """
    start, end = wanted.start_offset, wanted.end_offset
    segments = wanted.partition.segments()
    if not segments:
        return  # a partition that nothing was written to yet
    limits: list[int | None] = [*(segment.base_offset for segment in segments[1:]), None]
    for segment, limit in zip(segments, limits, strict=True):
        if (limit is not None and limit <= start) or (end is not None and segment.base_offset >= end):
            continue
        last = end if limit is None or (end is not None and end < limit) else limit
        first = start if start > segment.base_offset or segment is segments[0] else segment.base_offset
        yield from _parts_of_segment(segment, Range(wanted.partition, first, last), part_size)


def _parts_of_segment(segment: SegmentFile, wanted: Range, part_size: int) -> Iterator[Part]:
    size = size_of(segment)
    with OffsetIndex(segment) as index:
        begin = index.before(wanted.start_offset, column=0)
        position = 0 if begin is None else begin[1]
        if wanted.end_offset is not None and (end := index.before(wanted.end_offset, column=0)) is not None:
            size = min(size, end[1] + part_size // 16)  # what is behind the entry is small beside a part
        start = wanted.start_offset
        while size - position > 2 * part_size:
            cut = index.before(position + part_size, column=1)
            if cut is None or cut[1] <= position or cut[0] <= start:
                break
            yield Part(wanted._replace(start_offset=start, end_offset=cut[0]), cut[1] - position)
            start, position = cut
    yield Part(wanted._replace(start_offset=start), max(0, size - position))


def tasks_of(parts: Iterable[Part], task_bytes: int) -> list[Task]:
    """Put parts together to tasks of about so many bytes, in order.

    There is always one: of no tasks, Spark makes one of its own, without any ranges.
    """
    tasks: list[Task] = []
    ranges: list[Range] = []
    size = 0
    for part in parts:
        if ranges and size + part.size > task_bytes:
            tasks.append(Task(tuple(ranges)))
            ranges, size = [], 0
        ranges.append(part.range)
        size += part.size
    return [*tasks, Task(tuple(ranges))] if ranges or not tasks else tasks
