"""kproto returns the DescribeGroups, ListGroups, DeleteGroups and OffsetDelete responses of eight releases.

The tests create groups with members from the recorded responses. kproto decides which fields a response has and hides
in each state and version. Requests that need an authorizer ("denied" in the note) are left out.
"""

from __future__ import annotations

from typing import Any

import pytest

from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto_server.coordinator.groups import GroupState, Member
from kproto_server.state import BrokerState
from tests.coordinator.broker_state import ask, commit, group_with
from tests.fixture_files import GoldenPair
from tests.server.handlers.recorded import RELEASES, another_node_leads, conversation, recorded_state, replay
from tests.server.handlers.recorded_topics import response_of

STATES = {state.value: state for state in GroupState} | {"AwaitingSync": GroupState.COMPLETING_REBALANCE}


def _asked(api: str, release: str) -> list[GoldenPair]:
    return [pair for pair in conversation(api, release) if "denied" not in pair.note]


def _put_together(state: BrokerState, pair: GoldenPair) -> None:
    """Create the group that a DescribeGroups response describes; its members also have the metadata that it hides."""
    returned = response_of(pair).groups[0]
    members = [
        Member(
            member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            metadata=member.member_metadata or b"hidden",
            assignment=member.member_assignment,
        )
        for member in returned.members
    ]
    group = group_with(
        state, returned.group_id, STATES[returned.group_state], members, protocol_type=returned.protocol_type
    )
    group.protocol_name = returned.protocol_data or "hidden"


def _all_offsets_deleted(state: BrokerState, _: Any) -> None:
    commit(state, "od", {"t": {0: 1, 1: 1, 2: 1}})
    partitions = tuple(OffsetDeleteRequestPartition(partition_index=index) for index in range(3))
    topics = (OffsetDeleteRequestTopic(name="t", partitions=partitions),)
    ask(state, OffsetDeleteRequest(group_id="od", topics=topics), 0)


@pytest.mark.parametrize("release", RELEASES)
def test_groups_are_described_as_the_release_did(release: str) -> None:
    """GP-40, GP-41, and EX-62 as far as an Empty group without offsets goes."""
    pairs = _asked("DescribeGroups", release)
    state = recorded_state(release, pairs)
    commit(state, "f", {"t": {0: 1}})
    commit(state, "", {"t": {0: 1}})
    differences = []
    for pair in pairs:
        if pair.note in ("Stable", "CompletingRebalance", "with authorized operations"):
            _put_together(state, pair)
        situations = {
            "group that another broker coordinates": another_node_leads,
            "after all offsets were deleted": _all_offsets_deleted,
        }
        differences += replay(release, [pair], state, situations)
    assert len(pairs) >= 5
    assert differences == []


@pytest.mark.parametrize("release", RELEASES)
def test_groups_are_listed_as_the_release_did(release: str) -> None:
    """GP-42: every version returns and filters the groups of the newest version's unfiltered response."""
    pairs = _asked("ListGroups", release)
    state = recorded_state(release, pairs)
    unfiltered = [pair for pair in pairs if pair.note == "all"][-1]
    for returned in response_of(unfiltered).groups:
        group = group_with(
            state,
            returned.group_id,
            STATES[returned.group_state or "Empty"],
            protocol_type=returned.protocol_type or None,
        )
        group.kind = returned.group_type or "classic"
    assert len(state.coordinator.groups) > 20
    assert replay(release, pairs, state, {}) == []


@pytest.mark.parametrize("release", RELEASES[2:])
def test_groups_are_deleted_as_the_release_did(release: str) -> None:
    """EX-61."""
    pairs = _asked("DeleteGroups", release)
    state = recorded_state(release, pairs)
    for pair in pairs:
        group_id = f"del-v{pair.api_version}"
        if pair.note == "again":
            commit(state, group_id, {"t": {0: 1}})
            deleted = ask(state, DeleteGroupsRequest(groups_names=(group_id,)), pair.api_version)
            assert deleted.results[0].error_code == 0
    assert len(pairs) >= 2
    assert replay(release, pairs, state, {"group that another broker coordinates": another_node_leads}) == []


@pytest.mark.parametrize("release", RELEASES[5:])
def test_offsets_are_deleted_as_the_release_did(release: str) -> None:
    """EX-62."""
    pairs = _asked("OffsetDelete", release)
    state = recorded_state(release, pairs)
    live = group_with(state, "dg-live", GroupState.STABLE, [Member("m")])
    live.subscribed_topics = frozenset({"t"})
    commit(state, "od", {"t": {0: 1, 1: 1, 2: 1}})
    assert len(pairs) == 5
    assert replay(release, pairs, state, {}) == []
