"""What compaction keeps of any log, against a plain statement of LF-70 to LF-72; and the quick way against the other.

A log is made of commits, tombstones, transactions that are committed, aborted or open, and message sets of old brokers,
compressed or not, with short and long keys.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records.batches import read_batches
from kproto.records.compression import Compression
from kproto.records.control import ControlType, build_end_marker
from kproto.records.message_set import build_message_set
from kproto.records.record import Record, RecordHeader
from kproto.records.record_batch import APPEND_TIME, DELETE_HORIZON, TRANSACTIONAL, RecordBatch, build_record_batch
from kproto_server.storage.compaction import Compaction, CompactionSettings
from kproto_server.storage.disk import read_all
from kproto_server.storage.fast_retained_records import FastRetainedRecords
from kproto_server.storage.log_dir import LogDir
from kproto_server.storage.retained_records import RetainedRecords
from tests.storage.simulated_disk import SimulatedDisk

NOW_MS = 1_700_000_000_000
RETENTION_MS = 1000
KEYS = [b"a", b"b" * 30, b"c" * 64, b"d" * 65, b"d" * 66, b"e" * 300]


class Made(NamedTuple):
    """A batch, and what it is."""

    octets: bytes
    kind: str
    records: list[Record]
    producer_id: int = -1

    @property
    def base_offset(self) -> int:
        return self.records[0].offset


def make_log(chance: random.Random, count: int) -> list[Made]:
    """Some batches with rising offsets."""
    made: list[Made] = []
    offset = chance.choice([0, 100])
    for _ in range(count):
        kind = chance.choice(["plain"] * 6 + ["transactional"] * 3 + ["commit", "abort"] + ["message set"])
        producer_id = chance.randrange(3) if kind in ("transactional", "commit", "abort") else -1
        if kind in ("commit", "abort"):
            result = ControlType.COMMIT if kind == "commit" else ControlType.ABORT
            octets = build_end_marker(
                result,
                offset=offset,
                timestamp=NOW_MS + offset,
                producer_id=producer_id,
                producer_epoch=1,
                coordinator_epoch=2,
                partition_leader_epoch=0,
            )
            made.append(Made(octets, kind, [Record(b"", b"", offset=offset)], producer_id))
            offset += 1
            continue
        records = list(some_records(chance, offset, kind))
        compression = chance.choice([Compression.NONE, Compression.NONE, Compression.GZIP, Compression.LZ4])
        if kind == "message set":
            octets = build_message_set(records, magic=1, compression=compression)
            if compression is Compression.NONE:  # then each is one by itself
                made += [Made(build_message_set([one], magic=1), kind, [one]) for one in records]
            else:
                made.append(Made(octets, kind, records))
        else:
            has_append_time = chance.random() < 0.2
            octets = build_record_batch(
                records,
                base_offset=offset,
                last_offset=records[-1].offset + chance.choice([0, 0, 2]),
                max_timestamp=NOW_MS + 999 if has_append_time else None,
                partition_leader_epoch=3,
                producer_id=producer_id,
                producer_epoch=1 if producer_id >= 0 else -1,
                base_sequence=0,
                compression=compression,
                flags=(APPEND_TIME if has_append_time else 0) | (TRANSACTIONAL if producer_id >= 0 else 0),
            )
            if has_append_time:
                records = [record._replace(timestamp=NOW_MS + 999) for record in records]
            made.append(Made(octets, kind, records, producer_id))
        offset = records[-1].offset + 3
    return made


def some_records(chance: random.Random, offset: int, kind: str) -> Iterator[Record]:
    for number in range(chance.choice([1, 1, 1, 3, 70])):
        key = chance.choice(KEYS) if chance.random() < 0.97 else None
        value = None if chance.random() < 0.3 else chance.randbytes(chance.choice([0, 5, 80]))
        headers = (RecordHeader("h", b"x"),) if kind == "plain" and chance.random() < 0.1 else ()
        yield Record(key, value, headers, NOW_MS + chance.choice([0, number, -5000]), offset + number)


class Expected(NamedTuple):
    end_offset: int | None
    """Where a transaction begins that has not ended; what is there or behind it is not asked."""
    kept: dict[int, list[Record]]
    """By base offset; batches of which nothing stays are not there."""


def expected_of(log: list[Made]) -> Expected:
    """Say it as plainly as it can be said."""
    result: dict[int, str] = {}
    waiting: dict[int, list[Made]] = {}
    for made in log:
        if made.kind == "transactional":
            waiting.setdefault(made.producer_id, []).append(made)
        elif made.kind in ("commit", "abort"):
            result |= {one.base_offset: made.kind for one in waiting.pop(made.producer_id, [])}
    end_offset = min((made.base_offset for batches in waiting.values() for made in batches), default=None)
    newest: dict[bytes, int] = {}
    for made in log:
        if made.kind in ("plain", "message set") or result.get(made.base_offset) == "commit":
            for record in made.records:
                if record.key is not None and (record.value is not None or made.kind != "transactional"):
                    newest[record.key] = max(record.offset, newest.get(record.key, 0))
    kept: dict[int, list[Record]] = {}
    for made in log:
        stay = [r for r in made.records if r.key is None or newest.get(r.key, r.offset) <= r.offset]
        if made.kind == "message set" and stay:
            stay = made.records
        if result.get(made.base_offset) != "abort" and (stay or made.kind in ("commit", "abort")):
            kept[made.base_offset] = stay
    return Expected(end_offset, kept)


def run(survivors: RetainedRecords, log: list[bytes]) -> list[bytes | None]:
    """Both passes over a log; what becomes of each batch that may be touched."""
    for octets in log:
        for _ in survivors.note(octets):
            """A step."""
    found = []
    for octets in log:
        steps = survivors.what_stays(octets)
        while True:
            try:
                next(steps)
            except StopIteration as over:
                found.append(over.value)
                break
    return found


@given(st.integers(0, 2**32), st.integers(1, 25))
def test_what_stays(seed: int, count: int) -> None:
    log = make_log(random.Random(seed), count)  # noqa: S311 - test data
    expected = expected_of(log)
    survivors = RetainedRecords(NOW_MS, RETENTION_MS)
    found = run(survivors, [made.octets for made in log])
    assert survivors.first_open == expected.end_offset
    for made, becomes in zip(log, found, strict=True):
        if expected.end_offset is not None and made.base_offset >= expected.end_offset:
            break
        stays = made.octets if becomes is None else becomes
        if made.base_offset not in expected.kept:
            assert stays == b""
            continue
        (batch,) = read_batches(stays)
        if made.kind in ("commit", "abort"):
            assert batch.is_control
            continue
        assert batch.records() == expected.kept[made.base_offset]
        if isinstance(batch, RecordBatch):
            check_header(made, batch)


def check_header(made: Made, batch: RecordBatch) -> None:
    """LF-72, and bit 6 where there are tombstones."""
    (before,) = read_batches(made.octets)
    assert isinstance(before, RecordBatch)
    has_tombstones = any(record.value is None for record in batch.records())
    assert batch.delete_horizon_ms == (NOW_MS + RETENTION_MS if has_tombstones else None)
    same = ("base_offset", "last_offset_delta", "partition_leader_epoch", "producer_id", "producer_epoch")
    for name in (*same, "base_sequence"):
        assert getattr(batch.header, name) == getattr(before.header, name)
    assert batch.header.attributes & ~DELETE_HORIZON == before.header.attributes
    assert batch.header.max_timestamp == max(record.timestamp for record in batch.records())


@given(st.integers(0, 2**32), st.integers(1, 25))
def test_a_second_time_after_a_while(seed: int, count: int) -> None:
    """Tombstones go, and markers without records; all else stays as it is. Before that time nothing does anything."""
    log = make_log(random.Random(seed), count)  # noqa: S311 - test data
    if expected_of(log).end_offset is not None:
        return
    first = RetainedRecords(NOW_MS, RETENTION_MS)
    once = [
        made.octets if stays is None else stays for made, stays in zip(log, run(first, octets_of(log)), strict=True)
    ]
    once = [octets for octets in once if octets]
    assert run(RetainedRecords(NOW_MS + RETENTION_MS - 1, RETENTION_MS), once) == [None] * len(once)
    twice = run(RetainedRecords(NOW_MS + RETENTION_MS, RETENTION_MS), once)
    left: dict[int, int] = {}
    for octets, stays in zip(once, twice, strict=True):
        (batch,) = read_batches(octets)
        after = list(read_batches(octets if stays is None else stays))
        if not isinstance(batch, RecordBatch):
            assert stays is None
        elif batch.is_control:
            had_records = left.pop(batch.header.producer_id, 0)
            assert bool(after) == (had_records > 0 or batch.delete_horizon_ms is None)
        else:
            values = [record for record in batch.records() if record.value is not None]
            assert [record for one in after for record in one.records()] == values
            if batch.is_transactional:
                left[batch.header.producer_id] = left.get(batch.header.producer_id, 0) + len(values)


def octets_of(log: list[Made]) -> list[bytes]:
    return [made.octets for made in log]


def directory_of(log: list[Made], chance: random.Random, first_dirty: int) -> LogDir:
    """A data directory whose log has these batches in several segments, and an empty newest one."""
    disk = SimulatedDisk()
    disk.make_directory("t-0")
    base, content = log[0].base_offset, b""
    for made in log:
        if content and chance.random() < 0.3:
            write_segment(disk, base, content)
            base, content = made.base_offset, b""
        content += made.octets
    write_segment(disk, base, content)
    write_segment(disk, log[-1].records[-1].offset + 100, b"")
    log_dir = LogDir(disk, durability="os", segment_bytes=4000)
    log_dir.logs["t", 0].first_dirty_offset = first_dirty
    return log_dir


def write_segment(disk: SimulatedDisk, base_offset: int, content: bytes) -> None:
    file = disk.open(f"t-0/{base_offset:020}.log", create=True)
    if content:
        file.write_at(0, content)
    file.close()


def compacted(log_dir: LogDir, *, keys_max: int = 10_000) -> dict[str, bytes]:
    """Compact a log; return its segments."""
    log = log_dir.logs["t", 0]
    one = Compaction(
        log_dir.disk, log, log_dir.writer, CompactionSettings(RETENTION_MS, 0.5), NOW_MS, keys_max=keys_max
    )
    for work in one.run():
        if work is not None:
            work()
    assert one.result is not None
    log.first_dirty_offset = one.result.first_dirty_offset
    names = [name for name in log_dir.disk.names("t-0") if name.endswith(".log")]
    assert [segment.path for segment in log.segments()] == [f"t-0/{name}" for name in names]
    assert [segment.size for segment in log.segments()] == [log_dir.disk.size_of(f"t-0/{name}") for name in names]
    return {name: read_all(log_dir.disk, f"t-0/{name}") for name in names}


@given(st.integers(0, 2**32), st.integers(1, 25), st.booleans())
def test_the_quick_way_comes_to_the_same(seed: int, count: int, all_dirty: bool) -> None:
    chance = random.Random(seed)  # noqa: S311 - test data
    log = make_log(chance, count)
    first_dirty = 0 if all_dirty else chance.choice(log).base_offset
    seed = chance.randrange(2**32)
    quickly = compacted(directory_of(log, random.Random(seed), first_dirty))  # noqa: S311 - test data
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FastRetainedRecords, "note", lambda way, held, start, until, first: start)
        patch.setattr(FastRetainedRecords, "keep", lambda way, held, start, until, end: (start, []))
        assert compacted(directory_of(log, random.Random(seed), first_dirty)) == quickly  # noqa: S311 - test data


def test_more_keys_than_memory_takes() -> None:
    """A log is compacted part by part, and at last as a whole."""
    made = [
        Made(
            build_record_batch([Record(b"key %d" % (number % 50), b"%d" % number, offset=number)]),
            "plain",
            [Record(b"key %d" % (number % 50), b"%d" % number, offset=number)],
        )
        for number in range(300)
    ]
    log_dir = directory_of(made, random.Random(1), 0)  # noqa: S311 - test data
    ends: list[int] = []
    while not ends or ends[-1] < 300:
        compacted(log_dir, keys_max=20)
        ends.append(log_dir.logs["t", 0].first_dirty_offset)
        assert len(ends) < 100
    assert ends == sorted(set(ends))
    assert len(ends) > 5
    left = [record for content in compacted(log_dir).values() for b in read_batches(content) for record in b.records()]
    assert [record.value for record in left] == [b"%d" % number for number in range(250, 300)]


@pytest.mark.parametrize("count", [1, 64, 65, 200, 1000, 1001])
def test_commits_of_many_partitions_come_to_the_same(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offset deltas take two octets from the 65th record on; the last commit stays, whichever way is gone."""

    def commit(number: int, base: int) -> Made:
        records = [Record(b"g1 t1 %d" % key, b"%d" % number, offset=base + key) for key in range(count)]
        return Made(build_record_batch(records), "plain", records)

    log = [commit(number, number * count) for number in range(5)]
    quickly = compacted(directory_of(log, random.Random(1), 0))  # noqa: S311 - test data
    met = Counter[str]()
    note = RetainedRecords.note
    monkeypatch.setattr(RetainedRecords, "note", lambda self, batch: (met.update("b"), note(self, batch))[1])
    assert compacted(directory_of(log, random.Random(1), 0)) == quickly  # noqa: S311 - test data
    assert met.total() == (0 if count <= 1000 else len(log))
    (left,) = [batch for content in quickly.values() for batch in read_batches(content)]
    assert [(record.key, record.value) for record in left.records()] == [
        (record.key, record.value) for record in log[-1].records
    ]
