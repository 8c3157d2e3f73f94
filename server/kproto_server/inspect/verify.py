"""`kproto log verify`: check every invariant of a log, up to the first violation (server/INSPECT.md lists them)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import CorruptLog, DecodeError
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.records.segment_files import (
    INDEX_ENTRY_SIZE,
    INDEX_SUFFIX,
    LEADER_EPOCHS,
    TIME_INDEX_ENTRY_SIZE,
    TIME_INDEX_SUFFIX,
    LeaderEpochs,
    index_entry,
    read_leader_epochs,
    time_index_entry,
)
from kproto_server.inspect.batches import SegmentBatches
from kproto_server.inspect.checks import PartitionCheck
from kproto_server.inspect.directory import partition_count, segments_of, unfinished_files
from kproto_server.inspect.index_checks import IndexCheck, TimeIndexCheck
from kproto_server.inspect.index_files import IndexEntries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kproto.logs.files import PartitionDirectory, SegmentFile
    from kproto.logs.locations import Location

    Notify = Callable[[str], None]


class Verified(NamedTuple):
    """Counts of what was read and is valid."""

    partitions: int
    segments: int
    batches: int
    records: int

    def __str__(self) -> str:
        names = ("partition", "segment", "batch", "record")
        counts = ", ".join(_counted(count, name) for count, name in zip(self, names, strict=True))
        return f"valid: {counts}"


def verify(
    logs: Iterable[PartitionDirectory], *, partitions: int | None, note: Notify, progress: Callable[[int], None]
) -> Verified:
    """Check the logs; return the counts.

    ``partitions`` is the partition count of the offsets topic (None: found out). ``note`` receives what is remarkable
    but valid, ``progress`` the number of bytes that were read.

    Raises:
        CorruptLog: the first violation.
        MissingPackage: a compression needs a package that is not installed.
        OSError: a file cannot be read.
    """
    totals = [0, 0, 0, 0]
    for log in logs:
        segments = segments_of(log)
        check = _verify_log(log, segments, partitions, note, progress)
        for index, count in enumerate((1, len(segments), check.batch_count, check.record_count)):
            totals[index] += count
    return Verified(*totals)


def _verify_log(
    log: PartitionDirectory,
    segments: list[SegmentFile],
    partitions: int | None,
    note: Notify,
    progress: Callable[[int], None],
) -> PartitionCheck:
    count = (partitions if log.topic == OFFSETS_TOPIC else None) or partition_count(log)
    epochs = _leader_epochs(log.path)
    check = PartitionCheck(log.topic, log.number, count, epochs)
    for segment in segments:
        _verify_segment(segment, check, note, progress)
    name = log.path.name
    if check.unknown_types:
        note(f"{name}: records of unknown types were not decoded: {_listed(check.unknown_types)}")
    if count is None or log.number is None:
        note(f"{name}: the partition count of the topic is unknown, so the partition of each group was not checked")
    if epochs is None:
        note(f"{name}: no {LEADER_EPOCHS}, so epochs were not checked")
    if unfinished := unfinished_files(log):
        note(f"{name}: files of an interrupted compaction were not read: {', '.join(unfinished)}")
    return check


def _verify_segment(segment: SegmentFile, check: PartitionCheck, note: Notify, progress: Callable[[int], None]) -> None:
    batches = SegmentBatches(segment, progress)
    indexes = _index_checks(segment)
    check.begin_segment(segment)
    for placed in batches:
        extent = check.batch(placed)
        for index in indexes:
            index.batch(extent)
    for index in indexes:
        index.end(batches.torn is not None)
    if batches.torn is not None:
        note(str(batches.torn))


def _index_checks(segment: SegmentFile) -> list[IndexCheck | TimeIndexCheck]:
    """Return checks of the index files that exist; a broker rebuilds missing ones (LF-52)."""
    base, is_newest = segment.base_offset, segment.is_newest
    found: list[IndexCheck | TimeIndexCheck] = []
    path = segment.path.with_suffix(INDEX_SUFFIX)
    if path.is_file():
        found.append(IndexCheck(base, IndexEntries(path, index_entry, INDEX_ENTRY_SIZE, is_newest=is_newest)))
    path = segment.path.with_suffix(TIME_INDEX_SUFFIX)
    if path.is_file():
        entries = IndexEntries(path, time_index_entry, TIME_INDEX_ENTRY_SIZE, is_newest=is_newest)
        found.append(TimeIndexCheck(base, entries))
    return found


def _leader_epochs(directory: Location) -> LeaderEpochs | None:
    path = directory / LEADER_EPOCHS
    if not path.is_file():
        return None
    try:
        return read_leader_epochs(path.read_text("utf-8", "replace"))
    except DecodeError as error:
        raise CorruptLog(f"{directory.name}/{LEADER_EPOCHS}", error.position, None, error.reason, unit="line") from None


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _counted(count: int, name: str) -> str:
    plural = "es" if name == "batch" else "s"
    return f"{count} {name}{'' if count == 1 else plural}"
