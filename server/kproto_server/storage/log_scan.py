"""Finding the valid end of a segment: batch after batch, each with its checksum (LF-60, LF-61)."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import DecodeError
from kproto.records.batches import MAGIC_POSITION, SIZE_POSITION, read_batch
from kproto.records.checksum import crc32c
from kproto.records.record_batch import CHECKED_FROM, HEADER_SIZE, LENGTH_MIN, LOG_OVERHEAD, MAGIC, RecordBatch
from kproto.records.segment import BATCH_SIZE_MAX, RELATIVE_OFFSET_MAX, torn_beginning, whole_batch_within

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.storage.checkpoints import EpochStarts
    from kproto_server.storage.disk import File

SLICE_SIZE = 1 << 20
HEAD = Struct(">qiibI2xi")
"""Base offset, length, leader epoch, magic, checksum, last offset delta."""
TORN_SIZE_MAX = 16 << 20
"""Octets behind the last good batch that may be one that was torn: more than any commit has."""


class ValidEnd(NamedTuple):
    """Where a segment's valid batches end."""

    position: int
    next_offset: int
    problem: str | None
    """What is wrong with what stands there; None: nothing does."""


class LogScan:
    """A pass over the batches of one log, segment after segment."""

    def __init__(self, next_offset: int, expected: Mapping[int, int] | None = None) -> None:
        """``expected``: checksums of batches, by base offset, that are known to be in the log."""
        self.next_offset = next_offset
        """The least offset that the next batch can have."""
        self._expected = expected or {}
        self.epochs: EpochStarts = []
        """The leader epochs of the batches, as they rise."""
        self._epoch = -1

    def segment(self, file: File, size: int, base_offset: int, position: int = 0) -> ValidEnd:
        """Return where the valid batches of a segment end, from a place where one begins."""
        self.next_offset = max(self.next_offset, base_offset)
        offset_max = base_offset + RELATIVE_OFFSET_MAX
        held = b""
        start = 0
        while True:
            start += self._good_batches(held, start, offset_max)
            missing = _missing(held, start)
            if missing:
                position += start
                at = position + len(held) - start
                more = file.read_at(at, min(max(SLICE_SIZE, missing), size - at))
                if not more:
                    return ValidEnd(position, self.next_offset, "not whole" if held[start:] else None)
                held, start = held[start:] + more, 0
                continue
            found = self._other_batch(held, start, offset_max)
            if isinstance(found, str):
                return ValidEnd(position + start, self.next_offset, found)
            start += found

    def _good_batches(self, held: bytes, start: int, offset_max: int) -> int:
        """Go through whole batches of the present form as long as nothing is wrong; return how many octets they are.

        This is where a start after a crash spends its time: half a microsecond a batch.
        """
        unpack, size, newest_epoch, next_offset = HEAD.unpack_from, len(held), self._epoch, self.next_offset
        expected = self._expected
        begin = start
        while start + HEADER_SIZE <= size:
            base, length, epoch, magic, crc, delta = unpack(held, start)
            end = start + LOG_OVERHEAD + length
            if (
                end > size
                or length < LENGTH_MIN
                or magic != MAGIC
                or base < next_offset
                or delta < 0
                or base + delta > offset_max
                or crc32c(held[start + CHECKED_FROM : end]) != crc
                or (expected and expected.get(base, crc) != crc)
            ):
                break
            if epoch > newest_epoch:
                newest_epoch = epoch
                self.epochs.append((epoch, base))
            start, next_offset = end, base + delta + 1
        self._epoch, self.next_offset = newest_epoch, next_offset
        return start - begin

    def _other_batch(self, held: bytes, start: int, offset_max: int) -> int | str:
        """Return the size of a batch of an earlier form, or what is wrong."""
        if held[start + MAGIC_POSITION] == MAGIC:
            return self._problem(held, start, offset_max)
        try:
            found = read_batch(held, start)
        except DecodeError as error:
            return error.reason
        if found is None:
            return "not whole"
        batch, end = found
        if isinstance(batch, RecordBatch) or not self.next_offset <= batch.last_offset <= offset_max:
            return f"offset {batch.last_offset}, {self.next_offset} comes next"
        self.next_offset = batch.last_offset + 1
        return end - start

    def _problem(self, held: bytes, start: int, offset_max: int) -> str:
        length = _length(held, start)
        if not LENGTH_MIN <= length <= BATCH_SIZE_MAX:
            return f"size {length}"
        base, _, _, _, crc, delta = HEAD.unpack_from(held, start)
        if base < self.next_offset or delta < 0 or base + delta > offset_max:
            return f"offsets {base} to {base + delta}, {self.next_offset} comes next"
        if self._expected.get(base, crc) != crc:
            return f"the journal has another batch of offset {base}"
        return "its checksum is not that of its content"


def _missing(held: bytes, start: int) -> int:
    """Return how many octets more are needed to judge the batch that begins here."""
    there = len(held) - start
    if there <= MAGIC_POSITION:
        return MAGIC_POSITION + 1 - there
    return max(0, LOG_OVERHEAD + min(_length(held, start), BATCH_SIZE_MAX) - there)


def _length(held: bytes, start: int) -> int:
    return int.from_bytes(held[start + SIZE_POSITION : start + LOG_OVERHEAD], "big", signed=True)


def torn_tail(file: File, size: int, base_offset: int, end: ValidEnd) -> str | None:
    """Say what stands behind the last good batch of a log, if a crash may have left it: zeros, or one batch."""
    if _is_zeros(file, end.position, size):
        return "zeros"
    if size - end.position > TORN_SIZE_MAX:
        return None
    rest = file.read_at(end.position, size - end.position)
    if torn_beginning(rest, base_offset, end.next_offset) and whole_batch_within(rest, end.next_offset) is None:
        return "of a batch that was not written to its end"
    return None


def _is_zeros(file: File, position: int, size: int) -> bool:
    while position < size:
        data = file.read_at(position, min(SLICE_SIZE, size - position))
        if not data or data.count(0) != len(data):
            return False
        position += len(data)
    return True
