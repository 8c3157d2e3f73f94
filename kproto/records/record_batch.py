"""Record batches, magic 2 (LF-1, LF-2): a header of 61 bytes, then records, compressed or not.

Theory of operation. The checksum covers everything from the attributes on. The broker that stores a batch may change
the fields before them, and so sets offset and leader epoch without touching the records. A compacted batch has gaps:
offsets come from base offset and deltas, never from counting, and the last offset is the header's (LF-37, LF-72).

Reading splits a batch into header and payload and checks its sizes and its checksum; `RecordBatch.records` uncompresses
and decodes the payload. A reader that only needs headers pays for no more.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import CorruptBatch, DecodeError, EncodeError
from kproto.message_codec import message_codec
from kproto.records.batch_header import (
    APPEND_TIME,
    CHECKED_FROM,
    CONTROL,
    CRC_POSITION,
    DELETE_HORIZON,
    HEADER_SIZE,
    LENGTH_MIN,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    NO_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    SIZE_POSITION,
    TRANSACTIONAL,
    RecordBatchHeader,
    position_of,
)
from kproto.records.checksum import crc32c
from kproto.records.compression import CONTENT_SIZE_MAX, Compression, compress, compression_of, decompress
from kproto.records.record import (
    NO_TIMESTAMP,
    Record,
    decode_in_pieces,
    decode_records,
    encode_records,
    last_record_offset,
)
from kproto.runtime import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class RecordBatch(NamedTuple):
    """A batch of magic 2 whose records are not decoded."""

    header: RecordBatchHeader
    payload: bytes

    @property
    def magic(self) -> int:
        return MAGIC

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
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
        """Whether all records have the timestamp of the broker, the batch's greatest one."""
        return bool(self.header.attributes & APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.header.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch has a marker of the broker (`kproto.records.control`) and no records of clients."""
        return bool(self.header.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time when compaction may drop the batch's tombstones; stored as the base timestamp."""
        return self.header.base_timestamp if self.header.attributes & DELETE_HORIZON else None

    def records(self, *, content_size_max: int = CONTENT_SIZE_MAX, headers_max: int = UNLIMITED) -> list[Record]:
        """Return the records.

        Raises:
            DecodeError: the records do not have their layout, or exceed the limit when uncompressed.
            TooManyElements: they have more than ``headers_max`` headers.
            MissingPackage: the compression needs a package that is not installed.
        """
        return self.records_of(self.content(content_size_max), headers_max=headers_max)

    def records_of(self, content: bytes, *, headers_max: int = UNLIMITED) -> list[Record]:
        """Return the records of the batch's content, as `records`.

        Raises:
            DecodeError: the records do not have their layout.
            TooManyElements: they have more than ``headers_max`` headers.
        """
        header = self.header
        return decode_records(
            content,
            header.record_count,
            base_offset=header.base_offset,
            base_timestamp=header.base_timestamp,
            append_time=header.max_timestamp if header.attributes & APPEND_TIME else None,
            headers_max=headers_max,
        )

    def content(self, size_max: int) -> bytes:
        """Return the encoded records, decompressed.

        Raises:
            DecodeError: they exceed the limit, or are not of this compression.
            MissingPackage: the compression needs a package that is not installed.
        """
        return decompress(self.compression, self.payload, limit=size_max)

    def pieces(
        self, content: bytes, piece_records: int, piece_bytes: int, *, with_headers: bool = True
    ) -> Iterator[list[Record]]:
        """Yield the records of the batch's content some at a time, as `decode_in_pieces`.

        ``with_headers`` False: the records have no headers. Those of one record may take longer than all other records.

        Raises:
            DecodeError: while iterating: the records do not have their layout; earlier pieces were right.
        """
        header = self.header
        return decode_in_pieces(
            content,
            header.record_count,
            piece_records,
            piece_bytes,
            header.base_offset,
            header.base_timestamp,
            header.max_timestamp if header.attributes & APPEND_TIME else None,
            headers_max=UNLIMITED if with_headers else None,
        )

    def encode(self) -> bytes:
        """Return the batch as bytes, with the header's length and checksum, right or wrong."""
        return self.header.encode(MAGIC) + self.payload


def read_header(data: bytes, position: int = 0) -> RecordBatchHeader:
    """Return the header of the batch of magic 2 at a position, without checks.

    Raises:
        DecodeError: the header is truncated.
    """
    header: RecordBatchHeader = message_codec(RecordBatchHeader, MAGIC).decode(data, position)[0]
    return header


def read_record_batch(data: bytes, position: int = 0, *, check_crc: bool = True) -> tuple[RecordBatch, int]:
    """Read one batch; return ``(batch, position after it)``.

    Raises:
        CorruptBatch: the checksum does not match the content.
        DecodeError: the batch is truncated, has another magic, or lengths or counts that are impossible.
    """
    header, end = read_checked_header(data, position, check_crc=check_crc)
    return RecordBatch(header, data[position + HEADER_SIZE : end]), end


def read_checked_header(data: bytes, position: int = 0, *, check_crc: bool = True) -> tuple[RecordBatchHeader, int]:
    """Check one batch without a copy of its records; return ``(header, position after the batch)``.

    Raises:
        CorruptBatch, DecodeError: as for `read_record_batch`.
    """
    header = read_header(data, position)
    end = position + LOG_OVERHEAD + header.batch_length
    _check_header(header, position)
    if end > len(data):
        raise DecodeError("RecordBatch", len(data), f"{end - len(data)} bytes of {end - position} are missing")
    if check_crc:
        crc = crc32c(memoryview(data)[position + CHECKED_FROM : end])
        if crc != header.crc:
            raise CorruptBatch(
                "RecordBatch.crc", position + CRC_POSITION, f"{header.crc:08x}, but its content has {crc:08x}"
            )
    return header, end


def _check_header(header: RecordBatchHeader, position: int) -> None:
    if header.magic != MAGIC:
        raise DecodeError("RecordBatch.magic", position + MAGIC_POSITION, f"{header.magic}, not {MAGIC}")
    if header.batch_length < LENGTH_MIN:
        reason = f"{header.batch_length} is less than {LENGTH_MIN}"
        raise DecodeError("RecordBatch.batch_length", position + SIZE_POSITION, reason)
    if header.record_count < 0 or header.last_offset_delta < 0:
        reason = f"{header.record_count} records up to offset delta {header.last_offset_delta}"
        raise DecodeError("RecordBatch.record_count", position + position_of("record_count"), reason)


def seal(header: RecordBatchHeader, payload: bytes) -> bytes:
    """Return the batch of a header and a payload, with the right length and checksum.

    Raises:
        EncodeError: a value of the header does not fit its field.
    """
    encoded = header.replace(batch_length=LENGTH_MIN + len(payload), crc=0).encode(MAGIC)
    checked = encoded[CHECKED_FROM:] + payload
    return encoded[:CRC_POSITION] + crc32c(checked).to_bytes(4, "big") + checked


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
    """Return a batch of these records, with the offsets and timestamps that they have.

    By default, the header's offsets and timestamps are those of the first record and the last or greatest. ``flags``
    are the attributes other than the compression: APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON.

    Raises:
        EncodeError: a value does not fit its field, or the offsets do not rise from the base to the last.
        MissingPackage: the compression needs a package that is not installed.
    """
    records = list(records)
    try:
        if base_offset is None:
            base_offset = records[0].offset if records else 0
        if last_offset is None:
            last_offset = max(last_record_offset(records, base_offset), base_offset)
        if base_timestamp is None:
            base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
        if max_timestamp is None:
            max_timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
        _check_offsets(records, base_offset, last_offset)
    except TypeError:
        raise EncodeError("records", "an offset or a timestamp is no number") from None
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
