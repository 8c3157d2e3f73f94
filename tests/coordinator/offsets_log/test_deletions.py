"""Tombstones as batches (EX-30, EX-31)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from kproto.records.batches import read_records
from kproto_server.coordinator.offsets_log.deletions import deletion_batch
from kproto_server.coordinator.version_behavior import CoordinatorBehavior
from kproto_server.releases.kafka_version import KafkaVersion
from tests.coordinator.behaviors import behavior_of
from tests.coordinator.offsets_log.reference import (
    INT64,
    KAFKA_VERSIONS,
    NAMES,
    NOW,
    PARTITIONS,
    reference_deletion_batch,
)
from tests.records.made import TOMBSTONE_BATCH

if TYPE_CHECKING:
    from kproto_server.coordinator.offsets import DeletionEntries

ENTRIES = st.lists(st.tuples(NAMES, st.lists(PARTITIONS, max_size=3)), max_size=3)


def test_the_tombstone_batch_of_the_specification() -> None:
    """LF-6, which has the batch at offset 1."""
    batch, count = deletion_batch("g1", [("t1", [0])], False, NOW, behavior_of("2.1"))
    assert (1).to_bytes(8, "big") + batch[8:] == TOMBSTONE_BATCH
    assert count == 1


def test_the_tombstone_of_the_group_is_last() -> None:
    """EX-31, LF-13: its key is of type 2."""
    batch, count = deletion_batch("g1", [("t1", [0])], True, NOW, behavior_of("latest"))
    keys = [(record.key or b"").hex() for record in read_records(batch)]
    assert keys == ["0001000267310002743100000000", "000200026731"]
    assert count == 2


@given(
    group_id=NAMES,
    entries=ENTRIES,
    removes_group=st.booleans(),
    now_ms=INT64,
    kafka_version=st.sampled_from(KAFKA_VERSIONS),
    many=st.integers(0, 150),
)
def test_tombstones_equal_the_reference_implementation(
    group_id: str, entries: DeletionEntries, removes_group: bool, now_ms: int, kafka_version: KafkaVersion, many: int
) -> None:
    entries = [*entries, ("many", range(many))]
    count = sum(len(partitions) for _, partitions in entries) + removes_group
    if count:
        batch = deletion_batch(group_id, entries, removes_group, now_ms, kafka_version.behavior(CoordinatorBehavior))
        assert batch == (reference_deletion_batch(group_id, entries, removes_group, now_ms, kafka_version), count)
