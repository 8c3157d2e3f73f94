"""The small text files of a data directory, in Kafka's form (LF-53 to LF-55): a version, a count, then lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION = "0"
RECOVERY_POINTS = "kproto.recovery"
"""Not by Kafka's name: a real broker would take indexes for right that it finds below these offsets."""
CLEANER_POINTS = "cleaner-offset-checkpoint"

Offsets = dict[tuple[str, int], int]
EpochStarts = list[tuple[int, int]]
"""Leader epochs, each with the offset with which it begins; both rise."""


class LogPosition(NamedTuple):
    """A place in a log: everything before it is on the disk."""

    offset: int
    base_offset: int = -1
    """Of the segment in which it is; -1: not known."""
    position: int = 0
    """Where in that segment."""


LogPositions = dict[tuple[str, int], LogPosition]


def write_log_positions(points: LogPositions) -> bytes:
    """Return a file of the recovery point of each partition."""
    return _write(
        f"{topic} {partition} {point.offset} {point.base_offset} {point.position}"
        for (topic, partition), point in sorted(points.items())
    )


def read_log_positions(data: bytes) -> LogPositions:
    """Read such a file; what is not of its form says nothing, as recovery points only save work."""
    found: LogPositions = {}
    for words in _lines(data):
        if len(words) == 5 and all(map(_is_number, words[1:])):
            found[words[0], int(words[1])] = LogPosition(int(words[2]), int(words[3]), int(words[4]))
    return found


def write_offset_checkpoint(offsets: Offsets) -> bytes:
    """Return a checkpoint of Kafka's, of an offset for each partition."""
    return _write(f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items()))


def read_offset_checkpoint(data: bytes) -> Offsets:
    """Read such a checkpoint; what is not of its form says nothing, as its offsets only save work."""
    found: Offsets = {}
    for words in _lines(data):
        if len(words) == 3 and all(map(_is_number, words[1:])):
            found[words[0], int(words[1])] = int(words[2])
    return found


def write_epoch_checkpoint(epochs: EpochStarts) -> bytes:
    """Return a ``leader-epoch-checkpoint``."""
    return _write(f"{epoch} {start_offset}" for epoch, start_offset in epochs)


def read_epoch_checkpoint(data: bytes) -> EpochStarts:
    """Read a ``leader-epoch-checkpoint``; what is not of its form is left out."""
    return [(int(words[0]), int(words[1])) for words in _lines(data) if len(words) == 2 and all(map(_is_number, words))]


def _write(lines: Iterable[str]) -> bytes:
    written = list(lines)
    return "\n".join([VERSION, str(len(written)), *written, ""]).encode()


def _lines(data: bytes) -> list[list[str]]:
    return [line.split() for line in data.decode("utf-8", "replace").splitlines()[2:]]


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit()
