"""When expressions are matched against the topics, as in GroupMetadataManager.maybeUpdateRegularExpressions."""

from __future__ import annotations

import pytest

from kproto_server.testing.in_memory import virtual_clock
from tests.consumer_groups.members import Conversation
from tests.consumer_groups.transcripts import SETTINGS, TOPICS
from tests.coordinator.broker_state import new_state
from tests.membership.in_memory_transport import InMemoryTransport


def test_an_expression_is_matched_before_the_next_request() -> None:
    """Real brokers match it a moment later (DEVIATIONS)."""
    state = new_state("4.4", topics=TOPICS, settings=SETTINGS, clock=virtual_clock())
    group = Conversation(InMemoryTransport(state), "g", release="4.4")
    group.learn_topics(*TOPICS)
    group.join("A", None, subscribed_topic_regex="w")
    before = group.members["A"].epoch
    group.describe()
    [[response]] = group.steps[-1].responses.values()
    assert response["groups"][0]["group_epoch"] == before + 1


@pytest.mark.parametrize("release", ["4.0", "4.4"])
def test_a_replaced_expression_is_matched_by_the_next_heartbeat_of_any_member(release: str) -> None:
    """The last match of the replaced one is less than ten seconds ago; it is gone afterwards (measured on 4.4.0)."""
    state = new_state(release, topics=TOPICS, settings=SETTINGS, clock=virtual_clock())
    group = Conversation(InMemoryTransport(state), "g", release=release)
    group.learn_topics(*TOPICS)
    group.join("A", ("t",))
    group.join("B", None, subscribed_topic_regex="w")
    group.pass_time(1100)
    group.settle("A", "B")
    assert list(group.members["B"].assigned) == ["w"]
    group.beat("B", subscribed_topic_regex="u")
    group.pass_time(1100)
    before = group.members["A"].epoch
    group.beat("A")
    assert group.members["A"].epoch == before
    group.pass_time(1100)
    group.settle("A", "B")
    assert group.members["A"].epoch == before + 1
    assert list(group.members["B"].assigned) == ["u"]
