"""Batches of every magic, back to back, as a log segment or the ``records`` of a Fetch response has them.

The first 17 bytes are enough to distinguish batches: offset int64, size int32, four bytes that depend on the magic,
magic int8. Data that ends in the middle of a batch is not an error: a broker truncates its response at a number of
bytes, and the last batch of a log may be torn (LF-61, LF-62). A whole batch that is wrong is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import DecodeError
from kproto.records import message_set
from kproto.records.batch_header import LOG_OVERHEAD, MAGIC, MAGIC_POSITION, SIZE_POSITION, header_struct
from kproto.records.compression import CONTENT_SIZE_MAX
from kproto.records.message_set import LegacyBatch, read_legacy_batch
from kproto.records.record_batch import RecordBatch, read_record_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto.records.record import Record

Batch = RecordBatch | LegacyBatch

SIZE_MIN = 14
"""The least size that a batch can announce: a message of magic 0 without key and value."""

_read_offset = header_struct("base_offset").unpack_from
_read_size = header_struct("batch_length").unpack_from
_read_crc = header_struct("crc").unpack_from
_read_base_and_delta = header_struct("base_offset", "last_offset_delta").unpack_from


def batch_size(data: bytes, position: int = 0) -> int:
    """Return the size that the batch at a position announces, its first `LOG_OVERHEAD` bytes not included.

    The size may be anything; ``data`` must have these first bytes.
    """
    size: int = _read_size(data, position)[0]
    return size


def stored_crc(data: bytes, position: int = 0) -> int:
    """Return the checksum in the header of a batch of magic 2."""
    crc: int = _read_crc(data, position)[0]
    return crc


def batch_end(data: bytes, position: int = 0) -> int | None:
    """Return the position where the batch at a position ends; None if that is after the end of the data.

    Raises:
        DecodeError: the batch announces a size below `SIZE_MIN`.
    """
    if len(data) - position < LOG_OVERHEAD:
        return None
    size = batch_size(data, position)
    if size < SIZE_MIN:
        raise DecodeError("batch", position + SIZE_POSITION, f"size {size}, the least is {SIZE_MIN}")
    end = position + LOG_OVERHEAD + size
    return end if end <= len(data) else None


def first_offset(data: bytes, position: int = 0) -> int:
    """Return the first int64 of a batch: its base offset, or in a message set the offset of the (last) message."""
    offset: int = _read_offset(data, position)[0]
    return offset


def last_offset(data: bytes, position: int = 0) -> int:
    """Return the last offset of a batch of any magic, according to its header."""
    if data[position + MAGIC_POSITION] != MAGIC:
        return first_offset(data, position)
    base, delta = _read_base_and_delta(data, position)
    last: int = base + delta
    return last


def read_batch(data: bytes, position: int = 0, *, check_crc: bool = True) -> tuple[Batch, int] | None:
    """Read the batch at a position; return ``(batch, position after it)``, or None if it ends after the data.

    Raises:
        CorruptBatch: the checksum does not match the content.
        DecodeError: the magic is unknown, or lengths or counts are impossible.
    """
    end = batch_end(data, position)
    if end is None:
        return None
    magic = data[position + MAGIC_POSITION]
    if magic == MAGIC:
        return read_record_batch(data, position, check_crc=check_crc)
    if magic in message_set.MAGICS:
        return read_legacy_batch(data, position, check_crc=check_crc)
    raise DecodeError("batch.magic", position + MAGIC_POSITION, f"unknown magic {magic}")


def read_batches(data: bytes, position: int = 0, *, check_crc: bool = True) -> Iterator[Batch]:
    """Yield the whole batches; ignore a truncated one at the end.

    Raises:
        CorruptBatch: while iterating: a checksum does not match the content.
        DecodeError: while iterating: a magic is unknown, or lengths or counts are impossible.
    """
    while (found := read_batch(data, position, check_crc=check_crc)) is not None:
        batch, position = found
        yield batch


def read_records(data: bytes | None, *, content_size_max: int = CONTENT_SIZE_MAX) -> Iterator[Record]:
    """Yield the clients' records of all whole batches, without the markers of the broker.

    ``content_size_max`` limits the uncompressed bytes of each batch.

    Raises:
        CorruptBatch: while iterating: a checksum does not match the content.
        DecodeError: while iterating: a batch or record does not have its layout.
        MissingPackage: while iterating: a compression needs a package that is not installed.
    """
    for batch in read_batches(data or b""):
        if not batch.is_control:
            yield from batch.records(content_size_max=content_size_max)
