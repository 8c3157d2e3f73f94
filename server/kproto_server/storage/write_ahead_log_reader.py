"""What a journal has after a crash: the batches that segments may lack (`journal` tells how it is written)."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

from kproto.records.record_batch import LOG_OVERHEAD
from kproto_server.storage.write_ahead_log import CHECKED_FROM, FRAME, NAME_SIZE, NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.storage.disk import Disk, File

NO_CYCLE = -1


class LoggedBatch(NamedTuple):
    """A batch as the journal has it."""

    directory: str
    batch: bytes

    @property
    def base_offset(self) -> int:
        return int.from_bytes(self.batch[:8], "big")

    @property
    def crc(self) -> int:
        return int.from_bytes(self.batch[17:21], "big")

    @property
    def next_offset(self) -> int:
        """The offset behind its last record."""
        return self.base_offset + int.from_bytes(self.batch[23:27], "big") + 1


class WriteAheadLogContent(NamedTuple):
    """What was found."""

    exists: bool
    """Whether there is a journal: what was acknowledged is in it, or in segments that were synced."""
    batches: list[LoggedBatch]
    """In the order in which they were written."""
    next_cycle: int
    """For who writes on: above that of anything there."""
    next_file_number: int


class _Filling(NamedTuple):
    """What one file has of its newest cycle."""

    cycle: int
    needed_from: int
    contents: list[bytes]


def read_write_ahead_log(disk: Disk) -> WriteAheadLogContent:
    """Read the journal, from the oldest cycle that is needed to its end."""
    fillings = [_read_file(disk, name) for name in NAMES]
    newest = max((0, 1), key=lambda number: fillings[number].cycle)
    cycle, needed_from, _ = fillings[newest]
    contents = [
        content
        for filling in sorted(fillings, key=lambda filling: filling.cycle)
        if filling.cycle >= max(needed_from, 0)
        for content in filling.contents
    ]
    # Where the newest cycle's first frame is torn its number is not known: it is one above the last that is.
    return WriteAheadLogContent(
        exists=any(map(disk.exists, NAMES)),
        batches=[batch for content in contents for batch in _batches(content)],
        next_cycle=cycle + 2,
        next_file_number=1 - newest,
    )


def _read_file(disk: Disk, name: str) -> _Filling:
    if not disk.exists(name):
        return _Filling(NO_CYCLE, NO_CYCLE, [])
    file = disk.open(name)
    try:
        return _read_frames(file)
    finally:
        file.close()


def _read_frames(file: File) -> _Filling:
    contents: list[bytes] = []
    cycle = needed_from = NO_CYCLE
    position = 0
    while (found := _read_frame(file, position)) is not None:
        size, of_cycle, needed, content = found
        if content is None:
            behind = _read_frame(file, position + FRAME.size + size)
            if behind is None or behind[3] is None or behind[1] != cycle:
                break
        elif cycle in (NO_CYCLE, of_cycle):
            cycle, needed_from = of_cycle, needed
            contents.append(content)
        else:
            break
        position += FRAME.size + size
    return _Filling(cycle, needed_from, contents)


def _read_frame(file: File, position: int) -> tuple[int, int, int, bytes | None] | None:
    """Return size, cycle, oldest cycle needed and content of a frame; without content if its checksum is wrong.

    A round is written when the one before it is synced, so a good frame behind a wrong one tells that the disk has lost
    what it had; its batches may still be in their segments, and if not, what follows shows the gap.
    """
    head = file.read_at(position, FRAME.size)
    if len(head) < FRAME.size:
        return None
    size, crc, cycle, needed_from = FRAME.unpack(head)
    if not 0 <= size <= file.size - position - FRAME.size or cycle < 0 or not any(head):
        return None
    content = file.read_at(position + FRAME.size, size)
    if len(content) < size or zlib.crc32(content, zlib.crc32(head[CHECKED_FROM:])) != crc:
        return size, cycle, needed_from, None
    return size, cycle, needed_from, content


def _batches(content: bytes) -> Iterator[LoggedBatch]:
    position = 0
    while position < len(content):
        (name_size,) = NAME_SIZE.unpack_from(content, position)
        start = position + NAME_SIZE.size + name_size
        name = content[position + NAME_SIZE.size : start].decode()
        position = start + LOG_OVERHEAD + int.from_bytes(content[start + 8 : start + LOG_OVERHEAD], "big")
        yield LoggedBatch(name, content[start:position])
