"""Compaction of records in memory, in steps between which the partition changes (LF-70 to LF-72)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kproto.records.batches import read_records
from kproto.records.compression import Compression
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.partition_log import memory_compaction
from kproto_server.partition_log.memory_compaction import STEP_BATCHES, compaction
from kproto_server.partition_log.partition_data import PartitionData

NOW_MS = 1_000_000
DELETE_RETENTION_MS = 5000


def append(data: PartitionData, *pairs: tuple[bytes, bytes | None]) -> None:
    """Append a batch with records of these keys and values."""
    records = [Record(key, value, offset=index, timestamp=NOW_MS) for index, (key, value) in enumerate(pairs)]
    data.append(build_record_batch(records), len(records) - 1, NOW_MS, 0)


def log(count: int) -> PartitionData:
    """Return a partition with one record in each batch, of two keys in turn."""
    data = PartitionData()
    for number in range(count):
        append(data, (b"odd" if number % 2 else b"even", b"%d" % number))
    return data


def steps(data: PartitionData, now_ms: int = NOW_MS) -> Iterator[None]:
    return compaction(data, data.next_offset, now_ms, DELETE_RETENTION_MS)


def contents(data: PartitionData) -> list[tuple[int, bytes | None]]:
    """Return offset and value of each record; check that the index fits the batches."""
    found = data.read(data.start_offset, 1 << 30, min_one_batch=True)
    assert data.size_bytes == len(found) == sum(size for _, size, _ in data.batches())
    return [(record.offset, record.value) for record in read_records(found)]


def test_the_newest_record_of_each_key_is_retained_with_its_offset() -> None:
    data = PartitionData()
    append(data, (b"a", b"1"), (b"b", b"2"), (b"a", b"3"))
    append(data, (b"b", b"4"))
    append(data, (b"c", b"5"))
    list(steps(data))
    assert contents(data) == [(2, b"3"), (3, b"4"), (4, b"5")]
    assert data.next_offset == 5
    append(data, (b"a", b"6"))
    list(steps(data))
    assert contents(data) == [(3, b"4"), (4, b"5"), (5, b"6")]


def test_a_tombstone_stays_for_a_time_after_the_first_compaction() -> None:
    """LF-71."""
    data = PartitionData()
    append(data, (b"a", b"1"), (b"a", None))
    for later_ms in (0, DELETE_RETENTION_MS - 1):
        list(steps(data, NOW_MS + later_ms))
        assert contents(data) == [(1, None)]
    list(steps(data, NOW_MS + DELETE_RETENTION_MS))
    assert contents(data) == []
    assert data.next_offset == 2


def test_a_step_reads_few_batches() -> None:
    data = log(1000)
    assert len(list(steps(data))) == 2 * 1000 / STEP_BATCHES + 1
    assert contents(data) == [(998, b"998"), (999, b"999")]


def test_a_step_decompresses_one_batch() -> None:
    data = PartitionData()
    for number in range(10):
        encoded = build_record_batch([Record(b"a", b"%d" % number)], compression=Compression.GZIP)
        data.append(encoded, 0, NOW_MS, 0)
    assert len(list(steps(data))) == 2 * 10 + 1
    assert contents(data) == [(9, b"9")]


def test_each_key_has_a_record_while_batches_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest are replaced first; a log that is truncated in between keeps the others."""
    monkeypatch.setattr(memory_compaction, "REPLACED_BATCHES", 10)
    data = log(35)
    running = steps(data)
    for kept in (25, 15, 5):
        for _ in running:
            if len(contents(data)) == kept:
                break
        assert contents(data) == [(offset, b"%d" % offset) for offset in range(35 - kept, 35)]
    data.truncate(34)
    list(running)
    assert contents(data) == [(offset, b"%d" % offset) for offset in range(30, 34)]


def test_records_may_be_appended_and_deleted_between_steps() -> None:
    data = log(400)
    running = steps(data)
    for _ in range(6):  # all keys are known, a part of the log is decided
        next(running)
    append(data, (b"even", b"new"))
    data.delete_before(399)
    list(running)
    assert contents(data) == [(399, b"399"), (400, b"new")]
    assert data.start_offset == 399


def test_a_log_that_is_truncated_between_steps_stays() -> None:
    data = log(400)
    running = steps(data)
    for _ in range(6):
        next(running)
    data.truncate(350)
    for _ in range(50):
        append(data, (b"third", b"other"))
    before = contents(data)
    list(running)
    assert contents(data) == before
