"""The records that compaction retains of any log, against a direct statement of LF-70 to LF-72; and the fast path
against the reference implementation.

The logs have commits, tombstones, committed, aborted and open transactions, and message sets of old brokers, compressed
or not, with short and long keys.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.errors import EncodeError
from kproto.jvm.arithmetic import wrapped
from kproto.records.batch_header import APPEND_TIME, DELETE_HORIZON, TRANSACTIONAL
from kproto.records.batches import read_batches
from kproto.records.compression import Compression
from kproto.records.control import ControlType, build_end_marker
from kproto.records.message_set import build_message_set
from kproto.records.record import Record, RecordHeader
from kproto.records.record_batch import RecordBatch, build_record_batch
from kproto.records.segment_files import segment_name
from kproto_server.storage import retained_records
from kproto_server.storage.compaction import Compaction
from kproto_server.storage.disk import read_all
from kproto_server.storage.fast_retained_records import FastRetainedRecords
from kproto_server.storage.log_dir import LogDir
from kproto_server.storage.retained_records import RetainedRecords
from kproto_server.testing.simulated_disk import SimulatedDisk
from tests.partition_log.conversation_contents import contents, sealed

NOW_MS = 1_700_000_000_000
RETENTION_MS = 1000
KEYS = [b"a", b"b" * 30, b"c" * 64, b"d" * 65, b"d" * 66, b"e" * 300]


class Built(NamedTuple):
    """A batch with its kind and records."""

    data: bytes
    kind: str
    records: list[Record]
    producer_id: int = -1

    @property
    def base_offset(self) -> int:
        return self.records[0].offset


def make_log(chance: random.Random, count: int) -> list[Built]:
    """Return batches with rising offsets."""
    log: list[Built] = []
    offset = chance.choice([0, 100])
    for _ in range(count):
        kind = chance.choice(["plain"] * 6 + ["transactional"] * 3 + ["commit", "abort"] + ["message set"])
        producer_id = chance.randrange(3) if kind in ("transactional", "commit", "abort") else -1
        if kind in ("commit", "abort"):
            result = ControlType.COMMIT if kind == "commit" else ControlType.ABORT
            data = build_end_marker(
                result,
                offset=offset,
                timestamp=NOW_MS + offset,
                producer_id=producer_id,
                producer_epoch=1,
                coordinator_epoch=2,
                partition_leader_epoch=0,
            )
            log.append(Built(data, kind, [Record(b"", b"", offset=offset)], producer_id))
            offset += 1
            continue
        records = list(some_records(chance, offset, kind))
        compression = chance.choice([Compression.NONE, Compression.NONE, Compression.GZIP, Compression.LZ4])
        if kind == "message set":
            data = build_message_set(records, magic=1, compression=compression)
            if compression is Compression.NONE:  # each message is a batch of its own
                log += [Built(build_message_set([one], magic=1), kind, [one]) for one in records]
            else:
                log.append(Built(data, kind, records))
        else:
            has_append_time = chance.random() < 0.2
            data = build_record_batch(
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
            log.append(Built(data, kind, records, producer_id))
        offset = records[-1].offset + 3
    return log


def some_records(chance: random.Random, offset: int, kind: str) -> Iterator[Record]:
    for number in range(chance.choice([1, 1, 1, 3, 70])):
        key = chance.choice(KEYS) if chance.random() < 0.97 else None
        value = None if chance.random() < 0.3 else chance.randbytes(chance.choice([0, 5, 80]))
        headers = (RecordHeader("h", b"x"),) if kind == "plain" and chance.random() < 0.1 else ()
        yield Record(key, value, headers, NOW_MS + chance.choice([0, number, -5000]), offset + number)


class Expected(NamedTuple):
    end_offset: int | None
    """The first offset of an open transaction: compaction ends there."""
    retained: dict[int, list[Record]]
    """The retained records of each batch by its base offset, without batches that go."""


def expected_of(log: list[Built]) -> Expected:
    """Return the retained records, computed in the most direct way."""
    result: dict[int, str] = {}
    open_batches: dict[int, list[Built]] = {}
    for built in log:
        if built.kind == "transactional":
            open_batches.setdefault(built.producer_id, []).append(built)
        elif built.kind in ("commit", "abort"):
            result |= {one.base_offset: built.kind for one in open_batches.pop(built.producer_id, [])}
    end_offset = min((built.base_offset for batches in open_batches.values() for built in batches), default=None)
    newest: dict[bytes, int] = {}
    for built in log:
        if built.kind in ("plain", "message set") or result.get(built.base_offset) == "commit":
            for record in built.records:
                if record.key is not None and (record.value is not None or built.kind != "transactional"):
                    newest[record.key] = max(record.offset, newest.get(record.key, 0))
    retained: dict[int, list[Record]] = {}
    for built in log:
        records = [r for r in built.records if r.key is None or newest.get(r.key, r.offset) <= r.offset]
        if built.kind == "message set" and records:
            records = built.records
        if result.get(built.base_offset) != "abort" and (records or built.kind in ("commit", "abort")):
            retained[built.base_offset] = records
    return Expected(end_offset, retained)


def run(passes: RetainedRecords, log: list[bytes]) -> list[bytes | None]:
    """Run both passes over a log; return the result for each batch."""
    for data in log:
        for _ in passes.add_to_offset_map(data):
            """One step."""
    found = []
    for data in log:
        steps = passes.filter_batch(data)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                found.append(end.value)
                break
    return found


@given(st.integers(0, 2**32), st.integers(1, 25))
def test_the_retained_records_are_the_expected_ones(seed: int, count: int) -> None:
    log = make_log(random.Random(seed), count)  # noqa: S311 - test data
    expected = expected_of(log)
    passes = RetainedRecords(NOW_MS, RETENTION_MS)
    found = run(passes, [built.data for built in log])
    assert passes.first_unstable_offset == expected.end_offset
    for built, result in zip(log, found, strict=True):
        if expected.end_offset is not None and built.base_offset >= expected.end_offset:
            break
        remaining = built.data if result is None else result
        if built.base_offset not in expected.retained:
            assert remaining == b""
            continue
        (batch,) = read_batches(remaining)
        if built.kind in ("commit", "abort"):
            assert batch.is_control
            continue
        assert batch.records() == expected.retained[built.base_offset]
        if isinstance(batch, RecordBatch):
            check_header(built, batch)


def check_header(built: Built, batch: RecordBatch) -> None:
    """Check LF-72, and the delete horizon of a batch with tombstones."""
    (before,) = read_batches(built.data)
    assert isinstance(before, RecordBatch)
    has_tombstones = any(record.value is None for record in batch.records())
    assert batch.delete_horizon_ms == (NOW_MS + RETENTION_MS if has_tombstones else None)
    same = ("base_offset", "last_offset_delta", "partition_leader_epoch", "producer_id", "producer_epoch")
    for name in (*same, "base_sequence"):
        assert getattr(batch.header, name) == getattr(before.header, name)
    assert batch.header.attributes & ~DELETE_HORIZON == before.header.attributes
    assert batch.header.max_timestamp == max(record.timestamp for record in batch.records())


@given(st.integers(0, 2**32), st.integers(1, 25))
def test_a_second_compaction_after_the_delete_horizon(seed: int, count: int) -> None:
    """It drops tombstones, and markers without records; one before the delete horizon drops nothing."""
    log = make_log(random.Random(seed), count)  # noqa: S311 - test data
    if expected_of(log).end_offset is not None:
        return
    first = RetainedRecords(NOW_MS, RETENTION_MS)
    once = [
        built.data if result is None else result for built, result in zip(log, run(first, data_of(log)), strict=True)
    ]
    once = [data for data in once if data]
    assert run(RetainedRecords(NOW_MS + RETENTION_MS - 1, RETENTION_MS), once) == [None] * len(once)
    twice = run(RetainedRecords(NOW_MS + RETENTION_MS, RETENTION_MS), once)
    left: dict[int, int] = {}
    for data, result in zip(once, twice, strict=True):
        (batch,) = read_batches(data)
        after = list(read_batches(data if result is None else result))
        if not isinstance(batch, RecordBatch):
            assert result is None
        elif batch.is_control:
            had_records = left.pop(batch.header.producer_id, 0)
            assert bool(after) == (had_records > 0 or batch.delete_horizon_ms is None)
        else:
            values = [record for record in batch.records() if record.value is not None]
            assert [record for one in after for record in one.records()] == values
            if batch.is_transactional:
                left[batch.header.producer_id] = left.get(batch.header.producer_id, 0) + len(values)


LONG_MAX = 2**63 - 1


@pytest.mark.parametrize("retention_ms", [0, LONG_MAX])
@pytest.mark.parametrize("base_timestamp", [-(2**63), -1, 0, LONG_MAX])
@pytest.mark.parametrize("timestamp", [-(2**63), 0, LONG_MAX])
def test_sums_of_extreme_times_wrap_around(retention_ms: int, base_timestamp: int, timestamp: int) -> None:
    """As in Java. Such a batch ended the cleaner."""
    records = [Record(key, None, timestamp=timestamp, offset=offset) for offset, key in enumerate((b"a", b"a", b"b"))]
    encoded = build_record_batch(records, base_timestamp=base_timestamp)
    (rebuilt,) = run(RetainedRecords(NOW_MS, retention_ms), [encoded])
    assert rebuilt
    (batch,) = read_batches(rebuilt)
    assert isinstance(batch, RecordBatch)
    assert batch.delete_horizon_ms == wrapped(NOW_MS + retention_ms)
    assert [(record.offset, record.timestamp) for record in batch.records()] == [(1, timestamp), (2, timestamp)]
    assert batch.header.max_timestamp == timestamp


def test_a_batch_that_cannot_be_built_is_retained_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(header: object, payload: bytes) -> bytes:
        raise EncodeError("batch_length", "too large")

    monkeypatch.setattr(retained_records, "seal", fail)
    encoded = build_record_batch([Record(b"a", b"", offset=0), Record(b"a", b"", offset=1)])
    assert run(RetainedRecords(NOW_MS, RETENTION_MS), [encoded]) == [None]


def data_of(log: list[Built]) -> list[bytes]:
    return [built.data for built in log]


def directory_of(log: list[Built], chance: random.Random, first_dirty: int) -> LogDir:
    """Return a data directory whose log has these batches in several segments, and an empty active one."""
    disk = SimulatedDisk()
    disk.make_directory("t-0")
    base, content = log[0].base_offset, b""
    for built in log:
        if content and chance.random() < 0.3:
            write_segment(disk, base, content)
            base, content = built.base_offset, b""
        content += built.data
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
    """Compact the log; return the content of its segments by name."""
    log = log_dir.logs["t", 0]
    one = Compaction(log_dir.disk, log, log_dir.writer, RETENTION_MS, NOW_MS, keys_max=keys_max)
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
def test_the_fast_path_has_the_result_of_the_reference_implementation(seed: int, count: int, all_dirty: bool) -> None:
    chance = random.Random(seed)  # noqa: S311 - test data
    log = make_log(chance, count)
    first_dirty = 0 if all_dirty else chance.choice(log).base_offset
    seed = chance.randrange(2**32)
    fast = compacted(directory_of(log, random.Random(seed), first_dirty))  # noqa: S311 - test data
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FastRetainedRecords, "note", lambda self, buffer, start, until, first: start)
        patch.setattr(FastRetainedRecords, "keep", lambda self, buffer, start, until, end: (start, []))
        assert compacted(directory_of(log, random.Random(seed), first_dirty)) == fast  # noqa: S311 - test data


def test_a_log_with_more_keys_than_the_offset_map_is_compacted_in_parts() -> None:
    """The last compaction covers the whole log."""
    built = [
        Built(
            build_record_batch([Record(b"key %d" % (number % 50), b"%d" % number, offset=number)]),
            "plain",
            [Record(b"key %d" % (number % 50), b"%d" % number, offset=number)],
        )
        for number in range(300)
    ]
    log_dir = directory_of(built, random.Random(1), 0)  # noqa: S311 - test data
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
def test_the_fast_path_takes_batches_of_up_to_1000_records(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offset deltas have two bytes from the 65th record on. The last commit is retained in any case."""

    def commit(number: int, base: int) -> Built:
        records = [Record(b"g1 t1 %d" % key, b"%d" % number, offset=base + key) for key in range(count)]
        return Built(build_record_batch(records), "plain", records)

    log = [commit(number, number * count) for number in range(5)]
    fast = compacted(directory_of(log, random.Random(1), 0))  # noqa: S311 - test data
    calls = Counter[str]()
    add = RetainedRecords.add_to_offset_map
    monkeypatch.setattr(
        RetainedRecords, "add_to_offset_map", lambda self, batch: (calls.update("b"), add(self, batch))[1]
    )
    assert compacted(directory_of(log, random.Random(1), 0)) == fast  # noqa: S311 - test data
    assert calls.total() == (0 if count <= 1000 else len(log))
    (left,) = [batch for content in fast.values() for batch in read_batches(content)]
    assert [(record.key, record.value) for record in left.records()] == [
        (record.key, record.value) for record in log[-1].records
    ]


ODD = {
    "bytes behind", "falling deltas", "equal deltas", "negative deltas", "deltas beyond the last", "fewer records",
    "size too large", "more records",
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(ODD))
def test_a_batch_that_cannot_be_read_or_whose_offsets_do_not_rise_is_retained_whole(kind: str) -> None:
    """Its keys count for nothing, and the log around it is compacted, with the fast path and without."""
    payload, fields = contents()[kind]
    odd = with_base_offset(sealed(payload, **fields), 1)
    old, middle, new = (
        build_record_batch([Record(b"k", value, timestamp=NOW_MS, offset=offset)])
        for value, offset in ((b"0", 0), (b"3", 4), (b"9", 9))
    )
    assert retained_of([old, odd, middle, new]) == [b"", None, b"", None]
    assert retained_of([old, odd]) == [None, None]
    disk = SimulatedDisk()
    disk.make_directory("t-0")
    write_segment(disk, 0, old + odd + middle + new)
    write_segment(disk, 10, b"")
    assert compacted(LogDir(disk, durability="os"))[segment_name(0)] == odd + new


def retained_of(log: list[bytes]) -> list[bytes | None]:
    return run(RetainedRecords(NOW_MS, RETENTION_MS), log)


def with_base_offset(batch: bytes, base_offset: int) -> bytes:
    return base_offset.to_bytes(8, "big") + batch[8:]
