"""When expressions are matched against the topics, as in GroupMetadataManager.maybeUpdateRegularExpressions."""

from __future__ import annotations

import pytest

from kproto_server.clock import Clock, ClockMode
from kproto_server.coordinator.consumer_groups import regular_expressions
from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
from kproto_server.coordinator.regular_expression import InvalidRegex, Regex, regex_of
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
    group.beat("A")
    assert group.members["A"].epoch == before + 1
    group.settle("A", "B")
    assert list(group.members["B"].assigned) == ["u"]


def test_expressions_are_matched_again_when_topics_were_created_only() -> None:
    """A deleted topic raises the epoch once, and stays in the result until the next match (measured on 4.4.0)."""
    state = new_state("4.4", topics=TOPICS, settings=SETTINGS, clock=virtual_clock())
    group = Conversation(InMemoryTransport(state), "g", release="4.4")
    group.learn_topics(*TOPICS)

    def epoch_and_topics() -> tuple[int, frozenset[str]]:
        for _ in range(2):
            for _ in range(8):
                group.pass_time(1_500)
                group.beat("A")
        found = state.coordinator.groups.get("g")
        assert isinstance(found, ConsumerGroup)
        return found.data.epoch, found.data.resolved["[tw]"].topics

    group.join("A", None, subscribed_topic_regex="[tw]")
    before, topics = epoch_and_topics()
    assert topics == {"t", "w"}
    state.cluster.changed()
    assert epoch_and_topics() == (before, topics)
    state.cluster.delete_topic("w")
    assert epoch_and_topics() == (before + 1, topics)
    state.cluster.create_topic("other")
    assert epoch_and_topics() == (before + 2, frozenset("t"))


def test_an_expression_that_is_refused_now_matches_nothing_and_others_are_still_matched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A data directory can have one that was accepted by a real broker. None of the group was matched again."""
    state = new_state("4.4", topics=TOPICS, settings=SETTINGS, clock=virtual_clock())
    group = Conversation(InMemoryTransport(state), "g", release="4.4")
    group.learn_topics(*TOPICS)
    group.join("A", None, subscribed_topic_regex="w")
    for _ in range(11):
        group.pass_time(1000)
        group.beat("A")
    monkeypatch.setattr(regular_expressions, "regex_of", regex_of_others)
    group.join("B", None, subscribed_topic_regex="u")
    found = state.coordinator.groups.get("g")
    assert isinstance(found, ConsumerGroup)
    assert not found.is_matching
    assert {text: set(one.topics) for text, one in found.data.resolved.items()} == {"w": set(), "u": {"u"}}


def regex_of_others(text: str) -> Regex:
    """Refuse one expression."""
    if text == "w":
        raise InvalidRegex("expression too large")
    return regex_of(text)


def test_expressions_are_matched_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """One expression on 9000 topics held other clients for 1.3 s."""
    monkeypatch.setattr(regular_expressions, "STEP_CHARACTERS", 10)
    clock = Clock(1_700_000_000_000.0, 0.0, ClockMode(rate=1.0))
    topics = {f"topic-{index}": 1 for index in range(20)}
    state = new_state("4.4", topics=topics, settings=SETTINGS, clock=clock)
    group = Conversation(InMemoryTransport(state), "g", release="4.4")
    group.join("A", None, subscribed_topic_regex="topic-1.*")
    found = state.coordinator.groups.get("g")
    assert isinstance(found, ConsumerGroup)
    runs = 0
    while found.is_matching and runs < 100:
        runs += 1
        clock.tick(clock.real_ms + 1.0)
        clock.run_due()
    assert 10 < runs < 30
    assert len(found.data.resolved["topic-1.*"].topics) == 11
