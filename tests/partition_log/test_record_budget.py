"""A Produce request whose records cost too much gets MESSAGE_TOO_LARGE, and nothing is written.

Method. A broker without sockets gets batches with as many records as are accepted, and with more.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

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
from kproto_server.partition_log.validation import BUDGET_SIZE_BYTES
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
    return errors(topic, *batches, version=version)[-1]


def errors(topic: str, *batches: bytes, version: int = 7) -> list[int]:
    """Produce batches to the first partitions of a topic in one request; return the error of each."""
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
    response: Any = client.ask(request, version)
    return [int(one.error_code) for one in response.responses[0].partition_responses]


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
    records = compressed(size, compression, is_corrupt=is_corrupt)
    budgets = 1 + 60 * len(records) // BUDGET_SIZE_BYTES
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
    error(topic, *[records] * 60)
    assert limits
    assert sum(limits) <= 2 * CONTENT_MAX_BYTES * budgets


def test_small_batches_behind_a_large_one_are_looked_at() -> None:
    bad = compressed(1000, Compression.GZIP, is_corrupt=True)
    assert error("plain", compressed(7 << 20, Compression.GZIP), bad) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert error("plain", *[bad] * 10, bad) == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(("topic", "size", "count"), [("gzip", 1 << 20, 3), ("lz4", 3 << 20, 4)])
def test_batches_of_a_request_are_compressed_within_a_budget(topic: str, size: int, count: int) -> None:
    packed = build_record_batch([Record(b"k", bytes(size - 1), timestamp=1)], compression=Compression.ZSTD)
    assert error(topic, *[packed] * count) == 0
    assert error(topic, *[packed] * count, packed) == ErrorCode.MESSAGE_TOO_LARGE
    assert error("plain", *[packed] * count, packed) == 0


@pytest.mark.parametrize("topic", ["gzip", "lz4", "compacted", "plain"])
def test_each_mib_of_a_request_has_a_budget(topic: str) -> None:
    """Clients that send to many partitions at once lose no batch that would be accepted alone."""
    randbytes = Random(0).randbytes  # noqa: S311 - not for a key
    plain = build_record_batch([Record(b"k", bytes(1000), offset=offset, timestamp=1) for offset in range(900)])
    packed = build_record_batch(
        (Record(b"k", randbytes(100), offset=offset, timestamp=1) for offset in range(8000)),
        compression=Compression.ZSTD,
    )
    assert len(packed) > BUDGET_SIZE_BYTES // 2
    assert errors(topic, *[plain] * 10, *[packed] * 10) == [0] * 20


def test_other_clients_are_served_between_two_mib() -> None:
    broker = InMemoryBroker(topics={"t": 4}, settings={"compression.type": "gzip"})
    client = broker.connect()
    plain = build_record_batch([Record(b"k", bytes(900_000), timestamp=1)])
    data = tuple(PartitionProduceData(index=index, records=plain) for index in range(4))
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=(TopicProduceData(name="t", partition_data=data),))
    partitions = broker.state.cluster.topics["t"].partitions
    sent = client.connection.receive(client.client.send(request, 7), broker.clock.now_ms())
    for count in range(1, 4):
        assert not sent
        assert sum(one.data.next_offset for one in partitions) == count
        assert client.connection.has_turn_to_come
        sent = client.connection.resume(broker.clock.now_ms())
    (received,) = client.client.receive(sent)
    assert [one.error_code for one in received.response.responses[0].partition_responses] == [0] * 4  # type: ignore[attr-defined]


def test_headers_are_compressed_within_the_budget_too() -> None:
    header = RecordHeader("h", bytes(1 << 20))
    packed = build_record_batch([Record(b"k", b"", (header,), timestamp=1)], compression=Compression.ZSTD)
    assert errors("gzip", *[packed] * 4) == [0, 0, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.MESSAGE_TOO_LARGE]


def test_a_batch_that_its_conversion_makes_too_large_is_refused() -> None:
    """As 4.4.0 and 2.8.2: the size is compared again after the batch is compressed by the codec of the topic."""
    settings = {"compression.type": "uncompressed"}
    packed = build_record_batch([Record(b"k", bytes(2 << 20), timestamp=1)], compression=Compression.ZSTD)
    broker = InMemoryBroker(topics={"t": 1}, settings=settings)
    data = PartitionProduceData(index=0, records=packed)
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=(TopicProduceData(name="t", partition_data=(data,)),))
    response: Any = broker.connect().ask(request, 7)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_topic_that_is_deleted_between_two_slices_is_unknown_from_then_on() -> None:
    """The batches before are no defect of a request that waits for replicas."""
    broker = InMemoryBroker(topics={}, brokers=2, settings={"compression.type": "gzip"})
    cluster = broker.state.cluster
    cluster.create_topic("t", partition_count=4, replication_factor=2)
    node_id = cluster.topics["t"].partitions[0].leader
    cluster.silent.add(3 - node_id)
    indexes = [index for index in range(4) if cluster.topics["t"].partitions[index].leader == node_id]
    plain = build_record_batch([Record(b"k", bytes(900_000), timestamp=1)])
    data = tuple(PartitionProduceData(index=index, records=plain) for index in indexes)
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(TopicProduceData(name="t", partition_data=data),))
    client = broker.connect(node_id=node_id)
    assert client.connection.receive(client.client.send(request, 7), broker.clock.now_ms()) == b""
    cluster.delete_topic("t")
    while client.connection.has_turn_to_come:
        client.connection.resume(broker.clock.now_ms())
    sent = client.connection.resume(broker.clock.now_ms())  # as after the timeout
    (received,) = client.client.receive(sent)
    found = [one.error_code for one in received.response.responses[0].partition_responses]  # type: ignore[attr-defined]
    assert found == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
