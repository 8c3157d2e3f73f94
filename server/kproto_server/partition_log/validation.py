"""Validation of the records of a Produce request, and their conversion to the batch that the log stores (BA-61, BA-62).

Theory of operation. `precheck` has looked at the first bytes before. From Produce v3 on, a partition's records are
exactly one batch of magic 2; a truncated batch behind it is dropped. The batch is stored as the producer sent it, once
its checksum and the layout of its records are verified: what was accepted can be read. Records are only decoded if the
topic's configs require a look at each of them. Before v3, records are a message set, which is decoded and rebuilt as
one batch, as every broker since 0.11 does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.errors import ContentTooLarge, DecodeError, MissingPackage, TooManyElements
from kproto.jvm.arithmetic import wrapped
from kproto.records.batch_header import (
    APPEND_TIME,
    CONTROL,
    HEADER_SIZE,
    MAGIC,
    MAGIC_POSITION,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL,
)
from kproto.records.batches import read_batches
from kproto.records.compression import COMPRESSION_MASK, Compression
from kproto.records.record import INT64_MAX, NO_TIMESTAMP, RECORD_SIZE_MIN, Record
from kproto.records.record_batch import RecordBatch, build_record_batch, read_checked_header, seal
from kproto.records.record_layout import RecordLayout, record_layout
from kproto_server.partition_log.log_config import UNLIMITED_MS
from kproto_server.partition_log.precheck import Finding
from kproto_server.partition_log.record_budget import CONTENT_MAX_BYTES, RecordBudget

if TYPE_CHECKING:
    from kproto.records.batch_header import RecordBatchHeader
    from kproto_server.partition_log.log_config import LogConfig
    from kproto_server.partition_log.precheck import Precheck
    from kproto_server.partition_log.version_behavior import ProduceBehavior

CODECS = {int(codec): codec for codec in Compression}
CHECKED_RECORDS_MAX = 100_000
"""Records that are looked at before other clients are served: 70 to 140 ms at most."""
BUDGET_SIZE_BYTES = 1 << 20
"""Records of a request for which there is one budget."""
UNTOUCHED_SIZE_BYTES = 16 << 20
"""Records that are only checked and appended before other clients are served: 20 to 40 ms."""
DECODED_CLASS, PACKED_CLASS = "DefaultRecord", "PartialDefaultRecord"
"""Kafka's classes of a record, in the texts of errors; the second one is of a compressed batch."""
BASE_OFFSET_SIZE = 8
FIRST_OFFSET = bytes(BASE_OFFSET_SIZE)
"""The base offset is the first field of a batch; producers send 0."""


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

    batch_index: int
    """Index of the record in the batch."""
    error: ErrorCode
    message: str | None


class Refused(NamedTuple):
    """Why records are not written."""

    error: ErrorCode
    message: str | None = None
    record_errors: tuple[RecordError, ...] = ()
    reached_log: bool = False
    """Whether the log refused them: the response then has the log start offset."""


class LayoutBudget:
    """How many records of a request may still be looked at, and how many bytes of compressed content.

    A request of a megabyte can have a gigabyte of records in it. Batches beyond the budget are accepted without a look
    at their records.
    """

    __slots__ = ("_size_bytes", "decoded", "records_left")

    def __init__(self) -> None:
        self.records_left: int = CHECKED_RECORDS_MAX
        self.decoded: RecordBudget = RecordBudget()
        self._size_bytes: int = 0
        """Of the records that were counted."""

    def covers(self, records: bytes | None) -> bool:
        """Count a partition's records; return whether they are still within this budget, and need no new one.

        There may be a new budget for each MiB. None is needed for 16 MiB of which little is looked at, and nothing
        decoded.
        """
        size = len(records or b"")
        before, self._size_bytes = self._size_bytes, self._size_bytes + size
        if not before or self._size_bytes <= BUDGET_SIZE_BYTES:
            return True
        is_costly = self.records_left <= CHECKED_RECORDS_MAX // 2 or self.decoded.is_used
        return not is_costly and self._size_bytes <= UNTOUCHED_SIZE_BYTES

    def layout(
        self, header: RecordBatchHeader, encoded: bytes, compression: Compression
    ) -> tuple[RecordLayout, bytes | None]:
        """Return the layout of a batch's records, and their bytes if they were decompressed.

        It is taken for right beyond the budget, and without the package of the compression.
        """
        count = header.record_count
        if compression is Compression.NONE:
            return self.layout_of(count, encoded, HEADER_SIZE), None
        try:
            content = self.decoded.content_of(RecordBatch(header, encoded[HEADER_SIZE:]), CONTENT_MAX_BYTES)
        except (ContentTooLarge, MissingPackage):
            return RecordLayout.NUMBERED, None
        except DecodeError:
            return RecordLayout.LONG_VARINT, None
        return self.layout_of(count, content, 0), content

    def layout_of(self, count: int, content: bytes, start: int) -> RecordLayout:
        """Return the layout of records that are not compressed and begin at a position."""
        if self.records_left < count <= (len(content) - start) // RECORD_SIZE_MIN:
            return RecordLayout.NUMBERED
        self.records_left -= min(count, self.records_left)
        return record_layout(content, count, start)


class Validation(NamedTuple):
    """What the records of a topic's partitions are checked against."""

    topic_name: str
    config: LogConfig
    now_ms: int
    behavior: ProduceBehavior
    budget: LayoutBudget

    def accept(self, partition: int, records: bytes, check: Precheck) -> Accepted | Refused:
        """Return the batch to append, or why there is none. The records begin with a whole batch or message."""
        if check.finding is Finding.UNREADABLE:
            return Refused(ErrorCode.CORRUPT_MESSAGE)
        try:
            if records[MAGIC_POSITION] == MAGIC:
                return self._accept_batch(partition, records[: check.first_end])
            return self._accept_message_set(partition, records)
        except (TooManyElements, ContentTooLarge):
            return Refused(ErrorCode.MESSAGE_TOO_LARGE)
        except MissingPackage as error:
            return Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error))
        except DecodeError:
            return Refused(ErrorCode.CORRUPT_MESSAGE)

    def _accept_batch(self, partition: int, encoded: bytes) -> Accepted | Refused:
        behavior = self.behavior
        if encoded[:BASE_OFFSET_SIZE] != FIRST_OFFSET:
            return self._invalid()
        if len(encoded) > self.config.message_bytes_max:
            return Refused(ErrorCode.MESSAGE_TOO_LARGE)
        header, _ = read_checked_header(encoded)
        wrong_count = header.record_count < 1 or header.last_offset_delta != header.record_count - 1
        if wrong_count or header.attributes & CONTROL or _has_wrong_sequence(header):
            return self._invalid()
        compression = CODECS.get(header.attributes & COMPRESSION_MASK)
        if compression is None or (compression is Compression.ZSTD and not behavior.supports_zstd):
            return Refused(ErrorCode.UNKNOWN_SERVER_ERROR, reached_log=True)
        layout, content = self.budget.layout(header, encoded, compression)
        if layout is RecordLayout.INVALID:
            return self._invalid()
        if layout is RecordLayout.LONG_VARINT:
            return Refused(ErrorCode.UNKNOWN_SERVER_ERROR, reached_log=True)
        records: list[Record] | None = None
        if self._must_check_records(header):
            records = self._records(header, encoded, content)
            refusal = self._check_records(partition, records, _appended_class(header))
            if refusal is not None:
                return refusal
        is_unnumbered = layout is RecordLayout.UNNUMBERED and compression is not Compression.NONE
        if is_unnumbered or self.config.compression not in (None, compression):
            converted = self._converted(header, records or self._records(header, encoded, content), compression)
        else:
            converted = self._stamped(header, encoded)
        if converted is None:
            return Refused(ErrorCode.UNKNOWN_SERVER_ERROR, reached_log=True)
        if len(converted) > self.config.message_bytes_max:
            return Refused(ErrorCode.MESSAGE_TOO_LARGE)
        if len(converted) > self.config.segment_bytes:
            return Refused(ErrorCode.RECORD_LIST_TOO_LARGE)
        return Accepted(
            converted,
            header.record_count,
            header.last_offset_delta,
            self.now_ms if self.config.has_append_time else header.max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
        )

    def _invalid(self) -> Refused:
        error = self.behavior.invalid_records_error
        return Refused(error, reached_log=error is ErrorCode.INVALID_RECORD)

    def _accept_message_set(self, partition: int, records: bytes) -> Accepted | Refused:
        """Build one batch from a message set. A truncated message at the end is left out: clients may send one."""
        config = self.config
        magic = records[MAGIC_POSITION]
        found, end = self.budget.decoded.plain_messages(records, magic)
        magics = {magic} if found else set()
        codecs = [Compression.NONE] * len(found)
        appended: list[Record] = []
        for batch in read_batches(records, end):
            codecs.append(batch.compression)
            magics.add(batch.magic)
            content = None
            if batch.compression is not Compression.NONE:
                try:
                    content = self.budget.decoded.content_of(batch)
                except ContentTooLarge:
                    raise
                except DecodeError:
                    return Refused(ErrorCode.UNKNOWN_SERVER_ERROR, reached_log=True)
            records_of_batch = self.budget.decoded.records_of(batch, content)
            found += records_of_batch
            if batch.has_append_time:
                appended += records_of_batch
        is_mixed = len(magics) > 1 or (len(codecs) > 1 and any(codecs))
        if not found or (is_mixed and self.behavior.refuses_mixed_message_sets):
            return Refused(self.behavior.invalid_records_error, reached_log=True)
        numbered = [Record(*record[:-1], offset) for offset, record in enumerate(found)]  # twice as fast as `_replace`
        refusal = self._check_records(partition, numbered)
        if refusal is not None:
            return refusal
        if any(self._refuses_append_time(record) for record in appended):
            return Refused(ErrorCode.INVALID_TIMESTAMP)
        max_timestamp = self.now_ms if config.has_append_time else max(record.timestamp for record in numbered)
        codec = codecs[-1] if config.compression is None else config.compression
        self.budget.decoded.take_packed(numbered, codec)
        encoded = build_record_batch(
            numbered,
            base_offset=0,
            max_timestamp=max_timestamp,
            compression=codec,
            flags=APPEND_TIME if config.has_append_time else 0,
        )
        if len(encoded) > config.message_bytes_max:
            return Refused(ErrorCode.MESSAGE_TOO_LARGE)
        if len(encoded) > config.segment_bytes:
            return Refused(ErrorCode.RECORD_LIST_TOO_LARGE)
        count = len(numbered)
        return Accepted(encoded, count, count - 1, max_timestamp, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)

    def _must_check_records(self, header: RecordBatchHeader) -> bool:
        """Return whether the header alone cannot show that each record has a key and a valid timestamp.

        The header has the greatest timestamp, so it suffices for the upper limit but not for the lower one.
        """
        config = self.config
        if config.is_compacted or header.attributes & APPEND_TIME:
            return True
        if config.has_append_time:
            return False
        if config.timestamp_before_max_ms is not None:
            return True
        return self._is_too_late(header.max_timestamp) or self._is_too_late(header.base_timestamp)

    def _check_records(self, partition: int, records: list[Record], appended_class: str = "") -> Refused | None:
        """Refuse the whole batch if one record is invalid, with an error for each invalid record.

        ``appended_class``: Kafka's class of records whose producer says that the broker has set their timestamp.
        """
        first, last = self._certain_timestamps()
        errors = [
            error
            for index, record in enumerate(records)
            # Nearly all records pass here: the call alone takes three times as long.
            if not (record.key is not None and first <= record.timestamp <= last and not appended_class)
            and (error := self._check_record(partition, index, record, appended_class)) is not None
        ]
        return _refused_for(errors, self.behavior) if errors else None

    def _check_record(self, partition: int, index: int, record: Record, appended_class: str) -> RecordError | None:
        """Return what is wrong with a record: first its missing key, then its timestamp."""
        config = self.config
        if config.is_compacted and record.key is None:
            period = "." if self.behavior.missing_key_message_ends_with_period else ""
            name = f"{self.topic_name}-{partition}"
            message = f"Compacted topic cannot accept message without key in topic partition {name}"
            return RecordError(index, self.behavior.invalid_records_error, message + period)
        is_in_range = not (self._is_too_late(record.timestamp) or self._is_too_early(record.timestamp))
        if not (config.has_append_time or is_in_range):
            message = (
                f"Timestamp {record.timestamp} of message with offset {index} is out of range. "
                f"The timestamp should be within {self._timestamp_range()}"
            )
        elif appended_class and self._refuses_append_time(record):
            no_key_size = 0 if appended_class == DECODED_CLASS else -1
            key_size, value_size = (no_key_size if one is None else len(one) for one in (record.key, record.value))
            message = (
                f"Invalid timestamp type in message {appended_class}(offset={index}, timestamp={record.timestamp}, "
                f"key={key_size} bytes, value={value_size} bytes). "
                "Producer should not set timestamp type to LogAppendTime."
            )
        else:
            return None
        return RecordError(index, ErrorCode.INVALID_TIMESTAMP, message)

    def _refuses_append_time(self, record: Record) -> bool:
        """Return whether a record is refused because its producer says that the broker has set its timestamp."""
        is_cleared = self.behavior.clears_append_time and not self.config.has_append_time
        return not is_cleared or record.timestamp == NO_TIMESTAMP

    def _certain_timestamps(self) -> tuple[int, int]:
        """Return the least and the greatest timestamp that are valid without Kafka's arithmetic, which wraps."""
        before_max_ms, after_max_ms = self.config.timestamp_before_max_ms, self.config.timestamp_after_max_ms
        first = 0 if before_max_ms is None else max(0, self.now_ms - before_max_ms)
        last = self.now_ms if after_max_ms is None else self.now_ms + after_max_ms
        return first, min(last, INT64_MAX)

    def _timestamp_range(self) -> str:
        """Return the valid timestamps as brokers print them: without a limit, the sum overflows."""
        before_max_ms, after_max_ms = (
            UNLIMITED_MS if limit is None else limit
            for limit in (self.config.timestamp_before_max_ms, self.config.timestamp_after_max_ms)
        )
        return f"[{self.now_ms - before_max_ms}, {wrapped(self.now_ms + after_max_ms)}]"

    def _is_too_late(self, timestamp: int) -> bool:
        limit = self.config.timestamp_after_max_ms
        return limit is not None and timestamp != NO_TIMESTAMP and -wrapped(self.now_ms - timestamp) > limit

    def _is_too_early(self, timestamp: int) -> bool:
        limit = self.config.timestamp_before_max_ms
        return limit is not None and timestamp != NO_TIMESTAMP and wrapped(self.now_ms - timestamp) > limit

    def _records(self, header: RecordBatchHeader, encoded: bytes, content: bytes | None) -> list[Record]:
        return self.budget.decoded.records_of(RecordBatch(header, encoded[HEADER_SIZE:]), content)

    def _stamped(self, header: RecordBatchHeader, encoded: bytes) -> bytes:
        """Return the batch with the timestamp type of its topic; usually the same object."""
        has_append_time = self.config.has_append_time
        if has_append_time == bool(header.attributes & APPEND_TIME):  # both: it is refused
            return encoded
        max_timestamp = self.now_ms if has_append_time else header.max_timestamp
        stamped = header.replace(max_timestamp=max_timestamp, attributes=header.attributes ^ APPEND_TIME)
        return seal(stamped, encoded[HEADER_SIZE:])

    def _converted(self, header: RecordBatchHeader, found: list[Record], compression: Compression) -> bytes | None:
        """Return a batch of these records with the compression of the topic; None: it cannot be built."""
        config = self.config
        codec = compression if config.compression is None else config.compression
        records = [record._replace(offset=index) for index, record in enumerate(found)]
        if codec is compression and not self.behavior.renumbers_compressed_records:
            return None
        is_without_producer = header.attributes & TRANSACTIONAL and header.producer_id == NO_PRODUCER_ID
        if is_without_producer or any(record.timestamp < NO_TIMESTAMP for record in records):
            return None
        self.budget.decoded.take_packed(records, codec)
        return build_record_batch(
            records,
            base_offset=0,
            base_timestamp=records[0].timestamp if header.attributes & APPEND_TIME else header.base_timestamp,
            max_timestamp=self.now_ms if config.has_append_time else header.max_timestamp,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            compression=codec,
            flags=header.attributes & ~(COMPRESSION_MASK | APPEND_TIME)
            | (APPEND_TIME if config.has_append_time else 0),
        )


def _appended_class(header: RecordBatchHeader) -> str:
    """Return Kafka's class of the records, if their producer says that the broker has set their timestamp; else ""."""
    if not header.attributes & APPEND_TIME:
        return ""
    return PACKED_CLASS if header.attributes & COMPRESSION_MASK else DECODED_CLASS


def _has_wrong_sequence(header: RecordBatchHeader) -> bool:
    return header.producer_id != NO_PRODUCER_ID and (header.base_sequence < 0 or header.producer_epoch < 0)


def _refused_for(errors: list[RecordError], behavior: ProduceBehavior) -> Refused:
    """Return the refusal of a batch with invalid records, in the words of the release."""
    first = errors[0]
    if not behavior.returns_record_errors:
        return Refused(first.error)
    if behavior.returns_first_record_error_only:
        return Refused(first.error, first.message, (first._replace(message=None),), reached_log=True)
    if any(error.error is ErrorCode.INVALID_TIMESTAMP for error in errors):
        message = "One or more records have been rejected due to invalid timestamp"
        return Refused(ErrorCode.INVALID_TIMESTAMP, message, tuple(errors), reached_log=True)
    message = "One or more records have been rejected"
    if behavior.lists_record_errors_in_message:
        shown = ", ".join(f"RecordError(batchIndex={one.batch_index}, message='{one.message}')" for one in errors[:3])
        message += (
            f" due to {len(errors)} record errors in total, and only showing the first three errors at most: [{shown}]"
        )
    return Refused(ErrorCode.INVALID_RECORD, message, tuple(errors), reached_log=True)
