"""Control records (LF-21): the marker of LF-6, round trips, and malformed records."""

import pytest

from kproto.errors import DecodeError
from kproto.records.batch_header import APPEND_TIME, CONTROL, TRANSACTIONAL
from kproto.records.control import (
    MARKER_SIZE_BYTES,
    ControlRecordTypeSchema,
    ControlType,
    EndTxnMarker,
    build_end_marker,
    control_type,
    read_end_marker,
)
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch, read_record_batch
from tests.records.made import COMMIT_MARKER, NOW

COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT


def test_the_marker_of_lf_6() -> None:
    batch, _ = read_record_batch(COMMIT_MARKER)
    assert batch.is_control
    assert batch.is_transactional
    (record,) = batch.records()
    assert read_end_marker(record) == (COMMIT, 0)
    built = build_end_marker(
        COMMIT,
        offset=2,
        timestamp=NOW,
        producer_id=4000,
        producer_epoch=3,
        coordinator_epoch=0,
        partition_leader_epoch=0,
    )
    assert built == COMMIT_MARKER


@pytest.mark.parametrize("outcome", [COMMIT, ABORT])
def test_a_built_marker_is_read(outcome: ControlType) -> None:
    data = build_end_marker(
        outcome, offset=9, timestamp=8, producer_id=7, producer_epoch=6, coordinator_epoch=5, partition_leader_epoch=4
    )
    batch, _ = read_record_batch(data)
    header = batch.header
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 6, -1)
    assert (header.base_offset, header.base_timestamp, header.partition_leader_epoch) == (9, 8, 4)
    assert read_end_marker(batch.records()[0]) == (outcome, 5)


@pytest.mark.parametrize("has_append_time", [False, True])
def test_a_built_marker_is_the_batch_of_its_record(has_append_time: bool) -> None:
    key = bytes(2) + ControlRecordTypeSchema(type=COMMIT).encode(0)
    value = bytes(2) + EndTxnMarker(coordinator_epoch=2**31 - 1).encode(0)
    built = build_end_marker(
        COMMIT,
        offset=9,
        timestamp=NOW,
        producer_id=2**63 - 1,
        producer_epoch=2**15 - 1,
        coordinator_epoch=2**31 - 1,
        partition_leader_epoch=3,
        has_append_time=has_append_time,
    )
    declared = build_record_batch(
        [Record(key, value, timestamp=NOW, offset=9)],
        flags=TRANSACTIONAL | CONTROL | (APPEND_TIME if has_append_time else 0),
        producer_id=2**63 - 1,
        producer_epoch=2**15 - 1,
        partition_leader_epoch=3,
    )
    assert built == declared
    assert len(built) == MARKER_SIZE_BYTES


def test_newer_versions_are_read_by_their_first_fields() -> None:
    record = Record(bytes.fromhex("0001 0000 77"), bytes.fromhex("0001 00000003 77"))
    assert read_end_marker(record) == (ABORT, 3)


@pytest.mark.parametrize("number", [*range(2, 7), 7, -1, 32767])
def test_other_types_are_returned_and_do_not_end_a_transaction(number: int) -> None:
    key = b"\0\0" + number.to_bytes(2, "big", signed=True)
    assert control_type(key) == number
    with pytest.raises(DecodeError, match=f"control record key at byte 2: type {number} does not end a transaction"):
        read_end_marker(Record(key, bytes(6)))


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", bytes.fromhex("ffff0000"), bytes.fromhex("80000000")])
def test_a_malformed_key_is_refused(key: bytes | None) -> None:
    with pytest.raises(DecodeError, match="control record key at byte 0"):
        control_type(key)


@pytest.mark.parametrize("value", [None, b"", bytes(5), bytes.fromhex("ffff00000000")])
def test_a_malformed_value_is_refused(value: bytes | None) -> None:
    with pytest.raises(DecodeError, match="EndTxnMarker at byte 0"):
        read_end_marker(Record(bytes(4), value))
