"""Segment reader: the batches of a segment file, one after the other, as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import CorruptBatch, DecodeError
from kproto.records.batch_header import CHECKED_FROM, HEADER_SIZE, LOG_OVERHEAD, MAGIC, MAGIC_POSITION
from kproto.records.batches import SIZE_MIN, batch_size, read_batch, stored_crc
from kproto.records.checksum import crc32c
from kproto.records.segment import BATCH_SIZE_MAX

if TYPE_CHECKING:
    from kproto_server.storage.disk import File

SLICE_SIZE_BYTES = 64 << 10
INCOMPLETE = "incomplete batch"
"""The reason of the error if a segment ends within a batch."""


class SegmentReader:
    """Reads the batches of a segment in slices. Positions in errors count from the beginning of the segment."""

    def __init__(
        self, file: File, path: str, size: int, position: int = 0, *, slice_size_bytes: int = SLICE_SIZE_BYTES
    ) -> None:
        """Read ``size`` bytes of an open segment, from the batch at ``position`` on; ``path`` is for errors.

        The caller closes the file.
        """
        self.buffer: bytes = b""
        """The current slice. It begins before or at the next batch."""
        self.start: int = 0
        """Position of the next batch in `buffer`; a caller that has read batches from `buffer` moves it forward."""
        self._file = file
        self._path = path
        self._size = size
        self._slice_size_bytes = slice_size_bytes
        self._origin = position
        """Position of `buffer` in the segment."""

    @property
    def position(self) -> int:
        """Position of the next batch in the segment."""
        return self._origin + self.start

    def has_more(self) -> bool:
        """Read the next batch completely into `buffer`; return False at the end of the segment.

        Raises:
            DecodeError: the segment ends within a batch, or the size of a batch is impossible.
            OSError: the file cannot be read.
        """
        while (missing := self.start + self._next_size() - len(self.buffer)) > 0:
            read_position = self._origin + len(self.buffer)
            more = self._file.read_at(
                read_position, min(max(self._slice_size_bytes, missing), self._size - read_position)
            )
            if not more:
                if self.start < len(self.buffer) or read_position < self._size:
                    raise DecodeError(self._path, self.position, INCOMPLETE)
                return False
            self._origin += self.start
            self.buffer, self.start = self.buffer[self.start :] + more, 0
        return True

    def _next_size(self) -> int:
        """Return the size of the next batch, or the least size of a batch if its length is not in `buffer`."""
        if len(self.buffer) - self.start < LOG_OVERHEAD:
            return LOG_OVERHEAD + SIZE_MIN
        size = batch_size(self.buffer, self.start)
        if not SIZE_MIN <= size <= BATCH_SIZE_MAX:
            raise DecodeError(self._path, self.position, f"batch size {size}")
        return LOG_OVERHEAD + size

    def take(self) -> bytes:
        """Return the next batch, after `has_more` returned True.

        Raises:
            DecodeError: the checksum does not match, or the bytes are no batch.
        """
        batch = self.buffer[self.start : self.start + self._next_size()]
        _check(self._path, self.position, batch)
        self.start += len(batch)
        return batch


def _check(path: str, position: int, batch: bytes) -> None:
    if batch[MAGIC_POSITION] != MAGIC:
        try:
            read_batch(batch)
        except DecodeError as error:
            raise type(error)(path, position + error.position, error.reason) from None
    elif len(batch) < HEADER_SIZE or crc32c(batch[CHECKED_FROM:]) != stored_crc(batch):
        raise CorruptBatch(path, position, "the checksum does not match the content")
