"""Offsets of a topic that a member of a consumer group subscribes to are not deleted, and others are."""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto_server.testing.in_memory import virtual_clock
from tests.consumer_groups.members import Conversation
from tests.consumer_groups.transcripts import SETTINGS, TOPICS
from tests.coordinator.broker_state import new_state
from tests.membership.in_memory_transport import InMemoryTransport

SUBSCRIBED = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def new_group() -> Conversation:
    state = new_state("4.4", topics=TOPICS, settings=SETTINGS, clock=virtual_clock())
    group = Conversation(InMemoryTransport(state), "g", release="4.4")
    group.learn_topics(*TOPICS)
    return group


def subscribed(group: Conversation) -> list[str]:
    """Return the topics whose offsets the group keeps."""
    partition = OffsetDeleteRequestPartition(partition_index=0)
    topics = tuple(OffsetDeleteRequestTopic(name=name, partitions=(partition,)) for name in TOPICS)
    [response] = group.send("admin", OffsetDeleteRequest(group_id=group.group_id, topics=topics), 0)
    errors = {topic.name: topic.partitions[0].error_code for topic in response.topics}
    assert set(errors.values()) <= {0, SUBSCRIBED}
    return sorted(name for name, error in errors.items() if error)


def test_a_member_joins_changes_its_topics_and_leaves() -> None:
    group = new_group()
    group.join("A", ("t",))
    assert subscribed(group) == ["t"]
    group.join("B", ("u",))
    assert subscribed(group) == ["t", "u"]
    group.beat("A", subscribed_topic_names=("w",))
    assert subscribed(group) == ["u", "w"]
    group.leave("A")
    assert subscribed(group) == ["u"]


def test_a_member_subscribes_by_an_expression() -> None:
    group = new_group()
    group.join("A", ("t",))
    group.beat("A", subscribed_topic_names=(), subscribed_topic_regex="[uw]")
    group.pass_time(100)
    group.beat("A")
    assert subscribed(group) == ["u", "w"]


@pytest.mark.parametrize("how", ["leave", "replace"])
def test_a_group_that_becomes_a_classic_one_has_the_topics_of_its_members(how: str) -> None:
    group = new_group()
    group.join("A", ("t",), instance_id="i")
    group.join_classic("B", ("u",))
    if how == "leave":
        group.leave("A")
        assert subscribed(group) == ["u"]
    else:
        group.join_classic("C", ("w",), instance="i")
        assert subscribed(group) == ["u", "w"]
