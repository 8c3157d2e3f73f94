"""Message sets of magic 0 and 1 (LF-4): layouts written by hand, wrappers with both kinds of offsets, damage."""

import zlib

import pytest
from hypothesis import given

from kproto.errors import ContentTooLarge, CorruptBatch, DecodeError, EncodeError, TooManyElements
from kproto.interpret import InterpretedCodec
from kproto.message_codec import message_codec
from kproto.records.batch_header import APPEND_TIME
from kproto.records.batches import read_batches
from kproto.records.compression import Compression, compress
from kproto.records.message_set import (
    LegacyMessage,
    build_message_set,
    read_legacy_batch,
    read_plain_messages,
    seal_legacy,
)
from kproto.records.record import Record, RecordHeader
from tests.records.made import rising_records

OLD = [c for c in Compression if c is not Compression.ZSTD]
PACKED = [c for c in OLD if c is not Compression.NONE]


def by_hand(offset: int, magic: int, attributes: int, rest: bytes) -> bytes:
    """Return one message; ``rest`` is the bytes after the attributes."""
    checked = bytes((magic, attributes)) + rest
    message = zlib.crc32(checked).to_bytes(4, "big") + checked
    return offset.to_bytes(8, "big") + len(message).to_bytes(4, "big") + message


KEY_AND_VALUE = bytes.fromhex("00000001 6b 00000002 7631")
V0 = by_hand(5, 0, 0, KEY_AND_VALUE)
V1 = by_hand(6, 1, 0, (99).to_bytes(8, "big") + KEY_AND_VALUE)
NULLS = by_hand(7, 0, 0, bytes.fromhex("ffffffff ffffffff"))


def test_messages_written_by_hand_are_read() -> None:
    found = [record for batch in read_batches(V0 + V1 + NULLS) for record in batch.records()]
    assert found == [
        Record(b"k", b"v1", offset=5),
        Record(b"k", b"v1", timestamp=99, offset=6),
        Record(None, None, offset=7),
    ]


def test_messages_are_built_as_by_hand() -> None:
    assert build_message_set([Record(b"k", b"v1", offset=5)], magic=0) == V0
    assert build_message_set([Record(b"k", b"v1", timestamp=99, offset=6)], magic=1) == V1
    assert build_message_set([Record(None, None, offset=7)], magic=0) == NULLS


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("compression", OLD)
def test_built_message_sets_are_read(magic: int, compression: Compression) -> None:
    @given(rising_records(headers=False, timestamps=magic == 1))
    def check(records: list[Record]) -> None:
        data = build_message_set(records, magic=magic, compression=compression)
        batches = list(read_batches(data))
        assert sum(batch.size for batch in batches) == len(data)
        assert [record for batch in batches for record in batch.records()] == records
        assert all(batch.magic == magic and batch.compression is compression for batch in batches)
        assert not any(batch.is_control or batch.is_transactional for batch in batches)
        if records:
            assert batches[-1].last_offset == records[-1].offset
            assert len(batches) == (len(records) if compression is Compression.NONE else 1)

    check()


RECORDS = [Record(b"a", b"1", timestamp=10, offset=40), Record(b"b", b"2", timestamp=30, offset=42)]


def inner_of(data: bytes) -> list[LegacyMessage]:
    """Return the messages in a gzip wrapper."""
    value = read_legacy_batch(data)[0].message.value
    assert value is not None
    content = zlib.decompress(value, wbits=31)
    inner = []
    position = 0
    while position < len(content):
        batch, position = read_legacy_batch(content, position)
        inner.append(batch.message)
    return inner


def test_inner_offsets_are_absolute_in_magic_0_and_relative_in_magic_1() -> None:
    old, new = (
        build_message_set(
            [r._replace(timestamp=-1) if magic == 0 else r for r in RECORDS], magic=magic, compression=Compression.GZIP
        )
        for magic in (0, 1)
    )
    assert [message.offset for message in inner_of(old)] == [40, 42]
    assert [message.offset for message in inner_of(new)] == [0, 2]
    assert read_legacy_batch(old)[0].message.offset == read_legacy_batch(new)[0].message.offset == 42
    assert read_legacy_batch(new)[0].message.timestamp == 30


def test_the_offset_of_a_wrapper_of_magic_1_sets_all_inner_offsets() -> None:
    data = build_message_set(RECORDS, magic=1, compression=Compression.GZIP)
    stored = read_legacy_batch((1042).to_bytes(8, "big") + data[8:])[0]
    assert [record.offset for record in stored.records()] == [1040, 1042]


@pytest.mark.parametrize("compression", OLD)
def test_append_time_is_the_timestamp_of_all_messages(compression: Compression) -> None:
    data = build_message_set(RECORDS, magic=1, compression=compression, append_time=77)
    batches = list(read_batches(data))
    assert all(batch.has_append_time for batch in batches)
    assert [record.timestamp for batch in batches for record in batch.records()] == [77, 77]


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_has_no_more_bytes_and_records_than_the_limits(magic: int) -> None:
    records = [Record(b"k", b"v", offset=offset) for offset in range(3)]
    size = len(build_message_set(records, magic=magic))
    batch, _ = read_legacy_batch(build_message_set(records, magic=magic, compression=Compression.GZIP))
    assert len(batch.records(content_size_max=size, count_max=3)) == 3
    with pytest.raises(ContentTooLarge):
        batch.records(content_size_max=size - 1)
    with pytest.raises(TooManyElements):
        batch.records(count_max=2)


def test_a_built_wrapper_of_magic_0_has_the_checksum_of_its_magic() -> None:
    """The clients of its time refuse others."""
    data = build_message_set([Record(b"k", b"v")], magic=0, compression=Compression.LZ4)
    value = read_legacy_batch(data)[0].message.value
    assert value == compress(Compression.LZ4, build_message_set([Record(b"k", b"v")], magic=0), magic=0)


def test_a_message_set_without_records_is_empty() -> None:
    assert build_message_set([], magic=1) == build_message_set([], magic=0, compression=Compression.GZIP) == b""


def wrapper(content: bytes | None, *, magic: int = 1, compression: Compression = Compression.GZIP) -> bytes:
    return seal_legacy(
        LegacyMessage(
            offset=1,
            message_size=0,
            crc=0,
            magic=magic,
            attributes=compression,
            timestamp=-1,
            key=None,
            value=None if content is None else compress(compression, content, magic=magic),
        )
    )


def test_invalid_wrappers_are_refused() -> None:
    uncompressed = build_message_set([Record(b"k", b"v")], magic=1)
    packed = build_message_set([Record(b"k", b"v")], magic=1, compression=Compression.GZIP)
    older = build_message_set([Record(b"k", b"v")], magic=0)
    bad_crc = uncompressed[:-1] + b"!"
    cases = {
        "null, but it is compressed": wrapper(None),
        "compressed twice": wrapper(packed),
        "0 within 1": wrapper(older),
        "its content has": wrapper(bad_crc),
        "truncated before its magic": wrapper(uncompressed + bytes(7) + b"\1" + b"\xff" * 4),  # a negative size
        "gzip": wrapper(uncompressed)[:-1],
    }
    for reason, data in cases.items():
        batch, _ = read_legacy_batch(data if reason != "gzip" else resealed(data))
        with pytest.raises(DecodeError, match=reason):
            batch.records()


def test_a_truncated_message_at_the_end_of_a_wrapper_is_left_out() -> None:
    """Measured on 1.1.1, 2.8.2 and 3.9.2."""
    record = Record(b"k", b"v", offset=1)
    uncompressed = build_message_set([record._replace(offset=0)], magic=1)
    for size in range(len(uncompressed)):
        assert read_legacy_batch(wrapper(uncompressed + uncompressed[:size]))[0].records() == [record]
        assert read_legacy_batch(wrapper(uncompressed[:size]))[0].records() == []


def resealed(data: bytes) -> bytes:
    """Return a valid message of a wrapper whose value has lost its last byte."""
    whole = data + b"\0"
    message = read_legacy_batch(whole, check_crc=False)[0].message
    assert message.value is not None
    return seal_legacy(message.replace(value=message.value[:-1]))


@pytest.mark.parametrize("data", [V0, V1, NULLS])
def test_a_message_cut_at_any_byte_or_with_a_flipped_bit_is_refused(data: bytes) -> None:
    for size in range(len(data)):
        with pytest.raises(DecodeError):
            read_legacy_batch(data[:size])
    for bit in range(8 * 8, 8 * len(data)):  # the offset before is outside of the checksum
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DecodeError):
            read_legacy_batch(bytes(flipped))


def test_a_wrong_checksum_raises_corrupt_batch_unless_check_crc_is_false() -> None:
    data = V0[:-1] + b"!"
    with pytest.raises(CorruptBatch, match=r"LegacyMessage\.crc at byte 12"):
        read_legacy_batch(data)
    assert read_legacy_batch(data, check_crc=False)[0].records() == [Record(b"k", b"v!", offset=5)]


def test_a_size_that_key_and_value_do_not_fill_is_refused() -> None:
    data = V0[:8] + (len(V0) - 12 + 3).to_bytes(4, "big") + V0[12:] + b"abc"
    with pytest.raises(DecodeError, match="key and value end after"):
        read_legacy_batch(data, check_crc=False)


@pytest.mark.parametrize("magic", [2, 3, 0x7F, 0xFF])
def test_other_magics_are_refused(magic: int) -> None:
    with pytest.raises(DecodeError, match=f"{magic}, not 0 or 1"):
        read_legacy_batch(V0[:16] + bytes((magic,)) + V0[17:])


def test_values_that_message_sets_lack_are_refused() -> None:
    record = Record(b"k", b"v")
    with pytest.raises(EncodeError, match="no headers"):
        build_message_set([record._replace(headers=(RecordHeader("h", b""),))], magic=1)
    with pytest.raises(EncodeError, match="zstd needs magic 2"):
        build_message_set([record], magic=1, compression=Compression.ZSTD)
    with pytest.raises(EncodeError, match="magic 0 has no timestamps"):
        build_message_set([record], magic=0, append_time=5)
    with pytest.raises(EncodeError, match="timestamp"):
        build_message_set([record._replace(timestamp=5)], magic=0)
    with pytest.raises(EncodeError, match="2 is not the magic of a message set"):
        build_message_set([record], magic=2)


@pytest.mark.parametrize("magic", [0, 1])
def test_the_generated_and_the_interpreted_codec_agree(magic: int) -> None:
    reference = InterpretedCodec(LegacyMessage, magic)
    generated = message_codec(LegacyMessage, magic)
    data = (V0, V1)[magic]
    assert reference.decode(data) == generated.decode(data, 0)
    value = reference.decode(data)[0]
    assert reference.encode(value) == generated.encode(value) == data


def test_bit_3_is_ignored_in_magic_0() -> None:
    data = by_hand(5, 0, APPEND_TIME, KEY_AND_VALUE)
    assert not read_legacy_batch(data)[0].has_append_time


@pytest.mark.parametrize("magic", [0, 1])
def test_plain_messages_are_read_as_one_by_one_up_to_the_first_that_is_wrong(magic: int) -> None:
    """Each byte of a message set is changed in turn; `read_batches` says which messages before it are right."""
    timestamp = 99 if magic else -1
    records = [
        Record(key, value, timestamp=timestamp, offset=3) for key in (None, b"", b"k") for value in (None, b"", b"v")
    ]
    messages = build_message_set(records, magic=magic)
    wrapper = build_message_set(records[:1], magic=magic, compression=Compression.GZIP)
    other = build_message_set([Record(b"k", b"v1")], magic=0) if magic else V1
    appended = build_message_set(records[:1], magic=1, append_time=5)
    for behind in (b"", wrapper, other, appended, messages[:-1]):
        for position in range(len(messages)):
            for changed in {messages[position], 0, 0xFF, messages[position] ^ 1}:
                data = messages[:position] + bytes((changed,)) + messages[position + 1 :] + behind
                assert read_plain_messages(data, magic) == one_by_one(data, magic), (position, changed)
    assert read_plain_messages(messages, magic, count_max=2)[0] == records[:2]


def one_by_one(data: bytes, magic: int) -> tuple[list[Record], int]:
    """Return what `read_plain_messages` returns, by the code that reads any batch."""
    found: list[Record] = []
    position = 0
    try:
        for batch in read_batches(data):
            if batch.magic != magic or batch.compression is not Compression.NONE or batch.has_append_time:
                break
            found += batch.records()
            position += batch.size
    except DecodeError:
        pass
    return found, position
