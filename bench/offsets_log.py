"""Make a log of `__consumer_offsets` of any size from a seed, as a busy cluster writes it; the bytes are reproducible.

Groups commit with different frequencies (Zipf); each commit has all partitions of the group's topic in one batch. Some
values have an expire timestamp (version 1), and some records are tombstones. Offsets, timestamps and checksums are
valid: `kproto log verify` finds no damage.
"""

from __future__ import annotations

import random
from bisect import bisect
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from struct import Struct

from kproto.records.batches import read_batches
from kproto.records.checksum import crc32c
from kproto.records.partitioning import partition_for
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto.records.segment_files import segment_name
from kproto.records.varint import varint

OFFSETS_PARTITIONS = 50
START_MS = 1_767_225_600_000
"""2026-01-01."""
ZIPF = 0.9
PARTITIONS_MAX = 60
"""The most partitions of a group's topic."""
EXPIRING_EACH, TOMBSTONE_EACH, TOMBSTONE_PHASE = 17, 100, 50
"""One of this many commits of the log has values of version 1, and one is tombstones."""
RETENTION_MS = 7 * 24 * 3600 * 1000
HOURS = 240

PREFIX = Struct(">qi")
CHECKED = Struct(">hiqqqhii")
VALUE_V3 = Struct(">hqihq")
VALUE_V1 = Struct(">hqhqq")


@dataclass
class _Group:
    name: str
    log: _Log
    keys: list[bytes]
    """For each partition, the bytes of the record from the key's size to the key's end."""
    offsets: list[int]


@dataclass
class _Log:
    """A partition of the offsets topic."""

    directory: Path
    segment_size: int
    next_offset: int = 0
    parts: list[bytes] = field(default_factory=list)
    size: int = 0
    base_offset: int = 0

    def append(self, records: list[bytes], timestamp_ms: int) -> None:
        if self.size >= self.segment_size:
            self.close()
        count = len(records)
        checked = CHECKED.pack(0, count - 1, timestamp_ms, timestamp_ms, -1, -1, 0, count) + b"".join(records)
        parts = (
            PREFIX.pack(self.next_offset, len(checked) + 9),
            b"\0\0\0\0\2" + crc32c(checked).to_bytes(4, "big"),
            checked,
        )
        self.parts += parts
        self.size += sum(map(len, parts))
        self.next_offset += count

    def close(self) -> None:
        """Write the segment to disk."""
        (self.directory / segment_name(self.base_offset)).write_bytes(b"".join(self.parts))
        self.parts, self.size, self.base_offset = [], 0, self.next_offset


def make_log(
    log_dir: Path, commits: int, *, groups: int = 1500, segment_size: int = 16 << 20, seed: int = 1, hours: int = HOURS
) -> int:
    """Write a log.dir with about ``commits`` records of so many hours; return their number.

    All partitions of the offsets topic exist; those without a group are empty.
    """
    source = random.Random(seed)  # noqa: S311
    logs = [_Log(log_dir / f"__consumer_offsets-{number}", segment_size) for number in range(OFFSETS_PARTITIONS)]
    for log in logs:
        log.directory.mkdir(parents=True)
    made = [_group(number, source, logs) for number in range(groups)]
    weights = list(accumulate(1 / (rank + 1) ** ZIPF for rank in range(groups)))
    written = turn = 0
    while written < commits:
        group = made[bisect(weights, source.random() * weights[-1])]
        timestamp_ms = START_MS + hours * 3600 * 1000 * written // commits
        group.log.append(_records(group, turn, timestamp_ms), timestamp_ms)
        written += len(group.keys)
        turn += 1
    for log in logs:
        log.close()
    return written


def append_commits(log_dir: Path, partitions: int, commits: int = 10) -> None:
    """Append a batch of commits of one group to each of the first partitions."""
    for directory in sorted(log_dir.iterdir())[:partitions]:
        newest = max(directory.glob("*.log"))
        next_offset = max((batch.last_offset for batch in read_batches(newest.read_bytes())), default=-1) + 1
        key = b"\0\1\0\5added\0\5topic"
        keys = [key + partition.to_bytes(4, "big") for partition in range(commits)]
        values = [VALUE_V3.pack(3, next_offset + index, 5, 0, START_MS) for index in range(commits)]
        pairs = enumerate(zip(keys, values, strict=True))
        records = [Record(key, value, (), START_MS, next_offset + index) for index, (key, value) in pairs]
        with newest.open("ab") as file:
            file.write(build_record_batch(records, partition_leader_epoch=0))


def _group(number: int, source: random.Random, logs: list[_Log]) -> _Group:
    name = f"{source.choice(('billing', 'search-indexer', 'audit', 'etl'))}-{number:05d}"
    topic = f"{source.choice(('orders', 'clickstream.events', 'payments.settled.v2'))}-{number % 97}"
    count = min(PARTITIONS_MAX, 1 + int(source.expovariate(1 / 12)))
    keys = []
    for partition in range(count):
        texts = b"".join(len(text).to_bytes(2, "big") + text.encode() for text in (name, topic))
        key = b"\0\1" + texts + partition.to_bytes(4, "big")
        keys.append(varint(len(key)) + key)
    return _Group(name, logs[partition_for(name, OFFSETS_PARTITIONS)], keys, [source.randrange(10**6)] * count)


def _records(group: _Group, turn: int, timestamp_ms: int) -> list[bytes]:
    """Return the records of one commit."""
    found = []
    for index, key in enumerate(group.keys):
        group.offsets[index] += 7 * (index + turn) % 100
        body = b"\0\0" + varint(index) + key + _value(group.offsets[index], turn, timestamp_ms) + b"\0"
        found.append(varint(len(body)) + body)
    return found


def _value(offset: int, turn: int, timestamp_ms: int) -> bytes:
    if turn % TOMBSTONE_EACH == TOMBSTONE_PHASE:
        return b"\1"
    if turn % EXPIRING_EACH == 0:
        return _sized(VALUE_V1.pack(1, offset, 0, timestamp_ms, timestamp_ms + RETENTION_MS))
    return _sized(VALUE_V3.pack(3, offset, 5, 0, timestamp_ms))


def _sized(value: bytes) -> bytes:
    return varint(len(value)) + value
