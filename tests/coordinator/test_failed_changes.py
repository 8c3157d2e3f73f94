"""A change of a group with epochs whose write fails: the group, its timers and the registry are as before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto.messages.k88_streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kproto_server.coordinator.deletion import delete_group, delete_offsets
from kproto_server.coordinator.groups import GroupState
from kproto_server.coordinator.offsets import OffsetAndMetadata
from kproto_server.coordinator.transactional_offsets import add_offsets, pending_of
from kproto_server.deferred import DelayedOperation
from kproto_server.testing import virtual_clock
from tests.consumer_groups.members import Conversation
from tests.coordinator.broker_state import ask, new_state
from tests.coordinator.change_logs import RecordingLog
from tests.coordinator.membership.group_driver import SUBSCRIPTION, GroupDriver
from tests.membership.in_memory_transport import InMemoryTransport
from tests.simulator.clients.streams_member import topology

if TYPE_CHECKING:
    from kproto.message import Request
    from kproto_server.coordinator.change_log import Change
    from kproto_server.state import BrokerState

KINDS = ("consumer", "share", "streams")
STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)
LATER_MS = 120_000
"""More than the session timeouts and the rebalance timeouts."""


class RefusingLog(RecordingLog):
    """A log that waits, and refuses some changes at once."""

    refuses = False

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        if self.refuses:
            change.settle(STORAGE_ERROR)
        else:
            super().append(partition, change, batch, record_count)


def join(state: BrokerState, kind: str, member_id: str) -> Any:
    """Return the response, or the deferred one, to the first heartbeat of a member."""
    request: Request
    if kind == "share":
        request = ShareGroupHeartbeatRequest(
            group_id="g", member_id=member_id, member_epoch=0, subscribed_topic_names=("t",)
        )
    elif kind == "consumer":
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member_id,
            member_epoch=0,
            rebalance_timeout_ms=9000,
            subscribed_topic_names=("t",),
            topic_partitions=(),
        )
    else:
        request = StreamsGroupHeartbeatRequest(
            group_id="g",
            member_id=member_id,
            member_epoch=0,
            endpoint_information_epoch=-1,
            rebalance_timeout_ms=9000,
            topology=topology(is_stateful=False),
            process_id=member_id,
            active_tasks=(),
            standby_tasks=(),
            warmup_tasks=(),
        )
    return ask(state, request, 1 if kind != "streams" else 0, now_ms=state.clock.now_ms())


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_is_gone_whose_first_change_fails_while_the_next_one_is_in_flight(kind: str) -> None:
    state = new_state("4.4", clock=virtual_clock())
    state.coordinator.log = log = RecordingLog(waits=True)
    responses: list[Any] = []
    for member_id in ("A", "B"):
        join(state, kind, member_id).deliver = responses.append
    log.settle_next(STORAGE_ERROR)
    log.settle()
    assert [response.error_code for response in responses] == [ErrorCode.NOT_COORDINATOR] * 2
    assert state.coordinator.groups.get("g") is None
    log.waits = False
    assert not join(state, kind, "B").error_code
    group = state.coordinator.groups.get("g")
    assert group is not None
    assert list(group.members) == ["B"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_that_is_refused_leaves_the_one_in_flight_before_it(kind: str) -> None:
    state = new_state("4.4", clock=virtual_clock())
    state.coordinator.log = log = RefusingLog(waits=True)
    responses: list[Any] = []
    join(state, kind, "A").deliver = responses.append
    group = state.coordinator.groups.get("g")
    assert group is not None
    epoch = group.generation
    log.refuses = True
    join(state, kind, "B").deliver = responses.append
    assert (list(group.members), group.generation) == (["A"], epoch)
    log.settle()
    assert [response.error_code for response in responses] == [0, ErrorCode.NOT_COORDINATOR]
    assert (list(group.members), group.generation) == (["A"], epoch)
    assert state.coordinator.groups.get("g") is group


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("kind", ["consumer", "streams"])
def test_an_empty_group_stays_if_the_classic_one_in_its_place_cannot_be_written(kind: str, waits: bool) -> None:
    state = new_state("4.4", clock=virtual_clock())
    join(state, kind, "A")
    state.clock.advance(LATER_MS)
    before = state.coordinator.groups.get("g")
    assert before is not None
    assert before.is_empty
    state.coordinator.log = log = RecordingLog(STORAGE_ERROR, waits=waits)
    response = ask(state, classic_join("g"), 3, now_ms=state.clock.now_ms())
    log.settle()
    assert len(log.appended) == 1  # one batch, so that the log has both changes or none
    if isinstance(response, DelayedOperation):
        response = response.respond()
    assert response.error_code == ErrorCode.NOT_COORDINATOR
    assert state.coordinator.groups.get("g") is before
    assert before.is_empty
    state.coordinator.log = RecordingLog()
    ask(state, classic_join("g"), 3, now_ms=state.clock.now_ms())
    found = state.coordinator.groups.get("g")
    assert found is not None
    assert found.kind == "classic"


@pytest.mark.parametrize(("release", "error"), [("3.9", 0), ("4.4", ErrorCode.NOT_COORDINATOR)])
def test_the_last_member_learns_that_its_end_could_not_be_written(release: str, error: int) -> None:
    """The old coordinator responds before the write."""
    driver = GroupDriver(release)
    [member_id] = driver.stable_with(1)
    driver.state.coordinator.log = log = RecordingLog(STORAGE_ERROR, waits=True)
    request = LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id=member_id),))
    responses: list[Any] = []
    ask(driver.state, request, 3, now_ms=driver.clock.now_ms()).deliver = responses.append
    log.settle()
    assert [response.error_code for response in responses] == [error]


def test_a_classic_member_learns_that_it_is_still_in_its_consumer_group() -> None:
    state, group = migrating("B")
    group.sync("B", assigns={"x": range(6)})
    group.join("A", ("x",))
    state.coordinator.log = RecordingLog(STORAGE_ERROR)
    member_id = group.members["B"].member_id
    request = LeaveGroupRequest(group_id=group.group_id, members=(MemberIdentity(member_id=member_id),))
    assert ask(state, request, 3, now_ms=state.clock.now_ms()).error_code == ErrorCode.NOT_COORDINATOR
    found = state.coordinator.groups.get(group.group_id)
    assert found is not None
    assert member_id in found.members


@pytest.mark.parametrize("instance", [None, "i"])
def test_a_classic_member_learns_that_it_could_not_join_a_consumer_group(instance: str | None) -> None:
    """With the instance of the last other member, it would make the group a classic one."""
    state, group = migrating()
    group.join("A", ("x",), instance_id="i")
    before = state.coordinator.groups.get(group.group_id)
    state.coordinator.log = RecordingLog(STORAGE_ERROR)
    group.join_classic("B", ("x",), instance=instance)
    [[response]] = group.steps[-1].responses.values()
    assert (response["error_code"], response["member_id"]) == (ErrorCode.NOT_COORDINATOR, "")
    found = state.coordinator.groups.get(group.group_id)
    assert found is before
    assert found is not None
    assert list(found.members) == ["A"]


@pytest.mark.parametrize("deletes", ["group", "offset"])
@pytest.mark.parametrize("error", [0, STORAGE_ERROR])
def test_pending_offsets_go_with_the_tombstones(deletes: str, error: int) -> None:
    """Otherwise a commit would make them visible after a restart only."""
    state = new_state("4.4", clock=virtual_clock())
    coordinator = state.coordinator
    now_ms = state.clock.now_ms()
    stored = OffsetAndMetadata(5, -1, "", now_ms, None, bytes(16))
    partition = coordinator.partition_of("g")
    assert partition is not None
    add_offsets(coordinator, partition, "g", [("t", [(0, stored)])], 7, 0, now_ms, lambda log_error: None)
    coordinator.log = log = RecordingLog(error, waits=True)
    found: list[int] = []
    if deletes == "group":
        delete_group(coordinator, "g", now_ms, found.append)
    else:
        delete_offsets(coordinator, "g", {"t": [0]}, now_ms, found.append)
    assert pending_of(coordinator, "g") == [("g", "t", 0)]
    log.settle()
    assert pending_of(coordinator, "g") == ([("g", "t", 0)] if error else [])
    assert found == [ErrorCode.NOT_COORDINATOR if error else 0]


def classic_join(group_id: str) -> JoinGroupRequest:
    """Return the JoinGroup of a new member."""
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
    )


def migrating(*classic: str) -> tuple[BrokerState, Conversation]:
    """Return a classic group of these members."""
    state = new_state("4.4", topics={"x": 6}, clock=virtual_clock())
    group = Conversation(InMemoryTransport(state), "g", release="4.4")
    group.learn_topics("x")
    for name in classic:
        group.join_classic(name, ("x",))
    return state, group


def test_a_group_that_does_not_become_a_classic_one_goes_on_with_its_sessions() -> None:
    state, group = migrating()
    group.join("A", ("x",))
    group.join_classic("B", ("x",))
    before = state.coordinator.groups.get(group.group_id)
    assert before is not None
    members, state_before = list(before.members), before.state
    state.coordinator.log = RecordingLog(STORAGE_ERROR)
    group.leave("A")
    assert state.coordinator.groups.get(group.group_id) is before
    assert (list(before.members), before.state) == (members, state_before)
    state.coordinator.log = RecordingLog()
    group.pass_time(LATER_MS)
    assert before.is_empty


def test_a_group_that_does_not_become_a_consumer_group_goes_on_with_its_rebalance() -> None:
    state, group = migrating("A")
    group.sync("A", assigns={"x": range(6)})
    group.join_classic("C", ("x",))
    before = state.coordinator.groups.get(group.group_id)
    assert before is not None
    assert before.state is GroupState.PREPARING_REBALANCE
    state.coordinator.log = RecordingLog(STORAGE_ERROR)
    group.join("B", ("x",))
    assert (state.coordinator.groups.get(group.group_id), before.state) == (before, GroupState.PREPARING_REBALANCE)
    state.coordinator.log = RecordingLog()
    group.pass_time(LATER_MS)
    assert before.is_empty


@pytest.mark.parametrize("error", [0, STORAGE_ERROR])
def test_members_get_no_generation_of_a_classic_group_before_the_log_has_the_group(error: int) -> None:
    """The consumer group would go on with an older one if the write fails."""
    state, group = migrating()
    group.join("A", ("x",))
    group.join_classic("B", ("x",))
    state.coordinator.log = log = RecordingLog(error, waits=True)
    group.leave("A")
    group.join_classic("B", ("x",))
    assert not group.steps[-1].responses
    log.waits = False
    log.settle()
    group.describe_classic()
    [joined] = group.steps[-1].responses["B"]
    assert joined["error_code"] == (ErrorCode.NOT_COORDINATOR if error else 0)
    found = state.coordinator.groups.get(group.group_id)
    assert found is not None
    assert found.kind == ("consumer" if error else "classic")


def test_a_group_that_was_replaced_twice_is_there_again_if_both_writes_fail() -> None:
    """It has become a classic group and then a consumer group again."""
    state, group = migrating()
    group.join("A", ("x",))
    group.join_classic("B", ("x",))
    before = state.coordinator.groups.get(group.group_id)
    assert before is not None
    members = list(before.members)
    state.coordinator.log = log = RecordingLog(STORAGE_ERROR, waits=True)
    group.leave("A")
    group.join("C", ("x",))
    after = state.coordinator.groups.get(group.group_id)
    assert after is not before
    log.settle()
    assert state.coordinator.groups.get(group.group_id) is before
    assert (list(before.members), before.kind) == (members, "consumer")
    assert not state.coordinator.groups.replaced
