"""The two layouts of OffsetCommit version 4, distinguished by the bytes of the frame (D1, OC-3).

KIP-211 declares version 4 without ``retention_time``. Released Kafka dropped the field only in version 5, so every real
client of version 4 (Java 2.0) sends it. A layout fits if it consumes the frame to its last byte. The released layout is
tried first, because clients in the field send it. If neither fits, the frame has the released layout with bytes after
it, which real brokers ignore (BA-7).

A few frames of KIP-211 fit both layouts: those whose array of topics, from its ninth byte on, is again an array of
topics that ends where the frame ends (``t1``: partition 0 at offset 1, partition 1 at offset 2, no metadata). In the
released layout they commit nothing, or commit for impossible topics: the ninth byte of a real commit belongs to a
number, not to a name. If both fit and only the layout of KIP-211 yields topic names that Kafka allows, that layout is
right. The ambiguity that remains is a first topic with a name of one character and at least 1,536 bytes after it that
spell allowed names from there on; no such frame was ever found (tests/codec/test_offset_commit_v4.py tries 22,664 small
commits, and random ones). A released frame is never read as the other unless it has an impossible topic name and its
retention_time is 2**32 ms (49 days) or more.
"""

from __future__ import annotations

from typing import Literal, TypeVar

from kproto.errors import DecodeError, TooManyElements
from kproto.message_codec import message_codec
from kproto.messages.k08_offset_commit import OffsetCommitRequest, OffsetCommitRequestKip211
from kproto.runtime import UNLIMITED

Layout = Literal["v4 as released", "v4 of KIP-211"]

TOPIC_NAME_MAX = 249
TOPIC_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")

M = TypeVar("M", OffsetCommitRequest, OffsetCommitRequestKip211)


def decode_v4(data: bytes, position: int, elements_max: int = UNLIMITED) -> tuple[OffsetCommitRequest, int, Layout]:
    """Return ``(request, position after it, layout)``; retention_time_ms is -1 if the layout lacks it.

    Raises:
        DecodeError: the frame has neither layout; the error is that of the released one.
        TooManyElements: the released layout has more than ``elements_max`` elements.
    """
    released, failure = _try(OffsetCommitRequest, data, position, elements_max)
    fits = released is not None and released[1] == len(data)
    if released is not None and fits and _names_topics(released[0]):
        return *released, "v4 as released"
    declared, _ = _try(OffsetCommitRequestKip211, data, position, elements_max)
    if declared is not None and declared[1] == len(data) and (not fits or _names_topics(declared[0])):
        return _as_released(declared[0]), declared[1], "v4 of KIP-211"
    if released is None:
        assert failure is not None, "a failed decode has an error"
        raise failure
    return *released, "v4 as released"


def _try(
    cls: type[M], data: bytes, position: int, elements_max: int
) -> tuple[tuple[M, int] | None, DecodeError | TooManyElements | None]:
    try:
        return message_codec(cls, 4).decode(data, position, elements_max), None
    except (DecodeError, TooManyElements) as error:
        return None, error


def _names_topics(request: OffsetCommitRequest | OffsetCommitRequestKip211) -> bool:
    """Whether the request has topics and Kafka allows all names: 1 to 249 letters, digits, ``.``, ``_``, ``-``."""
    return bool(request.topics) and all(
        0 < len(topic.name) <= TOPIC_NAME_MAX and TOPIC_CHARACTERS.issuperset(topic.name) for topic in request.topics
    )


def _as_released(declared: OffsetCommitRequestKip211) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=declared.group_id,
        generation_id_or_member_epoch=declared.generation_id_or_member_epoch,
        member_id=declared.member_id,
        topics=declared.topics,
    )
