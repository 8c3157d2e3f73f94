"""Real brokers and tools read kproto's record batches after compaction, transactions and a crash.

The test builds the directory from such batches: a compacted segment (records with gaps between them, an empty batch, a
tombstone with its delete horizon), a second segment, transactions, and half a batch.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kproto.records.batch_header import DELETE_HORIZON, TRANSACTIONAL
from kproto.records.control import ControlType, build_end_marker
from kproto.records.coordinator import encode_key, encode_value
from kproto.records.group_records import GroupMetadataKey, GroupMetadataValue
from kproto.records.offset_records import OffsetCommitKey, OffsetCommitValue
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto.records.segment_files import segment_name
from tests.interop.kafka_dumps import check_dump
from tests.interop.kproto_process import verify
from tests.interop.real_brokers import real_broker, start_on
from tests.interop.served import Committed, Group, served_by

pytestmark = pytest.mark.oracle

SETTINGS = {"offsets.topic.num.partitions": "1"}
DAY_MS = 86_400_000
PRODUCER_ID = 4000


class ReleaseRecords:
    """Builds records in the versions that one release writes."""

    def __init__(self, offset_version: int, group_version: int) -> None:
        self.now_ms = int(time.time() * 1000)
        self._offset_version = offset_version
        self._group_version = group_version

    def commit(self, at: int, group_id: str, partition: int, offset: int, metadata: str = "") -> Record:
        value = OffsetCommitValue(
            offset=offset,
            metadata=metadata,
            commit_timestamp=self.now_ms,
            expire_timestamp=self.now_ms + DAY_MS if self._offset_version == 1 else -1,
        )
        return self._record(at, _offset_key(group_id, partition), encode_value(value, self._offset_version))

    def tombstone(self, at: int, group_id: str, partition: int) -> Record:
        return self._record(at, _offset_key(group_id, partition), None)

    def group(self, at: int, group_id: str) -> Record:
        value = GroupMetadataValue(
            protocol_type="consumer",
            generation=2,
            protocol=None,
            leader=None,
            current_state_timestamp=self.now_ms,
            members=(),
        )
        return self._record(at, encode_key(GroupMetadataKey(group=group_id)), encode_value(value, self._group_version))

    def marker(self, at: int, outcome: ControlType) -> bytes:
        return build_end_marker(
            outcome,
            offset=at,
            timestamp=self.now_ms,
            producer_id=PRODUCER_ID,
            producer_epoch=0,
            coordinator_epoch=0,
            partition_leader_epoch=0,
        )

    def _record(self, at: int, key: bytes, value: bytes | None) -> Record:
        return Record(key, value, timestamp=self.now_ms, offset=at)


def _offset_key(group_id: str, partition: int) -> bytes:
    return encode_key(OffsetCommitKey(group=group_id, topic="t", partition=partition))


def batch(*records: Record, base_offset: int | None = None, last_offset: int | None = None) -> bytes:
    return build_record_batch(
        records, base_offset=base_offset, last_offset=last_offset, partition_leader_epoch=0, base_sequence=0
    )


def in_transaction(*records: Record) -> bytes:
    return build_record_batch(
        records,
        partition_leader_epoch=0,
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        base_sequence=0,
        flags=TRANSACTIONAL,
    )


def compacted_segment(records: ReleaseRecords) -> list[bytes]:
    """Return a segment of offsets 0 to 29 with six records."""
    return [
        batch(
            records.commit(3, "gaps", 0, 30),
            records.commit(7, "gaps", 1, 70, "last of ten"),
            base_offset=0,
            last_offset=9,
        ),
        build_record_batch([], base_offset=10, last_offset=14, partition_leader_epoch=0),
        build_record_batch(
            [records.tombstone(15, "gaps", 2)],
            base_timestamp=records.now_ms + DAY_MS,
            partition_leader_epoch=0,
            flags=DELETE_HORIZON,
        ),
        batch(records.commit(16, "was-a-consumer", 0, 160), last_offset=20),
        batch(records.commit(25, "transactions", 0, 250), records.commit(26, "transactions", 1, 260), last_offset=29),
    ]


def active_segment(records: ReleaseRecords) -> list[bytes]:
    """Return a segment that begins with offset 30."""
    return [
        batch(records.group(30, "was-a-consumer")),
        in_transaction(records.commit(31, "transactions", 0, 310)),
        records.marker(32, ControlType.COMMIT),
        in_transaction(records.commit(33, "transactions", 1, 330)),
        records.marker(34, ControlType.ABORT),
        batch(records.commit(35, "torn", 0, 350)),
    ]


EXPECTED = {
    "gaps": {("t", 0): Committed(30), ("t", 1): Committed(70, -1, "last of ten")},
    "was-a-consumer": {("t", 0): Committed(160)},
    "transactions": {("t", 0): Committed(310), ("t", 1): Committed(260)},
    "torn": {("t", 0): Committed(350)},
}


@pytest.mark.parametrize(
    ("release", "offset_version", "group_version"), [("2.0.1", 1, 1), ("2.8.2", 3, 3), ("4.4.0", 4, 3)]
)
def test_a_real_broker_serves_a_compacted_and_torn_log(
    release: str, offset_version: int, group_version: int, tmp_path: Path
) -> None:
    records = ReleaseRecords(offset_version, group_version)
    log_dir = tmp_path / "data"
    partition = log_dir / "__consumer_offsets-0"
    partition.mkdir(parents=True)
    for base_offset, batches in ((0, compacted_segment(records)), (30, active_segment(records))):
        (partition / segment_name(base_offset)).write_bytes(b"".join(batches))
        (partition / segment_name(base_offset)).with_suffix(".index").touch()
    (partition / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    verify(log_dir)
    assert check_dump(release, log_dir) == 10

    torn = batch(records.commit(36, "torn", 0, 360))[:-7]
    with (partition / segment_name(30)).open("ab") as active:
        active.write(torn)
    with real_broker(release, SETTINGS) as theirs:
        served = served_by(start_on(theirs, log_dir), release, EXPECTED)
        (warning,) = theirs.complaints()

    assert "Corruption found in segment 30, truncating to offset 36" in warning, "LF-61: of the torn tail, nothing else"
    assert served.offsets == EXPECTED
    assert served.groups == {**dict.fromkeys(EXPECTED, Group("Empty")), "was-a-consumer": Group("Empty", "consumer")}
