"""Reader of the write-ahead log: the batches that segments may lack after a crash (server/FORMAT.md has the bytes)."""

# Theory of operation. Each of the two files has frames of one cycle from its beginning on, then rests of earlier
# cycles. `_read_frames` finds where the cycle ends: at zeros, at a frame of another cycle, or at a wrong checksum. A
# wrong checksum is normally the torn last frame, whose group commit was never acknowledged.
#
# The two files together have the newest cycle and the one before it. The last frame of the newest cycle says which
# cycles are still needed: both while the segments of the older one are not synced, then only the newest.
#
# The reader trusts no single field: a size must fit into the file, and the checksum covers cycles and content. It never
# raises for damaged bytes. What it cannot read is missing, and recovery decides whether that is a loss.

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

from kproto.records.batch_header import LOG_OVERHEAD, header_struct
from kproto.records.batches import batch_size, first_offset, last_offset, stored_crc
from kproto_server.storage.write_ahead_log import CHECKED_FROM, FRAME_HEADER, NAME_SIZE, NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.storage.disk import Disk, File

NO_CYCLE = -1
_read_epoch = header_struct("partition_leader_epoch").unpack_from


class LoggedBatch(NamedTuple):
    """A batch in the write-ahead log."""

    directory: str
    batch: bytes

    @property
    def base_offset(self) -> int:
        return first_offset(self.batch)

    @property
    def crc(self) -> int:
        return stored_crc(self.batch)

    @property
    def next_offset(self) -> int:
        """The offset after the last record."""
        return last_offset(self.batch) + 1

    @property
    def epoch(self) -> int:
        """The leader epoch."""
        epoch: int = _read_epoch(self.batch)[0]
        return epoch


class WriteAheadLogContent(NamedTuple):
    """The batches that recovery needs, and where the next write-ahead log begins."""

    exists: bool
    """Whether there is a write-ahead log: acknowledged batches are in it or in durable segments."""
    batches: list[LoggedBatch]
    """In written order."""
    next_cycle: int
    """A number above every cycle in the files."""
    next_file_number: int


class _FileContent(NamedTuple):
    """The frames of the newest cycle in one file."""

    cycle: int
    needed_from: int
    contents: list[bytes]


class _Frame(NamedTuple):
    """A frame; ``content`` is None if the checksum does not match."""

    size: int
    cycle: int
    needed_from: int
    content: bytes | None


def read_write_ahead_log(disk: Disk) -> WriteAheadLogContent:
    """Return the batches from the oldest needed cycle on."""
    files = [_read_file(disk, name) for name in NAMES]
    # A file without frames has cycle -1.
    newest = max((0, 1), key=lambda number: files[number].cycle)
    cycle, needed_from, _ = files[newest]
    contents = [
        content
        for file in sorted(files, key=lambda file: file.cycle)  # in written order
        if file.cycle >= max(needed_from, 0)
        for content in file.contents
    ]
    return WriteAheadLogContent(
        exists=any(map(disk.exists, NAMES)),
        batches=[batch for content in contents for batch in _batches(content)],
        # If the first frame of the newest cycle is torn, its number cannot be read. It is the last readable one plus 1.
        next_cycle=cycle + 2,
        # The newest frames stay readable until the first frame of the next cycle is complete.
        next_file_number=1 - newest,
    )


def sync_write_ahead_log(disk: Disk) -> None:
    """Make the frames that were read durable, before their batches are restored.

    The process may have been killed before the sync of the last frame, which then is in the memory of the operating
    system only. If the power failed during recovery, the frame could be lost, and a part of its batches be in segments.

    Raises:
        OSError: it is unknown which frames are on the disk.
    """
    for name in NAMES:
        if disk.exists(name):
            file = disk.open(name)
            try:
                file.sync()
            finally:
                file.close()


def _read_file(disk: Disk, name: str) -> _FileContent:
    if not disk.exists(name):
        return _FileContent(NO_CYCLE, NO_CYCLE, [])
    file = disk.open(name)
    try:
        return _read_frames(file)
    finally:
        file.close()


def _read_frames(file: File) -> _FileContent:
    """Return the valid frames of the first cycle in a file."""
    contents: list[bytes] = []
    cycle = needed_from = NO_CYCLE
    position = 0
    while (frame := _read_frame(file, position)) is not None:
        if frame.content is None:
            # The end of the cycle, unless a valid frame of the same cycle follows: frames are written one after the
            # other is durable, so then the disk has lost this one. Its batches may still be in their segments; if
            # not, recovery finds a gap before the batches of the next frame and reports the damage.
            following = _read_frame(file, position + FRAME_HEADER.size + frame.size)
            if following is None or following.content is None or following.cycle != cycle:
                break
        elif cycle in (NO_CYCLE, frame.cycle):
            # Every frame names the oldest needed cycle: the last one counts.
            cycle, needed_from = frame.cycle, frame.needed_from
            contents.append(frame.content)
        else:
            # A frame of an earlier filling of this file.
            break
        position += FRAME_HEADER.size + frame.size
    return _FileContent(cycle, needed_from, contents)


def _read_frame(file: File, position: int) -> _Frame | None:
    """Return the frame at a position; None if there is no frame header with a possible size and cycle.

    Zeros are not a header: files are preallocated with zeros, and a discarded frame has zeros there.
    """
    header = file.read_at(position, FRAME_HEADER.size)
    if len(header) < FRAME_HEADER.size:
        return None
    size, crc, cycle, needed_from = FRAME_HEADER.unpack(header)
    if not 0 <= size <= file.size - position - FRAME_HEADER.size or cycle < 0 or not any(header):
        return None
    content = file.read_at(position + FRAME_HEADER.size, size)
    is_valid = len(content) == size and zlib.crc32(content, zlib.crc32(header[CHECKED_FROM:])) == crc
    return _Frame(size, cycle, needed_from, content if is_valid else None)


def _batches(content: bytes) -> Iterator[LoggedBatch]:
    position = 0
    while position < len(content):
        (name_size,) = NAME_SIZE.unpack_from(content, position)
        start = position + NAME_SIZE.size + name_size
        name = content[position + NAME_SIZE.size : start].decode()
        position = start + LOG_OVERHEAD + batch_size(content, start)
        yield LoggedBatch(name, content[start:position])
