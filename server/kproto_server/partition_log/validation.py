"""What a producer sent, judged and made ready for the log (BA-61, BA-62).

Theory of operation. What can be told at a glance was looked at before (`topic_log.glance`). From version 3 of Produce
on, a partition's records are exactly one batch of magic 2; what follows it is cut off. It is stored as it came: its
checksum was checked, and compressed records are not opened unless something has to be known of them. Before that,
records are a message set, which is taken apart and made a batch, as every broker since 0.11 does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.errors import DecodeError, MissingPackage
from kproto.java_arithmetic import wrapped
from kproto.records.batches import MAGIC_POSITION, batch_end, read_batch
from kproto.records.compression import Compression
from kproto.records.record import NO_TIMESTAMP
from kproto.records.record_batch import (
    APPEND_TIME,
    MAGIC,
    NO_PRODUCER_ID,
    RecordBatch,
    build_record_batch,
    read_record_batch,
    seal,
)
from kproto_server.partition_log.precheck import CODEC_MASK

if TYPE_CHECKING:
    from kproto.records.record import Record
    from kproto.records.record_batch import RecordBatchHeader
    from kproto_server.releases.kafka_version import KafkaVersion

NO_BOUND = 2**63 - 1
CODECS = frozenset(Compression)
BASE_OFFSET_SIZE = 8
"""It stands first, and a client's is 0."""


class Terms(NamedTuple):
    """What a topic says of what is written to it."""

    name: str
    """The partition's, as refusals have it."""
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
    """`message.timestamp.before.max.ms`: how far behind."""


class Accepted(NamedTuple):
    """A batch that may be appended."""

    batch: bytes
    record_count: int
    last_offset_delta: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    first_sequence: int


class RecordError(NamedTuple):
    """What is wrong with one record of a batch."""

    number: int
    """Which one it is, from 0 on."""
    error: ErrorCode
    message: str | None


class Refused(NamedTuple):
    """Why records are not written."""

    error: ErrorCode
    message: str | None = None
    record_errors: tuple[RecordError, ...] = ()
    reached_log: bool = False
    """Whether it was the log that refused: the answer tells its start then."""


def accept(records: bytes, terms: Terms, now_ms: int, kafka_version: KafkaVersion) -> Accepted | Refused:
    """Judge the records of one partition of a Produce request, which begin with a whole batch or message."""
    try:
        if records[MAGIC_POSITION] == MAGIC:
            return _accept_batch(records, terms, now_ms, kafka_version)
        return _accept_message_set(records, terms, now_ms, kafka_version)
    except MissingPackage as error:
        return Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error))
    except DecodeError:
        return Refused(ErrorCode.CORRUPT_MESSAGE)


def _accept_batch(records: bytes, terms: Terms, now_ms: int, kafka_version: KafkaVersion) -> Accepted | Refused:
    invalid = kafka_version.invalid_records_error
    refused = Refused(invalid, reached_log=invalid is ErrorCode.INVALID_RECORD)
    records = records[: batch_end(records)]
    if records[:BASE_OFFSET_SIZE] != bytes(BASE_OFFSET_SIZE):
        return refused
    if len(records) > terms.size_max_bytes:
        return Refused(ErrorCode.MESSAGE_TOO_LARGE)
    batch = read_record_batch(records)[0]
    header = batch.header
    wrong_count = header.record_count < 1 or header.last_offset_delta != header.record_count - 1
    if wrong_count or batch.is_control or _has_wrong_sequence(header):
        return refused
    codec = header.attributes & CODEC_MASK
    if codec not in CODECS or (codec == Compression.ZSTD and not kafka_version.knows_zstd):
        return Refused(ErrorCode.UNKNOWN_SERVER_ERROR, reached_log=True)
    refusal = _refuse_records(batch, terms, now_ms, kafka_version)
    if refusal is not None:
        return refusal
    stored = _as_the_topic_has_it(batch, records, terms, now_ms)
    return _of_header(stored, header) if stored is records else _accepted(stored)


def _has_wrong_sequence(header: RecordBatchHeader) -> bool:
    return header.producer_id != NO_PRODUCER_ID and (header.base_sequence < 0 or header.producer_epoch < 0)


def _refuse_records(batch: RecordBatch, terms: Terms, now_ms: int, kafka_version: KafkaVersion) -> Refused | None:
    """Look at the records one by one, where the topic asks for something that only they can tell."""
    header_tells = terms.before_max_ms is None and not _is_late(batch.header.max_timestamp, terms, now_ms)
    if not terms.is_compacted and (header_tells or terms.has_append_time):
        return None
    return _refuse_any(batch.records(), terms, now_ms, kafka_version)


def _refuse_any(records: list[Record], terms: Terms, now_ms: int, kafka_version: KafkaVersion) -> Refused | None:
    """Refuse all if one can't be taken: each that can't is named, for its missing key before its time."""
    faults = [
        RecordError(index, error, message)
        for index, record in enumerate(records)
        for error, message in [_fault(index, record, terms, now_ms, kafka_version)]
        if error
    ]
    if not faults:
        return None
    if not kafka_version.names_refused_records:
        return Refused(faults[0].error)
    if kafka_version.names_first_refused_record:
        first = faults[0]
        return Refused(first.error, first.message, (first._replace(message=None),), reached_log=True)
    if any(fault.error is ErrorCode.INVALID_TIMESTAMP for fault in faults):
        told = "One or more records have been rejected due to invalid timestamp"
        return Refused(ErrorCode.INVALID_TIMESTAMP, told, tuple(faults), reached_log=True)
    told = "One or more records have been rejected"
    if kafka_version.words_refused_records_anew:
        shown = ", ".join(f"RecordError(batchIndex={fault.number}, message='{fault.message}')" for fault in faults[:3])
        told += (
            f" due to {len(faults)} record errors in total, and only showing the first three errors at most: [{shown}]"
        )
    return Refused(ErrorCode.INVALID_RECORD, told, tuple(faults), reached_log=True)


def _fault(index: int, record: Record, terms: Terms, now_ms: int, kafka_version: KafkaVersion) -> tuple[ErrorCode, str]:
    """What is wrong with a record; 0 if nothing is."""
    if terms.is_compacted and record.key is None:
        stop = "." if kafka_version.missing_key_ends_with_a_stop else ""
        message = f"Compacted topic cannot accept message without key in topic partition {terms.name}{stop}"
        return kafka_version.invalid_records_error, message
    untimely = _is_late(record.timestamp, terms, now_ms) or _is_early(record.timestamp, terms, now_ms)
    if terms.has_append_time or not untimely:
        return ErrorCode.NONE, ""
    return ErrorCode.INVALID_TIMESTAMP, (
        f"Timestamp {record.timestamp} of message with offset {index} is out of range. "
        f"The timestamp should be within {_bounds(terms, now_ms)}"
    )


def _bounds(terms: Terms, now_ms: int) -> str:
    """The times that are in bounds, as brokers tell them: without a bound the sum wraps around."""
    before_max_ms, after_max_ms = (
        NO_BOUND if bound is None else bound for bound in (terms.before_max_ms, terms.after_max_ms)
    )
    return f"[{now_ms - before_max_ms}, {wrapped(now_ms + after_max_ms)}]"


def _is_late(timestamp: int, terms: Terms, now_ms: int) -> bool:
    return terms.after_max_ms is not None and timestamp != NO_TIMESTAMP and timestamp - now_ms > terms.after_max_ms


def _is_early(timestamp: int, terms: Terms, now_ms: int) -> bool:
    return terms.before_max_ms is not None and timestamp != NO_TIMESTAMP and now_ms - timestamp > terms.before_max_ms


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


def _accept_message_set(records: bytes, terms: Terms, now_ms: int, kafka_version: KafkaVersion) -> Accepted | Refused:
    """Make a batch of a message set; what is cut off at its end is left out, as it may be there."""
    found: list[Record] = []
    magics: set[int] = set()
    compressions: list[Compression] = []
    position = 0
    while (read := read_batch(records, position)) is not None:
        batch, position = read
        compressions.append(batch.compression)
        magics.add(batch.magic)
        found += batch.records()
    is_mixed = len(magics) > 1 or (len(compressions) > 1 and any(compressions))
    if not found or (is_mixed and kafka_version.checks_message_sets):
        return Refused(kafka_version.invalid_records_error, reached_log=True)
    numbered = [record._replace(offset=offset) for offset, record in enumerate(found)]
    refusal = _refuse_any(numbered, terms, now_ms, kafka_version)
    if refusal is not None:
        return refusal
    greatest = max(record.timestamp for record in numbered)
    made = build_record_batch(
        numbered,
        base_offset=0,
        max_timestamp=now_ms if terms.has_append_time else greatest,
        compression=compressions[-1] if terms.compression is None else terms.compression,
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
    return _of_header(encoded, batch.header)


def _of_header(encoded: bytes, header: RecordBatchHeader) -> Accepted:
    return Accepted(
        encoded,
        header.record_count,
        header.last_offset_delta,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
    )


__all__ = ["NO_PRODUCER_ID", "Accepted", "Refused", "Terms", "accept"]
