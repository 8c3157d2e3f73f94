"""The codecs measured by ``python -m bench codec``, each as two calls on the same bytes.

Each codec gets its best input (a response in its own classes, a prepared reader). Its decoded values are compared with
those of the other codecs, so that all of them do the same work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from io import BytesIO
from struct import pack
from typing import Any

from bench.model import KPROTO, Missing, counted

API_KEY, API_VERSION = 8, 3
GROUP, MEMBER, TOPIC = "bench-group", "consumer-1-0b7b1b52-6f0e-4f57-9f4c-9d3a3b8c1d11", "bench-topic"
GENERATION, RETENTION_MS = 7, -1

Values = tuple[str, int, str, str, tuple[tuple[int, int, str | None], ...]]
"""Group, generation, member, topic; partition, offset and metadata of each partition."""


@dataclass(frozen=True)
class Case:
    """One OffsetCommit v3 request and its response; the bytes are written by hand."""

    partitions: int
    metadata: str

    def __str__(self) -> str:
        return f"{counted(self.partitions, 'partition')}, metadata {self.metadata!r}"

    def offset(self, partition: int) -> int:
        return (1 << 33) + partition

    @cached_property
    def values(self) -> Values:
        commits = tuple((index, self.offset(index), self.metadata) for index in range(self.partitions))
        return GROUP, GENERATION, MEMBER, TOPIC, commits

    @cached_property
    def request(self) -> bytes:
        commits = [pack(">iq", n, self.offset(n)) + _string(self.metadata) for n in range(self.partitions)]
        head = _string(GROUP) + pack(">i", GENERATION) + _string(MEMBER) + pack(">qi", RETENTION_MS, 1)
        return head + _string(TOPIC) + pack(">i", self.partitions) + b"".join(commits)

    @cached_property
    def response(self) -> bytes:
        codes = b"".join(pack(">ih", index, 0) for index in range(self.partitions))
        return pack(">ii", 0, 1) + _string(TOPIC) + pack(">i", self.partitions) + codes


def _string(text: str) -> bytes:
    raw = text.encode()
    return pack(">h", len(raw)) + raw


@dataclass(frozen=True, slots=True)
class Call:
    """A timed function and its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()

    def __call__(self) -> Any:
        return self.function(*self.arguments)


@dataclass(frozen=True, slots=True)
class Subject:
    """The two calls of a codec on one case."""

    decode: Call
    encode: Call
    values: Callable[[Any], Values]
    """Return the result of ``decode`` as plain values."""


def kproto_generated(case: Case) -> Subject:
    from kproto import registry

    return _kproto(registry.codec(API_KEY, API_VERSION), case)


def kproto_interpreted(case: Case) -> Subject:
    from kproto import registry

    return _kproto(registry.interpreted(API_KEY, API_VERSION), case)


def _kproto(codec: Any, case: Case) -> Subject:
    decode, encode = (
        Call(codec.decode_request, (case.request, 0)),
        Call(codec.encode_response, (_kproto_response(case),)),
    )
    return Subject(decode, encode, lambda decoded: _values(decoded[0]))


def hand_struct(case: Case) -> Subject:
    from bench import hand

    decode, encode = (
        Call(hand.decode_request, (case.request, 0)),
        Call(hand.encode_response, (_kproto_response(case),)),
    )
    return Subject(decode, encode, lambda decoded: _values(decoded[0]))


def _kproto_response(case: Case) -> Any:
    from kproto.messages.k08_offset_commit import (
        OffsetCommitResponse,
        OffsetCommitResponsePartition,
        OffsetCommitResponseTopic,
    )

    codes = tuple(OffsetCommitResponsePartition(partition_index=n, error_code=0) for n in range(case.partitions))
    return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name=TOPIC, partitions=codes),))


def kio(case: Case) -> Subject:
    try:
        from kio.schema.offset_commit.v3 import response as responses
        from kio.schema.offset_commit.v3.request import OffsetCommitRequest
        from kio.serial import entity_reader, entity_writer
    except ImportError as error:
        raise Missing(f"kio is not installed in this Python ({error})") from error
    message: Any = responses
    code = message.ErrorCode(0)
    codes = tuple(
        message.OffsetCommitResponsePartition(partition_index=n, error_code=code) for n in range(case.partitions)
    )
    topic = message.OffsetCommitResponseTopic(name=TOPIC, partitions=codes)
    response_value = message.OffsetCommitResponse(throttle_time=timedelta(0), topics=(topic,))
    write: Any = entity_writer(message.OffsetCommitResponse)

    def encode(entity: object) -> bytes:
        buffer = BytesIO()
        write(buffer, entity)
        return buffer.getvalue()

    decode = Call(entity_reader(OffsetCommitRequest), (case.request, 0))
    return Subject(decode, Call(encode, (response_value,)), lambda decoded: _values(decoded[0]))


def kafka_python(case: Case) -> Subject:
    try:
        from kafka.protocol.consumer import group
    except ImportError as error:
        raise Missing(f"kafka-python 3 is not installed in this Python ({error})") from error
    message: Any = group
    response = message.OffsetCommitResponse
    topic = response.OffsetCommitResponseTopic
    codes = [topic.OffsetCommitResponsePartition(partition_index=n, error_code=0) for n in range(case.partitions)]
    response_value = response[API_VERSION](throttle_time_ms=0, topics=[topic(name=TOPIC, partitions=codes)])
    request = message.OffsetCommitRequest[API_VERSION]
    return Subject(Call(request.decode, (case.request,)), Call(response_value.encode), _values)


def _values(request: Any) -> Values:
    (topic,) = request.topics
    commits = tuple((p.partition_index, p.committed_offset, p.committed_metadata) for p in topic.partitions)
    return request.group_id, request.generation_id_or_member_epoch, request.member_id, topic.name, commits


SUBJECTS: dict[str, Callable[[Case], Subject]] = {
    KPROTO: kproto_generated,
    "construct": kproto_interpreted,
    "hand-struct": hand_struct,
    "kio": kio,
    "kafka-python": kafka_python,
}


def names() -> Sequence[str]:
    return list(SUBJECTS)
