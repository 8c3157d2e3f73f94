"""Offsets of transactions that have not ended, and the sweeps (EX-23, OC-57, T29)."""

from __future__ import annotations

import pytest

from kproto.declaration import ZERO_UUID
from kproto.records.partitioning import partition_for
from kproto_server.coordinator.offsets import OffsetAndMetadata
from kproto_server.coordinator.pending_offsets import PendingOffset, PendingOffsets
from tests.coordinator.timeline import Timeline

PRODUCER = 7


def with_pending(kafka_version: str, *, partition: int) -> tuple[Timeline, PendingOffsets]:
    """A simple group that committed partition 0 of "t" at 0 s, and one whose transaction has an offset pending."""
    line = Timeline(kafka_version)
    line.commit("t", 0)
    pending = PendingOffsets()
    stored = OffsetAndMetadata(9, -1, "", 0, None, ZERO_UUID)
    pending.add(PRODUCER, ("g", "t", partition), PendingOffset(5, stored))
    line.state.coordinator.pending_offsets[partition_for("g", 50)] = pending
    return line, pending


@pytest.mark.parametrize(("kafka_version", "stays"), [("2.1", False), ("3.9", False), ("4.4", True)])
def test_a_pending_offset_spares_the_visible_one_in_the_new_coordinator(kafka_version: str, stays: bool) -> None:
    """EX-23; the old one takes it, and keeps the group only: measured on 1.1.1 to 3.9.2."""
    line, pending = with_pending(kafka_version, partition=0)
    line.at(70)
    assert line.has() is stays
    pending.end(PRODUCER, commits=False)
    line.at(75)
    assert not line.has()


@pytest.mark.parametrize("kafka_version", ["2.1", "4.4"])
def test_a_group_with_a_pending_offset_stays(kafka_version: str) -> None:
    """OC-57, EX-33."""
    line, pending = with_pending(kafka_version, partition=1)
    group = line.state.coordinator.groups.create("g", line.clock.now_ms())
    line.at(70)
    assert not line.has()
    assert line.state.coordinator.groups.get("g") is group
    pending.end(PRODUCER, commits=False)
    line.at(75)
    assert line.state.coordinator.groups.get("g") is None
