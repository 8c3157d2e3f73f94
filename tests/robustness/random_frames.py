"""Random requests: valid frames built from the declarations of the messages, and damaged ones.

Everything comes from one `random.Random`, so a seed gives the same frames again, apart from ids that a broker has
given. Fields get values that the broker knows (topics, groups, members) as often as extreme ones: a frame that fails at
its first field tests nothing else.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

from kproto import registry
from kproto.declaration import Field, Struct, TaggedField, WireType, fields_of
from kproto.headers import request_frame
from kproto.message import Request
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto.records.compression import Compression, compress
from tests.codec.strategies import BITS, UNSIGNED_BITS, bounds, made
from tests.codec.test_hostile_frames import INT16S, INT32S, TOO_LONG, VARINTS
from tests.partition_log.conversation_chapters import T0, message_set
from tests.partition_log.conversation_contents import contents, sealed

MALFORMED = bytes.fromhex("ffc328eda080f09f98ffff80")
HOSTILE = (*map(bytes.fromhex, (*VARINTS, *INT16S, *INT32S)), *TOO_LONG, b"\x7f" + b"\xff" * 7, b"\x80" + bytes(7))
SIZES = (0, 1, 1, 1, 1, 2, 3, 9)
"""Elements of an array; mostly one, so that nested arrays stay small."""
OFFSETS_TOPIC = "__consumer_offsets"
TOPIC_CHANGES = frozenset((20, 33, 37, 44))
"""APIs that may not name the offsets topic: without it no broker commits."""
TOPICS = ("t", "t", "u", "c", "fuzz", "no-such-topic", OFFSETS_TOPIC, "", "a b", "x" * 250)
GROUPS = ("g", "g", "h", "fuzz", "", "x" * 300)
STRINGS = (
    "",
    "t",
    "g",
    "range",
    "consumer",
    "1",
    "x" * 126,
    "x" * 127,
    "x" * 128,
    "ä",
    "𝄞",
    "\0",
    "gzip",
    "retention.ms",
)
POOLS: dict[str, tuple[Any, ...]] = {
    "topic": TOPICS,
    "topic_name": TOPICS,
    "name": (*TOPICS, "retention.ms", "cleanup.policy", "compression.type", "range", "consumer"),
    "resource_name": (*TOPICS, "1", "2"),
    "resource_type": (2, 2, 4, 8, 16, 32, 0, -1, 127),
    "value": ("1", "-1", "compact", "gzip", "delete", "", "1e9", str(2**63)),
    "group_id": GROUPS,
    "groups": GROUPS,
    "group_ids": GROUPS,
    "groups_names": GROUPS,
    "key": GROUPS,
    "coordinator_keys": GROUPS,
    "protocol_type": ("consumer", "consumer", "", "connect"),
    "protocol_name": ("range", "roundrobin", ""),
    "transactional_id": (None, None, "", "fuzz"),
    "partition": (0, 0, 1, 2, -1, 2**31 - 1),
    "partition_index": (0, 0, 1, 2, -1, 2**31 - 1),
    "partition_indexes": (0, 1, 2, -1),
    "partitions": (0, 1, 2, -1),
    "num_partitions": (1, 2, 3, 0, -1, -2, 2**31 - 1),
    "count": (1, 2, 4, 0, -1, 2**31 - 1),
    "replication_factor": (1, 1, -1, 0, 2, 32767),
    "broker_ids": (1, 1, 2, -1),
    "acks": (1, 1, -1, 0, 2),
    "timeout_ms": (0, 10, -1),
    "max_wait_ms": (0, 0, 1, 10, -1),
    "min_bytes": (0, 1, 2**31 - 1),
    "max_bytes": (2**31 - 1, 1000, 0, -1),
    "partition_max_bytes": (2**20, 1000, 0, -1),
    "fetch_offset": (0, 0, 1, 5, -1, 2**63 - 1),
    "committed_offset": (0, 5, -1, 2**63 - 1, -(2**63)),
    "session_timeout_ms": (6000, 10_000, 0, -1, 2**31 - 1),
    "rebalance_timeout_ms": (1, 100, 0, -1, 2**31 - 1),
    "retention_time_ms": (-1, 0, 1, 10_000, 2**63 - 1),
    "generation_id": (-1, -1, 1, 2, 2**31 - 1),
    "generation_id_or_member_epoch": (-1, -1, 0, 1, 2),
    "session_id": (0, 0, 1, -1),
    "session_epoch": (-1, 0, 1, 2**31 - 1),
    "isolation_level": (0, 0, 1, 2, -1),
    "replica_id": (-1, -1, 0, 1, -2),
    "current_leader_epoch": (-1, -1, 0, 1),
    "leader_epoch": (-1, 0, 1),
    "timestamp": (-1, -2, -3, -4, -5, T0, 0, 2**63 - 1, -(2**63)),
    "max_num_offsets": (1, 0, -1, 2**31 - 1),
    "key_type": (0, 0, 1, 2, -1),
    "config_operation": (0, 0, 1, 2, 3, 9),
    "client_software_name": ("librdkafka", "apache-kafka-java", ""),
    "client_software_version": ("1.0", ""),
}
"""Field name -> values; three quarters of the fields with such a name have one of them."""


class RandomFrames:
    """A source of random frames."""

    def __init__(self, seed: object) -> None:
        self.random = random.Random(repr(seed))  # noqa: S311 - not for secrets
        self.topic_ids: list[bytes] = [bytes(16)]
        """Ids of existing topics."""
        self.member_ids: list[str] = [""]
        """Member ids that a broker has given."""

    def valid(self, api_key: int, version: int) -> bytes:
        """Return the frame of a request, with its size, that the codec can decode."""
        cls = registry.request_class(api_key)
        while True:
            request: Request = self._struct(cls, version, cls._flexible.covers(version))
            if api_key not in TOPIC_CHANGES or OFFSETS_TOPIC not in repr(request):
                break
        client_id = self.random.choice(("fuzz", "fuzz", "", None, "ü", "__admin_client"))
        return request_frame(request, version, correlation_id=self._integer("int32"), client_id=client_id)

    def damaged(self, frame: bytes) -> bytes:
        """Return a frame with one to three kinds of damage. The size mostly fits."""
        body = frame[4:]
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            body = self.random.choice(DAMAGES)(self.random, body)
        size = len(body)
        if self.random.random() < 0.03:
            size = self.random.choice((0, 1, size + 1, max(0, size - 1), 2**31 - 1, 2**31, 2**32 - 1, 2 * size))
        return size.to_bytes(4, "big") + body

    def _struct(self, cls: type[Struct], version: int, flexible: bool) -> Any:
        items = [self._field(field, version, flexible) for field in fields_of(cls)]
        unknown: tuple[TaggedField, ...] = ()
        if flexible and self.random.random() < 0.05:
            unknown = (TaggedField(self.random.choice((100, 2**32 - 1)), self.random.randbytes(3)),)
        return made(cls, (*items, unknown))

    def _field(self, field: Field, version: int, flexible: bool) -> Any:
        chance = self.random.random()
        if not field.versions.covers(version) or (field.tag is not None and chance < 0.5):
            return field.default
        if field.nullable_versions.covers(version) and chance < 0.15:
            return None
        return self._value(field.type, version, flexible, field.name)

    def _value(self, kind: WireType, version: int, flexible: bool, name: str) -> Any:
        if kind.element is not None:
            size = self.random.choice(SIZES)
            return tuple(self._value(kind.element, version, flexible, name) for _ in range(size))
        if kind.struct is not None:
            return self._struct(kind.struct, version, flexible)
        return self._primitive(kind.kind, name)

    def _primitive(self, kind: str, name: str) -> Any:
        choose = self.random.choice
        match kind:
            case "bool":
                return choose((False, True))
            case "string" if name in ("member_id", "leader", "group_instance_id"):
                return choose(self.member_ids) if name == "member_id" else choose(("i", "j", ""))
            case "string":
                pool = [one for one in POOLS.get(name, ()) if isinstance(one, str)]
                return choose(pool) if pool and self.random.random() < 0.9 else choose(STRINGS)
            case "records":
                return self.records()
            case "bytes":
                return self.random.randbytes(choose((0, 1, 8, 40)))
            case "uuid":
                return choose(self.topic_ids) if self.random.random() < 0.8 else self.random.randbytes(16)
            case "float64":
                return choose((0.0, -1.5, float("inf"), float("nan")))
        low, high = bounds(kind)
        numbers = [one for one in POOLS.get(name, ()) if isinstance(one, int) and low <= one <= high]
        return choose(numbers) if numbers and self.random.random() < 0.75 else self._integer(kind)

    def _integer(self, kind: str) -> int:
        low, high = bounds(kind)
        bits = (BITS | UNSIGNED_BITS)[kind]
        return self.random.choice((low, high, 0, 1, max(low, -1), 2, self.random.getrandbits(bits - 1)))

    def records(self) -> bytes:
        """Return a batch, mostly with a right checksum: good or wrong records, damaged before or after sealing."""
        if self.random.random() < 0.1:
            return message_set(self.random.choice((1, 3)), self.random.choice((0, 1)))
        payload, fields = self.random.choice(KINDS)
        codec = self.random.choice((Compression.NONE, Compression.NONE, *Compression))
        payload = payload * self.random.choice((1, 1, 1, 50))
        if self.random.random() < 0.4:
            payload = self.random.choice(DAMAGES)(self.random, payload)
        payload = compress(codec, payload)
        if self.random.random() < 0.2:
            payload = self.random.choice(DAMAGES)(self.random, payload)
        batch = sealed(payload, **{**fields, "codec": codec})
        return batch if self.random.random() < 0.9 else self.random.choice(DAMAGES)(self.random, batch)


KINDS = tuple(contents().values()) + (contents()["good"],) * 20


def _flip(source: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 8)) if data else 0):
        changed[source.randrange(len(data))] = source.choice((0, 1, 2, 0x7F, 0x80, 0xFF, source.randrange(256)))
    return bytes(changed)


def _cut(source: random.Random, data: bytes) -> bytes:
    return data[: source.randrange(len(data) + 1)]


def _extend(source: random.Random, data: bytes) -> bytes:
    return data + source.choice((bytes(1), b"\xff" * 9, source.randbytes(30), bytes(2000), data))


def _overwrite(source: random.Random, data: bytes) -> bytes:
    """Put a hostile size, count or varint somewhere."""
    position, hostile = source.randrange(len(data) + 1), source.choice(HOSTILE)
    return data[:position] + hostile + data[position + len(hostile) :]


def _insert(source: random.Random, data: bytes) -> bytes:
    position = source.randrange(len(data) + 1)
    return data[:position] + source.choice((*HOSTILE, MALFORMED)) + data[position:]


def _move(source: random.Random, data: bytes) -> bytes:
    """Repeat or remove a part."""
    start, end = sorted((source.randrange(len(data) + 1), source.randrange(len(data) + 1)))
    return data[:start] + data[start:end] * source.choice((0, 2, 5)) + data[end:]


def _malform(source: random.Random, data: bytes) -> bytes:
    """Replace letters by bytes that are not UTF-8."""
    changed = bytearray(data)
    for index, byte in enumerate(data[8:], 8):
        if chr(byte).isalpha() and byte < 0x80 and source.random() < 0.3:
            changed[index] = source.choice(MALFORMED)
    return bytes(changed)


def _other_api(source: random.Random, data: bytes) -> bytes:
    """Change API key or version, and keep the body."""
    if len(data) < 4:
        return data
    key, version = struct.unpack_from(">hh", data)
    key, version = source.choice(
        (
            (key, version + 1),
            (key, version - 1),
            (source.randrange(95), version),
            (key, 32767),
            (-1, version),
            (32767, 0),
        )
    )
    return struct.pack(">hh", key, max(-32768, min(32767, version))) + data[4:]


DAMAGES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _flip,
    _flip,
    _flip,
    _cut,
    _extend,
    _overwrite,
    _overwrite,
    _insert,
    _move,
    _malform,
    _other_api,
)

MARKER = request_frame(ApiVersionsRequest(), 0, correlation_id=0x6D61726B, client_id="")
"""A request behind the frames of a connection."""
