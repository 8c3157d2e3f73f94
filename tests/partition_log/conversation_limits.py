"""Requests of `conversation` about batches that claim the timestamp type of a broker, and about batches that are larger
than a segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.batch_header import APPEND_TIME
from kproto.records.compression import Compression
from tests.partition_log.conversation_chapters import (
    T0,
    batch,
    fetch,
    message_set,
    newest,
    offsets,
    produce,
    with_header,
)

if TYPE_CHECKING:
    from tests.partition_log.conversation import Talk

NO_TIMESTAMP = -1
SEGMENT_BYTES = 1 << 20
"""The least `segment.bytes` of 4.1 and later."""


def append_time(talk: Talk) -> None:
    """BA-62: a producer sets attribute bit 3, which belongs to the broker."""
    topics = {
        "created": {},
        "appended": {"message_timestamp_type": "LogAppendTime"},
        "packed": {"compression_type": "gzip"},
    }
    gzip = batch(2, compression=Compression.GZIP)
    seen = {
        "plain": with_header(batch(2), attributes=APPEND_TIME),
        "gzip": with_header(gzip, attributes=APPEND_TIME | Compression.GZIP),
        "no timestamp": with_header(batch(timestamp=NO_TIMESTAMP), attributes=APPEND_TIME),
        "greatest is another": with_header(batch(2), attributes=APPEND_TIME, max_timestamp=T0 + 5),
    }
    sets = {
        "set": message_set(2, append_time=T0),
        "gzip set": message_set(2, append_time=T0, compression=Compression.GZIP),
    }
    number = 0
    for kind, configs in topics.items():
        for name, encoded in {**seen, **(sets if talk.serves(0, 2) else {})}.items():
            for version in (2,) if name in sets else sorted({3, 8, newest(talk, 0)}):
                if not talk.serves(0, version):
                    continue
                topic, number, note = f"b{number}", number + 1, f"{kind}: {name}"
                talk.create(topic, 1, **configs)
                produced = produce(talk, note, topic, encoded, version)
                if not produced.responses[0].partition_responses[0].error_code:
                    fetch(talk, note, {topic: {0: 0}}, 10)
                    offsets(talk, note, {topic: {0: T0}}, 5)


def segment_size(talk: Talk) -> None:
    """BA-62: a batch that is larger than `segment.bytes`, and one that is as large."""
    talk.create("s", segment_bytes=str(SEGMENT_BYTES), max_message_bytes=str(3 * SEGMENT_BYTES))
    one = len(batch(size=SEGMENT_BYTES))
    largest = batch(size=SEGMENT_BYTES - (one - SEGMENT_BYTES))
    for version in sorted({3, newest(talk, 0)}):
        produce(talk, "as large as a segment", "s", largest, version)
        produce(talk, "larger than a segment", "s", batch(size=SEGMENT_BYTES), version)
        second = batch(size=SEGMENT_BYTES, producer_id=7, producer_epoch=0, base_sequence=5)
        produce(talk, "larger than a segment, wrong sequence", "s", second, version)
        packed = batch(size=2 * SEGMENT_BYTES, compression=Compression.GZIP)
        produce(talk, "larger than a segment before compression", "s", packed, version)
    talk.create(
        "u", segment_bytes=str(SEGMENT_BYTES), max_message_bytes=str(3 * SEGMENT_BYTES), compression_type="uncompressed"
    )
    produce(talk, "larger than a segment when decompressed", "u", packed, version)
    if talk.serves(0, 2):
        produce(talk, "set: larger than a segment", "s", message_set(1, key=bytes(SEGMENT_BYTES)), 2)


CHAPTERS = (append_time, segment_size)
