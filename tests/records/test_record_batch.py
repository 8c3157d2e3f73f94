"""Batches of magic 2 (LF-1 to LF-3): vectors, the construct declaration, round trips, and damage."""

import io
from collections.abc import Sequence
from typing import Any

import pytest
from construct import ConstructError
from hypothesis import given
from hypothesis import strategies as st

from kproto.errors import CorruptBatch, DecodeError, EncodeError, TooManyElements
from kproto.interpret import InterpretedCodec
from kproto.message_codec import message_codec
from kproto.records.batch_header import APPEND_TIME, CONTROL, DELETE_HORIZON, MAGIC, TRANSACTIONAL, RecordBatchHeader
from kproto.records.compression import Compression
from kproto.records.record import Record, RecordHeader, decode_records, encode_records
from kproto.records.record_batch import build_record_batch, read_record_batch, seal
from kproto.records.record_construct import RECORD
from tests.records.made import COMMIT_BATCH, COMMIT_KEY, COMMIT_VALUE, INT64_SAFE, NOW, TOMBSTONE_BATCH, rising_records

FLAGS = st.sampled_from([0, TRANSACTIONAL, CONTROL | TRANSACTIONAL, DELETE_HORIZON])


def test_the_commit_batch_of_lf_6() -> None:
    batch, end = read_record_batch(COMMIT_BATCH)
    assert end == batch.size == len(COMMIT_BATCH) == 107
    record = Record(COMMIT_KEY, COMMIT_VALUE, timestamp=NOW, offset=0)
    assert batch.records() == [record]
    assert build_record_batch([record], partition_leader_epoch=0) == COMMIT_BATCH == batch.encode()


def test_the_tombstone_batch_of_lf_6() -> None:
    batch, end = read_record_batch(TOMBSTONE_BATCH)
    assert end == len(TOMBSTONE_BATCH) == 82
    record = Record(COMMIT_KEY, None, timestamp=NOW, offset=1)
    assert batch.records() == [record]
    assert build_record_batch([record], partition_leader_epoch=0) == TOMBSTONE_BATCH


def test_a_batch_is_read_at_any_position() -> None:
    stream = b"before" + COMMIT_BATCH + TOMBSTONE_BATCH
    _, second = read_record_batch(stream, 6)
    batch, end = read_record_batch(stream, second)
    assert (second, end, batch.base_offset) == (113, len(stream), 1)


@pytest.mark.parametrize("compression", Compression)
@given(records=rising_records(), flags=FLAGS, producer=INT64_SAFE, epoch=st.integers(-1, 2**15 - 1))
def test_built_batches_are_read(
    compression: Compression, records: list[Record], flags: int, producer: int, epoch: int
) -> None:
    data = build_record_batch(
        records,
        partition_leader_epoch=epoch,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=epoch,
        compression=compression,
        flags=flags,
    )
    batch, end = read_record_batch(data)
    assert end == batch.size == len(data)
    assert batch.records() == records
    assert batch.compression is compression
    assert batch.is_control == bool(flags & CONTROL)
    assert batch.is_transactional == bool(flags & TRANSACTIONAL)
    header = batch.header
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (producer, epoch, epoch)
    assert header.partition_leader_epoch == epoch
    assert header.record_count == len(records)
    if records:
        assert (batch.base_offset, batch.last_offset) == (records[0].offset, records[-1].offset)
        assert header.max_timestamp == max(record.timestamp for record in records)
    assert batch.encode() == data


@given(rising_records(least=1))
def test_records_are_encoded_and_decoded_as_declared(records: list[Record]) -> None:
    base, timestamp = records[0].offset, records[0].timestamp
    encoded = encode_records(records, base_offset=base, base_timestamp=timestamp)
    assert b"".join(RECORD.build(as_declared(record, base, timestamp)) for record in records) == encoded
    stream = io.BytesIO(encoded)
    for record in records:
        assert without_io(RECORD.parse_stream(stream)) == as_declared(record, base, timestamp)
    assert stream.read() == b""
    assert decode_records(encoded, len(records), base_offset=base, base_timestamp=timestamp) == records


def as_declared(record: Record, base_offset: int, base_timestamp: int) -> dict[str, Any]:
    """Return the values of a record in its construct declaration."""
    return {
        "attributes": 0,
        "timestamp_delta": record.timestamp - base_timestamp,
        "offset_delta": record.offset - base_offset,
        "key": record.key,
        "value": record.value,
        "headers": [header._asdict() for header in record.headers],
    }


def without_io(container: Any) -> Any:
    """Return construct's containers as dictionaries without the stream that they contain."""
    if isinstance(container, list):
        return [without_io(item) for item in container]
    if isinstance(container, dict):
        return {name: without_io(value) for name, value in container.items() if name != "_io"}
    return container


def mutations(data: bytes) -> st.SearchStrategy[bytes]:
    """Draw the data with some bytes changed, removed or added."""
    edit = st.tuples(st.integers(0, len(data)), st.integers(0, 3), st.binary(max_size=3))

    def apply(edits: list[tuple[int, int, bytes]]) -> bytes:
        found = data
        for position, removed_count, added in edits:
            found = found[:position] + added + found[position + removed_count :]
        return found

    return st.lists(edit, min_size=1, max_size=3).map(apply)


TWO_RECORDS = encode_records(
    [
        Record(b"key", b"v" * 70, (RecordHeader("h", None), RecordHeader("grüße", b"x")), 300, 200),
        Record(None, b"", (), 0, 201),
    ]
)


@given(mutations(TWO_RECORDS))
def test_damaged_records_give_the_same_result_as_the_declaration(data: bytes) -> None:
    stream = io.BytesIO(data)
    try:
        declared = [RECORD.parse_stream(stream) for _ in range(2)]
        whole = stream.tell() == len(data)
    except ConstructError:
        whole = False
    if not whole:
        with pytest.raises(DecodeError):
            decode_records(data, 2)
        return
    found = decode_records(data, 2)
    for record, values in zip(found, declared, strict=True):
        assert without_io(values) | {"attributes": 0} == as_declared(record, 0, 0)


@given(st.binary(max_size=40), st.integers(0, 4))
def test_random_bytes_raise_only_decode_error(data: bytes, count: int) -> None:
    try:
        found = decode_records(data, count)
    except DecodeError:
        return
    assert len(found) == count


@pytest.mark.parametrize("count", [-1, 1, 3, 2**31 - 1])
def test_a_count_that_does_not_fit_is_refused(count: int) -> None:
    with pytest.raises(DecodeError):
        decode_records(TWO_RECORDS, count)


@pytest.mark.parametrize("timestamps", [(0, 2**63 - 1), (2**63 - 1, -(2**63)), (-(2**63), 2**63 - 1)])
def test_timestamps_that_are_far_from_each_other_wrap(timestamps: tuple[int, int]) -> None:
    """As in Java: the difference is one of 64 bits."""
    records = [Record(None, None, timestamp=timestamp, offset=index) for index, timestamp in enumerate(timestamps)]
    data = encode_records(records, base_timestamp=timestamps[0])
    assert decode_records(data, 2, base_timestamp=timestamps[0]) == records


def test_a_batch_has_no_more_headers_than_the_limit() -> None:
    """The limit is that of all records together."""
    records = [Record(None, None, count * (RecordHeader("h", None),), 0, count) for count in range(4)]
    batch, _ = read_record_batch(build_record_batch(records))
    assert batch.records(headers_max=6) == records
    with pytest.raises(TooManyElements):
        batch.records(headers_max=5)


@pytest.mark.parametrize(("flags", "timestamps"), [(0, range(5)), (APPEND_TIME, [99] * 5)])
def test_records_in_pieces(flags: int, timestamps: Sequence[int]) -> None:
    headers = (RecordHeader("h", None),)
    records = [Record(None, b"%d" % index, headers, index, 7 + index) for index in range(5)]
    batch, _ = read_record_batch(build_record_batch(records, max_timestamp=99, flags=flags))
    expected = [record._replace(timestamp=time) for record, time in zip(records, timestamps, strict=True)]
    content = batch.content(1000)
    assert list(batch.pieces(content, 2, 1000)) == [expected[:2], expected[2:4], expected[4:]]
    assert list(batch.pieces(content, 5, 1)) == [[record] for record in expected]
    without = [record._replace(headers=()) for record in expected]
    assert list(batch.pieces(content, 5, 1000, with_headers=False)) == [without]


def test_a_batch_cut_at_any_byte_is_refused() -> None:
    for size in range(len(COMMIT_BATCH)):
        with pytest.raises(DecodeError):
            read_record_batch(COMMIT_BATCH[:size])


def test_a_flipped_bit_is_refused_except_in_offset_and_leader_epoch() -> None:
    """The checksum does not cover offset and leader epoch (LF-1)."""
    for bit in range(8 * len(COMMIT_BATCH)):
        data = bytearray(COMMIT_BATCH)
        data[bit // 8] ^= 1 << bit % 8
        if bit // 8 in {*range(8), *range(12, 16)}:
            assert read_record_batch(bytes(data))[0].records()[0].value == COMMIT_VALUE
        else:
            with pytest.raises(DecodeError):
                read_record_batch(bytes(data))


def test_a_wrong_checksum_raises_corrupt_batch_unless_check_crc_is_false() -> None:
    data = COMMIT_BATCH[:-1] + b"\1"
    with pytest.raises(CorruptBatch, match=r"RecordBatch\.crc at byte 17: 5c677be2, but its content has"):
        read_record_batch(data)
    batch, _ = read_record_batch(data, check_crc=False)
    with pytest.raises(DecodeError, match=r"records\[0\] at byte 0"):
        batch.records()


def header(**changes: int) -> RecordBatchHeader:
    return read_record_batch(COMMIT_BATCH)[0].header.replace(**changes)


@pytest.mark.parametrize(
    ("field", "value"), [("magic", 1), ("magic", 3), ("record_count", -1), ("last_offset_delta", -1)]
)
def test_an_invalid_header_is_refused(field: str, value: int) -> None:
    with pytest.raises(DecodeError):
        read_record_batch(seal(header(**{field: value}), b""))


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48])
def test_a_length_less_than_the_header_is_refused(length: int) -> None:
    data = header(batch_length=length).encode(MAGIC)
    with pytest.raises(DecodeError, match="is less than 49"):
        read_record_batch(data)


def test_a_hostile_length_is_refused() -> None:
    data = header(batch_length=2**31 - 1).encode(MAGIC)
    with pytest.raises(DecodeError, match="bytes of 2147483659 are missing"):
        read_record_batch(data)


def test_an_unknown_compression_is_refused() -> None:
    batch, _ = read_record_batch(seal(header(attributes=5), COMMIT_BATCH[61:]))
    with pytest.raises(DecodeError, match="unknown compression 5"):
        batch.records()


def test_content_beyond_the_limit_is_refused() -> None:
    data = build_record_batch([Record(None, bytes(10_000))], compression=Compression.ZSTD)
    batch, _ = read_record_batch(data)
    assert len(batch.records(content_size_max=10_100)) == 1
    with pytest.raises(DecodeError, match="9999 bytes"):
        batch.records(content_size_max=9_999)


def test_an_empty_batch_keeps_its_offsets() -> None:
    """LF-72: compaction may leave a header without records."""
    data = build_record_batch([], base_offset=5, last_offset=9)
    batch, _ = read_record_batch(data)
    assert (batch.base_offset, batch.last_offset, batch.records(), batch.size) == (5, 9, [], 61)


def test_a_compacted_batch_has_gaps() -> None:
    """LF-37."""
    records = [Record(b"a", b"1", offset=12), Record(b"b", b"2", offset=17)]
    data = build_record_batch(records, base_offset=10, last_offset=19)
    batch, _ = read_record_batch(data)
    assert (batch.base_offset, batch.last_offset) == (10, 19)
    assert [record.offset for record in batch.records()] == [12, 17]


def test_append_time_is_the_timestamp_of_all_records() -> None:
    """LF-2, bit 3."""
    records = [Record(None, b"a", timestamp=1, offset=0), Record(None, b"b", timestamp=2, offset=1)]
    batch, _ = read_record_batch(build_record_batch(records, max_timestamp=99, flags=APPEND_TIME))
    assert batch.has_append_time
    assert [record.timestamp for record in batch.records()] == [99, 99]


def test_the_delete_horizon_is_the_base_timestamp() -> None:
    """LF-2, bit 6."""
    records = [Record(b"a", None, timestamp=50, offset=0)]
    batch, _ = read_record_batch(build_record_batch(records, base_timestamp=1000, flags=DELETE_HORIZON))
    assert batch.delete_horizon_ms == 1000
    assert batch.records() == records
    assert read_record_batch(COMMIT_BATCH)[0].delete_horizon_ms is None


@pytest.mark.parametrize(
    ("offsets", "base", "last"),
    [([3, 3], None, None), ([3, 2], None, None), ([3], 4, None), ([3, 5], None, 4), ([], 5, 4)],
)
def test_offsets_must_rise_within_the_batch(offsets: list[int], base: int | None, last: int | None) -> None:
    records = [Record(None, None, offset=offset) for offset in offsets]
    with pytest.raises(EncodeError, match="offsets do not rise"):
        build_record_batch(records, base_offset=base, last_offset=last)


@pytest.mark.parametrize("record", [Record(b"a", b"", (), 0, None), Record(b"a", b"", (), None, 1)])  # type: ignore[arg-type]
def test_offsets_and_timestamps_are_numbers(record: Record) -> None:
    first = Record(b"a", b"", (), 0, 0)
    for records in ([record], [first, record], [record, first]):
        with pytest.raises(EncodeError):
            build_record_batch(records)


@pytest.mark.parametrize(
    "record",
    [
        Record("text", None),  # type: ignore[arg-type]  # a mistake of a caller
        Record(None, 5),  # type: ignore[arg-type]
        Record(None, None, (RecordHeader(b"bytes", None),)),  # type: ignore[arg-type]
    ],
)
def test_an_invalid_record_is_named_in_the_error(record: Record) -> None:
    with pytest.raises(EncodeError, match=r"records\[0\]"):
        build_record_batch([record], base_timestamp=0)


def test_a_timestamp_beyond_int64_is_refused() -> None:
    """Differences between timestamps wrap, as in Java; the timestamps themselves do not."""
    with pytest.raises(EncodeError, match="timestamp"):
        build_record_batch([Record(None, None, timestamp=2**63)])


def test_the_generated_and_the_interpreted_header_agree() -> None:
    reference = InterpretedCodec(RecordBatchHeader, MAGIC)
    generated = message_codec(RecordBatchHeader, MAGIC)
    for data in (COMMIT_BATCH, TOMBSTONE_BATCH):
        assert reference.decode(data) == generated.decode(data, 0)
        value = reference.decode(data)[0]
        assert reference.encode(value) == generated.encode(value) == data[:61]
