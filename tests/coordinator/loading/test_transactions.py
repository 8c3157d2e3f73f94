"""Offsets of transactions, which become visible with the marker (LF-32 to LF-34, OC-56)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kproto.records.control import ControlType
from kproto.records.offset_records import OffsetCommitKey
from kproto_server.coordinator.version_behavior import CoordinatorBehavior
from kproto_server.releases.kafka_version import KafkaVersion
from tests.coordinator.loading.logs import Log, both_ways, loaded, numbers, offset, stored

if TYPE_CHECKING:
    pass


KEY = OffsetCommitKey(group="g", topic="t", partition=0)
COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT

old_and_new = pytest.mark.parametrize("kafka_version", ["2.0", "2.1", "3.9", "4.0", "latest"])


@both_ways
def test_offsets_of_transactions_wait_for_their_marker(decodes_all: bool) -> None:
    """LF-32, LF-33."""
    log = Log()
    for number in range(3):
        log.commit("g", [("t", [(0, stored(number))])])
    log.transaction(1, offset(10), offset(11, partition=1))
    log.transaction(2, offset(20, partition=2))
    log.transaction(3, offset(30, partition=3))
    found = loaded(log.data, decodes_all=decodes_all)
    assert found.offsets_as_dicts() == {"g": {"t": {0: 2}}}
    assert ("g", "t", 1) in found.load.pending
    assert found.load.pending.has_group("g")
    log.marker(1, COMMIT)
    log.marker(2, ABORT)
    found = loaded(log.data, decodes_all=decodes_all)
    assert found.offsets_as_dicts() == {"g": {"t": {0: 10, 1: 11}}}
    assert [(producer_id, place) for producer_id, place, _ in found.load.pending] == [(3, ("g", "t", 3))]
    log.marker(3, ABORT)
    assert not loaded(log.data, decodes_all=decodes_all).load.pending


@both_ways
def test_a_marker_without_a_transaction(decodes_all: bool) -> None:
    """LF-22."""
    log = Log()
    log.marker(1, COMMIT)
    log.commit("g", [("t", [(0, stored(1))])])
    assert numbers(log, decodes_all=decodes_all) == {"g": {"t": {0: 1}}}


@both_ways
@old_and_new
def test_a_later_commit_before_the_marker_wins(kafka_version: str, decodes_all: bool) -> None:
    """OC-56, BA-105: the order of the records decides."""
    log = Log()
    for number in range(3):
        log.commit("g", [("t", [(0, stored(number)), (1, stored(number))])])
        log.commit("g", [("t", [(0, stored(number))])])
    log.transaction(1, offset(10), offset(11, partition=1))
    for number in range(5, 8):
        log.commit("g", [("t", [(0, stored(number))])])
    log.marker(1, COMMIT)
    assert numbers(log, kafka_version, decodes_all=decodes_all) == {"g": {"t": {0: 7, 1: 11}}}
    log.commit("g", [("t", [(0, stored(8)), (1, stored(8))])])
    assert numbers(log, kafka_version, decodes_all=decodes_all) == {"g": {"t": {0: 8, 1: 8}}}


@both_ways
def test_a_later_commit_wins_over_a_marker_after_the_load(decodes_all: bool) -> None:
    """OC-56: pending offsets of a load include the position of the visible record."""
    log = Log()
    for number in range(3):
        log.commit("g", [("t", [(0, stored(number))])])
    log.transaction(1, offset(10), offset(11, partition=1))
    for number in range(5, 8):
        log.commit("g", [("t", [(0, stored(number))])])
    pending = loaded(log.data, decodes_all=decodes_all).load.pending
    assert [(place, one.offset) for place, one in pending.end(1, commits=True)] == [(("g", "t", 1), 11)]


@both_ways
def test_of_two_transactions_the_later_record_wins(decodes_all: bool) -> None:
    """OC-56."""
    log = Log()
    log.transaction(1, offset(10))
    log.transaction(2, offset(20))
    log.marker(2, COMMIT)
    log.marker(1, COMMIT)
    assert numbers(log, decodes_all=decodes_all) == {"g": {"t": {0: 20}}}


@both_ways
def test_the_last_offset_of_a_transaction_wins(decodes_all: bool) -> None:
    log = Log()
    log.transaction(1, offset(10))
    log.transaction(1, offset(12))
    log.marker(1, COMMIT)
    assert numbers(log, decodes_all=decodes_all) == {"g": {"t": {0: 12}}}


@both_ways
@old_and_new
def test_a_tombstone_while_offsets_are_pending(kafka_version: str, decodes_all: bool) -> None:
    """LF-34: the new coordinator deletes pending offsets too."""
    log = Log()
    log.transaction(1, offset(10))
    log.transaction(2, offset(20))
    log.delete("g", [("t", [0])])
    log.marker(1, COMMIT)
    log.marker(2, COMMIT)
    new = KafkaVersion.named(kafka_version).behavior(CoordinatorBehavior).is_new_coordinator
    assert numbers(log, kafka_version, decodes_all=decodes_all) == ({} if new else {"g": {"t": {0: 20}}})


@both_ways
@old_and_new
def test_a_tombstone_within_a_transaction(kafka_version: str, decodes_all: bool) -> None:
    """LF-34: the old coordinator deletes the transaction's pending offset."""
    log = Log()
    for number in range(3):
        log.commit("g", [("t", [(0, stored(number))])])
    log.transaction(1, offset(10), offset(11, partition=1))
    log.transaction(1, (KEY, None))
    log.marker(1, COMMIT)
    new = KafkaVersion.named(kafka_version).behavior(CoordinatorBehavior).is_new_coordinator
    expected = {1: 11} if new else {0: 2, 1: 11}
    assert numbers(log, kafka_version, decodes_all=decodes_all) == {"g": {"t": expected}}
