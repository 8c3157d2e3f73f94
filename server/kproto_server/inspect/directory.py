"""Find the logs to inspect, and the files beside their segments (LF-50, LF-55)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import CorruptLog, DecodeError, NoLog
from kproto.logs.files import find_partitions, partition_of_name
from kproto.logs.locations import names_in
from kproto.records.partitioning import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from kproto.records.segment_files import (
    HIGH_WATERMARKS,
    LOG_SUFFIX,
    UNFINISHED_SUFFIXES,
    partitions_in_checkpoint,
    segment_base_offset,
)

if TYPE_CHECKING:
    from kproto.logs.files import PartitionDirectory, SegmentFile

TOPICS = (OFFSETS_TOPIC, TRANSACTION_TOPIC, SHARE_STATE_TOPIC)


def find_logs(path: str, number: int | None = None) -> list[PartitionDirectory]:
    """Return the logs of the coordinators' topics in a path; of one partition if ``number`` is given.

    Raises:
        NoLog: there is none.
        CorruptLog: a segment has an invalid name.
        OSError: the path cannot be read.
    """
    logs = with_number(find_partitions(path, TOPICS), path, number)
    for log in logs:
        for name in names_in(log.path):
            if log.only is None and name.endswith(LOG_SUFFIX) and segment_base_offset(name) is None:
                label = f"{log.path.name}/{name}"
                raise CorruptLog(label, 0, None, f"the name of a segment is 20 digits and {LOG_SUFFIX}")
    return logs


def with_number(logs: list[PartitionDirectory], path: str, number: int | None) -> list[PartitionDirectory]:
    """Return the logs of the partition ``number``; all if it is None.

    Raises:
        NoLog: there is none.
    """
    found = [log for log in logs if number in (None, log.number)]
    if not found:
        raise NoLog(f"{path!r} holds no partition {number}")
    return found


def segments_of(log: PartitionDirectory) -> list[SegmentFile]:
    """Return the segments of a log, without those of an interrupted compaction (`unfinished_files`)."""
    return [segment for segment in log.segments() if segment.path.suffix == LOG_SUFFIX]


def unfinished_files(log: PartitionDirectory) -> list[str]:
    """Return the names of the files that an interrupted compaction left; they are not read."""
    return sorted(name for name in names_in(log.path) if name.endswith(UNFINISHED_SUFFIXES))


def partition_count(log: PartitionDirectory) -> int | None:
    """Return the partition count of the log's topic; None if the log.dir does not show it.

    A log.dir may hold only some partitions of a topic; the first N are taken for all. A single directory shows nothing,
    unless the checkpoint of the log.dir has that partition alone.

    Raises:
        CorruptLog: the checkpoint of the log.dir is malformed.
        OSError: a file cannot be read.
    """
    if log.number is None:
        return None
    log_dir = log.path.resolve().parent
    found = (partition_of_name(entry.name) for entry in log_dir.iterdir() if entry.is_dir())
    numbers = {named[1] for named in found if named and named[0] == log.topic}
    checkpoint = log_dir / HIGH_WATERMARKS
    text = checkpoint.read_text("utf-8", "replace") if checkpoint.is_file() else ""
    if text:  # a broker creates the file empty at its first start, and writes it seconds later
        try:
            numbers |= partitions_in_checkpoint(text, log.topic)
        except DecodeError as error:
            raise CorruptLog(HIGH_WATERMARKS, error.position, None, error.reason, unit="line") from None
    elif len(numbers) == 1:
        return None
    return len(numbers) if numbers == set(range(len(numbers))) else None
