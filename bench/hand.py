"""OffsetCommit v3 by hand with `struct`, as a careful programmer writes it for this one version.

The code creates kproto's typed values as cheaply as Python allows (they are tuples underneath), checks every bound,
and reads neighboring fields with one call.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

_new: Any = tuple.__new__
_int16 = Struct(">h").unpack_from
_int32 = Struct(">i").unpack_from
_generation_and_size = Struct(">ih").unpack_from
_retention_and_count = Struct(">qi").unpack_from
_partition = Struct(">iqh").unpack_from
_pack_int16 = Struct(">h").pack
_pack_int32 = Struct(">i").pack
_pack_two_int32 = Struct(">ii").pack
_pack_partition = Struct(">ih").pack


def decode_request(data: bytes, position: int) -> tuple[OffsetCommitRequest, int]:
    """Return ``(value, position after it)`` from the body.

    Raises:
        ValueError, struct.error: it is not one.
    """
    (size,) = _int16(data, position)
    position += 2
    group_id = _text(data, position, size)
    generation_id, size = _generation_and_size(data, position := position + size)
    position += 6
    member_id = _text(data, position, size)
    retention_time_ms, count = _retention_and_count(data, position := position + size)
    position += 12
    topics = []
    for _ in range(count):
        topic, position = _topic(data, position)
        topics.append(topic)
    if count < 0:
        raise ValueError("a negative count")
    value = _new(OffsetCommitRequest, (group_id, generation_id, member_id, None, retention_time_ms, tuple(topics), ()))
    return value, position


def _topic(data: bytes, position: int) -> tuple[OffsetCommitRequestTopic, int]:
    (size,) = _int16(data, position)
    position += 2
    name = _text(data, position, size)
    (count,) = _int32(data, position := position + size)
    position += 4
    if count < 0:
        raise ValueError("a negative count")
    partitions = []
    for _ in range(count):
        index, offset, size = _partition(data, position)
        position += 14
        metadata: str | None = ""
        if size > 0:
            metadata = _text(data, position, size)
            position += size
        elif size == -1:
            metadata = None
        elif size:
            raise ValueError("a negative size")
        partitions.append(_new(OffsetCommitRequestPartition, (index, offset, -1, -1, metadata, ())))
    return _new(OffsetCommitRequestTopic, (name, bytes(16), tuple(partitions), ())), position


def _text(data: bytes, position: int, size: int) -> str:
    raw = data[position : position + size]
    if size < 0 or len(raw) != size:
        raise ValueError("a string beyond the end")
    return raw.decode()


def encode_response(value: OffsetCommitResponse) -> bytes:
    """Return the body."""
    parts = [_pack_two_int32(value.throttle_time_ms, len(value.topics))]
    for topic in value.topics:
        name = topic.name.encode()
        parts += (_pack_int16(len(name)), name, _pack_int32(len(topic.partitions)))
        parts += [_pack_partition(p.partition_index, p.error_code) for p in topic.partitions]
    return b"".join(parts)
