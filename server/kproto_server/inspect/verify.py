"""`kproto log verify`: every invariant of a log, up to the first that does not hold (server/LOG.md lists them)."""

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
from kproto_server.inspect.checks import Broken, PartitionCheck
from kproto_server.inspect.directory import partition_count
from kproto_server.inspect.index_checks import BrokenEntry, IndexCheck, TimeIndexCheck
from kproto_server.inspect.index_files import entries
from kproto_server.inspect.walk import SegmentWalk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from kproto_server.inspect.checks import Extent
    from kproto_server.inspect.directory import PartitionLog, Segment


class Verified(NamedTuple):
    """What was read and found right."""

    partitions: int
    segments: int
    batches: int
    records: int

    def __str__(self) -> str:
        names = ("partition", "segment", "batch", "record")
        counts = ", ".join(_counted(count, name) for count, name in zip(self, names, strict=True))
        return f"valid: {counts}"


def verify(
    logs: Iterable[PartitionLog],
    *,
    partitions: int | None,
    note: Callable[[str], None],
    read: Callable[[int], None],
) -> Verified:
    """Check the logs and return what was read.

    ``partitions`` is the count of the offsets topic's, None: found out; ``note`` is told what is remarkable and no
    violation, ``read`` how many bytes of segments were read.

    Raises:
        CorruptLog: the first thing that does not hold.
        MissingPackage: a compression needs a package that is not installed.
        OSError: a file can't be read.
    """
    totals = [0, 0, 0, 0]
    for log in logs:
        check = _verify_log(log, partitions, note, read)
        for index, count in enumerate((1, len(log.segments), check.batch_count, check.record_count)):
            totals[index] += count
    return Verified(*totals)


def _verify_log(
    log: PartitionLog, partitions: int | None, note: Callable[[str], None], read: Callable[[int], None]
) -> PartitionCheck:
    told = partitions if log.topic == OFFSETS_TOPIC else None
    count = told or partition_count(log)
    epochs = _leader_epochs(log.path)
    check = PartitionCheck(log.topic, log.partition, count, epochs)
    for segment in log.segments:
        _verify_segment(segment, check, note, read)
    name = log.path.name
    if check.unknown_types:
        note(f"{name}: record types {_listed(check.unknown_types)} are not known, their records were not read")
    if count is None or log.partition is None:
        note(f"{name}: the topic's number of partitions is not known, that of each group was not checked")
    if epochs is None:
        note(f"{name}: no {LEADER_EPOCHS}, epochs were not checked")
    if unfinished := log.unfinished_files():
        note(f"{name}: a compaction was interrupted, not read: {', '.join(unfinished)}")
    return check


def _verify_segment(
    segment: Segment, check: PartitionCheck, note: Callable[[str], None], read: Callable[[int], None]
) -> None:
    walk = SegmentWalk(segment, read)
    indexes = _indexes(segment)
    try:
        check.begin_segment(segment.base_offset)
    except Broken as broken:
        raise walk.corrupt(0, broken.offset, broken.reason) from None
    for placed in walk:
        try:
            extent = check.batch(placed)
        except Broken as broken:
            raise walk.corrupt(placed.position, broken.offset, broken.reason) from None
        for index in indexes:
            index.batch(extent)
    for index in indexes:
        index.end(walk.torn is not None)
    if walk.torn is not None:
        note(str(walk.torn))


class _IndexFile:
    """An index file beside a segment, checked; what is wrong gets the file's name."""

    def __init__(self, path: Path, size: int, make: Callable[[], IndexCheck | TimeIndexCheck]) -> None:
        self._label = f"{path.parent.name}/{path.name}"
        self._size = size
        self._check = make()

    def batch(self, extent: Extent) -> None:
        try:
            self._check.batch(extent)
        except BrokenEntry as broken:
            raise self._corrupt(broken) from None

    def end(self, torn: bool) -> None:
        try:
            self._check.end(torn)
        except BrokenEntry as broken:
            raise self._corrupt(broken) from None

    def _corrupt(self, broken: BrokenEntry) -> CorruptLog:
        return CorruptLog(self._label, broken.number * self._size, None, broken.reason)


def _indexes(segment: Segment) -> list[_IndexFile]:
    """Return checks of the index files that are there; a broker makes missing ones again (LF-52)."""
    base, is_last = segment.base_offset, segment.is_last
    found = []
    path = segment.path.with_suffix(INDEX_SUFFIX)
    if path.is_file():
        read = entries(path, index_entry, INDEX_ENTRY_SIZE, is_last=is_last)
        found.append(_IndexFile(path, INDEX_ENTRY_SIZE, lambda: IndexCheck(base, read)))
    time_path = segment.path.with_suffix(TIME_INDEX_SUFFIX)
    if time_path.is_file():
        read_time = entries(time_path, time_index_entry, TIME_INDEX_ENTRY_SIZE, is_last=is_last)
        found.append(_IndexFile(time_path, TIME_INDEX_ENTRY_SIZE, lambda: TimeIndexCheck(base, read_time)))
    return found


def _leader_epochs(directory: Path) -> LeaderEpochs | None:
    path = directory / LEADER_EPOCHS
    if not path.is_file():
        return None
    try:
        return read_leader_epochs(path.read_text("utf-8", "replace"))
    except DecodeError as error:
        label = f"{directory.name}/{LEADER_EPOCHS}"
        raise CorruptLog(label, error.position, None, error.reason, unit="line") from None


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _counted(count: int, name: str) -> str:
    plural = "es" if name == "batch" else "s"
    return f"{count} {name}{'' if count == 1 else plural}"
