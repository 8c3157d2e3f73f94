"""What expires, to the millisecond, and what is written when it goes; timelines are in `test_expiry_timelines`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.records.partitioning import OFFSETS_TOPIC, partition_for
from kproto_server.coordinator.deletion import forget_topics
from kproto_server.coordinator.expiration import expiration_of
from kproto_server.coordinator.groups import Group, GroupState, Member
from kproto_server.coordinator.offsets import OffsetAndMetadata
from tests.coordinator.behaviors import behavior_of
from tests.coordinator.broker_state import NOW_MS, ask, commit
from tests.coordinator.change_logs import Appended, RecordingLog
from tests.coordinator.timeline import SECOND_MS, Timeline

if TYPE_CHECKING:
    from collections.abc import Callable


R = 60_000


def stored(commit_ms: int = 0, expire_ms: int | None = None) -> OffsetAndMetadata:
    return OffsetAndMetadata(7, -1, "", commit_ms, expire_ms, bytes(16))


def expired_at(
    now_ms: int, group: Group | None, offset: OffsetAndMetadata, kafka_version: str = "4.4", retention_ms: int = R
) -> bool:
    """Whether the one offset of a group, of topic "t", is expired."""
    expiration = expiration_of(group, {"t": {0: offset}}, now_ms, retention_ms, behavior_of(kafka_version))
    return expiration.expired == [("t", [0])]


def a_group(state: GroupState, *, at_ms: int | None = 0, protocol_type: str | None = "consumer") -> Group:
    group = Group("g", 0)
    group.protocol_type = protocol_type
    group.transition_to(state, 0)
    group.state_timestamp_ms = at_ms
    if state is not GroupState.EMPTY:
        group.add_member(Member("m"))
    return group


# The rules, to the millisecond.


@pytest.mark.parametrize("kafka_version", ["2.1", "4.4", "latest"])
def test_the_deadline_itself_is_too_late(kafka_version: str) -> None:
    """EX-20, T26."""
    simple = Group("g", 0)
    for offset in (stored(5), stored(5, expire_ms=5 + R)):
        assert not expired_at(4 + R, simple, offset, kafka_version)
        assert expired_at(5 + R, simple, offset, kafka_version)


@pytest.mark.parametrize("kafka_version", ["0.8.2", "0.10", "1.1", "2.0"])
def test_before_kip_211_the_deadline_itself_was_not(kafka_version: str) -> None:
    """EX-40, EX-41, EX-42, T26: an offset without a deadline in the log counts from its commit."""
    for offset in (stored(5), stored(5, expire_ms=5 + R)):
        assert not expired_at(5 + R, None, offset, kafka_version)
        assert expired_at(6 + R, None, offset, kafka_version)
        assert expired_at(6 + R, a_group(GroupState.STABLE), offset, kafka_version), "whatever the state"


@pytest.mark.parametrize("retention_ms", [R // 2, 2 * R])
def test_another_retention_time_counts_where_none_is_stored(retention_ms: int) -> None:
    """EX-43: before 2.1 it was stored with every commit."""
    then, now = (Timeline(kafka_version) for kafka_version in ("2.0", "2.1"))
    for line in (then, now):
        line.commit()
    before, since = (line.state.coordinator.offsets.of_group("g")["t"][0] for line in (then, now))
    deadline_ms = NOW_MS + SECOND_MS // 2 + R
    assert (before.expire_timestamp_ms, since.expire_timestamp_ms) == (deadline_ms, None)
    assert not expired_at(deadline_ms, None, before, "2.0", retention_ms)
    assert expired_at(deadline_ms + 1, None, before, "2.0", retention_ms)
    simple, changed_ms = Group("g", 0), deadline_ms - R + retention_ms
    assert not expired_at(changed_ms - 1, simple, since, "2.1", retention_ms)
    assert expired_at(changed_ms, simple, since, "2.1", retention_ms)


def test_a_group_of_which_the_log_does_not_say_since_when_it_is_empty() -> None:
    """EX-16, EX-52: each of its offsets counts from its commit."""
    known, unknown = a_group(GroupState.EMPTY, at_ms=1000), a_group(GroupState.EMPTY, at_ms=None)
    assert not expired_at(R + 10, known, stored(10))
    assert expired_at(R + 10, unknown, stored(10))


def test_a_deadline_from_before_an_upgrade_is_kept() -> None:
    """EX-51: neither the broker's retention time nor that of the group counts, but members protect it (EX-24)."""
    old = stored(0, expire_ms=500)
    assert expired_at(500, a_group(GroupState.EMPTY, at_ms=400), old)
    members = a_group(GroupState.STABLE)
    members.subscribed_topics = frozenset({"t"})
    assert not expired_at(10 * R, members, old)
    members.subscribed_topics = frozenset()
    assert expired_at(500, members, old), "what nobody subscribes to is not protected"


REBALANCING = (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE)


@pytest.mark.parametrize(
    ("kafka_version", "stable", "rebalancing"), [("2.3", False, False), ("2.4", True, True), ("2.8", True, False)]
)
def test_states_in_which_consumers_lose_what_they_do_not_subscribe_to(
    kafka_version: str, stable: bool, rebalancing: bool
) -> None:
    """EX-21 row 3: KAFKA-8730, KAFKA-13636."""
    for state in (GroupState.STABLE, *REBALANCING):
        group = a_group(state)
        group.subscribed_topics = frozenset({"u"})
        assert expired_at(R, group, stored(), kafka_version) is (rebalancing if state in REBALANCING else stable)


@pytest.mark.parametrize("kind", ["classic", "consumer"])
def test_an_unknown_subscription_is_one_to_everything(kind: str) -> None:
    """EX-22."""
    group = a_group(GroupState.STABLE)
    group.kind = "consumer" if kind == "consumer" else "classic"
    assert not expired_at(10 * R, group, stored())


@pytest.mark.parametrize("state", [GroupState.STABLE, *REBALANCING])
def test_members_that_are_no_consumers_protect_everything(state: GroupState) -> None:
    """EX-21 rows 4 and 5."""
    group = a_group(state, protocol_type="connect")
    group.subscribed_topics = frozenset()
    assert not expired_at(10 * R, group, stored())
    assert not expired_at(10 * R, group, stored(expire_ms=5))


# What a sweep does.


def with_log(line: Timeline) -> RecordingLog:
    line.state.coordinator.log = log = RecordingLog()
    return log


PARTITION = partition_for("g", 50)


def test_tombstones_are_written_and_synced_before_anything_goes() -> None:
    """EX-30, EX-31: all of a group's in one batch, its own with them."""
    line = Timeline("4.4")
    log = with_log(line)
    line.commit("t", 0)
    line.commit("t", 2)
    line.commit("u", 0)
    log.appended.clear()
    log.waits = True
    assert line.gone(until_s=62) is None
    gone: list[tuple[str, int, int | None]] = [("t", 0, None), ("t", 2, None), ("u", 0, None)]
    assert log.appended == [Appended(PARTITION, "g", gone, removes_group=True)]
    log.settle()
    assert line.group_state() is GroupState.DEAD


@pytest.mark.parametrize(("kafka_version", "is_written"), [("2.0", False), ("3.9", False), ("4.4", True)])
def test_simple_groups_have_no_record_in_the_old_coordinator(kafka_version: str, is_written: bool) -> None:
    """EX-31."""
    line = Timeline(kafka_version)
    log = with_log(line)
    line.commit()
    assert line.gone() is not None
    assert log.appended[-1] == Appended(PARTITION, "g", [("t", 0, None)], removes_group=is_written)
    assert line.group_state() is GroupState.DEAD


def test_a_group_that_had_members_has_a_record_everywhere() -> None:
    """EX-31."""
    line = Timeline("2.1")
    log = with_log(line)
    line.join("t")
    line.commit(member=True)
    line.leave()
    assert line.gone() is not None
    assert Appended(PARTITION, "g", [("t", 0, None)], removes_group=True) in log.appended


def test_what_cannot_be_written_stays_and_goes_with_the_next_sweep() -> None:
    """EX-30."""
    line = Timeline("4.4")
    log = with_log(line)
    line.commit()
    log.error = 56
    assert line.gone(until_s=70) is None
    assert line.group_state() is GroupState.EMPTY
    log.error = 0
    assert line.gone() == pytest.approx(70.5)
    assert line.group_state() is GroupState.DEAD


def test_nobody_sweeps_a_partition_without_a_leader() -> None:
    """EX-3: sweeps are made by whoever owns the offsets partition."""
    line = Timeline("4.4")
    line.commit()
    line.state.cluster.stop_node(1)
    assert line.gone(until_s=90) is None
    line.state.cluster.start_node(1)
    assert line.gone() == pytest.approx(90.5)


@pytest.mark.parametrize(("kafka_version", "first_s"), [("3.9", 0), ("4.0", 10)])
def test_the_first_sweep(kafka_version: str, first_s: int) -> None:
    """EX-3: at once in the old coordinator, an interval after the start in the new one; then at every interval."""
    line = Timeline(kafka_version, offsets_retention_check_interval_ms="10000")
    line.state.coordinator.groups.create("g", NOW_MS)
    if first_s == 0:
        line.expiration_task.start()
        assert line.group_state() is GroupState.DEAD
        return
    line.at(9.4)
    assert line.group_state() is GroupState.EMPTY
    line.at(9.6)
    assert line.group_state() is GroupState.DEAD


def test_a_sweep_is_an_interval_after_the_deadline_at_most() -> None:
    """EX-2, EX-4: between deadline and sweep the offset is still there."""
    line = Timeline("4.4", offsets_retention_check_interval_ms="45000")
    line.commit()
    assert line.gone() == pytest.approx(89.5)


def test_an_empty_group_without_offsets_goes_at_the_next_sweep() -> None:
    """EX-33, EX-34, EX-36: and its id is free."""
    line = Timeline("4.4")
    line.join("t")
    line.at(5)
    line.leave()
    line.at(5.4)
    assert line.group_state() is GroupState.EMPTY
    line.at(5.6)
    assert line.group_state() is GroupState.DEAD
    line.commit()
    group = line.state.coordinator.group("g")
    assert group is not None
    assert (group.generation, group.protocol_type) == (0, None)


def test_a_group_that_loses_its_last_offset_to_a_deletion_goes_at_the_next_sweep() -> None:
    """EX-33, EX-60."""
    line = Timeline("4.4")
    line.commit()
    line.at(5)
    forget_topics(line.state.coordinator, ["t"], line.clock.now_ms())
    assert line.group_state() is GroupState.EMPTY
    line.at(6)
    assert line.group_state() is GroupState.DEAD


def test_offsets_without_a_group_expire_too() -> None:
    """OC-21: before 0.10.1 a commit makes no group."""
    line = Timeline("0.9")
    line.commit(partition=0)
    line.at(30)
    line.commit(partition=1)
    assert line.gone(partition=0) == pytest.approx(60.5)
    assert line.gone(partition=1) == pytest.approx(90.5)
    assert len(line.state.coordinator.offsets) == 0


def test_a_clock_that_is_behind_sweeps_once_and_keeps_its_phase() -> None:
    line = Timeline("4.4")
    log = with_log(line)
    line.commit()
    line.clock._broker_ms += 100_250
    line.clock.run_due()
    assert not line.has()
    expiration_task = len(log.appended)
    line.commit()
    assert line.gone() == pytest.approx(160.5, abs=0.1)
    assert len(log.appended) == expiration_task + 2  # the commit, and its tombstone


# A sweep looks at few groups, and misses none.


def _commit(topic: str, partition: int, ret: int) -> Callable[[Timeline], None]:
    def act(line: Timeline) -> None:
        group = line.state.coordinator.group("g")
        line.commit(topic, partition, ret=ret, member=group is not None and bool(group.members))

    return act


def _join(subscribed: tuple[str, ...], protocol_type: str) -> Callable[[Timeline], None]:
    def act(line: Timeline) -> None:
        line.join(*subscribed, protocol_type=protocol_type)

    return act


def _leave(line: Timeline) -> None:
    group = line.state.coordinator.group("g")
    if group is not None and group.members:
        line.leave()


def _commit_v1(ago_ms: int) -> Callable[[Timeline], None]:
    def act(line: Timeline) -> None:
        group = line.state.coordinator.group("g")
        if line.state.kafka_version.serves(8, 1) and (group is None or group.is_empty):
            line.commit_v1(ago_ms)

    return act


def _resubscribe(topics: tuple[str, ...]) -> Callable[[Timeline], None]:
    def act(line: Timeline) -> None:
        group = line.state.coordinator.group("g")
        if group is not None and group.members:
            group.subscribed_topics = frozenset(topics)

    return act


def _delete_offset(line: Timeline) -> None:
    partition = (OffsetDeleteRequestPartition(partition_index=0),)
    topics = (OffsetDeleteRequestTopic(name="t", partitions=partition),)
    ask(line.state, OffsetDeleteRequest(group_id="g", topics=topics), 0)


def _delete_group(line: Timeline) -> None:
    ask(line.state, DeleteGroupsRequest(groups_names=("g",)), 1)


topics = st.sampled_from(["t", "u"])
subscriptions = st.sampled_from([(), ("t",), ("t", "u")])
acts = st.one_of(
    st.builds(_commit, topics, st.just(0), st.sampled_from([-1, -1, -1, 0, 5_000, 100_000, -2])),
    st.builds(_commit_v1, st.sampled_from([0, 30_000, -30_000])),
    st.builds(_join, subscriptions, st.sampled_from(["consumer", "connect"])),
    st.builds(_resubscribe, subscriptions),
    st.sampled_from([_leave, _leave, _delete_offset, _delete_group]),
)


def test_a_members_commit_expires_at_its_own_deadline() -> None:
    """EX-4: at most one check interval late, although the group itself is due for a look only later."""
    line = Timeline("0.9")
    line.join()
    line.clock.advance(SECOND_MS)
    line.commit("t", ret=0, member=True)
    line.clock.advance(SECOND_MS)
    assert line.committed() == {}


@settings(max_examples=150)
@given(
    st.sampled_from(["0.9", "2.0", "2.1", "2.4", "3.9", "4.4", "latest"]),
    st.lists(st.tuples(acts, st.sampled_from([0, 1, 2, 8, 62, 122, 140])), max_size=10),
)
def test_a_sweep_finds_what_a_walk_over_all_groups_would(
    kafka_version: str, history: list[tuple[Callable[[Timeline], None], int]]
) -> None:
    """Two coordinators live the same; of one every group is touched before every sweep, so that it looks at all."""
    few, all_of_them = Timeline(kafka_version), Timeline(kafka_version)
    for act, pause_halves in history:
        for line in (few, all_of_them):
            act(line)
        for _ in range(pause_halves):
            all_of_them.state.coordinator.groups.touched["g"] = None
            for line in (few, all_of_them):
                line.clock.advance(SECOND_MS // 2)
            assert few.committed() == all_of_them.committed()
            assert few.group_state() is all_of_them.group_state()


def test_eight_days_with_many_groups() -> None:
    """A sweep looks at what is due, not at all there is: 1,152 sweeps cost little more than one look at each group."""
    line = Timeline("4.4", offsets_retention_minutes="10080", offsets_retention_check_interval_ms="600000")
    count = 20_000
    for number in range(count):
        commit(line.state, f"group-{number}", {"t": {0: 7}})
    line.clock.advance(600_000)
    began = time.perf_counter()
    line.clock.advance(6 * 86_400_000)
    quiet_s = time.perf_counter() - began
    assert len(list(line.state.coordinator.all_groups())) == count
    line.clock.advance(2 * 86_400_000)
    assert list(line.state.coordinator.all_groups()) == []
    assert len(line.state.coordinator.offsets) == 0
    assert quiet_s < 0.5, "864 sweeps with nothing to do, which take 2 ms; a walk over all groups takes 40 s"


def test_the_offsets_topic_may_go() -> None:
    """What was in it is forgotten, and what the sweeps had noted of it harms nothing."""
    line = Timeline("4.4")
    line.commit()
    line.at(5)
    forget_topics(line.state.coordinator, ["t"], line.clock.now_ms())
    line.state.cluster.delete_topic(OFFSETS_TOPIC)
    line.at(200)
    assert len(line.state.coordinator.offsets) == 0
