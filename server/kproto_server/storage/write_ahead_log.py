"""The journal of ``fsync`` mode: the batches of a round in one write and one sync, whatever logs they belong to.

Theory of operation. A round of commits touches as many of the 50 partitions as its groups hash to. So the segments are
only written, into the operating system's memory, and their batches stand a second time in the journal, whose one sync
stands for them all. There are two files, of a fixed size whose space is reserved: syncing them writes no metadata. When
one is full the other takes its turn, while the segments are synced in the background; then the full one is free again.

Measured, microseconds a round (least and median) of one batch of 120 octets in each of N segments, ext4 on a virtual
disk, two cores:

===  ==================  =======================  =========================  =========================
N    journal, reserved   journal, growing         N syncs, one thread        N syncs, 16 threads
===  ==================  =======================  =========================  =========================
1    25, 33              35, 46                   34, 46                     36, 45
8    29, 45              41, 55                   215, 233                   173, 262
36   74, 92              97, 128                  921, 1132                  673, 988
50   85, 109             91, 149                  1292, 1436                 994, 1375
===  ==================  =======================  =========================  =========================

Writing zeros beforehand instead of reserving space changes nothing; 4 or 50 threads neither.

Frame of a round: int32 size of the content, uint32 CRC-32 of all that follows, int64 cycle, int64 the oldest cycle
that is still needed, content; in it, for each batch, int16 size and name of the partition's directory, then the batch.
A cycle is one filling of one file, and has a number above those before. What is left of an earlier cycle, or was torn,
has another number or another checksum, and ends the journal. A new cycle never begins in the file that has the newest:
if its first frame is torn, the one before still says what is needed.
"""

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
"""Of each file: 100,000 small commits."""
SIZE_MIN_BYTES = 256 << 10
FRAME = Struct(">iIqq")
HEAD, CYCLES = Struct(">iI"), Struct(">qq")
CHECKED_FROM = HEAD.size
NAME_SIZE = Struct(">H")
NAME_SIZE_MAX = 260
"""Octets of the longest name of a partition's directory."""


class WriteAheadLog:
    """The journal of a data directory, open for writing."""

    def __init__(self, disk: Disk, *, cycle: int = 0, file_number: int = 0, size_bytes: int = SIZE_BYTES) -> None:
        """Open or make the files; nothing that they have is needed any more.

        Args:
            cycle: above that of anything in the files, and ``file_number`` the one to begin with: `read_journal` tells.

        Raises:
            OSError: there is no room for it.
        """
        self._disk = disk
        self._files, self._size_bytes = _reserve(disk, size_bytes)
        self._number = file_number
        self._cycle = self._needed_from = cycle
        self._position = 0
        self._is_other_free = True
        self.last_position = 0
        """Where the last frame begins."""

    @property
    def file(self) -> File:
        """The one that is written, and has to be synced after."""
        return self._files[self._number]

    @property
    def cycle(self) -> int:
        return self._cycle

    def fits(self, size: int, count: int) -> bool:
        """Whether a round of so many octets in so many batches has room where the last one was written."""
        return self._position + _frame_size(size, count) <= self._size_bytes

    def can_turn(self, size: int, count: int) -> bool:
        """Whether such a round has room in the other file."""
        return self._is_other_free and _frame_size(size, count) <= self._size_bytes

    def turn(self, *, is_needed: bool) -> None:
        """Go on in the other file, with a new cycle; what was written before is needed until `release`, or not.

        Where this one has got nothing yet the newest frames are still in the other: then it goes on here.
        """
        if self._position:
            self._number = 1 - self._number
        self._cycle += 1
        self._position = 0
        self._is_other_free = not is_needed
        if not is_needed:
            self._needed_from = self._cycle

    def release(self, cycle: int) -> None:
        """All that was written before this cycle began is synced in its segments."""
        self._needed_from = max(self._needed_from, cycle)
        if cycle == self._cycle:
            self._is_other_free = True

    def void(self) -> None:
        """Have nothing that was written before be taken for true again, after a power loss neither.

        Raises:
            OSError: it may be.
        """
        self.turn(is_needed=False)
        self.write(())
        self.file.sync()

    def write(self, batches: Sequence[tuple[PartitionLog, bytes]]) -> None:
        """Write a round's batches.

        Raises:
            OSError: the next round is written over what there is of this one.
        """
        parts: list[bytes] = []
        for log, batch in batches:
            name = log.directory_bytes
            parts += (NAME_SIZE.pack(len(name)), name, batch)
        content = b"".join(parts)
        cycles = CYCLES.pack(self._cycle, self._needed_from)
        head = HEAD.pack(len(content), zlib.crc32(content, zlib.crc32(cycles)))
        self.last_position = self._position
        self.file.write_at(self._position, head + cycles + content)
        self._position += FRAME.size + len(content)

    def take_back(self) -> None:
        """Make the last frame none, as far as that can be done: its round was refused."""
        self._position = self.last_position
        with suppress(OSError):  # then the round may come back; its clients were told that nobody knows
            self.file.write_at(self._position, bytes(FRAME.size))

    def close(self, *, is_needed: bool) -> None:
        """Close the files; remove them if all logs are synced."""
        for file in self._files:
            file.close()
        if not is_needed:
            remove_write_ahead_log(self._disk)


def remove_write_ahead_log(disk: Disk) -> None:
    """Remove the files that there are, durably."""
    there = [name for name in NAMES if disk.exists(name)]
    for name in there:
        disk.remove(name)
    if there:
        disk.sync_directory("")


def _frame_size(size: int, count: int) -> int:
    return FRAME.size + size + count * (NAME_SIZE.size + NAME_SIZE_MAX)


def _reserve(disk: Disk, size_bytes: int) -> tuple[list[File], int]:
    """Open both files and reserve their space: on a small disk, less."""
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
