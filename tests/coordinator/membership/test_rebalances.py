"""When a rebalance ends, and who is in it then (GP-20 to GP-26)."""

from __future__ import annotations

import pytest

from kproto.records.consumer_protocol import ConsumerProtocolSubscription, encode_member_data
from kproto_server.coordinator.groups import GroupState
from tests.coordinator.membership.gathering import SUBSCRIPTION, Coordinator, error_of, joined


def test_a_first_rebalance_waits_for_nobody_by_default() -> None:
    """GP-21."""
    coordinator = Coordinator()
    assert joined(coordinator.join()).generation == 1


def test_members_that_come_in_one_moment_are_one_generation() -> None:
    coordinator = Coordinator()
    first, second = coordinator.join(settle=False), coordinator.join(settle=False)
    assert first.result is None
    coordinator.clock.run_due()
    assert (joined(first).generation, joined(second).generation) == (1, 1)
    assert len(joined(first).members) == 2
    assert joined(second).members == ()


def test_a_first_rebalance_is_made_longer_by_each_who_comes() -> None:
    """GP-20, as measured on 4.4.0: joins at 0, 2 and 4.5 s are answered at 8.0 s."""
    coordinator = Coordinator(group_initial_rebalance_delay_ms="3000")
    replies = [coordinator.join(rebalance_ms=8000)]
    coordinator.pass_time(2000)
    replies.append(coordinator.join(rebalance_ms=8000))
    coordinator.pass_time(2500)
    replies.append(coordinator.join(rebalance_ms=8000))
    coordinator.pass_time(3499)
    assert [response.result for response in replies] == [None] * 3
    coordinator.pass_time(1)
    assert {joined(response).generation for response in replies} == {1}


def test_a_first_rebalance_that_nobody_else_comes_to_ends_after_one_delay() -> None:
    coordinator = Coordinator(group_initial_rebalance_delay_ms="3000")
    response = coordinator.join()
    coordinator.pass_time(2999)
    assert response.result is None
    coordinator.pass_time(1)
    assert joined(response).generation == 1


@pytest.mark.parametrize("kafka_version", ["3.9", "4.4"])
def test_a_first_rebalance_is_not_cut_short_by_who_leaves(kafka_version: str) -> None:
    """GP-37: whoever is left has joined, and is told so when the time is over."""
    coordinator = Coordinator(kafka_version, group_initial_rebalance_delay_ms="3000")
    first = coordinator.join()
    (gone,) = coordinator.group.members
    second = coordinator.join()
    coordinator.pass_time(1000)
    assert coordinator.leave((gone, None)) == [0]
    assert error_of(first) == 25
    coordinator.pass_time(4999)
    assert second.result is None
    coordinator.pass_time(1)
    assert [member.member_id for member in joined(second).members] == [joined(second).member_id]


@pytest.mark.parametrize(("kafka_version", "due_ms"), [("3.9", 3000), ("4.4", 5000)])
def test_only_the_new_coordinator_makes_the_first_rebalance_of_a_group_that_had_members_longer(
    kafka_version: str, due_ms: int
) -> None:
    coordinator = Coordinator(kafka_version, group_initial_rebalance_delay_ms="3000")
    first = coordinator.join()
    coordinator.pass_time(3000)
    coordinator.leave((joined(first).member_id, None))
    again = coordinator.join(rebalance_ms=5000)
    coordinator.pass_time(1000)
    coordinator.join(rebalance_ms=5000)
    coordinator.pass_time(due_ms - 1001)
    assert again.result is None
    coordinator.pass_time(1)
    assert joined(again).generation == 3


def test_releases_before_011_do_not_wait() -> None:
    coordinator = Coordinator("0.10.2", group_initial_rebalance_delay_ms="3000")
    assert joined(coordinator.join(settle=False)).generation == 1


def test_whoever_does_not_join_again_is_out_when_the_time_is_over() -> None:
    """GP-22: the leader did not; whoever came first of the others leads (GP-24)."""
    coordinator = Coordinator()
    leader, *followers = coordinator.stable_with(3, session_ms=100_000)
    replies = [coordinator.join(member_id, rebalance_ms=1000, protocols=(("range", b"x"),)) for member_id in followers]
    coordinator.pass_time(59_999)
    assert [response.result for response in replies] == [None, None]
    assert coordinator.heartbeat(leader) == 27
    coordinator.pass_time(1)
    assert {joined(response).leader_id for response in replies} == {followers[0]}
    assert coordinator.heartbeat(leader) == 25


def test_a_leader_that_joins_again_stays_the_leader() -> None:
    """GP-24."""
    coordinator = Coordinator()
    leader, follower = coordinator.stable_with(2)
    replies = [coordinator.join(follower, protocols=(("range", b"x"),)), coordinator.join(leader)]
    assert [joined(response).leader_id for response in replies] == [leader, leader]


def test_the_slowest_member_says_how_long_a_rebalance_may_last() -> None:
    """GP-5."""
    coordinator = Coordinator()
    coordinator.stable_with(1, rebalance_ms=7000, session_ms=100_000)
    response = coordinator.join(rebalance_ms=1000)
    coordinator.pass_time(6999)
    assert response.result is None
    coordinator.pass_time(1)
    assert joined(response).generation == 2


def test_members_that_do_not_sync_are_out() -> None:
    """GP-25, as measured on 4.4.0: rebalance timeout 8 s, Empty 8 s later."""
    coordinator = Coordinator()
    coordinator.join(rebalance_ms=8000, session_ms=60_000)
    assert coordinator.states_around(8000) == (GroupState.COMPLETING_REBALANCE, GroupState.EMPTY)


def test_before_2_8_only_their_session_ends() -> None:
    """GP-25."""
    coordinator = Coordinator("2.7")
    coordinator.join(rebalance_ms=8000, session_ms=60_000)
    assert coordinator.states_around(60_000) == (GroupState.COMPLETING_REBALANCE, GroupState.EMPTY)


def test_who_waits_for_a_leader_that_is_silent_joins_again() -> None:
    coordinator = Coordinator()
    first, second = coordinator.join(settle=False), coordinator.join(settle=False, session_ms=60_000)
    coordinator.clock.run_due()
    waiting = coordinator.sync(joined(second).member_id)
    coordinator.pass_time(10_000)
    assert error_of(waiting) == 27
    assert list(coordinator.group.members) == [joined(second).member_id]
    assert joined(first).leader_id not in coordinator.group.members


def test_an_id_that_was_given_out_holds_a_rebalance_up_until_it_lapses() -> None:
    """GP-14."""
    coordinator = Coordinator()
    coordinator.stable_with(1, session_ms=60_000)
    leader = next(iter(coordinator.group.members))
    coordinator.join(requires_known_member_id=True, session_ms=5000)
    again = coordinator.join(leader)
    coordinator.pass_time(4999)
    assert again.result is None
    coordinator.pass_time(1)
    assert joined(again).generation == 2
    assert coordinator.group.pending_members == {}


def test_a_new_member_waits_five_minutes_at_most() -> None:
    """GP-16: its session timeout means nothing before it has an id."""
    coordinator = Coordinator()
    coordinator.stable_with(1, rebalance_ms=1_000_000, session_ms=2_000_000)
    response = coordinator.join(session_ms=1000)
    coordinator.pass_time(299_999)
    assert response.result is None
    coordinator.pass_time(1)
    assert error_of(response) == 25
    assert len(coordinator.group.members) == 1


def test_a_member_whose_join_waits_is_not_silent() -> None:
    """GP-38."""
    coordinator = Coordinator()
    leader, follower = coordinator.stable_with(2, session_ms=5000, rebalance_ms=50_000)
    response = coordinator.join(leader, session_ms=5000, rebalance_ms=50_000)
    for _ in range(4):
        coordinator.pass_time(4000)
        assert coordinator.heartbeat(follower) == 27
    assert response.result is None
    coordinator.pass_time(5000)
    assert joined(response).generation == 2
    assert list(coordinator.group.members) == [leader]


def test_silent_members_make_the_others_join_again() -> None:
    """GP-38."""
    coordinator = Coordinator()
    silent, other = coordinator.stable_with(2)
    coordinator.pass_time(6000)
    assert coordinator.heartbeat(other) == 0
    coordinator.pass_time(4000)
    assert coordinator.heartbeat(other) == 27
    assert coordinator.heartbeat(silent) == 25
    assert joined(coordinator.join(other)).leader_id == other


def test_a_group_whose_members_are_all_silent_is_empty() -> None:
    """EX-13."""
    coordinator = Coordinator()
    coordinator.stable_with(3)
    coordinator.pass_time(10_000)
    assert coordinator.group_state is GroupState.EMPTY
    assert coordinator.group.generation == 2
    assert coordinator.group.state_timestamp_ms == coordinator.clock.now_ms()
    assert (coordinator.group.protocol_type, coordinator.group.subscribed_topics) == ("consumer", frozenset())


@pytest.mark.parametrize(("kafka_version", "group_state"), [("0.10.0", GroupState.DEAD), ("0.10.1", GroupState.EMPTY)])
def test_a_group_without_members_is_gone_before_0_10_1(kafka_version: str, group_state: GroupState) -> None:
    coordinator = Coordinator(kafka_version)
    (alone,) = coordinator.stable_with(1)
    coordinator.leave((alone, None))
    assert coordinator.group_state is group_state


def test_the_earliest_member_decides() -> None:
    """GP-23, GP-24: where real brokers go by the order of a hash map."""
    coordinator = Coordinator()
    xy, yx = (("x", b""), ("y", b"")), (("y", b""), ("x", b""))
    first, second = coordinator.join(protocols=yx, settle=False), coordinator.join(protocols=xy, settle=False)
    third = coordinator.join(protocols=xy, settle=False)
    coordinator.clock.run_due()
    assert joined(first).protocol_name == "x"
    coordinator.leave((joined(third).member_id, None))
    replies = [coordinator.join(joined(second).member_id, protocols=xy)]
    replies.append(coordinator.join(joined(first).member_id, protocols=yx))
    assert {(joined(response).protocol_name, joined(response).leader_id) for response in replies} == {
        ("y", joined(first).member_id)
    }


@pytest.mark.parametrize("kafka_version", ["2.8", "3.9", "4.4"])
@pytest.mark.parametrize("metadata", [b"", b"\0", b"changed", SUBSCRIPTION[:-5]])
def test_metadata_that_are_no_subscription_are_no_error(kafka_version: str, metadata: bytes) -> None:
    """EX-22: the group is taken to read everything."""
    coordinator = Coordinator(kafka_version)
    assert joined(coordinator.join(protocols=(("range", metadata),))).generation == 1
    assert coordinator.group.subscribed_topics is None
    assert coordinator.group.is_subscribed_to("t")


def test_members_say_what_they_read() -> None:
    """EX-22."""
    coordinator = Coordinator()
    other = encode_member_data(ConsumerProtocolSubscription(topics=("u", "t")), 3)
    coordinator.join(settle=False)
    coordinator.join(protocols=(("range", other), ("unused", b"")))
    assert coordinator.group.subscribed_topics == frozenset({"t", "u"})
    connect = Coordinator()
    connect.join(protocol_type="connect")
    assert connect.group.subscribed_topics is None


@pytest.mark.parametrize("kafka_version", ["0.9", "0.11", "1.1", "4.4"])
def test_a_first_member_without_protocols_is_refused(kafka_version: str) -> None:
    """GP-13."""
    assert error_of(Coordinator(kafka_version).join(protocols=())) == 23
