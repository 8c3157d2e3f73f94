"""Logs of the offsets topic made from a seed: all message format versions, compressions and record types."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from kproto.records.batch_header import APPEND_TIME, TRANSACTIONAL
from kproto.records.compression import Compression
from kproto.records.control import ControlType, build_end_marker
from kproto.records.coordinator import encode_key, encode_value
from kproto.records.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kproto.records.message_set import build_message_set
from kproto.records.offset_records import LegacyOffsetCommitKey, OffsetCommitKey, OffsetCommitValue
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch

NOW = 1_767_225_600_000
TEXTS = ("", "g", "orders-consumer", "größe", "グループ", "x" * 300)
LONG_TEXT = "y" * 9000
"""Makes a record whose size takes three bytes."""
UNKNOWN_TYPES = (4, 6, 7, 8, 9, 16, 12, 21, 23, 99, -1)
KINDS = ("plain", "plain", "compressed", "transaction", "append time", "message set", "wrapper")
PRODUCERS = (7, 2**40)


@dataclass
class Made:
    """A log, and its counts that a test needs without decoding it."""

    data: bytes = b""
    starts: list[int] = field(default_factory=list)
    records: int = 0
    kinds: set[str] = field(default_factory=set)
    next_offset: int = 0


def make_log(seed: int, batches: int, records_max: int, kinds: tuple[str, ...] = KINDS) -> Made:
    """Return a log of ``batches`` batches of 1 to ``records_max`` records each."""
    chance = random.Random(seed)  # noqa: S311
    made = Made(next_offset=chance.choice((0, 5, 2**31, 2**50)))
    makers: dict[str, Callable[[random.Random, list[Record]], bytes]] = {
        "plain": lambda chance, records: build_record_batch(records, partition_leader_epoch=3),
        "compressed": _compressed,
        "transaction": _transaction,
        "append time": lambda chance, records: build_record_batch(records, flags=APPEND_TIME, max_timestamp=NOW + 9),
        "message set": lambda chance, records: build_message_set(_of_magic(records, 1), magic=1),
        "wrapper": _wrapper,
    }
    for _ in range(batches):
        kind = chance.choice(kinds)
        count = chance.randint(1, chance.choice((1, 3, records_max)))
        records = [_record(chance, made, gap=kind != "wrapper") for _ in range(count)]
        made.records += count
        made.kinds.add(kind)
        made.starts.append(len(made.data))
        made.data += makers[kind](chance, records)
        if kind == "transaction" and chance.random() < 0.7:
            _end_transaction(chance, made)
    return made


def _record(chance: random.Random, made: Made, *, gap: bool) -> Record:
    made.next_offset += chance.choice((0, 0, 0, 1, 200)) if gap else 0
    offset = made.next_offset
    made.next_offset += 1
    key, value = _content(chance)
    return Record(key, value, (), NOW + chance.choice((0, 0, -70_000, 10**9)), offset)


def _content(chance: random.Random) -> tuple[bytes, bytes | None]:
    roll = chance.random()
    if roll < 0.06:
        return chance.choice(UNKNOWN_TYPES).to_bytes(2, "big", signed=True) + b"any", chance.choice((None, b"thing"))
    if roll < 0.12:
        return _group(chance)
    group, topic = chance.choice(TEXTS), chance.choice(TEXTS)
    key_class = chance.choice((OffsetCommitKey, OffsetCommitKey, LegacyOffsetCommitKey))
    key = encode_key(key_class(group=group, topic=topic, partition=chance.choice((0, 1, 2**31 - 1))))
    if chance.random() < 0.15:
        return key, None
    value = OffsetCommitValue(
        offset=chance.choice((0, 42, 2**62)),
        leader_epoch=chance.choice((-1, 0, 9)),
        metadata=LONG_TEXT if chance.random() < 0.02 else chance.choice(TEXTS),
        commit_timestamp=chance.choice((NOW, -1, 2**62, -(2**62))),
        expire_timestamp=chance.choice((-1, NOW + 1)),
        topic_id=chance.choice((bytes(16), bytes(range(16)))),
    )
    return key, encode_value(value, chance.randrange(5))


def _group(chance: random.Random) -> tuple[bytes, bytes | None]:
    key = encode_key(GroupMetadataKey(group=chance.choice(TEXTS)))
    if chance.random() < 0.3:
        return key, None
    member = MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/127.0.0.1",
        session_timeout=10_000,
        subscription=chance.choice((bytes.fromhex("0000 00000001 0001 74 ffffffff"), b"no")),
        assignment=b"",
    )
    value = GroupMetadataValue(
        protocol_type=chance.choice(("consumer", "", "connect")),
        generation=chance.randrange(9),
        protocol=chance.choice(("range", None)),
        leader=None,
        current_state_timestamp=NOW,
        members=(member,) * chance.randrange(3),
    )
    return key, encode_value(value, chance.randrange(5))


def _compressed(chance: random.Random, records: list[Record]) -> bytes:
    codec = chance.choice((Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD))
    return build_record_batch(records, compression=codec)


def _transaction(chance: random.Random, records: list[Record]) -> bytes:
    return build_record_batch(records, producer_id=chance.choice(PRODUCERS), producer_epoch=0, flags=TRANSACTIONAL)


def _of_magic(records: list[Record], magic: int) -> list[Record]:
    return [record._replace(timestamp=-1) for record in records] if magic == 0 else records


def _wrapper(chance: random.Random, records: list[Record]) -> bytes:
    magic = chance.randrange(2)
    codec = chance.choice((Compression.GZIP, Compression.SNAPPY, Compression.LZ4))
    return build_message_set(_of_magic(records, magic), magic=magic, compression=codec)


def _end_transaction(chance: random.Random, made: Made) -> None:
    made.starts.append(len(made.data))
    made.data += build_end_marker(
        chance.choice((ControlType.COMMIT, ControlType.ABORT)),
        offset=made.next_offset,
        timestamp=NOW,
        producer_id=chance.choice(PRODUCERS),
        producer_epoch=0,
        coordinator_epoch=0,
        partition_leader_epoch=0,
    )
    made.next_offset += 1
    made.records += 1
