"""Records for clients of before 0.11: batches taken apart and made message sets (BA-77)."""

from __future__ import annotations

from kproto.records.batches import read_batches
from kproto.records.compression import Compression
from kproto.records.message_set import build_message_set
from kproto.records.record import NO_TIMESTAMP


def down_converted(batches: bytes, offset: int, *, magic: int) -> bytes:
    """Return batches as message sets, from a record's offset on: without headers, in magic 0 without timestamps.

    Raises:
        DecodeError: a batch can't be read.
        MissingPackage: its compression needs a package that is not installed.
    """
    made = []
    for batch in read_batches(batches, check_crc=False):
        if batch.is_control:
            continue
        records = [
            record._replace(headers=(), timestamp=record.timestamp if magic else NO_TIMESTAMP)
            for record in batch.records()
            if record.offset >= offset
        ]
        # zstd is of magic 2 only; its records are sent as they are.
        compression = Compression.NONE if batch.compression is Compression.ZSTD else batch.compression
        append_time = batch.records()[0].timestamp if magic and batch.has_append_time else None
        made.append(build_message_set(records, magic=magic, compression=compression, append_time=append_time))
    return b"".join(made)
