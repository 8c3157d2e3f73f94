"""Batches of either generation, back to back, as a log file or the ``records`` of a Fetch response has them.

The first 17 octets tell enough of any batch: offset int64, size int32, four octets that differ, magic int8. What ends
in the middle of a batch is no error: a broker cuts its answer at a number of bytes, and a log's last batch may be torn
(LF-61, LF-62). What is complete and wrong is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import DecodeError
from kproto.records import message_set, record_batch
from kproto.records.compression import CONTENT_SIZE_MAX
from kproto.records.message_set import LegacyBatch, read_legacy_batch
from kproto.records.record_batch import RecordBatch, read_record_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto.records.record import Record

Batch = RecordBatch | LegacyBatch

SIZE_POSITION = 8
LOG_OVERHEAD = 12
MAGIC_POSITION = 16
SIZE_MIN = 14
"""The least size that a batch can announce: a message of magic 0 without key and value."""


def batch_end(data: bytes, position: int = 0) -> int | None:
    """Return where the batch that begins here ends; None if it ends after the data.

    Raises:
        DecodeError: it announces less than any batch has.
    """
    if len(data) - position < LOG_OVERHEAD:
        return None
    size = int.from_bytes(data[position + SIZE_POSITION : position + LOG_OVERHEAD], "big", signed=True)
    if size < SIZE_MIN:
        raise DecodeError("batch", position + SIZE_POSITION, f"size {size}, {SIZE_MIN} is the least")
    end = position + LOG_OVERHEAD + size
    return end if end <= len(data) else None


def read_batch(data: bytes, position: int = 0, *, check_crc: bool = True) -> tuple[Batch, int] | None:
    """Read the batch that begins here; return ``(batch, position after it)``, or None if it ends after the data.

    Raises:
        CorruptBatch: the checksum is not that of the content.
        DecodeError: an unknown magic, or lengths and counts that can't be.
    """
    end = batch_end(data, position)
    if end is None:
        return None
    magic = data[position + MAGIC_POSITION]
    if magic == record_batch.MAGIC:
        return read_record_batch(data, position, check_crc=check_crc)
    if magic in message_set.MAGICS:
        return read_legacy_batch(data, position, check_crc=check_crc)
    raise DecodeError("batch.magic", position + MAGIC_POSITION, f"there is no magic {magic}")


def read_batches(data: bytes, position: int = 0, *, check_crc: bool = True) -> Iterator[Batch]:
    """Yield the batches that are whole; what is left at the end is cut off.

    Raises:
        CorruptBatch: while iterating: a checksum is not that of the content.
        DecodeError: while iterating: an unknown magic, or lengths and counts that can't be.
    """
    while (found := read_batch(data, position, check_crc=check_crc)) is not None:
        batch, position = found
        yield batch


def read_records(data: bytes | None, *, content_size_max: int = CONTENT_SIZE_MAX) -> Iterator[Record]:
    """Yield the clients' records of all batches that are whole; the broker's markers are left out.

    ``content_size_max`` bounds the uncompressed bytes of each batch.

    Raises:
        CorruptBatch: while iterating: a checksum is not that of the content.
        DecodeError: while iterating: a batch or record does not have its layout.
        MissingPackage: while iterating: a compression needs a package that is not installed.
    """
    for batch in read_batches(data or b""):
        if not batch.is_control:
            yield from batch.records(content_size_max=content_size_max)
