"""Finding logs: a segment, the directory of a partition, or a log.dir that holds such directories (LF-50, LF-55)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from kproto.errors import CorruptLog, DecodeError, NoLog
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.records.segment_files import (
    HIGH_WATERMARKS,
    LOG_SUFFIX,
    UNFINISHED_SUFFIXES,
    partitions_in_checkpoint,
    segment_base_offset,
)

TRANSACTIONS_TOPIC = "__transaction_state"
TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
PARTITION_NAME = re.compile(rf"({'|'.join(TOPICS)})-(0|[1-9][0-9]{{0,9}})")


class Segment(NamedTuple):
    """One ``.log`` file."""

    path: Path
    base_offset: int
    is_last: bool
    """Whether it is the newest of its partition, to which a broker appends."""

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"{self.path.parent.name}/{self.path.name}"


class PartitionLog(NamedTuple):
    """The log of one partition, or one segment of it."""

    topic: str
    partition: int | None
    """None: the directory's name does not tell."""
    path: Path
    segments: tuple[Segment, ...]

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.path.stat().st_size for segment in self.segments)

    def unfinished_files(self) -> list[str]:
        """Return the names of what an interrupted compaction left; they are not read."""
        return sorted(path.name for path in self.path.iterdir() if path.name.endswith(UNFINISHED_SUFFIXES))


def find_logs(name: str, partition: int | None = None) -> list[PartitionLog]:
    """Return the logs that a path holds, in the order of topics and partitions; those of one partition if asked.

    Raises:
        NoLog: there is none.
        CorruptLog: a segment is not named as segments are.
        OSError: it can't be read.
    """
    path = Path(name).resolve()
    if not path.exists():
        raise NoLog(f"can't read {name!r}: No such file or directory")
    if path.is_file():
        logs = [_log_of_file(path)]
    elif any(path.glob(f"*{LOG_SUFFIX}")) or PARTITION_NAME.fullmatch(path.name):
        logs = [_log_of_directory(path)]
    else:
        logs = sorted(map(_log_of_directory, partition_directories(path)), key=lambda log: (log.topic, log.partition))
    if not logs:
        raise NoLog(f"{name!r} holds no segments and no directories like {OFFSETS_TOPIC}-0")
    if partition is not None:
        logs = [log for log in logs if log.partition == partition]
        if not logs:
            raise NoLog(f"{name!r} holds no partition {partition}")
    return logs


def partition_directories(log_dir: Path) -> list[Path]:
    """Return the directories of partitions of the coordinators' topics."""
    return [path for path in log_dir.iterdir() if path.is_dir() and PARTITION_NAME.fullmatch(path.name)]


def partition_count(log: PartitionLog) -> int | None:
    """Return how many partitions the log's topic has, as far as its log.dir tells.

    A log.dir may hold some of a topic's partitions only; if it holds the first N, those are taken for all. One
    directory by itself tells nothing, unless the log.dir's checkpoint says that it was alone.

    Raises:
        CorruptLog: the log.dir's checkpoint does not have its form.
        OSError: it can't be read.
    """
    if log.partition is None:
        return None
    log_dir = log.path.parent
    matches = (PARTITION_NAME.fullmatch(path.name) for path in partition_directories(log_dir))
    numbers = {int(match[2]) for match in matches if match and match[1] == log.topic}
    checkpoint = log_dir / HIGH_WATERMARKS
    text = checkpoint.read_text("utf-8", "replace") if checkpoint.is_file() else ""
    if text:  # a broker makes it empty when it starts for the first time, and writes to it seconds later
        try:
            numbers |= partitions_in_checkpoint(text, log.topic)
        except DecodeError as error:
            raise CorruptLog(HIGH_WATERMARKS, error.position, None, error.reason, unit="line") from None
    elif len(numbers) == 1:
        return None
    return len(numbers) if numbers == set(range(len(numbers))) else None


def _log_of_file(path: Path) -> PartitionLog:
    base_offset = segment_base_offset(path.name)
    if base_offset is None:
        raise NoLog(f"{path.name!r} is no segment: those are 20 digits and {LOG_SUFFIX}")
    later = (segment_base_offset(other.name) for other in path.parent.glob(f"*{LOG_SUFFIX}"))
    is_last = all(offset is None or offset <= base_offset for offset in later)
    return _log(path.parent, (Segment(path, base_offset, is_last),))


def _log_of_directory(path: Path) -> PartitionLog:
    found: list[tuple[int, Path]] = []
    for file in path.glob(f"*{LOG_SUFFIX}"):
        base_offset = segment_base_offset(file.name)
        if base_offset is None:
            raise CorruptLog(f"{path.name}/{file.name}", 0, None, f"a segment's name is 20 digits and {LOG_SUFFIX}")
        found.append((base_offset, file))
    found.sort()
    newest = found[-1][0] if found else None
    return _log(path, tuple(Segment(file, offset, offset == newest) for offset, file in found))


def _log(path: Path, segments: tuple[Segment, ...]) -> PartitionLog:
    match = PARTITION_NAME.fullmatch(path.name)
    if match is None:
        return PartitionLog(OFFSETS_TOPIC, None, path, segments)
    return PartitionLog(match[1], int(match[2]), path, segments)
