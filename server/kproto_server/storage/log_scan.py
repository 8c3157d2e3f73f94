"""Log scan: find the end of the valid batches of a log, with checksums (LF-60, LF-61)."""

# Theory of operation. A `LogScan` goes over the segments of one log, oldest first, and carries the next expected offset
# and the newest leader epoch from one segment to the next. Nearly all batches have the current message format version
# (magic 2) and are valid: `_valid_batches` checks those in one loop. The first batch that does not pass there is looked
# at again by `_other_batch`, which accepts message sets of magic 0 and 1 and otherwise states the problem.

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import DecodeError
from kproto.records.batch_header import (
    CHECKED_FROM,
    HEADER_SIZE,
    LENGTH_MIN,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    header_struct,
)
from kproto.records.batches import batch_size, last_offset
from kproto.records.checksum import crc32c
from kproto.records.segment import RELATIVE_OFFSET_MAX, torn_beginning, whole_batch_within
from kproto_server.storage.segment_reader import INCOMPLETE, SegmentReader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.storage.checkpoints import EpochStarts
    from kproto_server.storage.disk import File

SLICE_SIZE_BYTES = 1 << 20
HEAD = header_struct("base_offset", "batch_length", "partition_leader_epoch", "magic", "crc", "last_offset_delta")
TORN_SIZE_MAX_BYTES = 16 << 20
"""A longer tail is not a torn write: no commit is that large."""


class ScanResult(NamedTuple):
    """The end of the valid batches of a segment."""

    position: int
    next_offset: int
    problem: str | None
    """Why the batch at ``position`` is not valid; None at the end of the segment."""


class LogScan:
    """A scan of the segments of one log."""

    def __init__(self, next_offset: int, expected_crcs: Mapping[int, int] | None = None) -> None:
        """``expected_crcs``: checksums of batches of the write-ahead log, by base offset."""
        self.next_offset: int = next_offset
        """The lowest valid base offset of the next batch."""
        self._expected_crcs = expected_crcs or {}
        self.epochs: EpochStarts = []
        """Leader epochs of the batches and the offset where each begins."""
        self._epoch = -1

    def segment(self, file: File, size: int, base_offset: int, position: int = 0) -> ScanResult:
        """Return the end of the valid batches of a segment; ``position`` is where a batch begins."""
        self.next_offset = max(self.next_offset, base_offset)
        offset_max = base_offset + RELATIVE_OFFSET_MAX
        reader = SegmentReader(file, "", size, position, slice_size_bytes=SLICE_SIZE_BYTES)
        problem = None
        try:
            while problem is None and reader.has_more():
                begin = reader.start
                reader.start = self._valid_batches(reader.buffer, begin, offset_max)
                if reader.start == begin:
                    problem = self._other_batch(reader, offset_max)
        except DecodeError as error:
            problem = error.reason
        return ScanResult(reader.position, self.next_offset, problem)

    def _valid_batches(self, buffer: bytes, start: int, offset_max: int) -> int:
        """Return the end of the valid whole batches of magic 2 from ``start`` on.

        A start after a crash spends most of its time here: half a microsecond for each batch. An iterator over valid
        headers would take 0.11 µs more, so the loop has the checks inline, as `FastRetainedRecords` and
        `RepeatedCommits` do for theirs.
        """
        unpack, size, newest_epoch, next_offset = HEAD.unpack_from, len(buffer), self._epoch, self.next_offset
        expected_crcs = self._expected_crcs
        while start + HEADER_SIZE <= size:
            base, length, epoch, magic, crc, delta = unpack(buffer, start)
            end = start + LOG_OVERHEAD + length
            # No checksum covers base offset, length, epoch and magic: each is checked against its neighbors. The
            # write-ahead log decides over the checksum: a batch of a failed group commit can be whole, and have the
            # offset of a batch that was acknowledged after it.
            if (
                end > size
                or length < LENGTH_MIN
                or magic != MAGIC
                or base < next_offset
                or delta < 0
                or base + delta > offset_max
                or crc32c(buffer[start + CHECKED_FROM : end]) != crc
                or (expected_crcs and expected_crcs.get(base, crc) != crc)
            ):
                break
            if epoch > newest_epoch:
                newest_epoch = epoch
                self.epochs.append((epoch, base))
            start, next_offset = end, base + delta + 1
        self._epoch, self.next_offset = newest_epoch, next_offset
        return start

    def _other_batch(self, reader: SegmentReader, offset_max: int) -> str | None:
        """Read a message set of magic 0 or 1; return the problem of an invalid batch.

        Raises:
            DecodeError: the batch is invalid.
        """
        buffer, start = reader.buffer, reader.start
        if buffer[start + MAGIC_POSITION] == MAGIC:
            return self._problem(buffer, start, offset_max)
        last = last_offset(reader.take())
        if not self.next_offset <= last <= offset_max:
            reader.start = start
            return f"offset {last}, expected {self.next_offset} or higher"
        self.next_offset = last + 1
        return None

    def _problem(self, buffer: bytes, start: int, offset_max: int) -> str:
        length = batch_size(buffer, start)
        if length < LENGTH_MIN:
            return f"batch size {length}"
        base, _, _, _, crc, delta = HEAD.unpack_from(buffer, start)
        if base < self.next_offset or delta < 0 or base + delta > offset_max:
            return f"offsets {base} to {base + delta}, expected {self.next_offset} or higher"
        if self._expected_crcs.get(base, crc) != crc:
            return f"the write-ahead log has another batch of offset {base}"
        return "the checksum does not match the content"


def torn_tail(file: File, size: int, base_offset: int, result: ScanResult) -> str | None:
    """Return what the tail of a log is if a crash during its last write can leave it; None: something else.

    A file system can write the new size of a file before its content, which then reads as zeros.
    """
    if _is_zeros(file, result.position, size):
        return "zeros"
    if size - result.position > TORN_SIZE_MAX_BYTES:
        return None
    rest = file.read_at(result.position, size - result.position)
    if torn_beginning(rest, base_offset, result.next_offset) and whole_batch_within(rest, result.next_offset) is None:
        return INCOMPLETE
    return None


def _is_zeros(file: File, position: int, size: int) -> bool:
    while position < size:
        data = file.read_at(position, min(SLICE_SIZE_BYTES, size - position))
        if not data or data.count(0) != len(data):
            return False
        position += len(data)
    return True
