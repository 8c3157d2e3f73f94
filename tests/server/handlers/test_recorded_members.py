"""kproto returns the responses of eight releases to unknown members (fixtures/golden/frames).

These requests need no members. Traces of real members are in tests/membership.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kproto.messages.k14_sync_group import SyncGroupRequest
from tests.coordinator.broker_state import ask, new_state
from tests.server.handlers.recorded import (
    RELEASES,
    another_node_leads,
    conversation,
    decoded_request,
    recorded_state,
    replay,
)

if TYPE_CHECKING:
    from tests.fixture_files import GoldenPair

APIS = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup")

FAR = "group that another broker coordinates"
SESSION_TIMEOUTS = ("session timeout too small", "session timeout too large")
NOTES_WITHOUT_MEMBERS = ("unknown member id, unknown group", "unknown group", "empty group id", *SESSION_TIMEOUTS, FAR)
"""Notes of the recorded requests that need no members."""


def asked(api: str, release: str) -> list[GoldenPair]:
    """Return the pairs whose members the broker never had; groups of another coordinator come last."""
    pairs = [pair for pair in conversation(api, release) if pair.note in NOTES_WITHOUT_MEMBERS]
    return sorted(pairs, key=lambda pair: pair.note == FAR)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("release", RELEASES)
def test_members_that_there_are_not(api: str, release: str) -> None:
    """GP-10, GP-30, GP-35, GP-36."""
    pairs = asked(api, release)
    assert pairs or api == "Heartbeat" or (api, release) == ("SyncGroup", "2.8.2")
    assert replay(release, pairs, recorded_state(release, pairs), {FAR: another_node_leads}) == []


def test_far_groups_were_asked_for_in_every_api() -> None:
    notes = {(api, pair.note) for api in APIS for release in RELEASES for pair in asked(api, release)}
    assert {api for api, note in notes if note == FAR} >= {"JoinGroup", "Heartbeat", "LeaveGroup"}
    assert decoded_request(asked("JoinGroup", "4.4.0")[0]) is not None


JOIN = JoinGroupRequest(
    group_id="g",
    session_timeout_ms=10_000,
    member_id="",
    protocol_type="consumer",
    protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
)
SYNC = SyncGroupRequest(group_id="g", generation_id=1, member_id="m", assignments=())
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
LEAVE = LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="m"),))


@pytest.mark.parametrize(("kafka_version", "errors"), [("3.9", (14, 27, 0, 14)), ("4.4", (14, 14, 0, 14))])
def test_members_of_a_group_that_is_not_loaded_yet(kafka_version: str, errors: tuple[int, ...]) -> None:
    """LF-30, GP-35; GroupCoordinator of 3.8.1, GroupCoordinatorService of 4.0."""
    state = new_state(kafka_version)
    for partition in range(50):
        state.coordinator.unavailable[partition] = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    responses = [ask(state, JOIN, 4), ask(state, SYNC, 4), ask(state, HEARTBEAT, 4), ask(state, LEAVE, 4)]
    assert tuple(response.error_code for response in responses) == errors


@pytest.mark.parametrize(("kafka_version", "error"), [("3.9", 16), ("4.4", 26)])
def test_a_wrong_session_timeout_comes_after_the_wrong_coordinator_before_4_0(kafka_version: str, error: int) -> None:
    """GP-10."""
    state = new_state(kafka_version, with_offsets_topic=False)
    assert ask(state, JOIN.replace(session_timeout_ms=1), 4).error_code == error
