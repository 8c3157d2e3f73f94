"""Finding the valid end of a segment: batch after batch, each with its checksum (LF-60, LF-61)."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import DecodeError
from kproto.records.batches import MAGIC_POSITION, read_batch
from kproto.records.checksum import crc32c
from kproto.records.record_batch import CHECKED_FROM, HEADER_SIZE, LOG_OVERHEAD, MAGIC, RecordBatch
from kproto.records.segment import BATCH_SIZE_MAX, RELATIVE_OFFSET_MAX

if TYPE_CHECKING:
    from kproto_server.storage.disk import File

SLICE_SIZE = 1 << 20
HEAD = Struct(">qiibIhi")
"""Base offset, length, leader epoch, magic, checksum, attributes, last offset delta."""


class End(NamedTuple):
    """Where a segment's valid batches end."""

    position: int
    next_offset: int
    epoch: int
    """The leader epoch of the last batch; -1: there is none."""
    problem: str | None
    """What is wrong with what stands there; None: nothing does."""


def valid_end(file: File, size: int, segment_base: int, next_offset: int) -> End:
    """Return where the valid batches of a segment end, of which the first may have ``next_offset`` or more."""
    epoch = -1
    position = 0
    held = b""
    start = 0
    while True:
        if len(held) - start < LOG_OVERHEAD or len(held) - start < _size(held, start):
            missing = max(SLICE_SIZE, _size(held, start) if len(held) - start >= LOG_OVERHEAD else 0)
            more = file.read_at(position + len(held) - start, min(missing, size - position - (len(held) - start)))
            held, start = held[start:] + more, 0
            if not more:
                return End(position, next_offset, epoch, "not whole" if held else None)
        found = _check(held, start, segment_base, next_offset)
        if isinstance(found, str):
            return End(position, next_offset, epoch, found)
        length, next_offset, epoch = found
        start += length
        position += length


def _size(held: bytes, start: int) -> int:
    """Return what the batch announces, as far as it may be believed."""
    size = LOG_OVERHEAD + int.from_bytes(held[start + 8 : start + LOG_OVERHEAD], "big", signed=True)
    return min(max(size, LOG_OVERHEAD), BATCH_SIZE_MAX)


def _check(held: bytes, start: int, segment_base: int, next_offset: int) -> tuple[int, int, int] | str:
    """Return size, following offset and leader epoch of the batch that begins here, or what is wrong with it."""
    if len(held) - start < MAGIC_POSITION + 1:
        return f"size {int.from_bytes(held[start + 8 : start + LOG_OVERHEAD], 'big', signed=True)}"
    if held[start + MAGIC_POSITION] != MAGIC:
        return _check_legacy(held, start, segment_base, next_offset)
    base, length, epoch, _, crc, _, delta = HEAD.unpack_from(held, start)
    if length < HEADER_SIZE - LOG_OVERHEAD or length > BATCH_SIZE_MAX:
        return f"size {length}"
    if base < next_offset or delta < 0 or base + delta - segment_base > RELATIVE_OFFSET_MAX:
        return f"offsets {base} to {base + delta}, {next_offset} comes next"
    end = start + LOG_OVERHEAD + length
    if crc32c(held[start + CHECKED_FROM : end]) != crc:
        return "its checksum is not that of its content"
    return end - start, base + delta + 1, epoch


def _check_legacy(held: bytes, start: int, segment_base: int, next_offset: int) -> tuple[int, int, int] | str:
    try:
        found = read_batch(held, start)
    except DecodeError as error:
        return error.reason
    if found is None:
        return "not whole"
    batch, end = found
    last = batch.last_offset
    if isinstance(batch, RecordBatch) or last < next_offset or last - segment_base > RELATIVE_OFFSET_MAX:
        return f"offset {last}, {next_offset} comes next"
    return end - start, last + 1, -1
