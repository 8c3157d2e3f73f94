"""Batches of real brokers (fixtures/golden/logs) are decoded and encoded again to the same bytes.

Except for base offset and leader epoch, which the log sets. Batches of transactions, markers and consumer groups are
left out, as kproto writes none.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import pytest

from kproto.records.batches import read_batches
from kproto.records.coordinator import CoordinatorRecord, encode_key
from kproto.records.group_records import GroupMetadataKey, GroupMetadataValue
from kproto.records.offset_records import OffsetCommitKey, OffsetCommitValue
from kproto.records.offsets_topic import read_offsets_record
from kproto.records.record_batch import RecordBatch
from kproto_server.coordinator.groups import Group, GroupState, Member
from kproto_server.coordinator.offsets import OffsetAndMetadata
from kproto_server.coordinator.offsets_log.batches import with_checksum
from kproto_server.coordinator.offsets_log.commits import commit_batch
from kproto_server.coordinator.offsets_log.deletions import deletion_batch, tombstones
from kproto_server.coordinator.offsets_log.groups import group_batch
from kproto_server.coordinator.version_behavior import CoordinatorBehavior
from kproto_server.releases.kafka_version import KafkaVersion
from tests.coordinator.offsets_log.templates import request_of, template_of
from tests.fixture_files import FIXTURES

if TYPE_CHECKING:
    from kproto_server.coordinator.offsets import CommitEntries

RELEASES = ("2.0.1", "2.1.1", "4.4.0")
each_release = pytest.mark.parametrize("release", RELEASES)


def batches(release: str) -> Iterator[tuple[bytes, int, list[CoordinatorRecord]]]:
    """Yield each batch of a kind that kproto writes, with its timestamp and its decoded records."""
    path = FIXTURES / "golden" / "logs" / release / "__consumer_offsets-0" / "00000000000000000000.log"
    for batch in read_batches(path.read_bytes()):
        assert isinstance(batch, RecordBatch)
        if batch.is_transactional or batch.is_control:
            continue
        found = [read_offsets_record(record.key, record.value) for record in batch.records()]
        records = [record for record in found if isinstance(record, CoordinatorRecord)]
        assert len(records) == len(found)
        if all(isinstance(record.key, OffsetCommitKey | GroupMetadataKey) for record in records):
            yield batch.encode(), batch.header.base_timestamp, records


def without_position(batch: bytes) -> bytes:
    """Return a batch without base offset and leader epoch."""
    return bytes(8) + batch[8:12] + bytes(4) + batch[16:]


def commit_of(records: list[CoordinatorRecord]) -> tuple[str, CommitEntries]:
    entries = []
    group_ids = set()
    for record in records:
        key, value = record.key, record.value
        assert isinstance(key, OffsetCommitKey)
        assert isinstance(value, OffsetCommitValue)
        expire_ms = None if value.expire_timestamp == -1 else value.expire_timestamp
        stored = OffsetAndMetadata(
            value.offset, value.leader_epoch, value.metadata, value.commit_timestamp, expire_ms, value.topic_id
        )
        entries.append((key.topic, [(key.partition, stored)]))
        group_ids.add(key.group)
    (group_id,) = group_ids
    return group_id, entries


def group_of(key: GroupMetadataKey, value: GroupMetadataValue) -> Group:
    group = Group(key.group, 0)
    group.state = GroupState.STABLE if value.members else GroupState.EMPTY
    group.protocol_type, group.protocol_name = value.protocol_type, value.protocol
    group.generation, group.leader_id = value.generation, value.leader
    group.state_timestamp_ms = None if value.current_state_timestamp == -1 else value.current_state_timestamp
    for member in value.members:
        group.members[member.member_id] = Member(
            member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            session_timeout_ms=member.session_timeout,
            rebalance_timeout_ms=member.rebalance_timeout,
            metadata=member.subscription,
            assignment=member.assignment,
        )
    return group


@each_release
def test_recorded_commits(release: str) -> None:
    """LF-5, LF-12, OC-33, OC-43."""
    kafka_version = KafkaVersion.named(release)
    count = 0
    for data, now_ms, records in batches(release):
        if any(record.value is None or not isinstance(record.key, OffsetCommitKey) for record in records):
            continue
        group_id, entries = commit_of(records)
        assert commit_batch(group_id, entries, now_ms, kafka_version.behavior(CoordinatorBehavior)) == (
            without_position(data),
            len(records),
        )
        stored = [found for _, partitions in entries for _, found in partitions]
        if all(found.commit_timestamp_ms == now_ms for found in stored):
            expire_ms = stored[0].expire_timestamp_ms
            expires_after_ms = None if expire_ms is None else expire_ms - now_ms
            template = template_of(len(group_id.encode()), entries, kafka_version, expires_after_ms)
            request = request_of(group_id, [found.offset for found in stored])
            assert with_checksum(template.checked(request, now_ms)) == without_position(data)
        count += 1
    assert count >= 8


@each_release
def test_recorded_groups(release: str) -> None:
    """LF-14, LF-15, EX-50."""
    kafka_version = KafkaVersion.named(release)
    found = []
    for data, now_ms, records in batches(release):
        for record in records:
            if isinstance(record.value, GroupMetadataValue):
                assert isinstance(record.key, GroupMetadataKey)
                group = group_of(record.key, record.value)
                assert group_batch(group, now_ms, kafka_version.behavior(CoordinatorBehavior)) == (
                    without_position(data),
                    1,
                )
                found.append(len(group.members))
    assert 0 in found
    assert 1 in found


@each_release
def test_recorded_tombstones(release: str) -> None:
    """EX-30, EX-31; a batch may have tombstones of several groups."""
    kafka_version = KafkaVersion.named(release)
    count = 0
    for data, now_ms, records in batches(release):
        if all(record.value is None for record in records):
            keys = [record.key for record in records]
            assert tombstones(
                [encode_key(key) for key in keys], now_ms, kafka_version.behavior(CoordinatorBehavior)
            ) == without_position(data)
            group_ids = {group_id for group_id, _ in groupby(keys, key=lambda key: key.group)}  # type: ignore[attr-defined]
            if len(group_ids) == 1:
                entries = [(key.topic, [key.partition]) for key in keys if isinstance(key, OffsetCommitKey)]
                made = deletion_batch(
                    group_ids.pop(),
                    entries,
                    len(entries) < len(keys),
                    now_ms,
                    kafka_version.behavior(CoordinatorBehavior),
                )
                assert made == (without_position(data), len(keys))
            count += 1
    assert count >= 2
