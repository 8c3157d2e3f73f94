"""Requests of `conversation` about batches with a right checksum and wrong contents: what Produce refuses, and what
Fetch and ListOffsets return of the batches that it has accepted."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.records.batch_header import (
    LENGTH_MIN,
    NO_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    RecordBatchHeader,
)
from kproto.records.compression import Compression, compress
from kproto.records.record_batch import seal
from kproto.records.varint import varint, varlong
from tests.partition_log.conversation_chapters import T0, fetch, newest, produce

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.partition_log.conversation import Talk

INT64_MAX = 2**63 - 1
TWO = 2
"""Records of each batch, unless it says otherwise."""


def sized(content: bytes, size: int | None = None) -> bytes:
    """Return content behind its size, or behind another size."""
    return varint(len(content) if size is None else size) + content


def record(
    offset: int,
    *,
    timestamp: int = 0,
    key: bytes = sized(b"k"),
    value: bytes = sized(b"v"),
    headers: bytes = varint(0),
    attributes: int = 0,
    size: int | None = None,
) -> bytes:
    """Return one encoded record; key, value and headers are encoded already."""
    return sized(bytes([attributes]) + varlong(timestamp) + varint(offset) + key + value + headers, size)


def sealed(
    payload: bytes,
    *,
    count: int = TWO,
    last: int = TWO - 1,
    codec: Compression = Compression.NONE,
    base_timestamp: int = T0,
    max_timestamp: int = T0,
) -> bytes:
    """Return a batch of this payload, with the right size and checksum."""
    header = RecordBatchHeader(
        base_offset=0,
        batch_length=LENGTH_MIN,
        partition_leader_epoch=NO_EPOCH,
        crc=0,
        attributes=codec,
        last_offset_delta=last,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=count,
    )
    return seal(header, payload)


def compressed(size: int, codec: Compression, *, is_corrupt: bool = False) -> bytes:
    """Return a batch of one record with a value of this size; a corrupt one lacks the last two bytes."""
    payload = compress(codec, record(0, value=sized(bytes(size))))
    return sealed(payload[:-2] if is_corrupt else payload, count=1, last=0, codec=codec)


def headers(*pairs: bytes, count: int | None = None) -> bytes:
    return varint(len(pairs) if count is None else count) + b"".join(pairs)


NOT_UTF8 = b"\xff\xc3\x28\xed\xa0\x80"
HEADER = sized(b"h") + sized(b"x")
LONG_VARINT = b"\x80\x80\x80\x80\x80\x80"


def contents() -> Mapping[str, tuple[bytes, dict[str, Any]]]:
    """Return the payload and the header fields of each kind."""
    good = record(0)
    second = record(1)
    return {
        "good": (good + second, {}),
        "greatest timestamp of none": (good + second, {"max_timestamp": T0 + 5}),
        "greatest timestamp too small": (good + record(1, timestamp=7), {}),
        "no greatest timestamp": (good + second, {"max_timestamp": -1}),
        "timestamp beyond int64": (
            good + record(1, timestamp=100),
            {"base_timestamp": INT64_MAX - 10, "max_timestamp": INT64_MAX},
        ),
        "timestamp below int64": (good + record(1, timestamp=-1), {"base_timestamp": -INT64_MAX - 1}),
        "equal deltas": (good + good, {}),
        "falling deltas": (second + good, {}),
        "negative deltas": (record(-2) + record(-1), {}),
        "deltas that jump": (good + record(5), {}),
        "deltas beyond the last": (record(3) + record(4), {}),
        "fewer records": (good + second, {"count": 3, "last": 2}),
        "many fewer records": (good + second, {"count": 1_000_000, "last": 999_999}),
        "more records": (good + second, {"count": 1, "last": 0}),
        "bytes behind": (good + second + b"\1\2\3", {}),
        "no bytes": (b"", {}),
        "size too large": (good + record(1, size=100), {}),
        "size too small": (good + record(1, size=3), {}),
        "size one more": (good + record(1, size=8) + b"\0", {}),
        "size negative": (good + record(1, size=-5), {}),
        "size of 0": (good + b"\0", {}),
        "size without end": (good + LONG_VARINT, {}),
        "key too large": (good + record(1, key=sized(b"k", 100)), {}),
        "key size -2": (good + record(1, key=varint(-2)), {}),
        "null key": (good + record(1, key=varint(-1)), {}),
        "value too large": (good + record(1, value=sized(b"v", 100)), {}),
        "value size -2": (good + record(1, value=varint(-2)), {}),
        "attributes": (good + record(1, attributes=255), {}),
        "header": (good + record(1, headers=headers(HEADER)), {}),
        "header key no UTF-8": (good + record(1, headers=headers(sized(NOT_UTF8) + sized(b"x"))), {}),
        "header key null": (good + record(1, headers=headers(varint(-1) + sized(b"x"))), {}),
        "header key too large": (good + record(1, headers=headers(sized(b"h", 100) + sized(b"x"))), {}),
        "header value too large": (good + record(1, headers=headers(sized(b"h") + sized(b"x", 100))), {}),
        "header value size -2": (good + record(1, headers=headers(sized(b"h") + varint(-2))), {}),
        "fewer headers": (good + record(1, headers=headers(HEADER, count=2)), {}),
        "more headers": (good + record(1, headers=headers(HEADER, HEADER, count=1)), {}),
        "many fewer headers": (good + record(1, headers=headers(HEADER, count=1_000_000)), {}),
        "count of headers negative": (good + record(1, headers=varint(-1)), {}),
    }


def damaged(payload: bytes) -> Mapping[str, bytes]:
    """Return compressed payloads that are damaged."""
    packed = compress(Compression.GZIP, payload)
    halves = compress(Compression.GZIP, payload[:5]) + compress(Compression.GZIP, payload[5:])
    return {
        "no gzip": b"no gzip",
        "no bytes": b"",
        "two members": halves,
        "cut off": packed[:-9],
        "without trailer": packed[:-8],
        "wrong gzip checksum": packed[:-8] + bytes(4) + packed[-4:],
        "wrong gzip size": packed[:-4] + bytes(4),
        "bytes behind": packed + b"\1\2\3",
        "zeros behind": packed + bytes(16),
        "zlib": zlib.compress(payload),
    }


TOPICS = {
    "w": {},
    "wg": {"compression_type": "gzip"},
    "wu": {"compression_type": "uncompressed"},
    "wc": {"cleanup_policy": "compact"},
    "wa": {"message_timestamp_type": "LogAppendTime"},
}


def wrong_contents(talk: Talk) -> None:
    """BA-62, BA-72, BA-77, BA-80: what of wrong contents is refused, and what is read later."""
    kinds = contents()
    batches = {}
    for codec in (Compression.NONE, Compression.GZIP):
        for name, (payload, fields) in kinds.items():
            batches[f"{name}, {codec.name.lower()}"] = sealed(compress(codec, payload), codec=codec, **fields)
    for name, payload in damaged(record(0) + record(1)).items():
        batches[f"damaged: {name}"] = sealed(payload, codec=Compression.GZIP)
    fetch_versions = [version for version in (0, 2, 4, newest(talk, 1)) if talk.serves(1, version)]
    for topic, configs in TOPICS.items():
        talk.create(topic, len(batches), **configs)
        for index, (name, encoded) in enumerate(batches.items()):
            note = f"{name}, {topic}"
            response = produce(talk, note, topic, encoded, newest(talk, 0), partition=index)
            if response is None or response.responses[0].partition_responses[0].error_code:
                continue
            for version in fetch_versions:
                fetch(talk, note, {topic: {index: 0}}, version)
            for version in (1, newest(talk, 2)):
                _list_offsets(talk, note, topic, index, version)


def _list_offsets(talk: Talk, note: str, topic: str, index: int, version: int) -> None:
    for timestamp in (0, T0, T0 + 1, T0 + 6, 2**62, *([-3] if version >= 7 else [])):
        asked = (ListOffsetsPartition(partition_index=index, timestamp=timestamp),)
        request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=asked),))
        talk.ask(f"{note}, at {timestamp}", request, version)


CHAPTERS = (wrong_contents,)
