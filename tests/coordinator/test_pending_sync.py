"""SyncGroup: pending ones end when their member leaves, and one of a stable group counts as a heartbeat or not."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k13_leave_group import LeaveGroupRequest
from kproto.messages.k14_sync_group import SyncGroupRequest
from kproto_server.clock import Clock, ClockMode
from kproto_server.coordinator.groups import Member
from kproto_server.deferred import DelayedOperation
from kproto_server.state import BrokerState
from tests.coordinator.broker_state import NOW_MS, ask, new_state

SESSION_MS = 10_000
WITHOUT_DELAY = {"group.initial.rebalance.delay.ms": "0"}


def started(release: str) -> BrokerState:
    return new_state(release, settings=WITHOUT_DELAY, clock=Clock(NOW_MS, 0.0, ClockMode(rate=0.0)))


def join(state: BrokerState, member_id: str = "") -> Any:
    """Return the response to a JoinGroup v3, or the operation of one that waits."""
    request = JoinGroupRequest(
        group_id="g",
        member_id=member_id,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    result = ask(state, request, 3)
    if isinstance(result, DelayedOperation):
        state.clock.advance(0)
        if result.completion is not None and result.completion.is_complete:
            return result.respond()
    return result


def sync(state: BrokerState, joined: Any, now_ms: int = NOW_MS) -> Any:
    request = SyncGroupRequest(
        group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, assignments=()
    )
    return ask(state, request, 2, now_ms=now_ms)


def member_of(state: BrokerState, member_id: str) -> Member:
    group = state.coordinator.groups.get("g")
    assert group is not None
    return group.members[member_id]


def test_the_pending_request_of_a_removed_member_gets_unknown_member_id() -> None:
    """GP-18."""
    state = started("latest")
    first = join(state)
    waiting = join(state)
    assert isinstance(waiting, DelayedOperation)
    leader = join(state, first.member_id)
    follower: Any = waiting.respond()
    pending = sync(state, follower)
    assert isinstance(pending, DelayedOperation)
    left = ask(state, LeaveGroupRequest(group_id="g", member_id=follower.member_id), 1)
    assert (leader.error_code, follower.error_code, left.error_code) == (0, 0, 0)
    assert pending.completion is not None
    assert pending.completion.is_complete
    response: Any = pending.respond()
    assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("release", "counts"), [("2.8.2", True), ("3.9.2", True), ("4.4.0", False)])
def test_a_sync_of_a_stable_group_is_a_heartbeat_of_the_old_coordinator_only(release: str, counts: bool) -> None:
    state = started(release)
    joined = join(state)
    assert sync(state, joined).error_code == 0
    before_ms = member_of(state, joined.member_id).session_deadline_ms
    assert sync(state, joined, NOW_MS + 5_000).error_code == 0
    after_ms = member_of(state, joined.member_id).session_deadline_ms
    assert after_ms == (NOW_MS + 5_000 + SESSION_MS if counts else before_ms)
