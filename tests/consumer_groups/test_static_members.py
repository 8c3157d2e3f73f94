"""What of a static member's assignment stays when it leaves for a while."""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto_server.testing.in_memory import virtual_clock
from tests.consumer_groups.members import Conversation
from tests.consumer_groups.transcripts import SETTINGS, TOPICS
from tests.coordinator.broker_state import new_state
from tests.membership.in_memory_transport import InMemoryTransport


@pytest.mark.parametrize(("release", "expected"), [("4.2", ErrorCode.STALE_MEMBER_EPOCH), ("4.3", 0), ("4.4", 0)])
def test_the_epochs_of_its_partitions_start_over(release: str, expected: int) -> None:
    """ConsumerGroupMember.resetAssignedPartitionsEpochsToZero: it may commit with any epoch when it is back."""
    state = new_state(release, topics=TOPICS, settings=SETTINGS, clock=virtual_clock())
    group = Conversation(InMemoryTransport(state), "g", release=release)
    group.learn_topics(*TOPICS)
    group.join("A", ("t",), instance_id="i")
    group.join("B", ("u",))
    group.pass_time(1100)
    group.settle("A", "B", rounds=1)
    group.commit("A", 0)
    assert error_of_commit(group) == ErrorCode.STALE_MEMBER_EPOCH
    group.leave("A", -2, instance_id="i")
    group.join("A", ("t",), instance_id="i")
    group.commit("A", 0)
    assert error_of_commit(group) == expected


def error_of_commit(group: Conversation) -> int:
    [[response]] = group.steps[-1].responses.values()
    return int(response["topics"][0]["partitions"][0]["error_code"])
