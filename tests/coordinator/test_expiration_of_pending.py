"""Offsets of open transactions and the expiration task (EX-23, OC-57, T29)."""

from __future__ import annotations

import pytest

from kproto.declaration import ZERO_UUID
from kproto.records.partitioning import partition_for
from kproto_server.coordinator.offsets import OffsetAndMetadata
from kproto_server.coordinator.pending_offsets import PendingOffset, PendingOffsets
from tests.coordinator.coordinator_timeline import CoordinatorTimeline

PRODUCER = 7


def with_pending(kafka_version: str, *, partition: int) -> tuple[CoordinatorTimeline, PendingOffsets]:
    """Return a simple group with an offset of partition 0 of "t", committed at 0 s, and with a pending offset."""
    timeline = CoordinatorTimeline(kafka_version)
    timeline.commit("t", 0)
    pending = PendingOffsets()
    stored = OffsetAndMetadata(9, -1, "", 0, None, ZERO_UUID)
    pending.add(PRODUCER, ("g", "t", partition), PendingOffset(5, stored))
    timeline.state.coordinator.pending_offsets[partition_for("g", 50)] = pending
    return timeline, pending


@pytest.mark.parametrize(("kafka_version", "stays"), [("2.1", False), ("3.9", False), ("4.4", True)])
def test_a_pending_offset_keeps_the_visible_offset_in_the_new_coordinator(kafka_version: str, stays: bool) -> None:
    """EX-23; the old one expires it and keeps only the group (measured on 1.1.1 to 3.9.2)."""
    timeline, pending = with_pending(kafka_version, partition=0)
    timeline.at(70)
    assert timeline.has() is stays
    pending.end(PRODUCER, commits=False)
    timeline.at(75)
    assert not timeline.has()


@pytest.mark.parametrize("kafka_version", ["2.1", "4.4"])
def test_a_group_with_a_pending_offset_stays(kafka_version: str) -> None:
    """OC-57, EX-33."""
    timeline, pending = with_pending(kafka_version, partition=1)
    group = timeline.state.coordinator.groups.create("g", timeline.clock.now_ms())
    timeline.at(70)
    assert not timeline.has()
    assert timeline.state.coordinator.groups.get("g") is group
    pending.end(PRODUCER, commits=False)
    timeline.at(75)
    assert timeline.state.coordinator.groups.get("g") is None
