"""Batches around records that are encoded already (LF-1, LF-5).

`kproto.records.record_batch` declares the same; this path is on the way of every commit. Tests hold them equal.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from kproto.errors import EncodeError
from kproto.records.batch_header import (
    CHECKED,
    CHECKED_FROM,
    LOG_OVERHEAD,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    UNCHECKED,
)
from kproto.records.checksum import crc32c
from kproto.records.compression import Compression, compress
from kproto.records.varint import varint

if TYPE_CHECKING:
    from kproto_server.configuration.settings import Settings

COMMITS_BASE_SEQUENCE = 0

STRING_SIZE_MAX = 2**15 - 1
"""Octets, in flexible versions too."""
NO_ATTRIBUTES_NO_TIMESTAMP_DELTA = b"\0\0"
NULL_VALUE_NO_HEADERS = b"\1\0"
COMPRESSIONS = tuple(Compression)

delta_varint = lru_cache(maxsize=1024)(varint)
"""The octets of an offset delta, or of a size: the same few come again and again."""


def record_batch(
    records: bytes, record_count: int, now_ms: int, base_sequence: int, compression: Compression = Compression.NONE
) -> bytes:
    """Return a batch of records, all written at this moment of the broker's clock.

    Raises:
        MissingPackage: the compression needs a package that is not installed.
    """
    if compression:
        records = compress(compression, records)
    return whole(batch_header(record_count, now_ms, base_sequence, compression) + records)


def batch_header(
    record_count: int, now_ms: int, base_sequence: int, compression: Compression = Compression.NONE
) -> bytes:
    """Return what the checksum covers of a batch before its records, all written at this moment."""
    last_delta = record_count - 1
    return CHECKED.pack(
        compression, last_delta, now_ms, now_ms, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, base_sequence, record_count
    )


def whole(checked: bytes) -> bytes:
    """Return the batch with base offset 0 of which this is what the checksum covers."""
    return UNCHECKED.pack(0, CHECKED_FROM - LOG_OVERHEAD + len(checked), 0, MAGIC, crc32c(checked)) + checked


def string(value: str) -> bytes:
    """Return a string as keys have it.

    Raises:
        EncodeError: longer than any reader takes.
    """
    octets = string_bytes(value)
    return len(octets).to_bytes(2, "big") + octets


def string_bytes(value: str) -> bytes:
    """Return a string without its size.

    Raises:
        EncodeError: longer than any reader takes.
    """
    octets = value.encode()
    if len(octets) > STRING_SIZE_MAX:
        raise EncodeError("string", f"{len(octets)} octets, {STRING_SIZE_MAX} is the most")
    return octets


def tombstone(key: bytes, offset_delta: int) -> bytes:
    """Return the record that takes away what the key names."""
    body = b"".join(
        (NO_ATTRIBUTES_NO_TIMESTAMP_DELTA, delta_varint(offset_delta), varint(len(key)), key, NULL_VALUE_NO_HEADERS)
    )
    return delta_varint(len(body)) + body


def offsets_compression(settings: Settings) -> Compression:
    """Return the compression of the offsets topic that is asked for, `offsets.topic.compression.codec`."""
    return COMPRESSIONS[settings.int("offsets.topic.compression.codec")]
