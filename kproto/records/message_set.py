"""Message sets, the batches of magic 0 and 1 (LF-4): what brokers and clients before 0.11 write.

Theory of operation. A message set is messages back to back, each with an offset and a checksum of its own. To compress
some, they are made a message set, compressed, and put as the value of one *wrapper* message, whose attributes name the
compression. The offset of a wrapper is that of its last inner message. Inner messages have their real offsets in magic
0; in magic 1 they are counted from 0, so that a broker can store the wrapper without touching its content, and their
real offsets follow from the wrapper's. Where the broker's clock counts (bit 3, magic 1), the wrapper's timestamp is
that of all inner messages. A wrapper in a wrapper is refused, as are messages of another magic in one.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Annotated, NamedTuple

from kproto.declaration import Int8, Int32, Int64, NullableBytes, UInt32, since
from kproto.errors import CorruptBatch, DecodeError, EncodeError
from kproto.message import Message
from kproto.message_codec import message_codec
from kproto.records.compression import (
    COMPRESSION_MASK,
    CONTENT_SIZE_MAX,
    Compression,
    compress,
    compression_of,
    decompress,
)
from kproto.records.record import NO_TIMESTAMP, Record, batch_end

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAGICS = range(2)
LOG_OVERHEAD = 12
"""Octets before and in the size: the size counts what follows it."""
CHECKED_FROM = 16
"""Where the octets begin that the checksum covers."""
APPEND_TIME = 1 << 3


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
    """A message of a message set by itself, or the wrapper of several."""

    message: LegacyMessage
    size: int
    """Octets of the whole."""

    @property
    def magic(self) -> int:
        return self.message.magic

    @property
    def last_offset(self) -> int:
        return self.message.offset

    @property
    def compression(self) -> Compression:
        return compression_of(self.message.attributes, "LegacyMessage.attributes", CHECKED_FROM + 1)

    @property
    def has_append_time(self) -> bool:
        return self.message.magic == 1 and bool(self.message.attributes & APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return False

    @property
    def is_control(self) -> bool:
        return False

    def records(self, *, content_size_max: int = CONTENT_SIZE_MAX) -> list[Record]:
        """Return the record, or those inside of the wrapper.

        Raises:
            CorruptBatch: the checksum of an inner message is not that of its content.
            DecodeError: the content is no message set of this magic, or more bytes than allowed when uncompressed.
            MissingPackage: the compression needs a package that is not installed.
        """
        message = self.message
        if self.compression is Compression.NONE:
            return [_record(message, message.offset, message.timestamp)]
        if message.value is None:
            raise DecodeError("LegacyMessage.value", 0, "null, but it is compressed")
        content = decompress(self.compression, message.value, magic=message.magic, limit=content_size_max)
        inner = list(_inner_messages(content, message.magic))
        if not inner:
            raise DecodeError("LegacyMessage.value", 0, "a compressed message set without messages")
        base = message.offset - inner[-1].offset if message.magic == 1 else 0
        append_time = message.timestamp if self.has_append_time else None
        return [_record(m, base + m.offset, m.timestamp if append_time is None else append_time) for m in inner]


def _record(message: LegacyMessage, offset: int, timestamp: int) -> Record:
    return Record(message.key, message.value, (), timestamp, offset)


def _inner_messages(content: bytes, magic: int) -> Iterator[LegacyMessage]:
    position = 0
    while position < len(content):
        batch, end = read_legacy_batch(content, position)
        if batch.magic != magic:
            raise DecodeError("LegacyMessage.magic", position + CHECKED_FROM, f"{batch.magic} within {magic}")
        if batch.compression is not Compression.NONE:
            raise DecodeError("LegacyMessage.attributes", position + CHECKED_FROM + 1, "compressed twice")
        yield batch.message
        position = end


def read_legacy_batch(data: bytes, position: int = 0, *, check_crc: bool = True) -> tuple[LegacyBatch, int]:
    """Read one message, which may be a wrapper; return ``(batch, position after it)``.

    Raises:
        CorruptBatch: the checksum is not that of the content.
        DecodeError: cut off, another magic, or sizes that do not fit.
    """
    if len(data) - position <= CHECKED_FROM:
        raise DecodeError("LegacyMessage", len(data), "cut off before its magic")
    magic = data[position + CHECKED_FROM]
    if magic not in MAGICS:
        raise DecodeError("LegacyMessage.magic", position + CHECKED_FROM, f"{magic}, not 0 or 1")
    decoded, end = message_codec(LegacyMessage, magic).decode(data, position)
    message: LegacyMessage = decoded
    if end - position - LOG_OVERHEAD != message.message_size:
        reason = f"{message.message_size}, but key and value end after {end - position - LOG_OVERHEAD}"
        raise DecodeError("LegacyMessage.message_size", position + 8, reason)
    if check_crc:
        crc = zlib.crc32(data[position + CHECKED_FROM : end])
        if crc != message.crc:
            reason = f"{message.crc:08x}, but its content has {crc:08x}"
            raise CorruptBatch("LegacyMessage.crc", position + LOG_OVERHEAD, reason)
    return LegacyBatch(message, end - position), end


def seal_legacy(message: LegacyMessage) -> bytes:
    """Return a message with the right size and checksum.

    Raises:
        EncodeError: a value does not fit, or magic 0 with a timestamp.
    """
    encoded = message.replace(message_size=0, crc=0).encode(message.magic)
    checked = encoded[CHECKED_FROM:]
    size = len(encoded) - LOG_OVERHEAD
    return encoded[:8] + size.to_bytes(4, "big") + zlib.crc32(checked).to_bytes(4, "big") + checked


def build_message_set(
    records: Iterable[Record],
    *,
    magic: int,
    compression: Compression = Compression.NONE,
    append_time: int | None = None,
) -> bytes:
    """Return a message set of these records: one message each, or one wrapper when compressed.

    ``append_time`` is the timestamp by the broker's clock, if that is to count (magic 1).

    Raises:
        EncodeError: headers, which message sets lack; a timestamp in magic 0; zstd, which came with magic 2; a value
            that does not fit.
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
        offset=batch_end(records, 0),
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
        raise EncodeError("LegacyMessage.magic", f"{magic} is no magic of a message set")
    if compression is Compression.ZSTD:
        raise EncodeError("LegacyMessage.attributes", "zstd came with magic 2")
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
