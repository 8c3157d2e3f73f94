"""A partition's records in memory, compared with a list of batches."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kproto.records.batches import read_batches
from kproto.records.record import Record
from kproto.records.record_batch import RecordBatch, build_record_batch
from kproto_server.deferred import at_once
from kproto_server.partition_log import partition_data
from kproto_server.partition_log.partition_data import EpochStart, PartitionData


def batch_of(count: int, *timestamps: int) -> bytes:
    times = timestamps or (0,)
    return build_record_batch(
        [Record(None, b"v" * 10, timestamp=times[n % len(times)], offset=n) for n in range(count)]
    )


def filled(*sizes: int) -> PartitionData:
    data = PartitionData()
    for number, size in enumerate(sizes):
        data.append(batch_of(size, number), size - 1, number, epoch=0)
    return data


def base_offsets(records: bytes) -> list[int]:
    return [batch.base_offset for batch in read_batches(records) if isinstance(batch, RecordBatch)]


@given(st.lists(st.integers(1, 5), max_size=8), st.integers(0, 40), st.integers(0, 1000))
def test_a_read_begins_with_the_batch_of_the_offset(sizes: list[int], offset: int, limit: int) -> None:
    """BA-72, BA-73."""
    data = filled(*sizes)
    bases = [sum(sizes[:n]) for n in range(len(sizes))]
    expected = [base for base, size in zip(bases, sizes, strict=True) if base + size > offset]
    assert base_offsets(data.read(offset, 2**31 - 1, min_one_batch=False)) == expected
    read = data.read(offset, limit, min_one_batch=False)
    assert len(read) <= limit
    assert base_offsets(read) == expected[: len(base_offsets(read))]
    assert base_offsets(data.read(offset, 0, min_one_batch=True)) == expected[:1]


def test_the_broker_sets_offset_and_epoch_and_checksums_stay_valid() -> None:
    """BA-64."""
    data = filled(3)
    assert data.append(batch_of(2), 1, 0, epoch=4).base_offset == 3
    last = list(read_batches(data.read(3, 10_000, min_one_batch=True)))[-1]
    assert isinstance(last, RecordBatch)
    assert (last.base_offset, last.header.partition_leader_epoch) == (3, 4)
    assert [data.epoch_at(offset) for offset in (0, 2, 3, 9)] == [0, 0, 4, 4]
    assert data.end_of_epoch(0) == EpochStart(0, 3)
    assert data.end_of_epoch(3) == EpochStart(0, 3)
    assert data.end_of_epoch(4) == EpochStart(4, 5)
    assert PartitionData().end_of_epoch(0) is None


def test_epochs_of_deleted_records_end_at_the_log_start() -> None:
    """BA-83: `LeaderEpochFileCache.truncateFromStart` and `endOffsetFor`."""
    data = filled(3)
    for epoch in (2, 4):
        data.append(batch_of(2), 1, 0, epoch)
    data.delete_before(4)
    found = [data.end_of_epoch(epoch) for epoch in range(5)]
    assert found == [EpochStart(0, 4), EpochStart(1, 4), EpochStart(2, 5), EpochStart(2, 5), EpochStart(4, 7)]
    data.delete_before(7)
    assert [data.end_of_epoch(epoch) for epoch in (2, 4)] == [EpochStart(2, 7), EpochStart(4, 7)]


def test_batches_are_found_by_timestamp() -> None:
    """BA-80."""
    data = filled(1, 1, 1)
    assert base_offsets(at_once(data.batch_at_time(1)) or b"") == [1]
    assert at_once(data.batch_at_time(3)) is None
    assert base_offsets(at_once(data.batch_of_greatest_timestamp()) or b"") == [2]
    assert at_once(PartitionData().batch_of_greatest_timestamp()) is None


@pytest.mark.parametrize("greatest", [0, 3, 4, 6, 9])
def test_the_greatest_timestamp_is_found_in_steps(greatest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of equal ones, the first; negative ones count, too."""
    monkeypatch.setattr(partition_data, "COMPARED_BATCHES", 4)
    data = PartitionData()
    for number in range(10):
        data.append(batch_of(1), 0, -7 if number in (greatest, 9) else -9, epoch=0)
    steps = data.batch_of_greatest_timestamp()
    assert [next(steps) for _ in range(3)] == [4, 4, 2]
    assert base_offsets(at_once(steps) or b"") == [greatest]


def test_a_batch_that_is_deleted_meanwhile_leaves_the_next_one() -> None:
    data = filled(1, 1, 1)
    for timestamp in (9, 5):
        data.append(batch_of(1), 0, timestamp, epoch=0)
    steps = data.batch_of_greatest_timestamp()
    next(steps)
    data.delete_before(4)
    assert base_offsets(at_once(steps) or b"") == [4]
    steps = data.batch_of_greatest_timestamp()
    next(steps)
    data.delete_before(5)
    assert at_once(steps) is None


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.integers(0, 40))
def test_whole_batches_below_the_start_offset_are_dropped(sizes: list[int], offset: int) -> None:
    data = filled(*sizes)
    end = sum(sizes)
    data.delete_before(offset)
    assert (data.start_offset, data.next_offset) == (min(offset, end), end)
    remaining = data.read(0, 2**31 - 1, min_one_batch=True)
    assert len(remaining) == data.size_bytes
    assert all(batch.last_offset >= data.start_offset for batch in read_batches(remaining))


def test_dropped_batches_leave_the_arrays() -> None:
    """The arrays do not grow with the number of dropped batches."""
    data = PartitionData()
    for number in range(5000):
        data.append(batch_of(1), 0, 0, epoch=0)
        if number >= 10:
            assert data.drop_oldest() > 0
    assert (data.start_offset, data.next_offset) == (4990, 5000)
    assert base_offsets(data.read(0, 2**31 - 1, min_one_batch=True)) == list(range(4990, 5000))
    assert len(data._batches) < 3000
