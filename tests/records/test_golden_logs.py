"""Segments of brokers of 2.0.1, 2.1.1 and 4.4.0: decoded, compared with the dump of Kafka's tool, and encoded again."""

import json
from pathlib import Path

import pytest

from kproto.errors import DecodeError
from kproto.records.batch_header import CONTROL, TRANSACTIONAL
from kproto.records.batches import read_batches, read_records
from kproto.records.control import ControlType, build_end_marker, read_end_marker
from kproto.records.coordinator import CoordinatorRecord, encode_key, encode_value
from kproto.records.offsets_topic import read_offsets_record
from kproto.records.record_batch import RecordBatch, build_record_batch
from kproto.records.transaction_state import read_transaction_record
from tests.fixture_files import golden_log
from tests.records.dumps import (
    Line,
    Read,
    as_json,
    as_text_of_2_0,
    as_text_of_2_8,
    batch_fields,
    decoded,
    lines_of,
    payload_json,
    record_fields,
)

RELEASES = ("2.0.1", "2.1.1", "4.4.0")
TOPICS: dict[str, Read] = {
    "__consumer_offsets-0": read_offsets_record,
    "__transaction_state-0": read_transaction_record,
}
SEGMENT = "00000000000000000000.log"
each_segment = pytest.mark.parametrize("release", RELEASES)
each_topic = pytest.mark.parametrize("topic", TOPICS)


def directory(release: str, topic: str) -> Path:
    return golden_log(release) / topic


def segment(release: str, topic: str) -> bytes:
    return (directory(release, topic) / SEGMENT).read_bytes()


def dump(release: str, topic: str, name: str = "dump.txt") -> list[Line]:
    return list(lines_of((directory(release, topic) / name).read_text()))


def known(read: Read, key: bytes | None, value: bytes | None) -> CoordinatorRecord:
    found = read(key, value)
    assert isinstance(found, CoordinatorRecord)
    return found


@each_segment
@each_topic
def test_every_batch_is_encoded_to_the_same_bytes(release: str, topic: str) -> None:
    data = segment(release, topic)
    count = 0
    for position, batch, records in decoded(data):
        header = batch.header
        again = build_record_batch(
            [placed.record for placed in records],
            base_offset=header.base_offset,
            last_offset=batch.last_offset,
            base_timestamp=header.base_timestamp,
            max_timestamp=header.max_timestamp,
            partition_leader_epoch=header.partition_leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            flags=header.attributes & (TRANSACTIONAL | CONTROL),
        )
        assert again == batch.encode() == data[position : position + batch.size]
        count += 1
    assert count >= 8


@each_segment
@each_topic
def test_every_key_and_value_is_encoded_to_the_same_bytes(release: str, topic: str) -> None:
    count = 0
    for record in read_records(segment(release, topic)):
        found = known(TOPICS[topic], record.key, record.value)
        assert encode_key(found.key) == record.key
        if found.value is not None:
            assert encode_value(found.value, found.value_version) == record.value
        count += 1
    assert count >= 8


@each_segment
def test_every_marker_is_built_with_the_same_bytes(release: str) -> None:
    outcomes = []
    for batch in read_batches(segment(release, "__consumer_offsets-0")):
        if not batch.is_control:
            continue
        assert isinstance(batch, RecordBatch)
        (record,) = batch.records()
        outcome, coordinator_epoch = read_end_marker(record)
        again = build_end_marker(
            outcome,
            offset=record.offset,
            timestamp=record.timestamp,
            producer_id=batch.header.producer_id,
            producer_epoch=batch.header.producer_epoch,
            coordinator_epoch=coordinator_epoch,
            partition_leader_epoch=batch.header.partition_leader_epoch,
        )
        assert again == batch.encode()
        outcomes.append(outcome)
    assert outcomes == [ControlType.COMMIT, ControlType.ABORT]


@each_topic
def test_a_dump_by_4_4_0_equals_the_decoded_segment(topic: str) -> None:
    lines = iter(dump("4.4.0", topic))
    for position, batch, records in decoded(segment("4.4.0", topic)):
        line = next(lines)
        assert line.fields == batch_fields(position, batch)
        for placed in records:
            line = next(lines)
            assert line.fields.items() <= record_fields(placed).items()
            if batch.is_control:
                assert "endtxnmarker" in line.fields
                continue
            key, payload = as_json(known(TOPICS[topic], placed.record.key, placed.record.value))
            assert line.key is not None
            assert line.payload is not None
            assert json.loads(line.key) == key
            assert payload_json(line.payload) == payload
    assert list(lines) == []


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1"])
def test_a_dump_by_2_8_2_equals_the_decoded_segment(release: str) -> None:
    topic = "__consumer_offsets-0"
    lines = iter(dump(release, topic, "dump-by-2.8.2.txt"))
    for position, batch, records in decoded(segment(release, topic)):
        line = next(lines)
        assert line.fields.items() <= batch_fields(position, batch).items()
        assert "crc" in line.fields
        for placed in records:
            line = next(lines)
            assert line.fields.items() <= record_fields(placed).items()
            if batch.is_control:
                assert "endtxnmarker" in line.fields
                continue
            found = known(read_offsets_record, placed.record.key, placed.record.value)
            assert (line.key, line.payload) == as_text_of_2_8(found)
    assert list(lines) == []


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1"])
@each_topic
def test_a_dump_by_the_release_itself_equals_the_decoded_segment(release: str, topic: str) -> None:
    """The dump of the offsets topic ends at the first group with members, where the tool crashed."""
    records = [placed for _, _, found in decoded(segment(release, topic)) for placed in found]
    lines = dump(release, topic)
    assert len(lines) >= 8
    for line, placed in zip(lines, records, strict=False):
        assert line.fields.items() <= record_fields(placed).items()
        if line.key is not None:
            found = known(TOPICS[topic], placed.record.key, placed.record.value)
            assert (line.key, line.payload) == as_text_of_2_0(found)
    assert (lines[-1].key is None) == (topic == "__consumer_offsets-0")
    assert len(lines) == len(records) or lines[-1].key is None


def test_value_versions_of_each_release() -> None:
    """OC-43: old releases write what the oldest broker of the cluster can read; 4.4 the newest, or v1 with an
    expiry."""
    versions = {
        release: {
            type(found.value).__name__: found.value_version
            for record in read_records(segment(release, "__consumer_offsets-0"))
            if (found := known(read_offsets_record, record.key, record.value)).value is not None
        }
        for release in RELEASES
    }
    assert versions["2.0.1"] == {"OffsetCommitValue": 1, "GroupMetadataValue": 1}
    assert versions["2.1.1"] == {"OffsetCommitValue": 3, "GroupMetadataValue": 2}
    assert versions["4.4.0"]["GroupMetadataValue"] == 3
    assert versions["4.4.0"]["OffsetCommitValue"] == 4
    assert versions["4.4.0"]["ConsumerGroupMetadataValue"] == 0


@each_segment
@each_topic
def test_a_torn_segment_is_read_up_to_its_last_whole_batch(release: str, topic: str) -> None:
    """LF-62."""
    data = segment(release, topic)
    edges = [position for position, _, _ in decoded(data)] + [len(data)]
    for size in range(0, len(data) + 1, 7):
        assert len(list(read_batches(data[:size]))) == sum(edge <= size for edge in edges[1:])


@each_segment
@each_topic
def test_damaged_records_raise_only_decode_error(release: str, topic: str) -> None:
    """Each key and value truncated at each byte, and with each bit flipped; a record that is still read is encoded
    again."""
    read = TOPICS[topic]
    for record in read_records(segment(release, topic)):
        for key, value in damaged(record.key, record.value):
            try:
                found = read(key, value)
            except DecodeError:
                continue
            if isinstance(found, CoordinatorRecord) and found.value is not None:
                assert CoordinatorRecord(found.key, found.value, found.value_version) == read(
                    encode_key(found.key), encode_value(found.value, found.value_version)
                )


def damaged(key: bytes | None, value: bytes | None) -> list[tuple[bytes, bytes | None]]:
    assert key is not None
    found: list[tuple[bytes, bytes | None]] = [(key[:size], value) for size in range(len(key))]
    found += [(flipped(key, bit), value) for bit in range(8 * len(key))]
    if value is not None:
        found += [(key, value[:size]) for size in range(len(value))]
        found += [(key, flipped(value, bit)) for bit in range(8 * len(value))]
    return found


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
