"""Cut logs into tasks: large segments are split and small ones combined, so that no partition bounds a cluster.

A part is a range of offsets (`OffsetRange`), not a range of a file: the worker that reads it finds the segment that
holds it at that time. Index positions only decide where parts of about equal size begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import NoLog
from kproto.logs.files import SegmentFile, find_partitions, size_of, survey, with_listings
from kproto.logs.index import OffsetIndex
from kproto.logs.ranges import OffsetRange
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.spark.source.pruning import pruned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kproto.logs.files import PartitionDirectory
    from kproto.spark.source.options import Options
    from kproto.spark.source.pruning import Wanted


class Part(NamedTuple):
    """A range and its approximate size in bytes."""

    range: OffsetRange
    size: int


def partitions_of(options: Options) -> list[PartitionDirectory]:
    """Return the partitions that the options select; an empty list only with ``allowEmpty``.

    Raises:
        NoLog: there are no partitions, or all of them are empty.
        OSError: a directory cannot be read.
    """
    try:
        found = with_listings(find_partitions(options.path, options.topics))
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


def parts_to_read(options: Options, wanted: Wanted) -> Iterator[Part]:
    """Yield what a read of a whole log has to read, beside what filters leave out.

    Raises:
        NoLog: there is nothing to read, unless ``allowEmpty``.
        OSError: the log cannot be listed.
    """
    found = partitions_of(options)
    if options.scan is not None:
        read = [partition for partition in found if options.scan.reads(partition)]
    else:
        of_log = options.view in ("batches", "coverage")
        read = pruned(found, wanted, count=options.partitions, of_log=of_log)
    for partition in read:
        yield from _parts_of_partition(partition, options)


def _parts_of_partition(partition: PartitionDirectory, options: Options) -> Iterable[Part]:
    start, end = options.starting_offsets, options.ending_offsets
    first = (0 if isinstance(start, str) else offset_for(start, partition)) or 0
    last = None if isinstance(end, str) else offset_for(end, partition)
    parts = parts_of(OffsetRange(partition, first, last), options.task_bytes)
    if options.view != "latest":
        return parts
    size = sum(part.size for part in parts)  # view latest needs all of a partition in one task
    return [Part(OffsetRange(partition, first, last), size)]


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
    if size <= 2 * part_size and wanted.start_offset <= segment.base_offset:
        yield Part(wanted, size)  # one part, whatever the index says: in a store, opening it takes two requests
        return
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
            after = cut[0] + 1  # an entry has the last offset of its batch: no batch is in two parts
            yield Part(wanted._replace(start_offset=start, end_offset=after), cut[1] - position)
            start, position = after, cut[1]
    yield Part(wanted._replace(start_offset=start), max(0, size - position))
