"""The write-ahead log (WAL) of ``fsync`` mode: the batches of a group commit in one write and one sync."""

# Theory of operation. A group commit touches as many of the 50 offsets partitions as its groups hash to, and a sync of
# each of their segments would take up to a millisecond. So its batches are first written to the write-ahead log, whose
# one sync makes the group commit durable, in all logs or in none. Then they are written to their segments, into the
# memory of the operating system only.
#
# There are two files of a fixed size, preallocated, so that a sync writes no metadata. They take turns: when one is
# full, writing goes on in the other, while a background sync makes the segments durable; after that the full one is
# free.
#
# *Frames and cycles.* A file is a sequence of frames, one for each group commit (server/FORMAT.md has the bytes). A
# cycle is one filling of one file, from its beginning to the next turn; cycle numbers only rise. Every frame has the
# number of its cycle and of the oldest cycle that recovery still needs. Files are never cleared: a reader stops at the
# first frame of another cycle, which is left from an earlier filling of the file.
#
# Invariants, which the reader relies on:
#
# 1. A frame is written only after the frame before it in the same cycle is durable or was discarded. So a corrupt frame
#    between two valid frames of one cycle means that the disk lost it, not that the write-ahead log ends there.
# 2. A new cycle never begins in the file with the newest frames. If the first frame of a new cycle is torn, the newest
#    frame of the other file still says which cycles are needed.
# 3. A batch leaves the needed cycles only after its segment is durable (`release`, or ``is_needed=False``).
#
# Crash windows. During the write of a frame: the frame fails its checksum, and its group commit was not acknowledged.
# Between sync and acknowledgment: recovery restores the batches, as a client that got no response must expect. Before
# the sync the segments have nothing of them, so a power loss cannot keep a part of a group commit there. After
# `turn` and before the first frame of the new cycle: all frames of the other file are still needed, by their own
# numbers.
#
# Measured: microseconds for each group commit (minimum and median) of one batch of 120 bytes in each of N segments,
# ext4 on a virtual disk, two cores:
#
# ===  ==================  =======================  =========================  =========================
# N    WAL, preallocated   WAL, growing             N syncs, one thread        N syncs, 16 threads
# ===  ==================  =======================  =========================  =========================
# 1    25, 33              35, 46                   34, 46                     36, 45
# 8    29, 45              41, 55                   215, 233                   173, 262
# 36   74, 92              97, 128                  921, 1132                  673, 988
# 50   85, 109             91, 149                  1292, 1436                 994, 1375
# ===  ==================  =======================  =========================  =========================
#
# Writing zeros instead of preallocating makes no difference, nor do 4 or 50 threads.

from __future__ import annotations

import zlib
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.storage.disk import Disk, File
    from kproto_server.storage.partition_log import PartitionLog

NAMES = ("kproto.journal.0", "kproto.journal.1")
SIZE_BYTES = 16 << 20
"""Size of each file: about 100,000 small commits."""
SIZE_MIN_BYTES = 256 << 10
FRAME_HEADER = Struct(">iIqq")
"""Content size, checksum, cycle, oldest needed cycle."""
CHECKED_FROM = 8
"""Position in a frame after the checksum: it covers the cycles and the content."""
CYCLES = Struct(">qq")
UNCHECKED = Struct(">iI")
NAME_SIZE = Struct(">H")
NAME_SIZE_MAX_BYTES = 260
"""The longest name of a partition's directory."""


class WriteAheadLog:
    """The write-ahead log of a data directory, open for writing. `LogDir` owns and closes it."""

    def __init__(self, disk: Disk, *, cycle: int = 0, file_number: int = 0, size_bytes: int = SIZE_BYTES) -> None:
        """Open or create the files, whose content must not be needed any more.

        Args:
            cycle: a number above every cycle in the files; `read_write_ahead_log` returns it with ``file_number``, the
                file that does not have the newest frames.

        Raises:
            OSError: the disk has no space.
        """
        self._disk = disk
        self._files, found_bytes = _preallocate(disk, size_bytes)
        self.size_bytes: int = found_bytes
        """The size of each file."""
        self._file_number = file_number
        self._cycle = self._needed_from = cycle
        self._position = 0
        self._is_other_free = True
        self.last_position: int = 0
        """Where the last frame begins."""

    @property
    def file(self) -> File:
        """The file of the last frame, for the caller to sync."""
        return self._files[self._file_number]

    @property
    def cycle(self) -> int:
        return self._cycle

    def fits(self, size: int, count: int) -> bool:
        """Return whether the current file has room for so many bytes in so many batches."""
        return self._position + frame_size_max(size, count) <= self.size_bytes

    @property
    def room(self) -> int:
        """Bytes that are left in the current file."""
        return self.size_bytes - self._position

    @property
    def is_other_free(self) -> bool:
        """Whether no frame of the other file is needed."""
        return self._is_other_free

    def turn(self, *, is_needed: bool) -> None:
        """Begin a new cycle in the other file; the frames so far are needed until `release`, or not at all.

        If the current file has no frame of this cycle, the newest frames are in the other file, and the new cycle
        begins in the current one (invariant 2).
        """
        if self._position:
            self._file_number = 1 - self._file_number
        self._cycle += 1
        self._position = 0
        self._is_other_free = not is_needed
        if not is_needed:
            self._needed_from = self._cycle

    def release(self, cycle: int) -> None:
        """Take note that all batches written before this cycle began are durable in their segments.

        The oldest needed cycle reaches the disk with the next frame. Until then recovery reads batches that the
        segments also have, and skips them.
        """
        self._needed_from = max(self._needed_from, cycle)
        if cycle == self._cycle:
            self._is_other_free = True

    def void(self) -> None:
        """Make all frames so far unneeded: a frame without content names the new cycle as the oldest needed.

        The caller syncs `file`.

        Raises:
            OSError: recovery may still read the frames; the next frame overwrites what was written.
        """
        self.turn(is_needed=False)
        self.write(())

    def write(self, batches: Sequence[tuple[PartitionLog, bytes]]) -> None:
        """Write a frame with these batches; the caller syncs `file`.

        Raises:
            OSError: the next frame overwrites what was written.
        """
        parts: list[bytes] = []
        for log, batch in batches:
            name = log.directory_bytes
            parts += (NAME_SIZE.pack(len(name)), name, batch)
        content = b"".join(parts)
        cycles = CYCLES.pack(self._cycle, self._needed_from)
        crc = zlib.crc32(content, zlib.crc32(cycles))
        self.last_position = self._position
        self.file.write_at(self._position, UNCHECKED.pack(len(content), crc) + cycles + content)
        self._position += FRAME_HEADER.size + len(content)

    def discard_last(self) -> None:
        """Overwrite the header of the last frame with zeros, as far as the disk allows: its group commit failed."""
        self._position = self.last_position
        with suppress(OSError):  # recovery may restore the batches: the result of a failed commit is unknown to clients
            self.file.write_at(self._position, bytes(FRAME_HEADER.size))

    def close(self, *, is_needed: bool) -> None:
        """Close the files, and remove them if all logs are durable."""
        for file in self._files:
            file.close()
        if not is_needed:
            remove_write_ahead_log(self._disk)


def remove_write_ahead_log(disk: Disk) -> None:
    """Remove the files that exist, durably."""
    existing = [name for name in NAMES if disk.exists(name)]
    for name in existing:
        disk.remove(name)
    if existing:
        disk.sync_directory("")


def frame_size_max(size: int, count: int) -> int:
    """Return the greatest size of a frame with so many bytes in so many batches."""
    return FRAME_HEADER.size + size + count * (NAME_SIZE.size + NAME_SIZE_MAX_BYTES)


def _preallocate(disk: Disk, size_bytes: int) -> tuple[list[File], int]:
    """Open both files and reserve their space, an eighth of it on a small disk and so on; return files and size.

    The files and their names are synced here, once, so that the sync of a frame has no metadata to write.
    """
    are_new = not all(map(disk.exists, NAMES))
    files = [disk.open(name, create=True) for name in NAMES]
    while True:
        try:
            for file in files:
                file.preallocate(size_bytes)
        except OSError:
            for file in files:
                file.truncate(0)
            size_bytes //= 8
            if size_bytes < SIZE_MIN_BYTES:
                for file in files:
                    file.close()
                raise
        else:
            break
    for file in files:
        file.sync()
    if are_new:
        disk.sync_directory("")
    return files, size_bytes
