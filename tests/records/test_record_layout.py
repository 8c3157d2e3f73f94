"""The check of records without building them accepts what `decode_records` decodes, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.errors import DecodeError
from kproto.records.record import Record, RecordHeader, decode_records, encode_records
from kproto.records.record_layout import ATTEMPTS_MAX, RUN_MAX, RUN_MIN, TWO_BYTE_DELTAS, RecordLayout, record_layout

headers = st.lists(st.builds(RecordHeader, st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2)
record = st.builds(
    Record,
    st.none() | st.binary(max_size=4) | st.just(bytes(100)),
    st.none() | st.binary(max_size=4) | st.just(bytes(300)),
    headers.map(tuple),
    st.sampled_from([0, 1, 63, 64, 9000, -1, 2**40]),
)
runs = st.lists(st.tuples(record, st.sampled_from([1, 2, RUN_MIN, RUN_MIN + 1, 40, 100])), max_size=5)


def numbered(groups: list[tuple[Record, int]]) -> list[Record]:
    records = [one for one, count in groups for _ in range(count)]
    return [one._replace(offset=index, timestamp=one.timestamp + index) for index, one in enumerate(records)]


@given(groups=runs)
def test_numbered_records(groups: list[tuple[Record, int]]) -> None:
    records = numbered(groups)
    data = encode_records(records)
    assert record_layout(data, len(records)) is RecordLayout.NUMBERED
    for wrong in (len(records) - 1, len(records) + 1):
        assert record_layout(data, wrong) is RecordLayout.INVALID
    assert record_layout(data + b"\0", len(records)) is RecordLayout.INVALID


@given(groups=runs.filter(bool), data=st.data())
def test_one_other_offset_is_found(groups: list[tuple[Record, int]], data: st.DataObject) -> None:
    records = numbered(groups)
    index = data.draw(st.integers(0, len(records) - 1))
    records[index] = records[index]._replace(offset=data.draw(st.integers(-3, 200).filter(lambda o: o != index)))
    assert record_layout(encode_records(records), len(records)) is RecordLayout.UNNUMBERED


@given(groups=runs.filter(bool), data=st.data())
def test_damaged_records_are_accepted_only_if_they_can_be_decoded(
    groups: list[tuple[Record, int]], data: st.DataObject
) -> None:
    records = numbered(groups)
    damaged = bytearray(encode_records(records))
    for _ in range(data.draw(st.integers(1, 2))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(
            st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)
        )
    found = record_layout(bytes(damaged), len(records))
    try:
        decoded = decode_records(bytes(damaged), len(records))
    except DecodeError:
        assert found in (RecordLayout.INVALID, RecordLayout.LONG_VARINT)
        return
    is_numbered = [one.offset for one in decoded] == list(range(len(records)))
    assert found is (RecordLayout.NUMBERED if is_numbered else RecordLayout.UNNUMBERED)


@pytest.mark.parametrize("count", [RUN_MAX + 2, TWO_BYTE_DELTAS - 1, TWO_BYTE_DELTAS, TWO_BYTE_DELTAS + 700])
def test_long_batches(count: int) -> None:
    records = [Record(None, b"v" * 100, offset=index, timestamp=index // 3) for index in range(count)]
    assert record_layout(encode_records(records), count) is RecordLayout.NUMBERED
    records[-1] = records[-1]._replace(offset=count)
    assert record_layout(encode_records(records), count) is RecordLayout.UNNUMBERED


def test_no_run_is_looked_for_in_records_of_many_sizes() -> None:
    """Records of alternating sizes cost no more than a loop: attempts end."""
    records = [Record(None, b"v" * (index // 2 % 5), offset=index) for index in range(100 * ATTEMPTS_MAX)]
    assert record_layout(encode_records(records), len(records)) is RecordLayout.NUMBERED
