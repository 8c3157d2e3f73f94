"""When a rebalance ends, and which members it has then (GP-20 to GP-26)."""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto.records.consumer_protocol import ConsumerProtocolSubscription, encode_member_data
from kproto_server.coordinator.groups import GroupState
from kproto_server.coordinator.membership.requests import SyncRequest
from kproto_server.coordinator.membership.sync import sync
from tests.coordinator.membership.group_driver import SUBSCRIPTION, GroupDriver, error_of, joined


def test_a_first_rebalance_has_no_delay_by_default() -> None:
    """GP-21."""
    driver = GroupDriver()
    assert joined(driver.join()).generation == 1


def test_members_that_join_at_one_time_are_one_generation() -> None:
    driver = GroupDriver()
    first, second = driver.join(settle=False), driver.join(settle=False)
    assert first.result is None
    driver.clock.run_due()
    assert (joined(first).generation, joined(second).generation) == (1, 1)
    assert len(joined(first).members) == 2
    assert joined(second).members == ()


def test_each_member_that_joins_extends_the_initial_delay() -> None:
    """GP-20, measured on 4.4.0: JoinGroups at 0, 2 and 4.5 s are completed at 8.0 s."""
    driver = GroupDriver(group_initial_rebalance_delay_ms="3000")
    replies = [driver.join(rebalance_ms=8000)]
    driver.pass_time(2000)
    replies.append(driver.join(rebalance_ms=8000))
    driver.pass_time(2500)
    replies.append(driver.join(rebalance_ms=8000))
    driver.pass_time(3499)
    assert [response.result for response in replies] == [None] * 3
    driver.pass_time(1)
    assert {joined(response).generation for response in replies} == {1}


def test_a_first_rebalance_with_one_member_ends_after_one_delay() -> None:
    driver = GroupDriver(group_initial_rebalance_delay_ms="3000")
    response = driver.join()
    driver.pass_time(2999)
    assert response.result is None
    driver.pass_time(1)
    assert joined(response).generation == 1


@pytest.mark.parametrize("kafka_version", ["3.9", "4.4"])
def test_a_member_that_leaves_does_not_end_the_initial_delay(kafka_version: str) -> None:
    """GP-37: the remaining members get their response when the delay is over."""
    driver = GroupDriver(kafka_version, group_initial_rebalance_delay_ms="3000")
    first = driver.join()
    (gone,) = driver.group.members
    second = driver.join()
    driver.pass_time(1000)
    assert driver.leave((gone, None)) == [0]
    assert error_of(first) == ErrorCode.UNKNOWN_MEMBER_ID
    driver.pass_time(4999)
    assert second.result is None
    driver.pass_time(1)
    assert [member.member_id for member in joined(second).members] == [joined(second).member_id]


@pytest.mark.parametrize(("kafka_version", "due_ms"), [("3.9", 3000), ("4.4", 5000)])
def test_only_the_new_coordinator_extends_the_delay_of_a_group_that_had_members(
    kafka_version: str, due_ms: int
) -> None:
    driver = GroupDriver(kafka_version, group_initial_rebalance_delay_ms="3000")
    first = driver.join()
    driver.pass_time(3000)
    driver.leave((joined(first).member_id, None))
    again = driver.join(rebalance_ms=5000)
    driver.pass_time(1000)
    driver.join(rebalance_ms=5000)
    driver.pass_time(due_ms - 1001)
    assert again.result is None
    driver.pass_time(1)
    assert joined(again).generation == 3


def test_releases_before_0_11_have_no_initial_delay() -> None:
    driver = GroupDriver("0.10.2", group_initial_rebalance_delay_ms="3000")
    assert joined(driver.join(settle=False)).generation == 1


def test_members_that_do_not_rejoin_are_removed_at_the_deadline() -> None:
    """GP-22: here the leader; the next member in order of joining leads (GP-24)."""
    driver = GroupDriver()
    leader, *followers = driver.stable_with(3, session_ms=100_000)
    replies = [driver.join(member_id, rebalance_ms=1000, protocols=(("range", b"x"),)) for member_id in followers]
    driver.pass_time(59_999)
    assert [response.result for response in replies] == [None, None]
    assert driver.heartbeat(leader) == ErrorCode.REBALANCE_IN_PROGRESS
    driver.pass_time(1)
    assert {joined(response).leader_id for response in replies} == {followers[0]}
    assert driver.heartbeat(leader) == ErrorCode.UNKNOWN_MEMBER_ID


def test_without_a_joined_member_no_generation_starts() -> None:
    """GP-26: static members that do not rejoin stay members, so the rebalance waits for one of them."""
    driver = GroupDriver()
    static = driver.join(instance="one", session_ms=600_000, rebalance_ms=1000, settle=False)
    other = driver.join(session_ms=600_000, rebalance_ms=1000, settle=False)
    driver.clock.run_due()
    driver.leave((joined(other).member_id, None))
    driver.pass_time(3000)
    assert (driver.group_state, driver.group.generation) == (GroupState.PREPARING_REBALANCE, 1)
    again = driver.join(joined(static).member_id, instance="one", session_ms=600_000, rebalance_ms=1000)
    assert joined(again).generation == 2


@pytest.mark.parametrize("kafka_version", ["2.2", "2.5"])
def test_a_group_of_the_maximum_size_lets_its_members_rejoin(kafka_version: str) -> None:
    """GP-15."""
    driver = GroupDriver(kafka_version, group_max_size="2")
    first, second = driver.stable_with(2)
    assert error_of(driver.join()) == ErrorCode.GROUP_MAX_SIZE_REACHED
    again = driver.join(first, settle=False), driver.join(second, settle=False)
    driver.clock.run_due()
    assert [joined(response).generation for response in again] == [2, 2]


def test_protocols_that_the_group_lacks_are_rejected_with_the_member_id() -> None:
    """GP-12."""
    driver = GroupDriver()
    (member_id,) = driver.stable_with(1)
    for rejected_id in (member_id, ""):
        rejected = driver.join(rejected_id, protocols=(), protocol_type="")
        assert rejected.result is not None
        assert (rejected.result.error, rejected.result.member_id) == (
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            rejected_id,
        )


def test_a_session_begins_again_when_the_assignment_is_distributed() -> None:
    """The session of a follower is not checked while its SyncGroup waits for the leader's."""
    driver = GroupDriver()
    leader, follower = driver.stable_with(2)
    for member_id in (follower, leader):
        driver.join(member_id, protocols=(("range", b"x"),))
    waiting = driver.sync(follower)
    driver.pass_time(8000)
    driver.sync(leader, {leader: b"", follower: b"all"})
    assert waiting.result is not None
    driver.pass_time(5000)
    assert driver.heartbeat(follower) == 0


def test_a_leader_that_rejoins_stays_the_leader() -> None:
    """GP-24."""
    driver = GroupDriver()
    leader, follower = driver.stable_with(2)
    replies = [driver.join(follower, protocols=(("range", b"x"),)), driver.join(leader)]
    assert [joined(response).leader_id for response in replies] == [leader, leader]


def test_the_greatest_rebalance_timeout_counts() -> None:
    """GP-5."""
    driver = GroupDriver()
    driver.stable_with(1, rebalance_ms=7000, session_ms=100_000)
    response = driver.join(rebalance_ms=1000)
    driver.pass_time(6999)
    assert response.result is None
    driver.pass_time(1)
    assert joined(response).generation == 2


def test_members_that_do_not_sync_are_removed() -> None:
    """GP-25, measured on 4.4.0: Empty after the rebalance timeout of 8 s."""
    driver = GroupDriver()
    driver.join(rebalance_ms=8000, session_ms=60_000)
    assert driver.states_around(8000) == (GroupState.COMPLETING_REBALANCE, GroupState.EMPTY)


def test_before_2_8_only_the_session_expires() -> None:
    """GP-25."""
    driver = GroupDriver("2.7")
    driver.join(rebalance_ms=8000, session_ms=60_000)
    assert driver.states_around(60_000) == (GroupState.COMPLETING_REBALANCE, GroupState.EMPTY)


def test_members_that_wait_for_a_silent_leader_rejoin() -> None:
    driver = GroupDriver()
    first, second = driver.join(settle=False), driver.join(settle=False, session_ms=60_000)
    driver.clock.run_due()
    waiting = driver.sync(joined(second).member_id)
    driver.pass_time(10_000)
    assert error_of(waiting) == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(driver.group.members) == [joined(second).member_id]
    assert joined(first).leader_id not in driver.group.members


def test_a_pending_member_id_delays_a_rebalance_until_it_expires() -> None:
    """GP-14."""
    driver = GroupDriver()
    driver.stable_with(1, session_ms=60_000)
    leader = next(iter(driver.group.members))
    driver.join(requires_known_member_id=True, session_ms=5000)
    again = driver.join(leader)
    driver.pass_time(4999)
    assert again.result is None
    driver.pass_time(1)
    assert joined(again).generation == 2
    assert driver.group.pending_members == {}


@pytest.mark.parametrize(("kafka_version", "due_ms"), [("3.9", 60_000), ("4.4", 5_000)])
def test_a_pending_member_id_that_expires_ends_the_initial_delay_of_the_new_coordinator(
    kafka_version: str, due_ms: int
) -> None:
    """GroupMetadataManager.removePendingMemberAndUpdateClassicGroup (measured on 4.4.0)."""
    driver = GroupDriver(kafka_version, group_initial_rebalance_delay_ms="60000")
    driver.join(requires_known_member_id=True, session_ms=5_000)
    first = driver.join()
    driver.pass_time(due_ms - 1)
    assert first.result is None
    driver.pass_time(1)
    assert joined(first).generation == 1


@pytest.mark.parametrize(
    ("kafka_version", "expected"),
    [("3.9", ErrorCode.INCONSISTENT_GROUP_PROTOCOL), ("4.4", ErrorCode.REBALANCE_IN_PROGRESS)],
)
def test_a_group_without_a_generation_has_no_protocol(kafka_version: str, expected: ErrorCode) -> None:
    """GroupMetadataManager.isProtocolInconsistent (measured on 4.4.0): a SyncGroup during the initial delay."""
    driver = GroupDriver(kafka_version, group_initial_rebalance_delay_ms="3000")
    driver.join()
    (member_id,) = driver.group.members
    request = SyncRequest("g", 0, member_id, None, "consumer", "range", {})
    assert error_of(sync(driver.state.coordinator, request, driver.clock.now_ms())) == expected


@pytest.mark.parametrize("kafka_version", ["2.8", "4.4"])
def test_a_pending_member_joins_a_rebalance_without_members(kafka_version: str) -> None:
    """GP-13, measured on 2.8.2 and 4.4.0: with any protocol of the group's type."""
    for protocols, protocol_type, expected in (
        ((("range", b""),), "consumer", 0),
        ((("other", b""),), "consumer", 0),
        ((("range", b""),), "connect", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ):
        driver = GroupDriver(kafka_version)
        (leader,) = driver.stable_with(1)
        pending = driver.join(requires_known_member_id=True)
        assert pending.result is not None
        driver.join(leader)
        assert driver.leave((leader, None)) == [0]
        assert driver.group_state is GroupState.PREPARING_REBALANCE
        response = driver.join(pending.result.member_id, protocols=protocols, protocol_type=protocol_type)
        assert error_of(response) == expected


@pytest.mark.parametrize("kafka_version", ["2.8", "4.4"])
def test_a_member_joins_in_an_initial_delay_after_all_have_left(kafka_version: str) -> None:
    """GP-13, measured on 2.8.2 and 4.4.0."""
    driver = GroupDriver(kafka_version, group_initial_rebalance_delay_ms="3000")
    driver.join()
    (gone,) = driver.group.members
    assert driver.leave((gone, None)) == [0]
    response = driver.join()
    driver.pass_time(6000)
    assert joined(response).member_id in driver.group.members


def test_a_new_member_is_pending_for_at_most_five_minutes() -> None:
    """GP-16: its session timeout does not count before it has an id."""
    driver = GroupDriver()
    driver.stable_with(1, rebalance_ms=1_000_000, session_ms=2_000_000)
    response = driver.join(session_ms=1000)
    driver.pass_time(299_999)
    assert response.result is None
    driver.pass_time(1)
    assert error_of(response) == ErrorCode.UNKNOWN_MEMBER_ID
    assert len(driver.group.members) == 1


def test_a_member_with_a_pending_join_does_not_expire() -> None:
    """GP-38."""
    driver = GroupDriver()
    leader, follower = driver.stable_with(2, session_ms=5000, rebalance_ms=50_000)
    response = driver.join(leader, session_ms=5000, rebalance_ms=50_000)
    for _ in range(4):
        driver.pass_time(4000)
        assert driver.heartbeat(follower) == ErrorCode.REBALANCE_IN_PROGRESS
    assert response.result is None
    driver.pass_time(5000)
    assert joined(response).generation == 2
    assert list(driver.group.members) == [leader]


def test_an_expired_session_causes_a_rebalance() -> None:
    """GP-38."""
    driver = GroupDriver()
    silent, other = driver.stable_with(2)
    driver.pass_time(6000)
    assert driver.heartbeat(other) == 0
    driver.pass_time(4000)
    assert driver.heartbeat(other) == ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.heartbeat(silent) == ErrorCode.UNKNOWN_MEMBER_ID
    assert joined(driver.join(other)).leader_id == other


def test_a_group_is_empty_when_all_sessions_have_expired() -> None:
    """EX-13."""
    driver = GroupDriver()
    driver.stable_with(3)
    driver.pass_time(10_000)
    assert driver.group_state is GroupState.EMPTY
    assert driver.group.generation == 2
    assert driver.group.state_timestamp_ms == driver.clock.now_ms()
    assert (driver.group.protocol_type, driver.group.subscribed_topics) == ("consumer", frozenset())


@pytest.mark.parametrize(("kafka_version", "group_state"), [("0.10.0", GroupState.DEAD), ("0.10.1", GroupState.EMPTY)])
def test_before_0_10_1_a_group_without_members_is_removed(kafka_version: str, group_state: GroupState) -> None:
    driver = GroupDriver(kafka_version)
    (alone,) = driver.stable_with(1)
    driver.leave((alone, None))
    assert driver.group_state is group_state


def test_of_equal_votes_the_earliest_member_decides() -> None:
    """GP-23, GP-24: in real brokers the order of a hash map decides."""
    driver = GroupDriver()
    xy, yx = (("x", b""), ("y", b"")), (("y", b""), ("x", b""))
    first, second = driver.join(protocols=yx, settle=False), driver.join(protocols=xy, settle=False)
    third = driver.join(protocols=xy, settle=False)
    driver.clock.run_due()
    assert joined(first).protocol_name == "x"
    driver.leave((joined(third).member_id, None))
    replies = [driver.join(joined(second).member_id, protocols=xy)]
    replies.append(driver.join(joined(first).member_id, protocols=yx))
    assert {(joined(response).protocol_name, joined(response).leader_id) for response in replies} == {
        ("y", joined(first).member_id)
    }


@pytest.mark.parametrize("kafka_version", ["2.8", "3.9", "4.4"])
@pytest.mark.parametrize("metadata", [b"", b"\0", b"changed", SUBSCRIPTION[:-5]])
def test_metadata_without_a_subscription_is_no_error(kafka_version: str, metadata: bytes) -> None:
    """EX-22: the group counts as subscribed to all topics."""
    driver = GroupDriver(kafka_version)
    assert joined(driver.join(protocols=(("range", metadata),))).generation == 1
    assert driver.group.subscribed_topics is None
    assert driver.group.is_subscribed_to("t")


def test_subscribed_topics_come_from_the_members() -> None:
    """EX-22."""
    driver = GroupDriver()
    other = encode_member_data(ConsumerProtocolSubscription(topics=("u", "t")), 3)
    driver.join(settle=False)
    driver.join(protocols=(("range", other), ("unused", b"")))
    assert driver.group.subscribed_topics == frozenset({"t", "u"})
    connect = GroupDriver()
    connect.join(protocol_type="connect")
    assert connect.group.subscribed_topics is None


@pytest.mark.parametrize(("topics_max", "is_known"), [(4, True), (3, False)])
def test_few_subscribed_topics_of_all_members_are_read(
    monkeypatch: pytest.MonkeyPatch, topics_max: int, is_known: bool
) -> None:
    """EX-22; equal subscriptions count once."""
    monkeypatch.setattr("kproto_server.coordinator.membership.protocols.SUBSCRIBED_TOPICS_MAX", topics_max)
    driver = GroupDriver()
    for topics in ("tu", "tu", "vw"):
        metadata = encode_member_data(ConsumerProtocolSubscription(topics=tuple(topics)), 3)
        driver.join(protocols=(("range", metadata),), settle=topics == "vw")
    assert driver.group.subscribed_topics == (frozenset("tuvw") if is_known else None)


@pytest.mark.parametrize("kafka_version", ["0.9", "0.11", "1.1", "4.4"])
def test_a_first_member_without_protocols_is_rejected(kafka_version: str) -> None:
    """GP-13."""
    assert error_of(GroupDriver(kafka_version).join(protocols=())) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
