"""The reference implementation of batches, from declared keys, values and headers (D13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from kproto.declaration import ZERO_UUID
from kproto.records.compression import Compression
from kproto.records.coordinator import CoordinatorKey, CoordinatorValue, encode_key, encode_value
from kproto.records.group_records import GroupMetadataKey
from kproto.records.offset_records import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.coordinator.offsets import OffsetAndMetadata
from kproto_server.releases.kafka_version import KafkaVersion, kafka_version_names

if TYPE_CHECKING:
    from kproto_server.coordinator.offsets import CommitEntries, DeletionEntries

NOW = 1700000000000
KAFKA_VERSIONS = [KafkaVersion.named(name) for name in [*kafka_version_names(), "latest"]]

INT64 = st.integers(-(2**63), 2**63 - 1)
EXPIRY = st.none() | INT64
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
METADATA = st.just("") | st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
TOPIC_IDS = st.just(ZERO_UUID) | st.binary(min_size=16, max_size=16)
PARTITIONS = st.integers(0, 2**31 - 1)


@st.composite
def offsets_and_metadata(
    draw: st.DrawFn, commit_ms: st.SearchStrategy[int] = INT64, expire_ms: st.SearchStrategy[int | None] = EXPIRY
) -> OffsetAndMetadata:
    return OffsetAndMetadata(
        offset=draw(INT64),
        leader_epoch=draw(st.just(-1) | st.integers(-(2**31), 2**31 - 1)),
        metadata=draw(METADATA),
        commit_timestamp_ms=draw(commit_ms),
        expire_timestamp_ms=draw(expire_ms),
        topic_id=draw(TOPIC_IDS),
    )


def commits(stored: st.SearchStrategy[OffsetAndMetadata]) -> st.SearchStrategy[CommitEntries]:
    """Return entries with at least one partition, some with many similar ones."""
    few = st.lists(st.tuples(PARTITIONS, stored), max_size=4)
    many = st.builds(lambda one, count: [(index, one) for index in range(count)], stored, st.integers(60, 140))
    topics = st.lists(st.tuples(NAMES, few | many), min_size=1, max_size=3)
    return topics.filter(lambda entries: any(partitions for _, partitions in entries))


def reference_commit_batch(
    group_id: str,
    entries: CommitEntries,
    now_ms: int,
    kafka_version: KafkaVersion,
    compression: Compression = Compression.NONE,
) -> bytes:
    pairs: list[tuple[CoordinatorKey, tuple[CoordinatorValue, int] | None]] = []
    for topic, partitions in entries:
        for partition, stored in partitions:
            pairs.append((offset_key(group_id, topic, partition, kafka_version), offset_value(stored, kafka_version)))
    return reference_batch(pairs, now_ms, 0, compression)


def reference_deletion_batch(
    group_id: str, entries: DeletionEntries, removes_group: bool, now_ms: int, kafka_version: KafkaVersion
) -> bytes:
    keys = [
        offset_key(group_id, topic, partition, kafka_version)
        for topic, partitions in entries
        for partition in partitions
    ]
    if removes_group:
        keys.append(GroupMetadataKey(group=group_id))
    return reference_batch([(key, None) for key in keys], now_ms, 0 if kafka_version.at_least(4, 0) else -1)


def reference_batch(
    pairs: Sequence[tuple[CoordinatorKey, tuple[CoordinatorValue, int] | None]],
    now_ms: int,
    base_sequence: int,
    compression: Compression = Compression.NONE,
) -> bytes:
    records = [
        Record(encode_key(key), None if value is None else encode_value(*value), timestamp=now_ms, offset=delta)
        for delta, (key, value) in enumerate(pairs)
    ]
    return build_record_batch(records, partition_leader_epoch=0, base_sequence=base_sequence, compression=compression)


def offset_key(group_id: str, topic: str, partition: int, kafka_version: KafkaVersion) -> CoordinatorKey:
    kind = OffsetCommitKey if kafka_version.at_least(0, 9) else LegacyOffsetCommitKey
    return kind(group=group_id, topic=topic, partition=partition)


def offset_value(stored: OffsetAndMetadata, kafka_version: KafkaVersion) -> tuple[CoordinatorValue, int]:
    """Return the value that a release writes (OC-43)."""
    if not kafka_version.at_least(0, 9):
        value = LegacyOffsetCommitValue(
            offset=stored.offset, metadata=stored.metadata, commit_timestamp=stored.commit_timestamp_ms
        )
        return value, 0
    if stored.expire_timestamp_ms is not None or not kafka_version.at_least(2, 1):
        version = 1
    else:
        version = 4 if kafka_version.at_least(4, 1) else 3
    return OffsetCommitValue(
        offset=stored.offset,
        leader_epoch=stored.leader_epoch,
        metadata=stored.metadata,
        commit_timestamp=stored.commit_timestamp_ms,
        expire_timestamp=-1 if stored.expire_timestamp_ms is None else stored.expire_timestamp_ms,
        topic_id=stored.topic_id,
    ), version
