"""The journal of ``fsync`` mode: the batches of a round in one write and one sync, whatever logs they belong to.

Theory of operation. A round of commits touches as many of the 50 partitions as its groups hash to, and syncing each
file costs what syncing one costs. So the segments are only written, into the operating system's memory, and their
batches stand a second time in the journal, which is synced. It is one file of a fixed size, whose space is reserved:
such a sync has no metadata to write. When it is full, the segments themselves are synced, and it begins anew.

Frame of a round: int32 size of the content, uint32 CRC-32 of cycle and content, int64 cycle, content; in it, for each
batch, int16 size and name of the partition's directory, then the batch. What is left of an earlier cycle, or was torn,
has another cycle or another checksum, and ends the journal.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from kproto.records.record_batch import LOG_OVERHEAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kproto_server.storage.disk import Disk, File
    from kproto_server.storage.partition_log import PartitionLog

NAME = "kproto.journal"
SIZE_BYTES = 64 << 20
FRAME = Struct(">iIq")
NAME_SIZE = Struct(">H")


class Journaled(NamedTuple):
    """A batch as the journal has it."""

    directory: str
    batch: bytes

    @property
    def base_offset(self) -> int:
        return int.from_bytes(self.batch[:8], "big")

    @property
    def next_offset(self) -> int:
        """The offset behind its last record."""
        return self.base_offset + int.from_bytes(self.batch[23:27], "big") + 1


class Journal:
    """The journal of a data directory, open for writing."""

    def __init__(self, disk: Disk, *, cycle: int, size_bytes: int = SIZE_BYTES) -> None:
        """``cycle``: above that of anything in the file.

        Raises:
            OSError: there is no room for it.
        """
        self._disk = disk
        self._size_bytes = size_bytes
        self._cycle = cycle
        self._position = 0
        is_new = not disk.exists(NAME)
        self._file: File = disk.open(NAME, create=True)
        self._file.preallocate(size_bytes)
        self._file.sync()
        if is_new:
            disk.sync_directory("")

    def fits(self, size: int, count: int) -> bool:
        """Whether a round of so many bytes in so many batches has room; names of directories are short."""
        return self._position + FRAME.size + size + count * 270 <= self._size_bytes

    def write(self, batches: Sequence[tuple[PartitionLog, bytes]]) -> None:
        """Write a round's batches.

        Raises:
            OSError: it is as if nothing was written.
        """
        parts: list[bytes] = []
        for log, batch in batches:
            name = log.directory_octets
            parts += (NAME_SIZE.pack(len(name)), name, batch)
        content = b"".join(parts)
        cycle = self._cycle.to_bytes(8, "big")
        frame = FRAME.pack(len(content), zlib.crc32(content, zlib.crc32(cycle)), self._cycle) + content
        self._file.write_at(self._position, frame)
        self._position += len(frame)

    def sync(self) -> None:
        """Have what was written survive power loss.

        Raises:
            OSError: nobody knows what does.
        """
        self._file.sync()

    def begin_anew(self) -> None:
        """Everything that stands here is synced in its segment: write from the beginning again."""
        self._cycle += 1
        self._position = 0

    def close(self, *, is_needed: bool) -> None:
        """Close the file; remove it if all logs are synced."""
        self._file.close()
        if not is_needed:
            self._disk.remove(NAME)


def read_journal(disk: Disk) -> tuple[list[Journaled], int]:
    """Return the batches that the journal has, in their order, and the last cycle in it (-1: none)."""
    if not disk.exists(NAME):
        return [], -1
    file = disk.open(NAME)
    try:
        found: list[Journaled] = []
        cycle = -1
        position = 0
        while (round_ := _read_round(file, position)) is not None:
            content, of_cycle = round_
            if cycle not in (-1, of_cycle):
                break
            cycle = of_cycle
            found += _batches(content)
            position += FRAME.size + len(content)
        return found, cycle
    finally:
        file.close()


def _read_round(file: File, position: int) -> tuple[bytes, int] | None:
    head = file.read_at(position, FRAME.size)
    if len(head) < FRAME.size:
        return None
    size, crc, cycle = FRAME.unpack(head)
    if not 0 < size <= file.size - position:
        return None
    content = file.read_at(position + FRAME.size, size)
    if len(content) < size or zlib.crc32(content, zlib.crc32(head[8:])) != crc:
        return None
    return content, cycle


def _batches(content: bytes) -> Iterator[Journaled]:
    position = 0
    while position < len(content):
        (name_size,) = NAME_SIZE.unpack_from(content, position)
        start = position + NAME_SIZE.size + name_size
        name = content[position + NAME_SIZE.size : start].decode()
        position = start + LOG_OVERHEAD + int.from_bytes(content[start + 8 : start + LOG_OVERHEAD], "big")
        yield Journaled(name, content[start:position])
