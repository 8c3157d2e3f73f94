"""The files next to a segment: names, indexes, and the checkpoints of a partition and a log directory (LF-50 to
LF-55)."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from kproto.errors import DecodeError

LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX = ".log", ".index", ".timeindex"
LEADER_EPOCHS = "leader-epoch-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED = "cleaner-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
"""The start offset of each log that begins within a segment (LF-55)."""
UNFINISHED_SUFFIXES = (".cleaned", ".swap")
"""Suffixes of the files that an interrupted compaction leaves (LF-63). Files that end in ``.deleted`` are garbage."""

NAME_DIGITS = 20
INDEX_ENTRY_SIZE, TIME_INDEX_ENTRY_SIZE = 8, 12
CHECKPOINT_VERSION = 0
NUMBER_DIGITS_MAX = 19
"""Digits of the largest int64."""


class IndexEntry(NamedTuple):
    """The last offset of a batch, relative to the segment's base offset, and the position of that batch."""

    relative_offset: int
    position: int


class TimeIndexEntry(NamedTuple):
    """The greatest timestamp so far, and the relative offset of its batch."""

    timestamp: int
    relative_offset: int


def segment_name(base_offset: int, suffix: str = LOG_SUFFIX) -> str:
    """Return the name of a file of a segment."""
    return f"{base_offset:0{NAME_DIGITS}}{suffix}"


def segment_base_offset(name: str) -> int | None:
    """Return the base offset in the name of a ``.log`` file; None if the name is not that of a segment."""
    found = re.fullmatch(rf"([0-9]{{{NAME_DIGITS}}}){re.escape(LOG_SUFFIX)}", name)
    return int(found[1]) if found and int(found[1]) < 1 << 63 else None


def index_entry(data: bytes) -> IndexEntry:
    """Return an entry of an ``.index`` file from its 8 bytes."""
    return IndexEntry(_signed(data[:4]), _signed(data[4:8]))


def time_index_entry(data: bytes) -> TimeIndexEntry:
    """Return an entry of a ``.timeindex`` file from its 12 bytes."""
    return TimeIndexEntry(_signed(data[:8]), _signed(data[8:12]))


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


class LeaderEpochs:
    """The leader epochs of a partition and the offset with which each begins."""

    def __init__(self, starts: dict[int, int]) -> None:
        self._epochs = sorted(starts)
        self._offsets = [starts[epoch] for epoch in self._epochs]

    def problem(self, epoch: int, first_offset: int, last_offset: int) -> str | None:
        """Return what is wrong with a batch of this epoch; None if it is right."""
        index = bisect_right(self._epochs, epoch) - 1
        if index < 0 or self._epochs[index] != epoch:
            return f"leader epoch {epoch} is not in {LEADER_EPOCHS}"
        if first_offset < self._offsets[index]:
            return f"leader epoch {epoch} begins with offset {self._offsets[index]} in {LEADER_EPOCHS}"
        if index + 1 < len(self._epochs) and last_offset >= self._offsets[index + 1]:
            return f"leader epoch {epoch} ends before offset {self._offsets[index + 1]} in {LEADER_EPOCHS}"
        return None


def read_leader_epochs(text: str) -> LeaderEpochs:
    """Return the content of a ``leader-epoch-checkpoint``: lines of ``epoch start_offset``.

    Raises:
        DecodeError: a line is malformed, or epochs or offsets do not rise; ``position`` is the line's number.
    """
    starts: dict[int, int] = {}
    last = (-1, -1)
    for number, line in _checkpoint_lines(text, LEADER_EPOCHS):
        words = line.split()
        if len(words) != 2 or not all(map(_is_number, words)):
            raise DecodeError(LEADER_EPOCHS, number, f"{line!r} is not an epoch and an offset")
        epoch, offset = map(int, words)
        if epoch <= last[0] or offset < last[1]:
            raise DecodeError(LEADER_EPOCHS, number, f"epoch {epoch} from offset {offset} is out of order")
        starts[epoch] = offset
        last = epoch, offset
    return LeaderEpochs(starts)


def partitions_in_checkpoint(text: str, topic: str) -> set[int]:
    """Return the partitions of a topic that a log directory's checkpoint lists: lines of ``topic partition offset``.

    Raises:
        DecodeError: a line is malformed; ``position`` is the line's number.
    """
    return {partition for name, partition in offsets_in_checkpoint(text, HIGH_WATERMARKS) if name == topic}


def offsets_in_checkpoint(text: str, name: str) -> dict[tuple[str, int], int]:
    """Return the offset of each topic and partition in a checkpoint of a log directory, whose file has this name.

    Raises:
        DecodeError: a line is malformed; ``position`` is the line's number.
    """
    found = {}
    for number, line in _checkpoint_lines(text, name):
        words = line.split()
        if len(words) != 3 or not all(map(_is_number, words[1:])):
            raise DecodeError(name, number, f"{line!r} is not a topic, a partition and an offset")
        found[words[0], int(words[1])] = int(words[2])
    return found


def _checkpoint_lines(text: str, name: str) -> list[tuple[int, str]]:
    """Return ``(number, line)`` for each line after version and count; as in Kafka, an empty file has none."""
    lines = text.splitlines()
    if not lines:
        return []
    if len(lines) < 2 or lines[0] != str(CHECKPOINT_VERSION):
        raise DecodeError(name, 1, f"does not begin with version {CHECKPOINT_VERSION} and a count")
    if lines[1] != str(len(lines) - 2):
        raise DecodeError(name, 2, f"{lines[1]!r} lines announced, there are {len(lines) - 2}")
    return list(enumerate(lines[2:], 3))


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= NUMBER_DIGITS_MAX
