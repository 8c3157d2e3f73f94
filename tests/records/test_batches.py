"""Batches of all magics back to back, whole and truncated (LF-4, LF-61, LF-62)."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.errors import CorruptBatch, DecodeError
from kproto.records.batches import (
    batch_end,
    first_offset,
    last_offset,
    read_batch,
    read_batches,
    read_records,
    stored_crc,
)
from kproto.records.compression import Compression
from kproto.records.message_set import build_message_set
from kproto.records.record import Record
from kproto.records.record_batch import RecordBatch, build_record_batch
from tests.records.made import COMMIT_BATCH, COMMIT_MARKER, TOMBSTONE_BATCH

MIXED = (
    build_message_set([Record(b"0", b"a", offset=0), Record(b"0", b"b", offset=1)], magic=0)
    + build_message_set([Record(b"1", b"c", timestamp=5, offset=2)], magic=1, compression=Compression.GZIP)
    + build_record_batch([Record(b"2", b"d", timestamp=6, offset=3), Record(b"2", b"e", timestamp=7, offset=4)])
    + COMMIT_MARKER
    + TOMBSTONE_BATCH
)
EDGES = [0]
while (next_edge := batch_end(MIXED, EDGES[-1])) is not None and next_edge > EDGES[-1]:
    EDGES.append(next_edge)


def test_all_magics_are_read_in_order() -> None:
    assert EDGES[-1] == len(MIXED)
    batches = list(read_batches(MIXED))
    assert [batch.magic for batch in batches] == [0, 0, 1, 2, 2, 2]
    assert [batch.last_offset for batch in batches] == [0, 1, 2, 4, 2, 1]


def test_the_header_of_a_batch_at_any_position_has_its_offsets_and_its_checksum() -> None:
    batches = list(read_batches(MIXED))
    assert [last_offset(MIXED, edge) for edge in EDGES[:-1]] == [batch.last_offset for batch in batches]
    assert [first_offset(MIXED, edge) for edge in EDGES[:-1]] == [0, 1, 2, 3, 2, 1]
    newest = [batch.header.crc for batch in batches if isinstance(batch, RecordBatch)]
    assert [stored_crc(MIXED, edge) for edge in EDGES[3:-1]] == newest


def test_read_records_leaves_out_the_markers_of_the_broker() -> None:
    assert [record.value for record in read_records(MIXED)] == [b"a", b"b", b"c", b"d", b"e", None]


def test_null_and_empty_data_have_no_records() -> None:
    assert list(read_records(None)) == list(read_records(b"")) == []


@given(st.integers(0, len(MIXED)))
def test_a_truncated_batch_at_the_end_is_left_out(size: int) -> None:
    whole = sum(edge <= size for edge in EDGES[1:])
    assert len(list(read_batches(MIXED[:size]))) == whole


@given(st.integers(0, len(COMMIT_BATCH) - 1))
def test_read_batch_returns_none_for_a_truncated_batch(size: int) -> None:
    assert read_batch(COMMIT_BATCH[:size]) is None


def test_reading_begins_at_the_given_position() -> None:
    found = read_batch(MIXED, EDGES[3])
    assert found is not None
    batch, end = found
    assert (batch.magic, end) == (2, EDGES[4])
    assert [b.last_offset for b in read_batches(MIXED, EDGES[4])] == [2, 1]


@given(st.integers(0, 8 * len(MIXED) - 1))
def test_a_flipped_bit_raises_only_decode_error(bit: int) -> None:
    data = bytearray(MIXED)
    data[bit // 8] ^= 1 << bit % 8
    before = max(edge for edge in EDGES if edge <= bit // 8)
    found = []
    try:
        for batch in read_batches(bytes(data)):
            found.append(batch)
            assert batch.records() is not None
    except DecodeError:
        assert len(found) >= EDGES.index(before)


@pytest.mark.parametrize("size", [-(2**31), -1, 0, 13])
def test_a_size_below_the_least_size_is_refused(size: int) -> None:
    data = bytes(8) + size.to_bytes(4, "big", signed=True) + bytes(100)
    with pytest.raises(DecodeError, match=f"batch at byte 8: size {size}, the least is 14"):
        list(read_batches(data))
    for after in (b"", bytes(1)):
        with pytest.raises(DecodeError, match=f"batch at byte {len(COMMIT_BATCH) + 8}: size {size}"):
            batch_end(COMMIT_BATCH + data[:12] + after, len(COMMIT_BATCH))


def test_an_unknown_magic_is_refused() -> None:
    data = COMMIT_BATCH[:16] + b"\3" + COMMIT_BATCH[17:]
    with pytest.raises(DecodeError, match=rf"batch\.magic at byte {EDGES[-1] + 16}: unknown magic 3"):
        list(read_batches(MIXED + data))


@pytest.mark.parametrize("whole", [COMMIT_BATCH, build_message_set([Record(b"k", b"v", offset=1)], magic=0)])
def test_checksums_are_checked_unless_check_crc_is_false(whole: bytes) -> None:
    data = whole[:-2] + b"\1\0"
    with pytest.raises(CorruptBatch):
        list(read_batches(data))
    assert len(list(read_batches(data, check_crc=False))) == 1


def test_a_batch_that_announces_gigabytes_allocates_nothing() -> None:
    data = COMMIT_BATCH[:8] + (2**31 - 1).to_bytes(4, "big") + COMMIT_BATCH[12:]
    tracemalloc.start()
    try:
        assert list(read_batches(data)) == []
        assert tracemalloc.get_traced_memory()[1] < 20_000
    finally:
        tracemalloc.stop()
