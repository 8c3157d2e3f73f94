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


@pytest.mark.parametrize("size", [63, 64, 65])
def test_headers_and_their_sizes_may_need_a_second_byte(size: int) -> None:
    """A varint of one byte ends with 63."""
    few = (RecordHeader("k" * size, b"v" * size), RecordHeader("k", None))
    for headers in (few, size * (RecordHeader("", None),)):
        records = [Record(b"", b"", headers)]
        data = encode_records(records)
        assert record_layout(data, 1) is RecordLayout.NUMBERED
        assert decode_records(data, 1) == records


def by_hand(rest: str, size_flag: int = 0) -> bytes:
    """Return a record of these bytes after its attributes."""
    body = b"\0" + bytes.fromhex(rest)
    return bytes((2 * len(body) | size_flag,)) + body


def test_the_negative_numbers_of_one_byte_that_are_the_farthest_from_zero() -> None:
    """0x7f is -64. Any negative size of a key, a value or a header's value means null, as in Kafka."""
    data = by_hand("7f 7f 7f 7f 02 02 6b 7f")
    assert record_layout(data, 1) is RecordLayout.UNNUMBERED
    assert decode_records(data, 1) == [Record(None, None, (RecordHeader("k", None),), -64, -64)]


@pytest.mark.parametrize(
    "data",
    [
        by_hand("00 00 01 01 00", size_flag=1),
        by_hand("00 00 01 01 01"),
        by_hand("00 00 01 01 02 01 01"),
        by_hand("00 00 01 01 04 00 01"),
    ],
    ids=["size of a record", "count of headers", "size of a header's key", "a header less than announced"],
)
def test_a_negative_size_or_a_wrong_count_is_refused(data: bytes) -> None:
    """LF-3: only key and value can be null."""
    data += by_hand("00 00 01 01 00")
    assert record_layout(data, 2) is RecordLayout.INVALID
    with pytest.raises(DecodeError, match=r"records\[0\] at byte 0: its sizes do not fit"):
        decode_records(data, 2)
