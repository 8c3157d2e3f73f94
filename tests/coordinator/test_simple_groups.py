"""Groups that exist by their offsets alone (LF-31): they take no other memory, and clients see no difference."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto_server.clock import Clock, ClockMode
from kproto_server.coordinator.deletion import forget_topics
from kproto_server.coordinator.expiration_task import GROUPS_PER_STEP, ExpirationTask
from kproto_server.coordinator.groups import GroupState
from kproto_server.coordinator.membership.join import join
from kproto_server.coordinator.membership.requests import JoinRequest
from kproto_server.coordinator.offsets import OffsetAndMetadata
from kproto_server.state import BrokerState
from tests.coordinator.broker_state import NOW_MS, ask, commit, commit_request, group_with, new_state
from tests.coordinator.coordinator_timeline import CoordinatorTimeline

MINUTE_MS = 60_000


def listed(state: BrokerState) -> list[str]:
    return [group.group_id for group in ask(state, ListGroupsRequest(), 4).groups]


def test_a_commit_registers_no_group() -> None:
    state = new_state()
    commit(state, "g", {"t": {0: 1}})
    assert len(state.coordinator.groups) == 0
    assert state.coordinator.groups.touched == state.coordinator.offsets.touched == {}
    group = state.coordinator.group("g")
    assert group is not None
    assert (group.state, group.protocol_type, group.generation) == (GroupState.EMPTY, None, 0)
    assert state.coordinator.group("g") is not group, "made for each call"
    assert state.coordinator.group("unknown") is None


@pytest.mark.parametrize(("kafka_version", "there"), [("0.9", False), ("0.10.1", True)])
def test_offsets_create_a_group_since_0_10_1(kafka_version: str, there: bool) -> None:
    """OC-21."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1}}, version=2)
    assert (state.coordinator.group("g") is not None) is there
    assert len(list(state.coordinator.all_groups())) == there


def test_all_groups_are_listed_once() -> None:
    """GP-42: simple groups first, by name; then the others in order of creation."""
    state = new_state()
    group_with(state, "z", GroupState.EMPTY)
    for group_id in ("c", "a", "z", "b"):
        commit(state, group_id, {"t": {0: 1}})
    group_with(state, "b", GroupState.EMPTY)
    assert listed(state) == ["a", "c", "z", "b"]


@pytest.mark.parametrize("kafka_version", ["2.0", "2.8", "4.4"])
def test_a_commit_with_a_member_gets_the_error_of_an_existing_group(kafka_version: str) -> None:
    """OC-22: ILLEGAL_GENERATION if the group does not exist, UNKNOWN_MEMBER_ID if it exists without the member."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1}})
    for group_id, expected in (("g", ErrorCode.UNKNOWN_MEMBER_ID), ("unknown", ErrorCode.ILLEGAL_GENERATION)):
        request = commit_request(group_id, {"t": {0: 2}}, generation_id_or_member_epoch=5, member_id="m")
        (topic,) = ask(state, request, 5).topics
        assert topic.partitions[0].error_code == expected


def test_a_simple_group_can_be_joined() -> None:
    state = new_state()
    commit(state, "g", {"t": {0: 1}})
    request = JoinRequest(
        group_id="g",
        member_id="",
        group_instance_id=None,
        client_id="c",
        client_host="/127.0.0.1",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=(("range", b""),),
        requires_known_member_id=True,
        supports_skipping_assignment=True,
    )
    join(state.coordinator, request, NOW_MS)
    group = state.coordinator.groups.get("g")
    assert group is state.coordinator.group("g")
    assert list(state.coordinator.all_groups()) == [group]


def test_a_group_without_offsets_stays_until_the_next_run() -> None:
    """EX-33, EX-60: Empty, without offsets."""
    timeline = CoordinatorTimeline("4.4")
    timeline.commit()
    timeline.at(5)
    forget_topics(timeline.state.coordinator, ["t"], timeline.clock.now_ms())
    (group,) = ask(timeline.state, DescribeGroupsRequest(groups=("g",)), 5).groups
    assert (group.group_state, listed(timeline.state)) == ("Empty", ["g"])
    timeline.at(6)
    assert listed(timeline.state) == []


# Expiration of many simple groups.


def full_of(count: int, mode: str) -> tuple[BrokerState, Clock]:
    """Return a broker whose groups all expire in the run two minutes after the start."""
    settings = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": str(2 * MINUTE_MS)}
    state = new_state("4.4", settings=settings)
    clock = Clock(NOW_MS, 0, ClockMode.parse(mode))
    ExpirationTask(state.coordinator, clock).start()
    stored = OffsetAndMetadata(7, -1, "", NOW_MS, None, state.cluster.topics["t"].topic_id)
    for number in range(count):
        state.coordinator.offsets.apply_commit(f"group-{number}", [("t", [(0, stored)])], expires_early=False)
    return state, clock


def test_a_run_is_done_in_steps() -> None:
    """Some hundred groups in each step; the next step is a millisecond later."""
    count = 5 * GROUPS_PER_STEP
    state, clock = full_of(count, "real")
    left = [len(state.coordinator.offsets)]
    for real_ms in range(2 * MINUTE_MS, 2 * MINUTE_MS + 50):
        clock.tick(real_ms)
        clock.run_due()
        left.append(len(state.coordinator.offsets))
    taken = [before - after for before, after in pairwise(left)]
    assert sum(taken) == count
    assert max(taken) <= 2 * GROUPS_PER_STEP
    assert sum(1 for number in taken if number) >= 4


def test_a_commit_between_two_steps_is_kept() -> None:
    state, clock = full_of(5 * GROUPS_PER_STEP, "real")
    clock.tick(2 * MINUTE_MS)
    clock.run_due()
    fresh = OffsetAndMetadata(8, -1, "", clock.now_ms(), None, state.cluster.topics["t"].topic_id)
    for number in range(5 * GROUPS_PER_STEP):
        state.coordinator.offsets.apply_commit(f"group-{number}", [("t", [(0, fresh)])], expires_early=False)
    for real_ms in range(2 * MINUTE_MS, 2 * MINUTE_MS + 50):
        clock.tick(real_ms)
        clock.run_due()
    assert len(state.coordinator.offsets) == 5 * GROUPS_PER_STEP


def test_on_a_manual_clock_a_run_has_one_step() -> None:
    state, clock = full_of(5 * GROUPS_PER_STEP, "manual")
    clock.advance(2 * MINUTE_MS - 1)
    assert len(state.coordinator.offsets) == 5 * GROUPS_PER_STEP
    clock.advance(1)
    assert len(state.coordinator.offsets) == 0


def test_a_run_ends_when_all_groups_are_dropped() -> None:
    """By the deletion of the offsets topic. A later commit of a group with an old name is not expired."""
    state, clock = full_of(5 * GROUPS_PER_STEP, "real")
    clock.tick(2 * MINUTE_MS)
    clock.run_due()
    ask(state, DeleteTopicsRequest(topic_names=(OFFSETS_TOPIC,), timeout_ms=0), 1)
    assert len(state.coordinator.offsets) == 0
    assert state.cluster.ensure_offsets_topic(clock.now_ms())
    fresh = OffsetAndMetadata(8, -1, "", clock.now_ms(), None, state.cluster.topics["t"].topic_id)
    for number in range(5 * GROUPS_PER_STEP):
        state.coordinator.offsets.apply_commit(f"group-{number}", [("t", [(0, fresh)])], expires_early=False)
    for real_ms in range(2 * MINUTE_MS, 2 * MINUTE_MS + 50):
        clock.tick(real_ms)
        clock.run_due()
    assert len(state.coordinator.offsets) == 5 * GROUPS_PER_STEP


def test_groups_that_expire_one_by_one_are_found_in_their_buckets() -> None:
    """A run reads only buckets with an expired group; a check of all groups would take milliseconds in each run."""
    timeline = CoordinatorTimeline(
        "4.4", offsets_retention_minutes="10080", offsets_retention_check_interval_ms="600000"
    )
    week_ms, count = 7 * 86_400_000, 3_000
    now_ms, topic_id = timeline.clock.now_ms(), timeline.state.cluster.topics["t"].topic_id
    for number in range(count):
        stored = OffsetAndMetadata(7, -1, "", now_ms - week_ms + number * (week_ms // count), None, topic_id)
        timeline.state.coordinator.offsets.apply_commit(f"group-{number}", [("t", [(0, stored)])], expires_early=False)
    began = time.perf_counter()
    for day in range(1, 8):
        timeline.clock.advance(86_400_000)
        due = sum(1 for number in range(count) if number * (week_ms // count) <= day * 86_400_000 - 1000)
        assert abs(len(timeline.state.coordinator.offsets) - (count - due)) <= 4
    assert len(timeline.state.coordinator.offsets) == 0
    assert time.perf_counter() - began < 5, "it takes 0.05 s"
