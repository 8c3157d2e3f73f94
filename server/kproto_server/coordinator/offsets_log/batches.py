"""Record batches around encoded records (LF-1, LF-5).

`kproto.records.record_batch` declares the same batches. This module is on the path of each commit that is written; a
test compares the two.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from kproto.declaration import STRING_SIZE_MAX
from kproto.errors import StringTooLong
from kproto.records.batch_header import (
    CHECKED,
    CHECKED_FROM,
    LOG_OVERHEAD,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    UNCHECKED,
)
from kproto.records.checksum import crc32c
from kproto.records.compression import Compression, compress
from kproto.records.varint import varint

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.configuration.settings import Settings

COMMITS_BASE_SEQUENCE = 0
NO_ATTRIBUTES_NO_TIMESTAMP_DELTA = b"\0\0"
NULL_VALUE_NO_HEADERS = b"\1\0"
FIRST_DELTA, NO_HEADERS = b"\0", b"\0"
COMPRESSIONS = tuple(Compression)

delta_varint: Callable[[int], bytes] = lru_cache(maxsize=1024)(varint)
"""Return a varint: an offset delta or a size, of which the same few are used again and again."""


def record_batch(
    records: bytes, record_count: int, now_ms: int, base_sequence: int, compression: Compression = Compression.NONE
) -> bytes:
    """Return a batch of encoded records, which all have the present time as their timestamp.

    Raises:
        MissingPackage: the compression needs a package that is not installed.
    """
    if compression:
        records = compress(compression, records)
    return with_checksum(batch_header(record_count, now_ms, base_sequence, compression) + records)


def keyed_batch(key: bytes, value: bytes | None, now_ms: int) -> bytes:
    """Return a batch of one record, as the transaction coordinator and the share coordinator write it.

    ``value``: None for a tombstone.
    """
    if value is None:
        return record_batch(tombstone(key, 0), 1, now_ms, NO_SEQUENCE)
    sizes = delta_varint(len(key)), delta_varint(len(value))
    body = b"".join((NO_ATTRIBUTES_NO_TIMESTAMP_DELTA, FIRST_DELTA, sizes[0], key, sizes[1], value, NO_HEADERS))
    return record_batch(delta_varint(len(body)) + body, 1, now_ms, NO_SEQUENCE)


def batch_header(
    record_count: int, now_ms: int, base_sequence: int, compression: Compression = Compression.NONE
) -> bytes:
    """Return the part of a batch header that the checksum covers."""
    last_delta = record_count - 1
    return CHECKED.pack(
        compression, last_delta, now_ms, now_ms, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, base_sequence, record_count
    )


def with_checksum(checked: bytes) -> bytes:
    """Return the batch with base offset 0 from the bytes that the checksum covers."""
    return UNCHECKED.pack(0, CHECKED_FROM - LOG_OVERHEAD + len(checked), 0, MAGIC, crc32c(checked)) + checked


def string(value: str) -> bytes:
    """Return a string with its size, as in keys.

    Raises:
        StringTooLong: the string is longer than readers accept.
    """
    data = string_bytes(value)
    return len(data).to_bytes(2, "big") + data


def string_bytes(value: str) -> bytes:
    """Return a string without its size.

    Raises:
        StringTooLong: the string is longer than readers accept.
    """
    data = value.encode()
    if len(data) > STRING_SIZE_MAX:
        raise StringTooLong("string", f"{len(data)} bytes, {STRING_SIZE_MAX} is the most")
    return data


def tombstone(key: bytes, offset_delta: int) -> bytes:
    """Return the record that deletes the key."""
    body = b"".join(
        (NO_ATTRIBUTES_NO_TIMESTAMP_DELTA, delta_varint(offset_delta), varint(len(key)), key, NULL_VALUE_NO_HEADERS)
    )
    return delta_varint(len(body)) + body


def offsets_compression(settings: Settings) -> Compression:
    """Return the compression of `offsets.topic.compression.codec`."""
    return COMPRESSIONS[settings.int("offsets.topic.compression.codec")]
