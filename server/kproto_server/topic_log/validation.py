"""What a producer sent, judged and made ready for the log (BA-61, BA-62).

Theory of operation. From version 3 of Produce on, a partition's records are exactly one batch of magic 2. It is stored
as it came: its checksum was checked, and compressed records are not opened unless something has to be known of them.
Before that, records are a message set, which is taken apart and made a batch, as every broker since 0.11 does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.errors import DecodeError
from kproto.records.batches import read_batch, read_records
from kproto.records.compression import Compression
from kproto.records.errors import CorruptBatch, MissingPackage
from kproto.records.record import NO_TIMESTAMP
from kproto.records.record_batch import (
    APPEND_TIME,
    MAGIC,
    NO_PRODUCER_ID,
    RecordBatch,
    build_record_batch,
    seal,
)

if TYPE_CHECKING:
    from kproto.records.record import Record
    from kproto_server.releases.profiles import Profile

BATCHES_SINCE = 3
"""The version of Produce from which on records are one batch of magic 2."""
ZSTD_SINCE = 7
HEADER_OFFSET = slice(0, 8)


class Terms(NamedTuple):
    """What a topic says of what is written to it."""

    size_max_bytes: int
    """`max.message.bytes`."""
    is_compacted: bool = False
    has_append_time: bool = False
    """`message.timestamp.type` is LogAppendTime."""
    compression: Compression | None = None
    """`compression.type`; None: as the producer has it."""
    after_max_ms: int | None = None
    """`message.timestamp.after.max.ms`: how far ahead of the broker's clock a record may be."""
    before_max_ms: int | None = None


class Accepted(NamedTuple):
    """A batch that may be appended."""

    batch: bytes
    record_count: int
    last_offset_delta: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    first_sequence: int


class Refused(NamedTuple):
    """Why records are not written."""

    error: ErrorCode
    message: str | None = None


def accept(records: bytes | None, api_version: int, terms: Terms, now_ms: int, profile: Profile) -> Accepted | Refused:
    """Judge the records of one partition of a Produce request."""
    try:
        if api_version >= BATCHES_SINCE:
            return _accept_batch(records or b"", api_version, terms, now_ms, profile)
        return _accept_message_set(records or b"", terms, now_ms)
    except CorruptBatch as error:
        return Refused(ErrorCode.CORRUPT_MESSAGE, error.reason)
    except MissingPackage as error:
        return Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error))
    except DecodeError as error:
        return Refused(ErrorCode.CORRUPT_MESSAGE, error.reason)


def _accept_batch(records: bytes, api_version: int, terms: Terms, now_ms: int, profile: Profile) -> Accepted | Refused:
    invalid = profile.invalid_records_error
    found = read_batch(records) if records else None
    if found is None:
        return Refused(invalid, "Produce requests have exactly one batch")
    batch, end = found
    if not isinstance(batch, RecordBatch):
        return Refused(invalid, f"magic {batch.magic}, not {MAGIC}")
    if end != len(records):
        return Refused(invalid, "Produce requests have exactly one batch")
    header = batch.header
    if batch.compression is Compression.ZSTD and api_version < ZSTD_SINCE:
        return Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd is for version 7 and later")
    if header.base_offset != 0:
        return Refused(invalid, f"base offset {header.base_offset}, not 0")
    if header.record_count < 1 or header.last_offset_delta != header.record_count - 1:
        return Refused(invalid, f"{header.record_count} records up to offset delta {header.last_offset_delta}")
    if batch.is_control:
        return Refused(ErrorCode.INVALID_RECORD, "clients write no control batches")
    if len(records) > terms.size_max_bytes:
        return Refused(ErrorCode.MESSAGE_TOO_LARGE)
    if terms.is_compacted and any(record.key is None for record in batch.records()):
        return Refused(ErrorCode.INVALID_RECORD, "a compacted topic takes no record without a key")
    if not terms.has_append_time and _is_out_of_time(header.max_timestamp, terms, now_ms):
        return Refused(ErrorCode.INVALID_TIMESTAMP)
    return _accepted(_as_the_topic_has_it(batch, records, terms, now_ms))


def _is_out_of_time(timestamp: int, terms: Terms, now_ms: int) -> bool:
    if timestamp == NO_TIMESTAMP:
        return False
    after, before = terms.after_max_ms, terms.before_max_ms
    return (after is not None and timestamp - now_ms > after) or (before is not None and now_ms - timestamp > before)


def _as_the_topic_has_it(batch: RecordBatch, encoded: bytes, terms: Terms, now_ms: int) -> bytes:
    """Return the batch with the time and the compression that its topic asks for; mostly it is as it was."""
    header = batch.header
    if terms.compression is not None and terms.compression is not batch.compression:
        return build_record_batch(
            batch.records(),
            base_offset=0,
            base_timestamp=header.base_timestamp,
            max_timestamp=now_ms if terms.has_append_time else header.max_timestamp,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            compression=terms.compression,
            flags=header.attributes & ~0b111 | (APPEND_TIME if terms.has_append_time else 0),
        )
    if terms.has_append_time:
        stamped = header.replace(max_timestamp=now_ms, attributes=header.attributes | APPEND_TIME)
        return seal(stamped, batch.payload)
    return encoded


def _accept_message_set(records: bytes, terms: Terms, now_ms: int) -> Accepted | Refused:
    """Make a batch of a message set; what is cut off at its end is left out, as it may be there."""
    found: list[Record] = []
    compression = Compression.NONE
    position = 0
    while (read := read_batch(records, position)) is not None:
        batch, position = read
        if batch.magic == MAGIC:
            return Refused(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, "batches are for version 3 and later")
        compression = batch.compression
        found += batch.records()
    if not found:
        return Refused(ErrorCode.INVALID_RECORD, "no records")
    if terms.is_compacted and any(record.key is None for record in found):
        return Refused(ErrorCode.INVALID_RECORD, "a compacted topic takes no record without a key")
    numbered = [record._replace(offset=offset) for offset, record in enumerate(found)]
    greatest = max(record.timestamp for record in numbered)
    if not terms.has_append_time and _is_out_of_time(greatest, terms, now_ms):
        return Refused(ErrorCode.INVALID_TIMESTAMP)
    made = build_record_batch(
        numbered,
        base_offset=0,
        max_timestamp=now_ms if terms.has_append_time else greatest,
        compression=compression if terms.compression is None else terms.compression,
        flags=APPEND_TIME if terms.has_append_time else 0,
    )
    if len(made) > terms.size_max_bytes:
        return Refused(ErrorCode.MESSAGE_TOO_LARGE)
    return _accepted(made)


def _accepted(encoded: bytes) -> Accepted:
    found = read_batch(encoded, check_crc=False)
    assert found is not None, "it was whole"
    batch = found[0]
    assert isinstance(batch, RecordBatch)
    header = batch.header
    return Accepted(
        encoded,
        header.record_count,
        header.last_offset_delta,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
    )


__all__ = ["NO_PRODUCER_ID", "Accepted", "Refused", "Terms", "accept", "read_records"]
