"""When groups are written to the log, and the responses if a write fails (EX-12, GP-12, GP-32, GP-33)."""

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
from tests.coordinator.broker_state import commit
from tests.coordinator.change_logs import RecordingLog
from tests.coordinator.membership.group_driver import GroupDriver, error_of, joined


class GroupLog(RecordingLog):
    """A log that records the groups it gets: protocol type, generation, assignments."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[str, int, list[bytes]]] = []
        self.state_timestamps: list[int] = []

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        found = read_batch(batch)
        assert found is not None
        for record in found[0].records():
            value = read_offsets_record(record.key, record.value).value
            assert isinstance(value, GroupMetadataValue)
            assignments = [member.assignment for member in value.members]
            self.written.append((value.protocol_type, value.generation, assignments))
            self.state_timestamps.append(value.current_state_timestamp)
        super().append(partition, change, batch, record_count)


def test_a_generation_with_its_assignments_and_an_empty_group_are_written() -> None:
    """EX-12."""
    log = GroupLog()
    driver = GroupDriver("3.9", log)
    first, second = driver.join(settle=False), driver.join(settle=False)
    driver.clock.run_due()
    ids = [joined(first).member_id, joined(second).member_id]
    assert log.written == []
    driver.sync(ids[0], {ids[0]: b"one", "ghost": b"none"})
    assert log.written == [("consumer", 1, [b"one", b""])]
    driver.leave((ids[0], None), (ids[1], None))
    assert log.written[1:] == [("consumer", 2, [])]


@pytest.mark.parametrize(("kafka_version", "written"), [("3.9", []), ("4.4", [("", 0, [])])])
def test_the_new_coordinator_writes_a_new_group_before_it_has_members(
    kafka_version: str, written: list[tuple[str, int, list[bytes]]]
) -> None:
    """GP-12."""
    log = GroupLog()
    driver = GroupDriver(kafka_version, log)
    driver.join(requires_known_member_id=True)
    assert log.written == written
    driver.join()
    assert log.written == written


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("requires_known_member_id", [False, True])
def test_there_is_no_new_group_if_the_log_cannot_write_it(waits: bool, requires_known_member_id: bool) -> None:
    """GP-12: the response that brings a member id does not wait for the log."""
    log = RecordingLog(ErrorCode.KAFKA_STORAGE_ERROR, waits=waits)
    driver = GroupDriver(log=log)
    response = driver.join(requires_known_member_id=requires_known_member_id, settle=False)
    if requires_known_member_id:
        assert error_of(response) == ErrorCode.MEMBER_ID_REQUIRED
        assert response.result is not None
        response = driver.join(response.result.member_id, requires_known_member_id=True, settle=False)
    log.settle()
    assert driver.group_state is GroupState.DEAD
    # What comes after the failed write does not find the group.
    is_late = requires_known_member_id and not waits
    assert error_of(response) == (ErrorCode.UNKNOWN_MEMBER_ID if is_late else ErrorCode.NOT_COORDINATOR)
    driver.pass_time(120_000)
    driver.state.coordinator.log = RecordingLog()
    assert joined(driver.join()).generation == 1


def test_a_new_group_does_not_fail_with_too_few_replicas() -> None:
    """GP-12: its first generation begins before the wait for them times out."""
    log = RecordingLog(ErrorCode.REQUEST_TIMED_OUT, waits=True)
    driver = GroupDriver(log=log)
    response = driver.join()
    log.settle()
    assert joined(response).generation == 1
    assert driver.group_state is GroupState.COMPLETING_REBALANCE


def test_a_new_group_is_written_with_the_time_at_which_it_became_empty() -> None:
    """Offsets of an Empty group expire from then on, after a restart too."""
    log = GroupLog()
    driver = GroupDriver(log=log)
    driver.join(requires_known_member_id=True)
    assert log.state_timestamps == [driver.clock.now_ms()]


def test_a_group_that_exists_by_its_offsets_is_not_written_before_its_first_generation() -> None:
    """GP-12: it is no new group."""
    driver = GroupDriver()
    commit(driver.state, "g", {"t": {0: 7}})
    driver.state.coordinator.log = log = GroupLog()
    member_id = joined(driver.join()).member_id
    assert log.written == []
    driver.sync(member_id, {member_id: b"all"})
    assert log.written == [("consumer", 1, [b"all"])]


def test_assignments_are_distributed_after_the_write() -> None:
    """GP-32."""
    log = RecordingLog(waits=True)
    driver = GroupDriver(log=log)
    member_id = joined(driver.join()).member_id
    response = driver.sync(member_id, {member_id: b"all"})
    assert (response.result, driver.group_state) == (None, GroupState.COMPLETING_REBALANCE)
    log.settle()
    assert response.result is not None
    assert (response.result.error, response.result.assignment) == (0, b"all")
    assert driver.group_state is GroupState.STABLE


def test_a_rebalance_during_the_write_drops_the_assignments() -> None:
    """GP-32: a member joins during the write."""
    log = RecordingLog(waits=True)
    driver = GroupDriver(log=log)
    member_id = joined(driver.join()).member_id
    response = driver.sync(member_id, {member_id: b"all"})
    driver.join()
    assert error_of(response) == ErrorCode.REBALANCE_IN_PROGRESS
    log.settle()
    assert driver.group_state is GroupState.PREPARING_REBALANCE
    assert driver.group.members[member_id].assignment == b""


def test_a_failed_write_fails_all_pending_syncs() -> None:
    """GP-33."""
    driver = GroupDriver()
    leader, follower = driver.join(settle=False), driver.join(settle=False)
    driver.clock.run_due()
    driver.state.coordinator.log = RecordingLog(ErrorCode.KAFKA_STORAGE_ERROR)
    waiting = driver.sync(joined(follower).member_id)
    response = driver.sync(joined(leader).member_id, {})
    assert (error_of(response), error_of(waiting)) == (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR)
    assert driver.group_state is GroupState.PREPARING_REBALANCE


WRITE_ERRORS = [
    ("2.0", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ("4.4", ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ("2.0", ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REBALANCE_IN_PROGRESS),
    ("4.4", ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ("4.4", ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
    ("2.8", ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
    ("4.4", ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ("4.4", ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE),
]


@pytest.mark.parametrize(("kafka_version", "log_error", "error"), WRITE_ERRORS)
def test_write_errors_are_translated_for_members(kafka_version: str, log_error: ErrorCode, error: int) -> None:
    """GP-33; GroupMetadataManager of 2.0.1, 3.8.1."""
    assert group_write_error(log_error, behavior_of(kafka_version)) == error


def test_a_failed_write_restores_the_old_static_member() -> None:
    """GP-34: with the old member id."""
    driver = GroupDriver()
    old = joined(driver.join(instance="i1")).member_id
    driver.sync(old, {old: b"all"}, instance="i1")
    driver.state.coordinator.log = RecordingLog(ErrorCode.KAFKA_STORAGE_ERROR)
    response = driver.join(instance="i1", protocols=(("range", b"other"), ("more", b"")), session_ms=99_000)
    assert response.result is not None
    assert (response.result.error, response.result.member_id) == (ErrorCode.NOT_COORDINATOR, "")
    assert driver.heartbeat(old, instance="i1") == 0
    member = driver.group.members[old]
    assert (member.session_timeout_ms, member.assignment, len(member.protocols)) == (10_000, b"all", 1)
    assert driver.group.leader_id == old
    assert driver.group.protocol_counts == {"range": 1}


def test_a_failed_write_leaves_the_protocols_of_a_rebalance() -> None:
    """Another member has joined again, with the new protocol alone: the old ones have none in common with it."""
    driver = GroupDriver()
    old_protocols, new_protocols = (("p1", b""), ("p2", b"")), (("p1", b""), ("p3", b""))
    pending = [
        driver.join(instance="i1", protocols=old_protocols, settle=False),
        driver.join(protocols=new_protocols, settle=False),
        driver.join(protocols=new_protocols, settle=False),
    ]
    driver.clock.run_due()
    old, follower, late = [joined(response).member_id for response in pending]
    driver.sync(old, {}, instance="i1")
    driver.state.coordinator.log = log = RecordingLog(ErrorCode.KAFKA_STORAGE_ERROR, waits=True)
    returned = driver.join(instance="i1", protocols=new_protocols)
    waiting = [driver.join(follower, protocols=(("p3", b""),))]
    log.waits = False
    log.settle()
    assert error_of(returned) == ErrorCode.NOT_COORDINATOR
    assert driver.group_state is GroupState.PREPARING_REBALANCE
    waiting += [driver.join(instance="i1", protocols=new_protocols), driver.join(late, protocols=new_protocols)]
    assert [joined(response).protocol_name for response in waiting] == ["p3"] * 3


def test_a_static_member_is_pending_until_its_new_id_is_written() -> None:
    driver = GroupDriver()
    old = joined(driver.join(instance="i1")).member_id
    driver.sync(old, {old: b"all"}, instance="i1")
    driver.state.coordinator.log = log = RecordingLog(waits=True)
    response = driver.join(instance="i1")
    assert response.result is None
    log.settle()
    assert joined(response).skip_assignment
    assert driver.heartbeat(old, instance="i1") == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_returns_during_the_write_gets_no_assignment() -> None:
    """GP-34: before 2.5 it does not cause a rebalance; the assignments are those of the old member ids."""
    log = RecordingLog(waits=True)
    driver = GroupDriver("2.4", log=log)
    old = joined(driver.join(instance="i1")).member_id
    driver.sync(old, {old: b"all"}, instance="i1")
    new = joined(driver.join(instance="i1")).member_id
    log.settle()
    assert driver.group_state is GroupState.STABLE
    assert driver.group.members[new].assignment == b""


def test_without_an_offsets_topic_a_write_fails() -> None:
    driver = GroupDriver()
    member_id = joined(driver.join()).member_id
    driver.state.cluster.delete_topic("__consumer_offsets")
    assert error_of(driver.sync(member_id, {})) == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_change_has_its_group_id() -> None:
    """Deletions look for changes in flight."""
    log = RecordingLog(waits=True)
    driver = GroupDriver(log=log)
    member_id = joined(driver.join()).member_id
    driver.sync(member_id, {})
    changes = list(log.in_flight())
    assert all(isinstance(change, Change) for change in changes)
    assert {change.group_id for change in changes} == {"g"}
