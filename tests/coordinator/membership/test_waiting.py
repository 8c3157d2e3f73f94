"""Requests that wait: who answers them if nothing comes of it (GP-18, EX-17, GP-41)."""

from __future__ import annotations

from kproto_server.coordinator.groups import GroupState, Member
from kproto_server.coordinator.membership import timers
from kproto_server.coordinator.membership.responses import SyncResult
from kproto_server.coordinator.membership.unloading import unload, unload_all
from tests.coordinator.membership.gathering import RANGE, Coordinator, error_of, joined


def test_a_request_sent_again_gets_the_same_answer_twice() -> None:
    """A client whose connection broke asks again over another one; neither is left waiting."""
    coordinator = Coordinator()
    leader, follower = coordinator.stable_with(2)
    first, second = coordinator.join(leader), coordinator.join(leader)
    assert (first.result, second.result) == (None, None)
    coordinator.join(follower)
    assert joined(first) == joined(second)
    waiting = [coordinator.sync(follower), coordinator.sync(follower)]
    coordinator.sync(leader, {follower: b"part"})
    assert [response.result for response in waiting] == [SyncResult(0, b"part", "consumer", "range")] * 2


def test_a_member_that_leaves_while_it_joins_is_told_so() -> None:
    """GP-18."""
    coordinator = Coordinator()
    leader, _ = coordinator.stable_with(2)
    waiting = coordinator.join(leader)
    coordinator.leave((leader, None))
    assert (error_of(waiting), waiting.result and waiting.result.member_id) == (25, "")


def test_an_instance_may_have_no_name() -> None:
    """As real brokers have it; it is not the same as no instance."""
    coordinator = Coordinator()
    member_id = joined(coordinator.join(instance="")).member_id
    assert member_id.startswith("-")
    assert coordinator.leave(("", None)) == [25]
    assert coordinator.leave(("", "")) == [0]


def test_a_static_twin_fences_who_waits() -> None:
    """GP-18, GP-34."""
    coordinator = Coordinator()
    first, second = coordinator.join(instance="i1", settle=False), coordinator.join(instance="i2", settle=False)
    coordinator.clock.run_due()
    waiting = coordinator.sync(joined(second).member_id, instance="i2")
    twin = coordinator.join(instance="i2")
    assert error_of(waiting) == 82
    again = coordinator.join(instance="i2")
    assert error_of(twin) == 82
    assert again.result is None
    coordinator.join(joined(first).member_id, instance="i1")
    assert joined(again).generation == 2


def test_a_node_that_stops_sends_its_members_elsewhere() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable_with(2)
    waiting, new = coordinator.join(leader), coordinator.join()
    unload(coordinator.state.coordinator, coordinator.state.cluster.nodes[1])
    assert (error_of(waiting), error_of(new)) == (16, 16)
    assert list(coordinator.group.members) == [leader, follower]
    replies = [coordinator.join(leader), coordinator.join(follower)]
    assert {joined(response).generation for response in replies} == {2}


def test_a_node_that_stops_leaves_the_others_groups_alone() -> None:
    coordinator = Coordinator()
    coordinator.stable_with(1)
    new = coordinator.join()
    for partition in coordinator.state.cluster.topics["__consumer_offsets"].partitions:
        partition.leader = 2
    unload(coordinator.state.coordinator, coordinator.state.cluster.nodes[1])
    assert new.result is None


def test_a_broker_that_is_reset_knows_nobody() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable_with(2)
    waiting = coordinator.join(leader)
    unload_all(coordinator.state.coordinator)
    assert error_of(waiting) == 25
    coordinator.state.reset()
    coordinator.pass_time(1_000_000)
    assert coordinator.group_state is GroupState.DEAD
    assert coordinator.heartbeat(follower) == 25


def test_members_from_the_log_have_their_session_timeout_in_full() -> None:
    """EX-17."""
    coordinator = Coordinator()
    coordinator.pass_time(1_000_000)
    group = coordinator.state.coordinator.groups.create("g", coordinator.clock.now_ms())
    group.protocol_type, group.protocol_name, group.generation = "consumer", "range", 7
    group.add_member(Member("m", session_timeout_ms=8000, rebalance_timeout_ms=9000, protocols=RANGE))
    group.state = GroupState.STABLE
    timers.on_group_loaded(coordinator.state.coordinator, group, coordinator.clock.now_ms())
    assert coordinator.heartbeat("m", 7) == 0
    assert coordinator.states_around(8000) == (GroupState.STABLE, GroupState.EMPTY)
    assert group.generation == 8


def test_a_group_from_the_log_that_is_too_large_joins_again() -> None:
    coordinator = Coordinator(group_max_size="1")
    group = coordinator.state.coordinator.groups.create("g", 0)
    group.protocol_type, group.protocol_name, group.generation = "consumer", "range", 7
    for member_id in ("m", "n"):
        group.add_member(Member(member_id, session_timeout_ms=8000, rebalance_timeout_ms=9000, protocols=RANGE))
    group.state = GroupState.STABLE
    timers.on_group_loaded(coordinator.state.coordinator, group, 0)
    assert coordinator.heartbeat("m", 7) == 27
    kept, late = coordinator.join("m"), coordinator.join("n")
    assert error_of(late) == 81
    coordinator.pass_time(9000)
    assert joined(kept).generation == 8
