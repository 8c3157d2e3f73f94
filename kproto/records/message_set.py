"""Message sets, the batches of magic 0 and 1 (LF-4), which brokers and clients before 0.11 write.

Theory of operation. A message set is messages back to back, each with its own offset and checksum. To compress some
messages, a client compresses a message set of them and makes it the value of one *wrapper* message, whose attributes
name the compression. The offset of a wrapper is the offset of its last inner message. Inner messages of magic 0 have
their real offsets. Inner messages of magic 1 count from 0, so that a broker can store the wrapper without touching its
content; their real offsets follow from the wrapper's. With append time (attribute bit 3, magic 1), the wrapper's
timestamp is the timestamp of all inner messages. A wrapper in a wrapper is refused, and so are inner messages of
another magic.
"""

from __future__ import annotations

import zlib
from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from kproto.declaration import Int8, Int32, Int64, NullableBytes, UInt32, since
from kproto.errors import CorruptBatch, DecodeError, EncodeError, TooManyElements
from kproto.message import Message
from kproto.message_codec import message_codec
from kproto.records.batch_header import APPEND_TIME, LOG_OVERHEAD, MAGIC_POSITION, SIZE_POSITION
from kproto.records.compression import (
    COMPRESSION_MASK,
    CONTENT_SIZE_MAX,
    Compression,
    compress,
    compression_of,
    decompress,
)
from kproto.records.record import NO_TIMESTAMP, Record, last_record_offset
from kproto.runtime import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAGICS = range(2)
CRC_POSITION = LOG_OVERHEAD
CHECKED_FROM = MAGIC_POSITION
"""Where the bytes begin that the checksum covers, up to the end of the message."""
ATTRIBUTES_POSITION = MAGIC_POSITION + 1
TIMESTAMP_POSITION = MAGIC_POSITION + 2
"""In magic 1."""


VALUE_SIZE_BYTES = 4
_HEADS = Struct(">qiIbbi"), Struct(">qiIbbqi")
"""By magic: what a message has before its key, the size of the key included."""
_read_head = tuple(head.unpack_from for head in _HEADS)
_HEAD_SIZES = tuple(head.size for head in _HEADS)
_new: Any = tuple.__new__


class LegacyMessage(Message, versions=(0, 1)):
    """One message of a message set; the version is the magic.

    v1: + timestamp
    """

    offset: Int64
    message_size: Int32
    crc: UInt32
    magic: Int8
    attributes: Int8
    timestamp: Annotated[Int64, since(1)] = NO_TIMESTAMP
    key: NullableBytes
    value: NullableBytes


class LegacyBatch(NamedTuple):
    """One message of a message set, which may be the wrapper of several."""

    message: LegacyMessage
    size: int
    """Bytes of the whole message."""

    @property
    def magic(self) -> int:
        return self.message.magic

    @property
    def last_offset(self) -> int:
        return self.message.offset

    @property
    def compression(self) -> Compression:
        return compression_of(self.message.attributes, "LegacyMessage.attributes", ATTRIBUTES_POSITION)

    @property
    def has_append_time(self) -> bool:
        return self.message.magic == 1 and bool(self.message.attributes & APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return False

    @property
    def is_control(self) -> bool:
        return False

    def records(self, *, content_size_max: int = CONTENT_SIZE_MAX, count_max: int = UNLIMITED) -> list[Record]:
        """Return the record, or the records inside of the wrapper.

        Raises:
            CorruptBatch: the checksum of an inner message does not match its content.
            DecodeError: the content is not a message set of this magic, or exceeds the limit when uncompressed.
            MissingPackage: the compression needs a package that is not installed.
            TooManyElements: the wrapper has more than ``count_max`` records.
        """
        message = self.message
        if self.compression is Compression.NONE:
            return [_record(message, message.offset, message.timestamp)]
        return self.records_of(self.content(content_size_max), count_max=count_max)

    def content(self, size_max: int) -> bytes:
        """Return the message set in the wrapper, decompressed.

        Raises:
            DecodeError: it exceeds the limit, or is not of this compression.
            MissingPackage: the compression needs a package that is not installed.
        """
        message = self.message
        if message.value is None:
            raise DecodeError("LegacyMessage.value", 0, "null, but it is compressed")
        return decompress(self.compression, message.value, magic=message.magic, limit=size_max)

    def records_of(self, content: bytes, *, count_max: int = UNLIMITED) -> list[Record]:
        """Return the records of the wrapper's content, as `records`; none if it has no message.

        A message that the end of the content truncates is left out, as in Kafka.

        Raises:
            CorruptBatch: the checksum of an inner message does not match its content.
            DecodeError: the content is not a message set of this magic.
            TooManyElements: it has more than ``count_max`` records.
        """
        message = self.message
        inner = list(islice(_inner_messages(content, message.magic), count_max + 1))
        if len(inner) > count_max:
            raise TooManyElements
        base = message.offset - inner[-1].offset if message.magic == 1 and inner else 0
        append_time = message.timestamp if self.has_append_time else None
        return [_record(m, base + m.offset, m.timestamp if append_time is None else append_time) for m in inner]


def _record(message: LegacyMessage, offset: int, timestamp: int) -> Record:
    return Record(message.key, message.value, (), timestamp, offset)


def _inner_messages(content: bytes, magic: int) -> Iterator[LegacyMessage]:
    position = 0
    while position + LOG_OVERHEAD <= len(content):
        size = int.from_bytes(content[position + SIZE_POSITION : position + LOG_OVERHEAD], "big", signed=True)
        if position + LOG_OVERHEAD + size > len(content):
            return
        batch, end = read_legacy_batch(content, position)
        if batch.magic != magic:
            raise DecodeError("LegacyMessage.magic", position + MAGIC_POSITION, f"{batch.magic} within {magic}")
        if batch.compression is not Compression.NONE:
            raise DecodeError("LegacyMessage.attributes", position + ATTRIBUTES_POSITION, "compressed twice")
        yield batch.message
        position = end


def read_legacy_batch(data: bytes, position: int = 0, *, check_crc: bool = True) -> tuple[LegacyBatch, int]:
    """Read one message, which may be a wrapper; return ``(batch, position after it)``.

    Raises:
        CorruptBatch: the checksum does not match the content.
        DecodeError: the message is truncated, has another magic, or sizes that do not fit.
    """
    if len(data) - position <= MAGIC_POSITION:
        raise DecodeError("LegacyMessage", len(data), "truncated before its magic")
    magic = data[position + MAGIC_POSITION]
    if magic not in MAGICS:
        raise DecodeError("LegacyMessage.magic", position + MAGIC_POSITION, f"{magic}, not 0 or 1")
    decoded, end = message_codec(LegacyMessage, magic).decode(data, position)
    message: LegacyMessage = decoded
    if end - position - LOG_OVERHEAD != message.message_size:
        reason = f"{message.message_size}, but key and value end after {end - position - LOG_OVERHEAD}"
        raise DecodeError("LegacyMessage.message_size", position + SIZE_POSITION, reason)
    if check_crc:
        crc = zlib.crc32(data[position + CHECKED_FROM : end])
        if crc != message.crc:
            reason = f"{message.crc:08x}, but its content has {crc:08x}"
            raise CorruptBatch("LegacyMessage.crc", position + CRC_POSITION, reason)
    return LegacyBatch(message, end - position), end


def has_legacy_layout(data: bytes, position: int, end: int) -> bool:
    """Whether key and value of a message of magic 0 or 1 end where its size says, without a copy of them."""
    magic = data[position + MAGIC_POSITION]
    key_end = position + _HEAD_SIZES[magic]
    if key_end + VALUE_SIZE_BYTES > end:
        return False
    key_size: int = _read_head[magic](data, position)[-1]
    key_end += max(key_size, 0)
    value_start = key_end + VALUE_SIZE_BYTES
    value_size = int.from_bytes(data[key_end:value_start], "big", signed=True)
    return value_start + max(value_size, 0) == end


def read_plain_messages(data: bytes, magic: int, *, count_max: int = UNLIMITED) -> tuple[list[Record], int]:
    """Return the records of the first uncompressed messages of a message set, and the position after them.

    They end before anything else: a wrapper, a message of another magic or with append time, one that is truncated or
    wrong in any way, or with ``count_max``. `read_legacy_batch` reads such a message, or says what is wrong with it;
    for each of these messages it takes four times as long.
    """
    records: list[Record] = []
    read_head, head_size = _read_head[magic], _HEAD_SIZES[magic]
    position, last_start = 0, len(data) - head_size - VALUE_SIZE_BYTES
    while position <= last_start and len(records) < count_max:
        offset, size, crc, found_magic, attributes, *timestamp, key_size = read_head(data, position)
        key_start = position + head_size
        key_end = key_start if key_size < 0 else key_start + key_size
        end = position + LOG_OVERHEAD + size
        is_plain = found_magic == magic and not attributes & (COMPRESSION_MASK | APPEND_TIME)
        if not is_plain or not key_end + VALUE_SIZE_BYTES <= end <= len(data):
            break
        value_start = key_end + VALUE_SIZE_BYTES
        value_size = int.from_bytes(data[key_end:value_start], "big", signed=True)
        has_right_size = value_start + max(value_size, 0) == end
        if not has_right_size or zlib.crc32(data[position + CHECKED_FROM : end]) != crc:
            break
        key = None if key_size < 0 else data[key_start:key_end]
        value = None if value_size < 0 else data[value_start:end]
        records.append(_new(Record, (key, value, (), timestamp[0] if timestamp else NO_TIMESTAMP, offset)))
        position = end
    return records, position


def seal_legacy(message: LegacyMessage) -> bytes:
    """Return a message with the right size and checksum.

    Raises:
        EncodeError: a value does not fit its field, or a message of magic 0 has a timestamp.
    """
    encoded = message.replace(message_size=0, crc=0).encode(message.magic)
    checked = encoded[CHECKED_FROM:]
    size = len(encoded) - LOG_OVERHEAD
    return encoded[:SIZE_POSITION] + size.to_bytes(4, "big") + zlib.crc32(checked).to_bytes(4, "big") + checked


def build_message_set(
    records: Iterable[Record],
    *,
    magic: int,
    compression: Compression = Compression.NONE,
    append_time: int | None = None,
) -> bytes:
    """Return a message set of these records: one message for each, or one wrapper if compressed.

    ``append_time`` is the broker's timestamp for all records, in magic 1.

    Raises:
        EncodeError: a record has headers, which message sets lack; a timestamp in magic 0; zstd, which only magic 2
            has; a value does not fit its field.
        MissingPackage: the compression needs a package that is not installed.
    """
    records = list(records)
    _check_records(records, magic, compression, append_time)
    if compression is Compression.NONE:
        return b"".join(_message(r, r.offset, magic, append_time) for r in records)
    if not records:
        return b""
    start = records[0].offset if magic == 1 else 0
    inner = b"".join(_message(r, r.offset - start, magic, None) for r in records)
    timestamp = append_time if append_time is not None else max(r.timestamp for r in records)
    wrapper = LegacyMessage(
        offset=last_record_offset(records, 0),
        message_size=0,
        crc=0,
        magic=magic,
        attributes=compression & COMPRESSION_MASK | (0 if append_time is None else APPEND_TIME),
        timestamp=timestamp,
        key=None,
        value=compress(compression, inner, magic=magic),
    )
    return seal_legacy(wrapper)


def _check_records(records: list[Record], magic: int, compression: Compression, append_time: int | None) -> None:
    if magic not in MAGICS:
        raise EncodeError("LegacyMessage.magic", f"{magic} is not the magic of a message set")
    if compression is Compression.ZSTD:
        raise EncodeError("LegacyMessage.attributes", "zstd needs magic 2")
    if any(record.headers for record in records):
        raise EncodeError("LegacyMessage", "message sets have no headers")
    if magic == 0 and append_time is not None:
        raise EncodeError("LegacyMessage.timestamp", "magic 0 has no timestamps")


def _message(record: Record, offset: int, magic: int, append_time: int | None) -> bytes:
    return seal_legacy(
        LegacyMessage(
            offset=offset,
            message_size=0,
            crc=0,
            magic=magic,
            attributes=0 if append_time is None else APPEND_TIME,
            timestamp=record.timestamp if append_time is None else append_time,
            key=record.key,
            value=record.value,
        )
    )
