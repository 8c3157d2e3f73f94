"""OffsetCommit version 4 has two layouts, and the frame itself tells which one it is (D1, OC-3).

KIP-211 declares version 4 without ``retention_time``; released Kafka dropped the field only in version 5, so every real
client of version 4 (Java 2.0) sends it. A layout fits if it consumes the frame to its last byte. The released one is
tried first, since it is what clients in the field send; if neither fits, the frame is the released layout with bytes
behind it, which real brokers ignore (BA-7).

A frame made in the released layout is never read as the other. One made in KIP-211's is read as released exactly if
its array of topics, from the ninth octet on, is an array of topics again that ends where the frame does: retention_time
hides the count of topics (so that it is 2**32 ms, 49 days, or more) and the first six octets after it. With topic names
that Kafka allows, at most 65,536 partitions, offsets below 2**48 and at most 64 KiB, that takes a first topic

- with a name of two characters and no partitions, alone in the request; or with a name of two characters, two
  partitions or more, and partition 0 first (``t1``: partition 0 at offset 1, partition 1 at offset 2, no metadata); or
- with a name of one character and 1,536 octets or more behind it,

and then the luck that all falls in place to the last octet: 7 of 14,216 commits with up to two partitions do
(tests/codec/test_offset_commit_v4.py lists them). Read as released, those commit nothing, or for topics without a name.
A released frame with octets behind it may fit KIP-211's layout only if its retention_time is 2**32 ms or more.
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
