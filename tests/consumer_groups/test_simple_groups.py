"""Requests to groups without members: heartbeats to a group that only commits, and commits to groups of all kinds.

Such a group is classic (GroupMetadataManager.getOrMaybeCreateConsumerGroup).
"""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto_server.testing.in_memory import virtual_clock
from tests.consumer_groups.members import Conversation
from tests.coordinator.broker_state import new_state
from tests.membership.in_memory_transport import InMemoryTransport
from tests.streams_groups.members import Application


@pytest.mark.parametrize("release", ["4.0", "4.4"])
def test_it_is_no_consumer_group_until_a_member_joins(release: str) -> None:
    state = new_state(release, topics={"t": 1}, clock=virtual_clock())
    group = Conversation(InMemoryTransport(state), "the-group", release=release)
    group.learn_topics("t")
    group.beat("A", 1)
    assert refusal(group) == "Consumer group <group> not found."
    group.leave("A")
    assert refusal(group) == "Group <group> not found."
    group.commit("A", -1, member_id="")
    for epoch in (1, -1):
        group.beat("A", epoch)
        assert refusal(group) == "Group <group> is not a consumer group."
    group.join("A")
    assert group.members["A"].assigned == {"t": (0,)}


def test_it_is_no_streams_group_until_a_member_joins() -> None:
    """GroupMetadataManager.getStreamsGroupOrThrow."""
    state = new_state("4.4", clock=virtual_clock())
    app = Application(InMemoryTransport(state), "4.4.0", "app", 0)
    app.create()
    app.beat("A", 1)
    assert refusal(app) == "Streams group g not found."
    app.commit("", -1)
    app.beat("A", 1)
    assert refusal(app) == "Group g is not a streams group."
    app.join("A")
    assert app.members["A"].epoch > 0


@pytest.mark.parametrize("release", ["4.0", "4.4"])
def test_a_member_id_that_is_unknown_leaves_an_empty_consumer_group(release: str) -> None:
    state = new_state(release, topics={"t": 1}, clock=virtual_clock())
    group = Conversation(InMemoryTransport(state), "the-group", release=release)
    group.learn_topics("t")
    group.join("A")
    group.leave("A")
    group.join_classic("B", member_id="ghost")
    [[response]] = group.steps[-1].responses.values()
    assert response["error_code"] == ErrorCode.UNKNOWN_MEMBER_ID
    group.describe()
    [[described]] = group.steps[-1].responses.values()
    assert described["groups"][0]["group_state"] == "Empty"


def refusal(group: Conversation | Application) -> str:
    [[response]] = group.steps[-1].responses.values()
    assert response["error_code"] == ErrorCode.GROUP_ID_NOT_FOUND
    return str(response["error_message"])
