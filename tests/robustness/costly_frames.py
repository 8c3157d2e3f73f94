"""Requests of up to a megabyte that cost a broker as much as possible, as bytes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from kproto import registry
from kproto.declaration import TaggedField
from kproto.headers import RequestHeader
from kproto.message import Request
from kproto.messages import APIS
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.messages.k03_metadata import MetadataRequest
from kproto.records.compression import Compression, compress
from kproto.records.lz4_frame import END_MARK, HEADER_SIZE
from kproto.records.message_set import build_message_set
from kproto.records.record import Record, RecordHeader
from kproto.records.record_batch import build_record_batch
from kproto_server.handlers import HANDLED
from kproto_server.partition_log.record_budget import DECODED_RECORDS_MAX, MESSAGE_COST
from kproto_server.releases.kafka_version import LATEST, KafkaVersion
from kproto_server.requests.endpoint import elements_max
from tests.codec.strategies import made
from tests.partition_log.conversation_contents import compressed, sealed
from tests.robustness.hard_strings import HARD_STRINGS, hard_configs, hard_strings
from tests.robustness.long_requests import Content, LongArray, existing_name, long_arrays

SIZE_MAX_BYTES = 1 << 20
RECORD_TOPICS = ("plain", "compacted", "recompressed")
"""Topics of one partition: as the broker has them by default, with compaction, and with another compression."""
READS = 4000
"""Times that a request reads the same partition."""
MAX_TIMESTAMP = -3
REFUSED_SHARE = 0.05
UNSUPPORTED_SHARE = 0.2
"""APIs that only respond with an error, of all of these in a run."""
MALFORMED = b"\xff\xfe"


class CostlyFrame(NamedTuple):
    """One request with its size before it."""

    name: str
    data: bytes


Make = Callable[[], bytes]


def frame(body: bytes, api_key: int, version: int, tags: tuple[TaggedField, ...] = ()) -> bytes:
    """Return a request with its size before it; ``tags``: the tagged fields of its header."""
    header_version = registry.header_versions(api_key, version)[0]
    value: RequestHeader = made(RequestHeader, (api_key, version, 1, "cost", tags if header_version == 2 else ()))
    header = value.encode(header_version)
    return (len(header) + len(body)).to_bytes(4, "big") + header + body


def costly_frames(chance: random.Random) -> Iterator[CostlyFrame]:
    """Yield requests of all kinds in random order, forever."""
    served = KafkaVersion.named(LATEST).api_versions
    kinds: list[tuple[str, Make]] = [*_record_kinds(), *_hard_configs()]
    for api_key, (first, last) in served.items():
        if api_key not in HANDLED and chance.random() > UNSUPPORTED_SHARE:
            continue
        for version in {first, last, chance.randint(first, last)}:
            kinds += _kinds_of(api_key, version)
    while True:
        chance.shuffle(kinds)
        for name, make in kinds:
            # Most requests of 1 MB are refused for their elements, and take long to make.
            if name.endswith("1 MB") and chance.random() > REFUSED_SHARE:
                continue
            data = make()
            if len(data) <= SIZE_MAX_BYTES + 4:
                yield CostlyFrame(name, data)


def _kinds_of(api_key: int, version: int) -> Iterator[tuple[str, Make]]:
    name = f"{APIS[api_key]} v{version}"
    for array in long_arrays(api_key, version):
        for content in Content:
            yield f"{array}, {content}, 1 MB", lambda a=array, c=content: _of_size(a, c)  # type: ignore[misc]
            yield f"{array}, {content}, accepted", lambda a=array, c=content: _accepted(a, c)  # type: ignore[misc]
    for hard in hard_strings(api_key, version):
        for kind, text in HARD_STRINGS.items():
            yield f"{hard}, {kind}", lambda h=hard, t=text: _encoded(h.request(t), h.version)  # type: ignore[misc]
    if registry.request_class(api_key)._flexible.covers(version):
        yield f"{name}, tags of the header", lambda: frame(b"", api_key, version, _tags(400_000))
        yield f"{name}, tags of the body", lambda: frame(_with_tags(api_key, version, 250_000), api_key, version)
    yield f"{name}, malformed", lambda: frame(MALFORMED * (SIZE_MAX_BYTES // 2 - 100), api_key, version)
    yield f"{name}, zeros", lambda: frame(bytes(SIZE_MAX_BYTES - 100), api_key, version)


def _hard_configs() -> Iterator[tuple[str, Make]]:
    for name, hard, given in hard_configs():
        for kind, text in HARD_STRINGS.items():
            yield f"{name}, {kind}", lambda h=hard, t=text, g=given: _encoded(h.request(t, g), h.version)  # type: ignore[misc]


def _of_size(array: LongArray, content: Content) -> bytes:
    small, large = (len(_encoded(array.request(count, content), array.version)) for count in (100, 200))
    count = int((SIZE_MAX_BYTES - 2000) / max((large - small) / 100, 1)) * 9 // 10
    return _encoded(array.request(count, content), array.version)


def _accepted(array: LongArray, content: Content) -> bytes:
    """Return the longest request that is not refused for its elements."""
    depth = array.path.count(".") + 1
    levels_within = {1: 2}.get(depth, 1) if array.api_key in (0, 1, 2, 8, 9, 23) else 1
    request = array.request((elements_max(array.api_key) - 10) // levels_within, content)
    return _encoded(request, array.version)


def _encoded(request: Request, version: int) -> bytes:
    return frame(request.encode(version), type(request)._api_key, version)


@cache
def _tags(count: int) -> tuple[TaggedField, ...]:
    return tuple(TaggedField(number, b"") for number in range(100, count // 2))


def _with_tags(api_key: int, version: int, count: int) -> bytes:
    """Return a body whose first bytes are a count of tagged fields, for requests that begin with their tags, or end."""
    cls = registry.request_class(api_key)
    arrays = long_arrays(api_key, version)
    request = LongArray(api_key, version, arrays[0].path if arrays else "").request(1, Content.EMPTY)
    value: Request = made(cls, (*request[:-1], _tags(count)))  # type: ignore[index]  # a tuple
    return value.encode(version)


def _record_kinds() -> Iterator[tuple[str, Make]]:
    for topic in RECORD_TOPICS:
        for name, make in RECORDS.items():
            yield f"Produce v7 {topic}, {name}", lambda t=topic, m=make: _produce(t, m(), 7)  # type: ignore[misc]
        for name, make in MESSAGES.items():
            yield f"Produce v2 {topic}, {name}", lambda t=topic, m=make: _produce(t, m(), 2)  # type: ignore[misc]
    for compression in list(Compression)[1:]:
        for is_corrupt in (False, True):
            name = f"Produce v7, {compression.name} of 7 MB in many partitions{', corrupt' if is_corrupt else ''}"
            yield name, lambda c=compression, bad=is_corrupt: _produce_to_many(_large_content(c, bad))  # type: ignore[misc]
    for topic in RECORD_TOPICS:
        for version in (0, 3, 4):
            yield f"Fetch v{version} {topic}, repeated", lambda t=topic, v=version: _fetch(t, v)  # type: ignore[misc]
        for timestamp in (0, MAX_TIMESTAMP):
            yield f"ListOffsets v7 {topic}, {timestamp}", lambda t=topic, ts=timestamp: _look_up(t, ts)  # type: ignore[misc]
    yield "Metadata v9, all topics", lambda: _encoded(MetadataRequest(topics=None), 9)


def _produce(topic: str, records: bytes, version: int) -> bytes:
    partitions = (PartitionProduceData(index=0, records=records),)
    topics = (TopicProduceData(name=topic, partition_data=partitions),)
    return _encoded(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), version)


def _produce_to_many(batch: bytes) -> bytes:
    """Return a request with the same batch for many partitions of the topic that has them."""
    count = min(300, (SIZE_MAX_BYTES - 10_000) // len(batch))
    partitions = tuple(PartitionProduceData(index=index, records=batch) for index in range(count))
    topics = (TopicProduceData(name=existing_name(0), partition_data=partitions),)
    return _encoded(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), 7)


@cache
def _large_content(compression: Compression, is_corrupt: bool) -> bytes:
    return compressed(7 << 20, compression, is_corrupt=is_corrupt)


def _fetch(topic: str, version: int) -> bytes:
    partitions = (FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=SIZE_MAX_BYTES),)
    topics = (FetchTopic(topic=topic, partitions=partitions),) * READS
    return _encoded(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=100 * SIZE_MAX_BYTES, topics=topics), version)


def _look_up(topic: str, timestamp: int) -> bytes:
    partitions = (ListOffsetsPartition(partition_index=0, timestamp=timestamp),)
    return _encoded(
        ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=partitions),) * READS), 7
    )


def _batch(count: int, key: bytes | None = b"k", compression: Compression = Compression.NONE) -> bytes:
    records = (Record(key, None, offset=offset, timestamp=1) for offset in range(count))
    return build_record_batch(records, compression=compression)


def _messages(count: int) -> bytes:
    return build_message_set([Record(b"k", b"", timestamp=1)] * count, magic=1)


@cache
def _bomb() -> bytes:
    """Return a batch of 1 MB that has 100 MB when it is decompressed, in one record."""
    return build_record_batch([Record(b"k", bytes(100 << 20))], compression=Compression.GZIP)


def _small_blocks(compression: Compression, count: int) -> bytes:
    """Return blocks with nearly nothing in them."""
    if compression is Compression.GZIP:
        return compress(compression, b"") * count
    if compression is Compression.SNAPPY:
        return compress(compression, b"") + b"\0\0\0\1\0" * count
    return compress(compression, b"")[:HEADER_SIZE] + b"\1\0\0\x80k" * count + END_MARK


RECORDS: dict[str, Make] = {
    **{
        f"many small blocks of {one.name}": cache(
            lambda c=one, n=count: sealed(_small_blocks(c, n), count=1, last=0, codec=c)
        )
        for one, count in ((Compression.GZIP, 50_000), (Compression.SNAPPY, 200_000), (Compression.LZ4, 200_000))
    },
    "many small records": cache(lambda: _batch(100_000)),
    "many compressed records": cache(lambda: _batch(200_000, compression=Compression.GZIP)),
    "many headers": cache(lambda: build_record_batch([Record(b"k", b"v", headers=(RecordHeader("", b""),) * 300_000)])),
    "a record that decompresses to 100 MB": _bomb,
    "many batches": cache(lambda: b"".join(_batch(1) for _ in range(14_000))),
    "one large record": cache(lambda: build_record_batch([Record(b"k", bytes(900_000))])),
}
MESSAGES: dict[str, Make] = {
    "as many messages as are accepted": cache(lambda: _messages(DECODED_RECORDS_MAX // MESSAGE_COST)),
    "more messages than are accepted": cache(lambda: _messages(25_000)),
    "many compressed messages": cache(
        lambda: build_message_set(
            [Record(b"k", b"", offset=offset, timestamp=1) for offset in range(100_000)],
            magic=1,
            compression=Compression.GZIP,
        )
    ),
}
