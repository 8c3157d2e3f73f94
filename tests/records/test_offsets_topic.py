"""Records of `__consumer_offsets` and `__transaction_state`: the vectors of LF-13 and LF-14, prefixes, invalid data."""

import pytest

from kproto.declaration import ZERO_UUID
from kproto.errors import DecodeError, EncodeError, UnsupportedVersion
from kproto.records.coordinator import CoordinatorKey, CoordinatorRecord, UnknownRecord, encode_key, encode_value
from kproto.records.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kproto.records.offset_records import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kproto.records.offsets_topic import RECORD_TYPES, read_offsets_record
from kproto.records.transaction_state import TransactionLogKey, TransactionLogValue, read_transaction_record

COMMITTED, EXPIRES = 1700000000000, 1700000060000
KEY = OffsetCommitKey(group="g1", topic="t1", partition=0)
KEY_BYTES = bytes.fromhex("0001000267310002743100000000")
VALUE = OffsetCommitValue(offset=42, leader_epoch=5, metadata="m", commit_timestamp=COMMITTED, expire_timestamp=EXPIRES)
VALUES = {
    0: "0000000000000000002a00016d0000018bcfe56800",
    1: "0001000000000000002a00016d0000018bcfe568000000018bcfe65260",
    2: "0002000000000000002a00016d0000018bcfe56800",
    3: "0003000000000000002a0000000500016d0000018bcfe56800",
    4: "0004000000000000002a00000005026d0000018bcfe5680000",
}
"""LF-13: offset 42, leader epoch 5, metadata "m", the timestamps above."""


def test_the_keys_of_lf_13() -> None:
    assert encode_key(KEY) == KEY_BYTES
    assert encode_key(GroupMetadataKey(group="g1")).hex() == "000200026731"
    assert read_offsets_record(KEY_BYTES, None) == CoordinatorRecord(KEY, None, -1)


@pytest.mark.parametrize(("version", "encoded"), VALUES.items())
def test_the_values_of_lf_13(version: int, encoded: str) -> None:
    """A field that a version lacks is dropped."""
    data = bytes.fromhex(encoded)
    assert encode_value(VALUE, version) == data
    kept = VALUE.replace(leader_epoch=5 if version >= 3 else -1, expire_timestamp=EXPIRES if version == 1 else -1)
    assert read_offsets_record(KEY_BYTES, data) == CoordinatorRecord(KEY, kept, version)


def test_the_topic_id_is_a_tagged_field_of_v4() -> None:
    """LF-12."""
    topic_id = bytes(range(16))
    value = VALUE.replace(topic_id=topic_id)
    data = encode_value(value, 4)
    assert data == bytes.fromhex(VALUES[4])[:-1] + bytes.fromhex("01 00 10") + topic_id
    found = read_offsets_record(KEY_BYTES, data)
    assert isinstance(found.value, OffsetCommitValue)
    assert found.value.topic_id == topic_id
    assert encode_value(value, 3).hex() == VALUES[3]
    assert VALUE.topic_id == ZERO_UUID


def test_the_oldest_type_has_the_same_layout() -> None:
    """LF-11, type 0."""
    key = LegacyOffsetCommitKey(group="g1", topic="t1", partition=0)
    value = LegacyOffsetCommitValue(offset=42, metadata="m", commit_timestamp=COMMITTED)
    assert encode_key(key) == b"\0\0" + KEY_BYTES[2:]
    assert encode_value(value, 0).hex() == VALUES[0]
    assert read_offsets_record(encode_key(key), encode_value(value, 0)) == CoordinatorRecord(key, value, 0)


def test_the_empty_group_of_lf_14() -> None:
    data = bytes.fromhex("00030008636f6e73756d657200000002ffffffff0000018bcfe5680000000000")
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=2,
        protocol=None,
        leader=None,
        current_state_timestamp=COMMITTED,
        members=(),
    )
    assert encode_value(value, 3) == data
    found = read_offsets_record(bytes.fromhex("000200026731"), data)
    assert found == CoordinatorRecord(GroupMetadataKey(group="g1"), value, 3)


@pytest.mark.parametrize(("written", "effective"), [(-1, 30), (60, 60), (0, 0)])
def test_a_member_without_a_rebalance_timeout_has_its_session_timeout(written: int, effective: int) -> None:
    """LF-16."""
    member = MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/127.0.0.1",
        rebalance_timeout=written,
        session_timeout=30,
        subscription=b"",
        assignment=b"",
    )
    assert member.effective_rebalance_timeout() == effective


@pytest.mark.parametrize("number", [-1, 18, 24, 32767])
def test_a_record_of_an_unknown_type_is_returned(number: int) -> None:
    """LF-36."""
    key = number.to_bytes(2, "big", signed=True) + b"more"
    assert read_offsets_record(key, b"value") == UnknownRecord(number, key, b"value")
    assert read_transaction_record(key, None) == UnknownRecord(number, key, None)


def test_the_types_of_kafka_4_4() -> None:
    assert sorted(RECORD_TYPES) == [*range(18), *range(19, 24)]


@pytest.mark.parametrize("key", [None, b"", b"\0"])
def test_a_record_without_a_key_is_refused(key: bytes | None) -> None:
    """LF-36."""
    with pytest.raises(DecodeError, match="record key"):
        read_offsets_record(key, b"value")


@pytest.mark.parametrize("version", [-1, 5, 32767])
def test_a_version_of_the_future_is_refused(version: int) -> None:
    """LF-36: without the value, state would be lost."""
    data = version.to_bytes(2, "big", signed=True) + bytes(20)
    with pytest.raises(DecodeError, match=f"OffsetCommitValue at byte 0: version {version}, only 0 to 4 are known"):
        read_offsets_record(KEY_BYTES, data)


@pytest.mark.parametrize("value", [b"", b"\0"])
def test_a_value_without_a_version_is_refused(value: bytes) -> None:
    with pytest.raises(DecodeError, match="truncated before its version"):
        read_offsets_record(KEY_BYTES, value)


def test_bytes_after_the_end_are_refused() -> None:
    with pytest.raises(DecodeError, match="OffsetCommitKey at byte 14: 1 bytes after the end"):
        read_offsets_record(KEY_BYTES + b"\0", None)
    with pytest.raises(DecodeError, match="OffsetCommitValue at byte 25: 2 bytes after the end"):
        read_offsets_record(KEY_BYTES, bytes.fromhex(VALUES[3]) + b"\0\0")


def test_a_value_is_encoded_in_its_versions_only() -> None:
    with pytest.raises(UnsupportedVersion):
        encode_value(VALUE, 5)
    with pytest.raises(EncodeError, match="metadata"):
        encode_value(VALUE.replace(metadata=None), 3)


def test_a_key_without_a_type_is_not_encoded() -> None:
    class Untyped(CoordinatorKey):
        pass

    with pytest.raises(EncodeError, match="has no record type"):
        encode_key(Untyped())


def test_tagged_fields_of_a_transaction_need_v1() -> None:
    value = TransactionLogValue(
        producer_id=1,
        producer_epoch=2,
        transaction_timeout_ms=3,
        transaction_status=0,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=4,
        transaction_start_timestamp_ms=-1,
    )
    key = TransactionLogKey(transactional_id="tx")
    old = "0000 0000000000000001 0002 00000003 00 ffffffff 0000000000000004 ffffffffffffffff"
    assert encode_value(value, 0) == bytes.fromhex(old)
    tagged = value.replace(previous_producer_id=0, client_transaction_version=2)
    new = "0001 0000000000000001 0002 00000003 00 00 0000000000000004 ffffffffffffffff"
    tags = "02 00 08 0000000000000000 02 02 0002"
    assert encode_value(tagged, 1) == bytes.fromhex(new + tags)
    assert read_transaction_record(encode_key(key), encode_value(tagged, 1)) == CoordinatorRecord(key, tagged, 1)
    with pytest.raises(EncodeError, match="previous_producer_id"):
        encode_value(tagged, 0)
