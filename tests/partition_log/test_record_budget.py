"""A Produce request whose records cost too much gets MESSAGE_TOO_LARGE, and nothing is written.

Method. A broker without sockets gets batches with as many records as are accepted, and with more.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kproto.codes import ErrorCode
from kproto.errors import DecodeError
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kproto.records import record_batch
from kproto.records.compression import Compression, decompress
from kproto.records.message_set import build_message_set
from kproto.records.record import Record, RecordHeader
from kproto.records.record_batch import build_record_batch
from kproto_server.partition_log.record_budget import (
    CONTENT_MAX_BYTES,
    DECODED_CONTENT_MAX_BYTES,
    DECODED_RECORDS_MAX,
    HEADERS_OF_RECORD,
    MESSAGE_COST,
)
from kproto_server.testing import InMemoryBroker
from tests.partition_log.conversation_contents import compressed

MESSAGES_MAX = int(DECODED_RECORDS_MAX / MESSAGE_COST)
HEADERS_MAX = (DECODED_RECORDS_MAX - 1) * HEADERS_OF_RECORD


def batch(count: int) -> bytes:
    records = (Record(b"k", None, offset=offset, timestamp=1) for offset in range(count))
    return build_record_batch(records, compression=Compression.GZIP)


def with_headers(count: int, records: int = 1) -> bytes:
    """Return a batch whose records have so many headers together."""
    each = (RecordHeader("", b""),) * (count // records)
    made = [Record(b"k", None, each, offset=offset, timestamp=1) for offset in range(records)]
    return build_record_batch(made, compression=Compression.GZIP)


def messages(count: int) -> bytes:
    records = [Record(b"k", None, offset=offset, timestamp=1) for offset in range(count)]
    return build_message_set(records, magic=1, compression=Compression.GZIP)


def plain_messages(count: int) -> bytes:
    return build_message_set([Record(b"k", None, timestamp=1)] * count, magic=1)


def large(size_bytes: int) -> bytes:
    return build_record_batch([Record(b"k", bytes(size_bytes), timestamp=1)], compression=Compression.GZIP)


def error(topic: str, *batches: bytes, version: int = 7) -> int:
    """Produce batches to the first partitions of a topic in one request; return the error of the last one."""
    broker = InMemoryBroker(topics={"plain": 61}, settings={"message.max.bytes": "20000000"})
    client = broker.connect()
    topics = tuple(
        CreatableTopic(
            name=name,
            num_partitions=61,
            replication_factor=1,
            assignments=(),
            configs=(CreatableTopicConfig(name=config, value=value),),
        )
        for name, config, value in (
            ("compacted", "cleanup.policy", "compact"),
            ("gzip", "compression.type", "gzip"),
            ("lz4", "compression.type", "lz4"),
        )
    )
    client.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000), 4)
    data = tuple(PartitionProduceData(index=index, records=records) for index, records in enumerate(batches))
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=(TopicProduceData(name=topic, partition_data=data),))
    response = client.ask(request, version)
    return int(response.responses[0].partition_responses[-1].error_code)  # type: ignore[attr-defined]  # a ProduceResponse


@pytest.mark.parametrize(
    ("topic", "version", "records", "accepted", "refused"),
    [
        ("compacted", 7, batch, (DECODED_RECORDS_MAX,), (DECODED_RECORDS_MAX + 1,)),
        ("compacted", 7, with_headers, (HEADERS_MAX,), (HEADERS_MAX + 1,)),
        ("compacted", 7, with_headers, (HEADERS_MAX // 2, 100), (HEADERS_MAX, 100)),
        ("plain", 2, messages, (MESSAGES_MAX,), (MESSAGES_MAX + 1,)),
        ("plain", 2, plain_messages, (MESSAGES_MAX,), (MESSAGES_MAX + 1,)),
        ("compacted", 7, large, (DECODED_CONTENT_MAX_BYTES - 100,), (DECODED_CONTENT_MAX_BYTES,)),
    ],
    ids=["records", "headers of a record", "headers of a batch", "messages in one", "messages", "bytes"],
)
def test_decoded_records_beyond_the_budget_are_too_large(
    topic: str, version: int, records: Callable[..., bytes], accepted: tuple[int, ...], refused: tuple[int, ...]
) -> None:
    assert error(topic, records(*accepted), version=version) == 0
    assert error(topic, records(*refused), version=version) == ErrorCode.MESSAGE_TOO_LARGE


def test_the_batches_of_a_request_share_its_budget() -> None:
    half = batch(DECODED_RECORDS_MAX // 2 + 1)
    assert error("compacted", half) == 0
    assert error("compacted", half, half) == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("topic", ["plain", "compacted"])
@pytest.mark.parametrize("is_corrupt", [False, True])
@pytest.mark.parametrize("size", [1 << 20, 7 << 20, 20 << 20])
@pytest.mark.parametrize("compression", [Compression.GZIP, Compression.ZSTD])
def test_a_request_has_few_bytes_decompressed(
    compression: Compression, size: int, is_corrupt: bool, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty batches of 16 KB held other connections for a second. The limits of all calls together are the work."""
    limits: list[int] = []

    def limited(codec: Compression, data: bytes, *, limit: int) -> bytes:
        try:
            content = decompress(codec, data, limit=limit)
        except DecodeError:
            limits.append(limit)
            raise
        limits.append(len(content))
        return content

    monkeypatch.setattr(record_batch, "decompress", limited)
    error(topic, *[compressed(size, compression, is_corrupt=is_corrupt)] * 60)
    assert limits
    assert sum(limits) <= 2 * CONTENT_MAX_BYTES


def test_small_batches_behind_a_large_one_are_looked_at() -> None:
    bad = compressed(1000, Compression.GZIP, is_corrupt=True)
    assert error("plain", compressed(7 << 20, Compression.GZIP), bad) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert error("plain", *[bad] * 10, bad) == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(("topic", "size", "count"), [("gzip", 1 << 20, 3), ("lz4", 3 << 20, 4)])
def test_batches_of_a_request_are_compressed_within_a_budget(topic: str, size: int, count: int) -> None:
    plain = build_record_batch([Record(b"k", bytes(size - 1), timestamp=1)])
    assert error(topic, *[plain] * count) == 0
    assert error(topic, *[plain] * count, plain) == ErrorCode.MESSAGE_TOO_LARGE
    assert error("plain", *[plain] * count, plain) == 0
