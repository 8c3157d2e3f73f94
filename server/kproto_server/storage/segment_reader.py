"""The batches of a segment, one after the other, as they stand there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import CorruptBatch, DecodeError
from kproto.records.batches import MAGIC_POSITION, SIZE_MIN, SIZE_POSITION, read_batch
from kproto.records.checksum import crc32c
from kproto.records.record_batch import CHECKED_FROM, HEADER_SIZE, LOG_OVERHEAD, MAGIC
from kproto.records.segment import BATCH_SIZE_MAX

if TYPE_CHECKING:
    from kproto_server.storage.disk import Disk

SLICE_SIZE = 64 << 10


class SegmentReader:
    """A segment's batches, held a slice at a time. Positions of errors count from the segment's beginning."""

    def __init__(self, disk: Disk, path: str, size: int) -> None:
        """Open the segment; whoever reads it closes it."""
        self.held = b""
        self.start = 0
        """Where in what is held the next batch begins; who has gone through some sets it on."""
        self._path = path
        self._size = size
        self._origin = 0
        self._file = disk.open(path)

    @property
    def position(self) -> int:
        """Where in the segment the next batch begins."""
        return self._origin + self.start

    def has_more(self) -> bool:
        """Hold the next batch as a whole; return False if there is none.

        Raises:
            DecodeError: what is there announces a size that no batch has, or is cut off.
            OSError: it can't be read.
        """
        while (missing := self.start + self._next_size() - len(self.held)) > 0:
            at = self._origin + len(self.held)
            more = self._file.read_at(at, min(max(SLICE_SIZE, missing), self._size - at))
            if not more:
                if self.start < len(self.held) or at < self._size:
                    raise DecodeError(self._path, self.position, "cut off")
                return False
            self._origin += self.start
            self.held, self.start = self.held[self.start :] + more, 0
        return True

    def _next_size(self) -> int:
        """Return the size of the next batch; where its head is not held, more than what is."""
        if len(self.held) - self.start < LOG_OVERHEAD:
            return LOG_OVERHEAD + SIZE_MIN
        size = int.from_bytes(self.held[self.start + SIZE_POSITION : self.start + LOG_OVERHEAD], "big", signed=True)
        if not SIZE_MIN <= size <= BATCH_SIZE_MAX:
            raise DecodeError(self._path, self.position, f"size {size}")
        return LOG_OVERHEAD + size

    def take(self) -> bytes:
        """Return the next batch, which is held, its checksum checked.

        Raises:
            DecodeError: it is none.
        """
        batch = self.held[self.start : self.start + self._next_size()]
        _check(self._path, self.position, batch)
        self.start += len(batch)
        return batch

    def close(self) -> None:
        self._file.close()


def _check(path: str, position: int, batch: bytes) -> None:
    if batch[MAGIC_POSITION] != MAGIC:
        try:
            read_batch(batch)
        except DecodeError as error:
            raise type(error)(path, position + error.position, error.reason) from None
    elif len(batch) < HEADER_SIZE or crc32c(batch[CHECKED_FROM:]) != int.from_bytes(batch[17:CHECKED_FROM], "big"):
        raise CorruptBatch(path, position, "the checksum is not that of the content")


def last_offset(batch: bytes) -> int:
    """Return the last offset of a batch, as its header says it."""
    offset = int.from_bytes(batch[:8], "big")
    return offset + int.from_bytes(batch[23:27], "big") if batch[MAGIC_POSITION] == MAGIC else offset


def first_offset(batch: bytes) -> int:
    """Return the first offset of a batch; of a compressed message set, that of its last message."""
    return int.from_bytes(batch[:8], "big")
