"""What of a group is written, when, and what members are told if it can't be (EX-12, GP-12, GP-32, GP-33)."""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto.records.batches import read_batch
from kproto.records.group_records import GroupMetadataValue
from kproto.records.offsets_topic import read_offsets_record
from kproto_server.coordinator.change_log import Change
from kproto_server.coordinator.groups import GroupState
from kproto_server.coordinator.write_errors import group_write_error
from tests.coordinator.behaviors import behavior_of
from tests.coordinator.change_logs import RecordingLog
from tests.coordinator.membership.gathering import Coordinator, error_of, joined


class GroupLog(RecordingLog):
    """A log that tells what it was given of groups: protocol type, generation, assignments."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[str, int, list[bytes]]] = []

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        found = read_batch(batch)
        assert found is not None
        for record in found[0].records():
            value = read_offsets_record(record.key, record.value).value
            assert isinstance(value, GroupMetadataValue)
            assignments = [member.assignment for member in value.members]
            self.written.append((value.protocol_type, value.generation, assignments))
        super().append(partition, change, batch, record_count)


def test_a_generation_is_written_with_its_assignments_and_an_empty_group_too() -> None:
    """EX-12."""
    log = GroupLog()
    coordinator = Coordinator("3.9", log)
    first, second = coordinator.join(settle=False), coordinator.join(settle=False)
    coordinator.clock.run_due()
    ids = [joined(first).member_id, joined(second).member_id]
    assert log.written == []
    coordinator.sync(ids[0], {ids[0]: b"one", "ghost": b"none"})
    assert log.written == [("consumer", 1, [b"one", b""])]
    coordinator.leave((ids[0], None), (ids[1], None))
    assert log.written[1:] == [("consumer", 2, [])]


@pytest.mark.parametrize(("kafka_version", "written"), [("3.9", []), ("4.4", [("", 0, [])])])
def test_the_new_coordinator_writes_that_there_is_a_group_before_it_has_members(
    kafka_version: str, written: list[tuple[str, int, list[bytes]]]
) -> None:
    """GP-12."""
    log = GroupLog()
    coordinator = Coordinator(kafka_version, log)
    coordinator.join(requires_known_member_id=True)
    assert log.written == written
    coordinator.join()
    assert log.written == written


def test_nobody_has_an_assignment_before_it_is_written() -> None:
    """GP-32."""
    log = RecordingLog(waits=True)
    coordinator = Coordinator(log=log)
    member_id = joined(coordinator.join()).member_id
    response = coordinator.sync(member_id, {member_id: b"all"})
    assert (response.result, coordinator.group_state) == (None, GroupState.COMPLETING_REBALANCE)
    log.settle()
    assert response.result is not None
    assert (response.result.error, response.result.assignment) == (0, b"all")
    assert coordinator.group_state is GroupState.STABLE


def test_an_assignment_that_comes_too_late_is_dropped() -> None:
    """GP-32: somebody has joined while it was written."""
    log = RecordingLog(waits=True)
    coordinator = Coordinator(log=log)
    member_id = joined(coordinator.join()).member_id
    response = coordinator.sync(member_id, {member_id: b"all"})
    coordinator.join()
    assert error_of(response) == 27
    log.settle()
    assert coordinator.group_state is GroupState.PREPARING_REBALANCE
    assert coordinator.group.members[member_id].assignment == b""


def test_an_assignment_that_can_not_be_written_is_nobodys() -> None:
    """GP-33."""
    log = RecordingLog(ErrorCode.KAFKA_STORAGE_ERROR)
    coordinator = Coordinator(log=log)
    leader, follower = coordinator.join(settle=False), coordinator.join(settle=False)
    coordinator.clock.run_due()
    waiting = coordinator.sync(joined(follower).member_id)
    response = coordinator.sync(joined(leader).member_id, {})
    assert (error_of(response), error_of(waiting)) == (16, 16)
    assert coordinator.group_state is GroupState.PREPARING_REBALANCE


WRITE_ERRORS = [
    ("2.0", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 15),
    ("4.4", ErrorCode.NOT_ENOUGH_REPLICAS, 15),
    ("2.0", ErrorCode.REQUEST_TIMED_OUT, 27),
    ("4.4", ErrorCode.REQUEST_TIMED_OUT, 15),
    ("4.4", ErrorCode.NOT_LEADER_OR_FOLLOWER, 16),
    ("2.8", ErrorCode.KAFKA_STORAGE_ERROR, 16),
    ("4.4", ErrorCode.MESSAGE_TOO_LARGE, -1),
    ("4.4", ErrorCode.CORRUPT_MESSAGE, 2),
]


@pytest.mark.parametrize(("kafka_version", "log_error", "told"), WRITE_ERRORS)
def test_members_are_told_a_write_error_in_words_that_they_know(
    kafka_version: str, log_error: ErrorCode, told: int
) -> None:
    """GP-33; GroupMetadataManager of 2.0.1, 3.8.1."""
    assert group_write_error(log_error, behavior_of(kafka_version)) == told


def test_a_static_member_that_can_not_be_written_has_not_come_back() -> None:
    """GP-34: the old id keeps the place."""
    coordinator = Coordinator()
    old = joined(coordinator.join(instance="i1")).member_id
    coordinator.sync(old, {old: b"all"}, instance="i1")
    coordinator.state.coordinator.log = RecordingLog(ErrorCode.KAFKA_STORAGE_ERROR)
    response = coordinator.join(instance="i1", protocols=(("range", b"other"), ("more", b"")), session_ms=99_000)
    assert error_of(response) == 16
    assert coordinator.heartbeat(old, instance="i1") == 0
    member = coordinator.group.members[old]
    assert (member.session_timeout_ms, member.assignment, len(member.protocols)) == (10_000, b"all", 1)
    assert coordinator.group.leader_id == old
    assert coordinator.group.protocol_counts == {"range": 1}


def test_a_static_member_waits_until_its_new_id_is_written() -> None:
    coordinator = Coordinator()
    old = joined(coordinator.join(instance="i1")).member_id
    coordinator.sync(old, {old: b"all"}, instance="i1")
    coordinator.state.coordinator.log = log = RecordingLog(waits=True)
    response = coordinator.join(instance="i1")
    assert response.result is None
    log.settle()
    assert joined(response).skip_assignment
    assert coordinator.heartbeat(old, instance="i1") == 82


def test_without_an_offsets_topic_nothing_can_be_written() -> None:
    coordinator = Coordinator()
    member_id = joined(coordinator.join()).member_id
    coordinator.state.cluster.delete_topic("__consumer_offsets")
    assert error_of(coordinator.sync(member_id, {})) == 15


def test_a_change_names_its_group() -> None:
    """For whoever deletes what is in flight."""
    log = RecordingLog(waits=True)
    coordinator = Coordinator(log=log)
    member_id = joined(coordinator.join()).member_id
    coordinator.sync(member_id, {})
    changes = list(log.in_flight())
    assert all(isinstance(change, Change) for change in changes)
    assert {change.group_id for change in changes} == {"g"}
