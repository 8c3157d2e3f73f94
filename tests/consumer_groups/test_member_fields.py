"""What members say of themselves: racks, assignors, and a state that only a log has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto_server.coordinator.consumer_groups.data import MemberState
from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
from kproto_server.testing.in_memory import virtual_clock
from tests.consumer_groups.members import Conversation
from tests.consumer_groups.transcripts import SETTINGS, TOPICS
from tests.coordinator.broker_state import new_state
from tests.membership.in_memory_transport import InMemoryTransport


class Group(Conversation):
    """A conversation with a broker whose state a test can change."""

    def __init__(self) -> None:
        self.state = new_state(topics=TOPICS, settings=SETTINGS, clock=virtual_clock())
        super().__init__(InMemoryTransport(self.state), "the-group")
        self.learn_topics(*TOPICS)

    def described(self) -> dict[str, Any]:
        self.describe()
        [[response]] = self.steps[-1].responses.values()
        group: dict[str, Any] = response["groups"][0]
        return group

    def racks(self) -> dict[str, str | None]:
        return {member["member_id"]: member["rack_id"] for member in self.described()["members"]}


def test_a_heartbeat_without_a_rack_keeps_that_of_the_member() -> None:
    group = Group()
    group.join("A", rack_id="r1")
    assert group.racks() == {"A": "r1"}
    group.beat("A")
    assert group.racks() == {"A": "r1"}
    group.beat("A", rack_id="r2")
    assert group.racks() == {"A": "r2"}


def test_the_assignor_that_most_members_prefer_is_that_of_the_group() -> None:
    """ConsumerGroup.preferredServerAssignor."""
    group = Group()
    group.join("A", server_assignor="uniform")
    assert group.described()["assignor_name"] == "uniform"
    group.join("B", server_assignor="range")
    group.join("C", server_assignor="range")
    assert group.described()["assignor_name"] == "range"


@pytest.mark.parametrize(("owned", "is_fenced"), [(None, True), ({"t": (0,)}, True), ({}, False)])
def test_a_member_in_an_unknown_state_has_to_abandon_its_partitions(
    owned: dict[str, tuple[int, ...]] | None, *, is_fenced: bool
) -> None:
    """The log of a newer release may have such a member (CurrentAssignmentBuilder, MemberState.UNKNOWN)."""
    group = Group()
    group.join("A")
    known = group.state.coordinator.groups.get("the-group")
    assert isinstance(known, ConsumerGroup)
    member = replace(known.data.members["A"], state=MemberState.UNKNOWN)
    known.apply(known.data._replace(members={"A": member}), 0)
    group.beat("A", owned=owned)
    [[response]] = group.steps[-1].responses.values()
    assert response["error_code"] == (ErrorCode.FENCED_MEMBER_EPOCH if is_fenced else 0)
    if is_fenced:
        assert response["error_message"] == (
            "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."
        )
