"""OffsetCommit version 4 has two layouts, and the frame itself tells which one it is (D1, OC-3).

KIP-211 declares version 4 without ``retention_time``; released Kafka dropped the field only in version 5, so every real
client of version 4 (Java 2.0) sends it. A layout fits if it consumes the frame to its last byte. The released one is
tried first, since it is what clients in the field send; if neither fits, the frame is the released layout with bytes
behind it, which real brokers ignore (BA-7).

Can a frame fit both? In KIP-211's layout the eight bytes of the retention are the count of topics (int32) and what
begins the first topic. Read as released, the count of topics then comes from inside the first topic's name or
partitions, and all that follows would have to fall in place to the last byte. tests/codec/test_offset_commit_v4.py
looks for such frames and lists them.
"""

from __future__ import annotations

from typing import Literal, TypeVar

from kproto.errors import DecodeError
from kproto.messages.k08_offset_commit import OffsetCommitRequest, OffsetCommitRequestKip211
from kproto.registry import message_codec

Layout = Literal["v4 as released", "v4 of KIP-211"]

M = TypeVar("M", OffsetCommitRequest, OffsetCommitRequestKip211)


def decode_v4(data: bytes, position: int) -> tuple[OffsetCommitRequest, int, Layout]:
    """Return ``(request, position after it, layout)``; without the field retention_time_ms is -1.

    Raises:
        DecodeError: neither layout; what is told is how the released one fails.
    """
    released, failure = _try(OffsetCommitRequest, data, position)
    if released is not None and released[1] == len(data):
        return *released, "v4 as released"
    declared, _ = _try(OffsetCommitRequestKip211, data, position)
    if declared is not None and declared[1] == len(data):
        return _as_released(declared[0]), declared[1], "v4 of KIP-211"
    if released is None:
        assert failure is not None, "what does not decode says why"
        raise failure
    return *released, "v4 as released"


def _try(cls: type[M], data: bytes, position: int) -> tuple[tuple[M, int] | None, DecodeError | None]:
    try:
        return message_codec(cls, 4).decode(data, position), None
    except DecodeError as error:
        return None, error


def _as_released(declared: OffsetCommitRequestKip211) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=declared.group_id,
        generation_id_or_member_epoch=declared.generation_id_or_member_epoch,
        member_id=declared.member_id,
        topics=declared.topics,
    )
