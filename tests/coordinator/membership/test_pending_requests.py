"""Pending requests: their response if the member or the coordinator goes away (GP-18, EX-17, GP-41)."""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto_server.coordinator.groups import GroupState, Member
from kproto_server.coordinator.membership import timers
from kproto_server.coordinator.membership.responses import SyncResult
from kproto_server.coordinator.membership.unloading import unload, unload_all
from tests.coordinator.broker_state import ask
from tests.coordinator.change_logs import RecordingLog
from tests.coordinator.membership.group_driver import RANGE, GroupDriver, error_of, joined


def test_a_repeated_request_and_the_first_get_the_same_response() -> None:
    """A client may repeat a request over a new connection; both get a response."""
    driver = GroupDriver()
    leader, follower = driver.stable_with(2)
    first, second = driver.join(leader), driver.join(leader)
    assert (first.result, second.result) == (None, None)
    driver.join(follower)
    assert joined(first) == joined(second)
    waiting = [driver.sync(follower), driver.sync(follower)]
    driver.sync(leader, {follower: b"part"})
    assert [response.result for response in waiting] == [SyncResult(0, b"part", "consumer", "range")] * 2


def test_a_member_that_leaves_gets_unknown_member_id_for_its_join() -> None:
    """GP-18."""
    driver = GroupDriver()
    leader, _ = driver.stable_with(2)
    waiting = driver.join(leader)
    driver.leave((leader, None))
    assert (error_of(waiting), waiting.result and waiting.result.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")


def test_a_member_that_leaves_gets_unknown_member_id_for_its_sync() -> None:
    """GP-18."""
    driver = GroupDriver()
    _, second = driver.join(settle=False), driver.join(settle=False)
    driver.clock.run_due()
    follower = joined(second).member_id
    waiting = driver.sync(follower)
    assert waiting.result is None
    assert driver.leave((follower, None)) == [0]
    assert error_of(waiting) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("kafka_version", "counts"), [("2.8.2", True), ("3.9.2", True), ("4.4.0", False)])
def test_a_sync_of_a_stable_group_is_a_heartbeat_of_the_old_coordinator_only(kafka_version: str, counts: bool) -> None:
    driver = GroupDriver(kafka_version)
    (member_id,) = driver.stable_with(1)
    member = driver.group.members[member_id]
    before_ms = member.session_deadline_ms
    driver.pass_time(5_000)
    assert error_of(driver.sync(member_id)) == 0
    assert member.session_deadline_ms == before_ms + (5_000 if counts else 0)


def test_an_instance_id_may_be_empty() -> None:
    """As in real brokers; it is not the same as null."""
    driver = GroupDriver()
    member_id = joined(driver.join(instance="")).member_id
    assert member_id.startswith("-")
    assert driver.leave(("", None)) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert driver.leave(("", "")) == [0]


def test_a_returning_static_member_fences_a_pending_request() -> None:
    """GP-18, GP-34."""
    driver = GroupDriver()
    first, second = driver.join(instance="i1", settle=False), driver.join(instance="i2", settle=False)
    driver.clock.run_due()
    waiting = driver.sync(joined(second).member_id, instance="i2")
    twin = driver.join(instance="i2")
    assert error_of(waiting) == ErrorCode.FENCED_INSTANCE_ID
    again = driver.join(instance="i2")
    assert error_of(twin) == ErrorCode.FENCED_INSTANCE_ID
    assert again.result is None
    driver.join(joined(first).member_id, instance="i1")
    assert joined(again).generation == 2


def test_a_node_that_stops_fails_pending_requests() -> None:
    driver = GroupDriver()
    leader, follower = driver.stable_with(2)
    waiting, new = driver.join(leader), driver.join()
    unload(driver.state.coordinator, driver.state.coordinator.partitions_led_by(1))
    assert (error_of(waiting), error_of(new)) == (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR)
    assert list(driver.group.members) == [leader, follower]
    replies = [driver.join(leader), driver.join(follower)]
    assert {joined(response).generation for response in replies} == {2}


def test_a_node_that_stops_does_not_affect_groups_of_other_nodes() -> None:
    driver = GroupDriver()
    driver.stable_with(1)
    new = driver.join()
    for partition in driver.state.cluster.topics["__consumer_offsets"].partitions:
        partition.leader = 2
    unload(driver.state.coordinator, driver.state.coordinator.partitions_led_by(1))
    assert new.result is None


def test_a_reset_fails_pending_requests() -> None:
    driver = GroupDriver()
    leader, follower = driver.stable_with(2)
    waiting = driver.join(leader)
    unload_all(driver.state.coordinator)
    assert error_of(waiting) == ErrorCode.UNKNOWN_MEMBER_ID
    driver.state.reset()
    driver.pass_time(1_000_000)
    assert driver.group_state is GroupState.DEAD
    assert driver.heartbeat(follower) == ErrorCode.UNKNOWN_MEMBER_ID


def test_deletion_of_the_offsets_topic_fails_pending_requests() -> None:
    """The groups end with their log: none writes a record over that of a later group with its id."""
    driver = GroupDriver()
    leader, _ = driver.stable_with(2)
    waiting, group = driver.join(leader), driver.group
    ask(driver.state, DeleteTopicsRequest(topic_names=("__consumer_offsets",), timeout_ms=0), 1)
    assert error_of(waiting) == ErrorCode.NOT_COORDINATOR
    assert driver.state.cluster.ensure_offsets_topic(driver.clock.now_ms())
    driver.state.coordinator.log = log = RecordingLog()
    driver.pass_time(1_000_000)
    assert group.state is GroupState.DEAD
    assert log.appended == []


def test_loaded_members_have_a_full_session() -> None:
    """EX-17."""
    driver = GroupDriver()
    driver.pass_time(1_000_000)
    group = driver.state.coordinator.groups.create("g", driver.clock.now_ms())
    group.protocol_type, group.protocol_name, group.generation = "consumer", "range", 7
    group.add_member(Member("m", session_timeout_ms=8000, rebalance_timeout_ms=9000, protocols=RANGE))
    group.state = GroupState.STABLE
    timers.on_group_loaded(driver.state.coordinator, group, driver.clock.now_ms())
    assert driver.heartbeat("m", 7) == 0
    assert driver.states_around(8000) == (GroupState.STABLE, GroupState.EMPTY)
    assert group.generation == 8


def test_a_loaded_group_that_is_too_large_rebalances() -> None:
    driver = GroupDriver(group_max_size="1")
    group = driver.state.coordinator.groups.create("g", 0)
    group.protocol_type, group.protocol_name, group.generation = "consumer", "range", 7
    for member_id in ("m", "n"):
        group.add_member(Member(member_id, session_timeout_ms=8000, rebalance_timeout_ms=9000, protocols=RANGE))
    group.state = GroupState.STABLE
    timers.on_group_loaded(driver.state.coordinator, group, 0)
    assert driver.heartbeat("m", 7) == ErrorCode.REBALANCE_IN_PROGRESS
    kept, late = driver.join("m"), driver.join("n")
    assert error_of(late) == ErrorCode.GROUP_MAX_SIZE_REACHED
    driver.pass_time(9000)
    assert joined(kept).generation == 8
