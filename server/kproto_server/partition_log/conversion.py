"""Records for clients of before 0.11: batches taken apart and made message sets (BA-77)."""

from __future__ import annotations

from kproto.records.batches import read_batches
from kproto.records.compression import Compression
from kproto.records.message_set import build_message_set
from kproto.records.record import NO_TIMESTAMP


def down_converted(batches: bytes, offset: int, *, magic: int) -> bytes | None:
    """Return batches as message sets: without headers, in magic 0 without timestamps; None if even the first can't be
    one, since zstd is of magic 2 only. From there on they are left out.

    Records before the offset are left out too, but a compressed batch stays whole, as brokers have it.

    Raises:
        DecodeError: a batch can't be read.
        MissingPackage: its compression needs a package that is not installed.
    """
    made: list[bytes] = []
    for batch in read_batches(batches, check_crc=False):
        if batch.compression is Compression.ZSTD:
            return b"".join(made) if made else None
        if batch.is_control:
            continue
        found = batch.records()
        records = [
            record._replace(headers=(), timestamp=record.timestamp if magic else NO_TIMESTAMP)
            for record in found
            if batch.compression is not Compression.NONE or record.offset >= offset
        ]
        append_time = found[0].timestamp if magic and batch.has_append_time else None
        made.append(build_message_set(records, magic=magic, compression=batch.compression, append_time=append_time))
    return b"".join(made)
