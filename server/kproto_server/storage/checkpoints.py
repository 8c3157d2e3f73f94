"""Checkpoint files: small text files in Kafka's format (LF-53 to LF-55), with a version, a line count, and the lines.

``kproto.recovery`` and ``kproto.clean`` are kproto's own (server/FORMAT.md has their bytes). A reader skips lines that
it cannot parse, and files of another version: a missing entry costs a longer scan at the next start, never data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION = "0"
INT64_DIGITS = 19
RECOVERY_POINTS = "kproto.recovery"
"""Not Kafka's file name: a broker trusts its indexes below the offsets of its own file, and kproto writes no
indexes."""

PartitionOffsets = dict[tuple[str, int], int]
"""An offset for each topic and partition."""
EpochStarts = list[tuple[int, int]]
"""Leader epochs and the offset where each begins; both rise."""


class LogPosition(NamedTuple):
    """A position between two batches of a log."""

    offset: int
    """The lowest offset that the next batch can have."""
    base_offset: int = -1
    """Base offset of the segment; -1 if unknown."""
    position: int = 0
    """Bytes from the beginning of the segment."""


LogPositions = dict[tuple[str, int], LogPosition]
"""A position for each topic and partition."""


def write_log_positions(positions: LogPositions) -> bytes:
    """Return the content of a checkpoint with a log position for each partition."""
    return write_lines(
        f"{topic} {partition} {found.offset} {found.base_offset} {found.position}"
        for (topic, partition), found in sorted(positions.items())
    )


def read_log_positions(data: bytes) -> LogPositions:
    """Return the log positions of a checkpoint, without lines that do not have five fields."""
    positions: LogPositions = {}
    for fields in lines_of(data):
        if len(fields) == 5 and all(map(is_number, fields[1:])):
            positions[fields[0], int(fields[1])] = LogPosition(int(fields[2]), int(fields[3]), int(fields[4]))
    return positions


def write_offset_checkpoint(offsets: PartitionOffsets) -> bytes:
    """Return the content of one of Kafka's checkpoints with an offset for each partition."""
    return write_lines(f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items()))


def read_offset_checkpoint(data: bytes) -> PartitionOffsets:
    """Return the offsets of one of Kafka's checkpoints, without lines that do not have three fields."""
    offsets: PartitionOffsets = {}
    for fields in lines_of(data):
        if len(fields) == 3 and all(map(is_number, fields[1:])):
            offsets[fields[0], int(fields[1])] = int(fields[2])
    return offsets


def is_damaged(data: bytes) -> bool:
    """Return whether one of Kafka's checkpoints with offsets has another version, count or fields than it should."""
    lines = data.decode("utf-8", "replace").splitlines()
    return lines[:2] != [VERSION, str(len(lines) - 2)] or len(read_offset_checkpoint(data)) != len(lines) - 2


def write_epoch_checkpoint(epochs: EpochStarts) -> bytes:
    """Return the content of a ``leader-epoch-checkpoint``."""
    return write_lines(f"{epoch} {start_offset}" for epoch, start_offset in epochs)


def read_epoch_checkpoint(data: bytes) -> EpochStarts:
    """Return the epochs of a ``leader-epoch-checkpoint``, without lines that do not have two fields."""
    lines = [fields for fields in lines_of(data) if len(fields) == 2 and all(map(is_number, fields))]
    return [(int(epoch), int(start_offset)) for epoch, start_offset in lines if int(epoch) < 1 << 31]


def write_lines(lines: Iterable[str]) -> bytes:
    """Return the content of a checkpoint with these lines after version and count."""
    written = list(lines)
    return "\n".join([VERSION, str(len(written)), *written, ""]).encode()


def lines_of(data: bytes) -> list[list[str]]:
    """Return the fields of each line after version and count; none if the version is another."""
    version, *lines = data.decode("utf-8", "replace").splitlines() or [""]
    return [line.split() for line in lines[1:]] if version == VERSION else []


def is_number(text: str) -> bool:
    """Return whether a field is a decimal number that fits into an int64."""
    return text.isascii() and text.isdigit() and len(text) <= INT64_DIGITS and int(text) < 1 << 63
