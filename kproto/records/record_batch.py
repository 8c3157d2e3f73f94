"""Batches of magic 2 (LF-1, LF-2): a declared header of 61 octets, then records, compressed or not.

Theory of operation. The checksum covers everything from the attributes on; what stands before it may be changed by the
broker that stores the batch, so that it can set offset and epoch without touching the records. A compacted batch has
gaps: offsets come from base offset and deltas, never from counting, and its last offset is the header's (LF-37, LF-72).

Reading takes a batch apart into header and payload and checks its frame and its checksum; `RecordBatch.records`
uncompresses and decodes. A loader that only wants the header of most batches pays for no more.
"""

from __future__ import annotations

import itertools
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from kproto.declaration import Int8, Int16, Int32, Int64, UInt32
from kproto.errors import CorruptBatch, DecodeError, EncodeError
from kproto.message import Message
from kproto.message_codec import message_codec
from kproto.records.checksum import crc32c
from kproto.records.compression import CONTENT_SIZE_MAX, Compression, compress, compression_of, decompress
from kproto.records.record import NO_TIMESTAMP, Record, batch_end, decode_records, encode_records

if TYPE_CHECKING:
    from collections.abc import Iterable

MAGIC = 2
HEADER_SIZE = 61
LOG_OVERHEAD = 12
"""Octets before and in the length: the length counts what follows it."""
LENGTH_MIN = HEADER_SIZE - LOG_OVERHEAD
UNCHECKED = Struct(">qiibI")
"""Base offset, length, leader epoch, magic, and the checksum of all that follows."""
CHECKED_FROM = UNCHECKED.size
"""Where the octets begin that the checksum covers."""

APPEND_TIME = 1 << 3
TRANSACTIONAL = 1 << 4
CONTROL = 1 << 5
DELETE_HORIZON = 1 << 6

NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_EPOCH = -1, -1, -1, -1


class RecordBatchHeader(Message, versions=(MAGIC, MAGIC)):
    """What stands before the records of a batch; the version is the magic."""

    base_offset: Int64
    batch_length: Int32
    partition_leader_epoch: Int32
    magic: Int8 = MAGIC
    crc: UInt32
    attributes: Int16
    last_offset_delta: Int32
    base_timestamp: Int64
    max_timestamp: Int64
    producer_id: Int64
    producer_epoch: Int16
    base_sequence: Int32
    record_count: Int32


class RecordBatch(NamedTuple):
    """A batch of magic 2, its records still as they came."""

    header: RecordBatchHeader
    payload: bytes

    @property
    def magic(self) -> int:
        return MAGIC

    @property
    def size(self) -> int:
        """Octets of the whole batch."""
        return HEADER_SIZE + len(self.payload)

    @property
    def base_offset(self) -> int:
        return self.header.base_offset

    @property
    def last_offset(self) -> int:
        return self.header.base_offset + self.header.last_offset_delta

    @property
    def compression(self) -> Compression:
        return compression_of(self.header.attributes, "RecordBatch.attributes", CHECKED_FROM)

    @property
    def has_append_time(self) -> bool:
        """Whether the broker's clock gave the timestamp: the greatest one is that of all records then."""
        return bool(self.header.attributes & APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.header.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether it holds a marker of the broker (`kproto.records.control`) and no records of clients."""
        return bool(self.header.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the tombstones in here; it has the base timestamp's place."""
        return self.header.base_timestamp if self.header.attributes & DELETE_HORIZON else None

    def records(self, *, content_size_max: int = CONTENT_SIZE_MAX) -> list[Record]:
        """Return the records.

        Raises:
            DecodeError: they do not have their layout, or are more bytes than allowed when uncompressed.
            MissingPackage: their compression needs a package that is not installed.
        """
        header = self.header
        return decode_records(
            decompress(self.compression, self.payload, limit=content_size_max),
            header.record_count,
            base_offset=header.base_offset,
            base_timestamp=header.base_timestamp,
            append_time=header.max_timestamp if header.attributes & APPEND_TIME else None,
        )

    def encode(self) -> bytes:
        """Return the batch; length and checksum are the header's, right or wrong."""
        return self.header.encode(MAGIC) + self.payload


def read_record_batch(data: bytes, position: int = 0, *, check_crc: bool = True) -> tuple[RecordBatch, int]:
    """Read one batch; return ``(batch, position after it)``.

    Raises:
        CorruptBatch: the checksum is not that of the content.
        DecodeError: cut off, another magic, or lengths and counts that can't be.
    """
    decoded, payload_start = message_codec(RecordBatchHeader, MAGIC).decode(data, position)
    header: RecordBatchHeader = decoded
    end = position + LOG_OVERHEAD + header.batch_length
    _check_header(header, position)
    if end > len(data):
        raise DecodeError("RecordBatch", len(data), f"{end - len(data)} bytes of {end - position} are missing")
    if check_crc:
        crc = crc32c(data[position + CHECKED_FROM : end])
        if crc != header.crc:
            raise CorruptBatch("RecordBatch.crc", position + 17, f"{header.crc:08x}, but its content has {crc:08x}")
    return RecordBatch(header, data[payload_start:end]), end


def _check_header(header: RecordBatchHeader, position: int) -> None:
    if header.magic != MAGIC:
        raise DecodeError("RecordBatch.magic", position + 16, f"{header.magic}, not {MAGIC}")
    if header.batch_length < LENGTH_MIN:
        raise DecodeError("RecordBatch.batch_length", position + 8, f"{header.batch_length} is less than {LENGTH_MIN}")
    if header.record_count < 0 or header.last_offset_delta < 0:
        reason = f"{header.record_count} records up to offset delta {header.last_offset_delta}"
        raise DecodeError("RecordBatch.record_count", position + 57, reason)


def seal(header: RecordBatchHeader, payload: bytes) -> bytes:
    """Return header and payload as a batch with the right length and checksum.

    Raises:
        EncodeError: a value of the header does not fit.
    """
    encoded = header.replace(batch_length=LENGTH_MIN + len(payload), crc=0).encode(MAGIC)
    checked = encoded[CHECKED_FROM:] + payload
    return encoded[: CHECKED_FROM - 4] + crc32c(checked).to_bytes(4, "big") + checked


def build_record_batch(
    records: Iterable[Record],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    partition_leader_epoch: int = NO_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    compression: Compression = Compression.NONE,
    flags: int = 0,
) -> bytes:
    """Return a batch of these records, which stand in it with the offsets and timestamps that they have.

    What is not given comes from the records: offsets and timestamps of the first and the last or greatest. ``flags``
    are the attributes beside compression: APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON.

    Raises:
        EncodeError: a value does not fit, or the offsets of the records do not rise from the base to the last.
        MissingPackage: the compression needs a package that is not installed.
    """
    records = list(records)
    if base_offset is None:
        base_offset = records[0].offset if records else 0
    if last_offset is None:
        last_offset = max(batch_end(records, base_offset), base_offset)
    if base_timestamp is None:
        base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    if max_timestamp is None:
        max_timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
    _check_offsets(records, base_offset, last_offset)
    header = RecordBatchHeader(
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=partition_leader_epoch,
        crc=0,
        attributes=compression | flags,
        last_offset_delta=last_offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    encoded = encode_records(records, base_offset=base_offset, base_timestamp=base_timestamp)
    return seal(header, compress(compression, encoded))


def _check_offsets(records: list[Record], base_offset: int, last_offset: int) -> None:
    offsets = [base_offset - 1, *(record.offset for record in records)]
    rising = all(after > before for before, after in itertools.pairwise(offsets))
    if not rising or last_offset < max(base_offset, offsets[-1]):
        raise EncodeError("records", f"offsets do not rise from {base_offset} to {last_offset}")
