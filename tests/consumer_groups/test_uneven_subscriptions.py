"""The uniform assignor for members with different subscriptions."""

from __future__ import annotations

import pytest

from kproto_server.coordinator.consumer_groups.assignor_input import MemberSpec
from kproto_server.coordinator.consumer_groups.uneven_subscriptions import assign_evenly
from kproto_server.deferred import at_once
from tests.consumer_groups.members import Conversation
from tests.consumer_groups.record_transcripts import new_kproto
from tests.consumer_groups.transcripts import MIXED_SETTINGS_SINCE_4_3, SETTINGS, TOPICS
from tests.membership.in_memory_transport import InMemoryTransport
from tests.robustness.steps import GROWTH_MAX, CountedId, count_steps, growth

NEGATIVE, POSITIVE, OTHER = b"\xff" * 16, b"\x01" * 16, b"\x02" * 16


def test_topics_of_equal_rank_have_the_order_of_kafkas_uuids() -> None:
    """UniformHeterogeneousAssignmentBuilder.topicComparator ends with Uuid.compareTo, which compares signed numbers."""
    both, one = (POSITIVE, NEGATIVE), (OTHER,)
    members = {name: MemberSpec(topics, {}, None) for name, topics in (("A", both), ("B", both), ("C", one))}
    assert at_once(assign_evenly(members, dict.fromkeys((NEGATIVE, POSITIVE, OTHER), 1))) == {
        "A": {NEGATIVE: frozenset({0})},
        "B": {POSITIVE: frozenset({0})},
        "C": {OTHER: frozenset({0})},
    }


@pytest.mark.parametrize("subscribes_alike", [False, True])
def test_an_expression_is_not_compared_with_names(subscribes_alike: bool) -> None:
    """ConsumerGroup.subscriptionType: with an expression, names make the subscriptions uneven, even if all members have
    the same topics in the end (mixed scripts, seed 19). What B keeps depends on the topic ids only if they are even."""
    ids = {name: bytes(15) + bytes((number,)) for name, number in (("w", 1), ("t", 2), ("u", 3), ("x", 4))}
    settings = SETTINGS | MIXED_SETTINGS_SINCE_4_3
    state = new_kproto("4.4.0", {name: topic_id.hex() for name, topic_id in ids.items()}, settings)
    group = Conversation(InMemoryTransport(state), "the-group", release="4.4.0")
    group.learn_topics(*TOPICS)
    group.join("B", None if subscribes_alike else ("u", "w"), subscribed_topic_regex="[tuw]")
    group.pass_time(100)
    group.beat("B")
    group.join("A", ("u",))
    group.settle("A", "B")
    assert {name: len(indexes) for name, indexes in group.members["B"].assigned.items()} == {"t": 3, "w": 7}
    group.beat("A", subscribed_topic_names=() if subscribes_alike else ("u",), subscribed_topic_regex="[tuw]")
    group.settle("A", "B")
    kept = {"w": (0, 1, 2, 3, 4, 5)} if subscribes_alike else {"t": (0, 1, 2), "w": (0, 1, 2)}
    assert group.members["B"].assigned == kept


def test_an_assignment_costs_as_much_as_its_partitions() -> None:
    """Each partition that a member had was compared with all topics of the member."""

    def steps(topic_count: int) -> int:
        topics: tuple[bytes, ...] = tuple(CountedId(number.to_bytes(16, "big")) for number in range(topic_count))
        target = dict.fromkeys(topics, frozenset({0}))
        members = {"A": MemberSpec(topics, target), "B": MemberSpec(topics[1:], {})}
        return count_steps(lambda: at_once(assign_evenly(members, dict.fromkeys(topics, 1))))

    assert growth(steps) < GROWTH_MAX
