"""When offsets expire, to the millisecond, and which tombstones are written. See also `test_expiration_timelines`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kproto.codes import ErrorCode
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
from tests.coordinator.coordinator_timeline import SECOND_MS, CoordinatorTimeline

if TYPE_CHECKING:
    from collections.abc import Callable


R = 60_000


def stored(commit_ms: int = 0, expire_ms: int | None = None) -> OffsetAndMetadata:
    return OffsetAndMetadata(7, -1, "", commit_ms, expire_ms, bytes(16))


def expired_at(
    now_ms: int, group: Group | None, offset: OffsetAndMetadata, kafka_version: str = "4.4", retention_ms: int = R
) -> bool:
    """Return whether the only offset of a group, in topic "t", is expired."""
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
def test_an_offset_is_expired_at_its_deadline(kafka_version: str) -> None:
    """EX-20, T26."""
    simple = Group("g", 0)
    for offset in (stored(5), stored(5, expire_ms=5 + R)):
        assert not expired_at(4 + R, simple, offset, kafka_version)
        assert expired_at(5 + R, simple, offset, kafka_version)


@pytest.mark.parametrize("kafka_version", ["0.8.2", "0.10", "1.1", "2.0"])
def test_before_kip_211_an_offset_expires_one_millisecond_later(kafka_version: str) -> None:
    """EX-40, EX-41, EX-42, T26: without an expire timestamp in the log the commit timestamp counts."""
    for offset in (stored(5), stored(5, expire_ms=5 + R)):
        assert not expired_at(5 + R, None, offset, kafka_version)
        assert expired_at(6 + R, None, offset, kafka_version)
        assert expired_at(6 + R, a_group(GroupState.STABLE), offset, kafka_version), "in any state"


@pytest.mark.parametrize("retention_ms", [R // 2, 2 * R])
def test_new_retention_time_applies_to_offsets_without_expire_timestamp(retention_ms: int) -> None:
    """EX-43: before 2.1 each commit stored an expire timestamp."""
    then, now = (CoordinatorTimeline(kafka_version) for kafka_version in ("2.0", "2.1"))
    for timeline in (then, now):
        timeline.commit()
    before, since = (timeline.state.coordinator.offsets.of_group("g")["t"][0] for timeline in (then, now))
    deadline_ms = NOW_MS + SECOND_MS // 2 + R
    assert (before.expire_timestamp_ms, since.expire_timestamp_ms) == (deadline_ms, None)
    assert not expired_at(deadline_ms, None, before, "2.0", retention_ms)
    assert expired_at(deadline_ms + 1, None, before, "2.0", retention_ms)
    simple, changed_ms = Group("g", 0), deadline_ms - R + retention_ms
    assert not expired_at(changed_ms - 1, simple, since, "2.1", retention_ms)
    assert expired_at(changed_ms, simple, since, "2.1", retention_ms)


def test_a_group_without_a_state_timestamp() -> None:
    """EX-16, EX-52: the retention time of each offset begins at its commit."""
    known, unknown = a_group(GroupState.EMPTY, at_ms=1000), a_group(GroupState.EMPTY, at_ms=None)
    assert not expired_at(R + 10, known, stored(10))
    assert expired_at(R + 10, unknown, stored(10))


def test_an_expire_timestamp_from_before_an_upgrade_is_kept() -> None:
    """EX-51: neither the broker's retention time nor the group's state counts; members protect the offset (EX-24)."""
    old = stored(0, expire_ms=500)
    assert expired_at(500, a_group(GroupState.EMPTY, at_ms=400), old)
    members = a_group(GroupState.STABLE)
    members.subscribed_topics = frozenset({"t"})
    assert not expired_at(10 * R, members, old)
    members.subscribed_topics = frozenset()
    assert expired_at(500, members, old), "no member subscribes to it"


REBALANCING = (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE)


@pytest.mark.parametrize(
    ("kafka_version", "stable", "rebalancing"), [("2.3", False, False), ("2.4", True, True), ("2.8", True, False)]
)
def test_states_in_which_unsubscribed_offsets_expire(kafka_version: str, stable: bool, rebalancing: bool) -> None:
    """EX-21 row 3: KAFKA-8730, KAFKA-13636."""
    for state in (GroupState.STABLE, *REBALANCING):
        group = a_group(state)
        group.subscribed_topics = frozenset({"u"})
        assert expired_at(R, group, stored(), kafka_version) is (rebalancing if state in REBALANCING else stable)


def test_topics_behind_a_subscribed_one_are_checked() -> None:
    """EX-21 row 3: each topic by itself; the next check is at the first deadline of the remaining offsets."""
    group = a_group(GroupState.STABLE)
    group.subscribed_topics = frozenset({"u"})
    offsets = {"t": {0: stored(5)}, "u": {0: stored()}, "v": {0: stored(), 1: stored(9)}}
    expiration = expiration_of(group, offsets, R, R, behavior_of("4.4"))
    assert expiration == ([("v", [0])], False, R + 5)
    assert expiration_of(group, {"u": {0: stored()}}, R, R, behavior_of("4.4")) == ([], False, 2 * R)


@pytest.mark.parametrize("kind", ["classic", "consumer"])
def test_an_unknown_subscription_counts_for_all_topics(kind: str) -> None:
    """EX-22."""
    group = a_group(GroupState.STABLE)
    group.kind = "consumer" if kind == "consumer" else "classic"
    assert not expired_at(10 * R, group, stored())


@pytest.mark.parametrize("state", [GroupState.STABLE, *REBALANCING])
def test_members_that_are_no_consumers_protect_all_offsets(state: GroupState) -> None:
    """EX-21 rows 4 and 5."""
    group = a_group(state, protocol_type="connect")
    group.subscribed_topics = frozenset()
    assert not expired_at(10 * R, group, stored())
    assert not expired_at(10 * R, group, stored(expire_ms=5))


@pytest.mark.parametrize(("kind", "is_removed"), [("classic", True), ("share", False)])
def test_an_empty_group_without_offsets_is_removed_unless_it_is_a_share_group(kind: str, is_removed: bool) -> None:
    group = a_group(GroupState.EMPTY)
    group.kind = "share" if kind == "share" else "classic"
    assert expiration_of(group, {}, R, R, behavior_of("4.4")) == ([], is_removed, 2 * R)


# The expiration task.


def with_log(timeline: CoordinatorTimeline) -> RecordingLog:
    timeline.state.coordinator.log = log = RecordingLog()
    return log


PARTITION = partition_for("g", 50)


def test_tombstones_are_written_and_synced_before_the_deletion() -> None:
    """EX-30, EX-31: one batch has all tombstones of a group, including its own."""
    timeline = CoordinatorTimeline("4.4")
    log = with_log(timeline)
    timeline.commit("t", 0)
    timeline.commit("t", 2)
    timeline.commit("u", 0)
    log.appended.clear()
    log.waits = True
    assert timeline.gone(until_s=62) is None
    deleted: list[tuple[str, int, int | None]] = [("t", 0, None), ("t", 2, None), ("u", 0, None)]
    assert log.appended == [Appended(PARTITION, "g", deleted, removes_group=True)]
    log.settle()
    assert timeline.group_state() is GroupState.DEAD


@pytest.mark.parametrize(("kafka_version", "is_written"), [("2.0", False), ("3.9", False), ("4.4", True)])
def test_old_coordinator_has_no_record_of_a_simple_group(kafka_version: str, is_written: bool) -> None:
    """EX-31."""
    timeline = CoordinatorTimeline(kafka_version)
    log = with_log(timeline)
    timeline.commit()
    assert timeline.gone() is not None
    assert log.appended[-1] == Appended(PARTITION, "g", [("t", 0, None)], removes_group=is_written)
    assert timeline.group_state() is GroupState.DEAD


def test_a_group_that_had_members_has_a_record_in_all_releases() -> None:
    """EX-31."""
    timeline = CoordinatorTimeline("2.1")
    log = with_log(timeline)
    timeline.join("t")
    timeline.commit(member=True)
    timeline.leave()
    assert timeline.gone() is not None
    assert Appended(PARTITION, "g", [("t", 0, None)], removes_group=True) in log.appended


def test_a_failed_write_is_repeated_by_the_next_run() -> None:
    """EX-30."""
    timeline = CoordinatorTimeline("4.4")
    log = with_log(timeline)
    timeline.commit()
    log.error = ErrorCode.KAFKA_STORAGE_ERROR
    assert timeline.gone(until_s=70) is None
    assert timeline.group_state() is GroupState.EMPTY
    log.error = 0
    assert timeline.gone() == pytest.approx(70.5)
    assert timeline.group_state() is GroupState.DEAD


def test_offsets_of_a_partition_without_leader_do_not_expire() -> None:
    """EX-3: the owner of an offsets partition expires its offsets."""
    timeline = CoordinatorTimeline("4.4")
    timeline.commit()
    timeline.state.cluster.stop_node(1)
    assert timeline.gone(until_s=90) is None
    timeline.state.cluster.start_node(1)
    assert timeline.gone() == pytest.approx(90.5)


@pytest.mark.parametrize(("kafka_version", "first_s"), [("3.9", 0), ("4.0", 10)])
def test_the_first_run(kafka_version: str, first_s: int) -> None:
    """EX-3: at once in the old coordinator, an interval after the start in the new one; then at every interval."""
    timeline = CoordinatorTimeline(kafka_version, offsets_retention_check_interval_ms="10000")
    timeline.state.coordinator.groups.create("g", NOW_MS)
    if first_s == 0:
        timeline.expiration_task.start()
        assert timeline.group_state() is GroupState.DEAD
        return
    timeline.at(9.4)
    assert timeline.group_state() is GroupState.EMPTY
    timeline.at(9.6)
    assert timeline.group_state() is GroupState.DEAD


def test_a_run_is_at_most_an_interval_after_the_deadline() -> None:
    """EX-2, EX-4: between deadline and run the offset still exists."""
    timeline = CoordinatorTimeline("4.4", offsets_retention_check_interval_ms="45000")
    timeline.commit()
    assert timeline.gone() == pytest.approx(89.5)


def test_the_next_run_removes_an_empty_group_without_offsets() -> None:
    """EX-33, EX-34, EX-36: and the id can be used again."""
    timeline = CoordinatorTimeline("4.4")
    timeline.join("t")
    timeline.at(5)
    timeline.leave()
    timeline.at(5.4)
    assert timeline.group_state() is GroupState.EMPTY
    timeline.at(5.6)
    assert timeline.group_state() is GroupState.DEAD
    timeline.commit()
    group = timeline.state.coordinator.group("g")
    assert group is not None
    assert (group.generation, group.protocol_type) == (0, None)


def test_the_next_run_removes_a_group_whose_last_offset_was_deleted() -> None:
    """EX-33, EX-60."""
    timeline = CoordinatorTimeline("4.4")
    timeline.commit()
    timeline.at(5)
    forget_topics(timeline.state.coordinator, ["t"], timeline.clock.now_ms())
    assert timeline.group_state() is GroupState.EMPTY
    timeline.at(6)
    assert timeline.group_state() is GroupState.DEAD


def test_offsets_without_a_group_expire_too() -> None:
    """OC-21: before 0.10.1 a commit creates no group."""
    timeline = CoordinatorTimeline("0.9")
    timeline.commit(partition=0)
    timeline.at(30)
    timeline.commit(partition=1)
    assert timeline.gone(partition=0) == pytest.approx(60.5)
    assert timeline.gone(partition=1) == pytest.approx(90.5)
    assert len(timeline.state.coordinator.offsets) == 0


def test_a_late_clock_runs_once_and_keeps_its_phase() -> None:
    timeline = CoordinatorTimeline("4.4")
    log = with_log(timeline)
    timeline.commit()
    timeline.clock._broker_ms += 100_250
    timeline.clock.run_due()
    assert not timeline.has()
    timeline.commit(partition=1, ret=100)
    assert timeline.gone(partition=1) == pytest.approx(100.5, abs=0.1)
    batch_count = len(log.appended)
    timeline.commit()
    assert timeline.gone() == pytest.approx(161.5, abs=0.1)
    assert len(log.appended) == batch_count + 2  # the commit, and its tombstone


# A run checks few groups, and misses none.


def _commit(topic: str, partition: int, ret: int) -> Callable[[CoordinatorTimeline], None]:
    def act(timeline: CoordinatorTimeline) -> None:
        group = timeline.state.coordinator.group("g")
        timeline.commit(topic, partition, ret=ret, member=group is not None and bool(group.members))

    return act


def _join(subscribed: tuple[str, ...], protocol_type: str) -> Callable[[CoordinatorTimeline], None]:
    def act(timeline: CoordinatorTimeline) -> None:
        timeline.join(*subscribed, protocol_type=protocol_type)

    return act


def _leave(timeline: CoordinatorTimeline) -> None:
    group = timeline.state.coordinator.group("g")
    if group is not None and group.members:
        timeline.leave()


def _commit_v1(ago_ms: int) -> Callable[[CoordinatorTimeline], None]:
    def act(timeline: CoordinatorTimeline) -> None:
        group = timeline.state.coordinator.group("g")
        if timeline.state.kafka_version.serves(8, 1) and (group is None or group.is_empty):
            timeline.commit_v1(ago_ms)

    return act


def _resubscribe(topics: tuple[str, ...]) -> Callable[[CoordinatorTimeline], None]:
    def act(timeline: CoordinatorTimeline) -> None:
        group = timeline.state.coordinator.group("g")
        if group is not None and group.members:
            group.subscribed_topics = frozenset(topics)

    return act


def _delete_offset(timeline: CoordinatorTimeline) -> None:
    partition = (OffsetDeleteRequestPartition(partition_index=0),)
    topics = (OffsetDeleteRequestTopic(name="t", partitions=partition),)
    ask(timeline.state, OffsetDeleteRequest(group_id="g", topics=topics), 0)


def _delete_group(timeline: CoordinatorTimeline) -> None:
    ask(timeline.state, DeleteGroupsRequest(groups_names=("g",)), 1)


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
    """EX-4: at most one interval late, although the group itself waits for a later run."""
    timeline = CoordinatorTimeline("0.9")
    timeline.join()
    timeline.clock.advance(SECOND_MS)
    timeline.commit("t", ret=0, member=True)
    timeline.clock.advance(SECOND_MS)
    assert timeline.committed() == {}


@settings(max_examples=150)
@given(
    st.sampled_from(["0.9", "2.0", "2.1", "2.4", "3.9", "4.4", "latest"]),
    st.lists(st.tuples(acts, st.sampled_from([0, 1, 2, 8, 62, 122, 140])), max_size=10),
)
def test_a_run_finds_what_a_check_of_all_groups_would(
    kafka_version: str, history: list[tuple[Callable[[CoordinatorTimeline], None], int]]
) -> None:
    """Two coordinators get the same events; one of them checks all groups, as they are touched before each run."""
    checks_few, checks_all = CoordinatorTimeline(kafka_version), CoordinatorTimeline(kafka_version)
    for act, pause_halves in history:
        for timeline in (checks_few, checks_all):
            act(timeline)
        for _ in range(pause_halves):
            checks_all.state.coordinator.groups.touched["g"] = None
            for timeline in (checks_few, checks_all):
                timeline.clock.advance(SECOND_MS // 2)
            assert checks_few.committed() == checks_all.committed()
            assert checks_few.group_state() is checks_all.group_state()


def test_eight_days_with_many_groups() -> None:
    """1,152 runs cost little more than one check of each group."""
    timeline = CoordinatorTimeline(
        "4.4", offsets_retention_minutes="10080", offsets_retention_check_interval_ms="600000"
    )
    count = 20_000
    for number in range(count):
        commit(timeline.state, f"group-{number}", {"t": {0: 7}})
    timeline.clock.advance(600_000)
    began = time.perf_counter()
    timeline.clock.advance(6 * 86_400_000)
    quiet_s = time.perf_counter() - began
    assert len(list(timeline.state.coordinator.all_groups())) == count
    timeline.clock.advance(2 * 86_400_000)
    assert list(timeline.state.coordinator.all_groups()) == []
    assert len(timeline.state.coordinator.offsets) == 0
    assert quiet_s < 0.5, "864 runs without a group to check take 2 ms; checks of all groups take 40 s"


def test_the_offsets_topic_may_be_deleted() -> None:
    """Its groups are dropped, and the schedule of the expiration task does no harm."""
    timeline = CoordinatorTimeline("4.4")
    timeline.commit()
    timeline.at(5)
    forget_topics(timeline.state.coordinator, ["t"], timeline.clock.now_ms())
    timeline.state.cluster.delete_topic(OFFSETS_TOPIC)
    timeline.at(200)
    assert len(timeline.state.coordinator.offsets) == 0
