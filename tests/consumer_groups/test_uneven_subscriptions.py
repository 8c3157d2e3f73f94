"""The uniform assignor for members with different subscriptions."""

from __future__ import annotations

from kproto_server.coordinator.consumer_groups.assignor_input import MemberSpec
from kproto_server.coordinator.consumer_groups.uneven_subscriptions import assign_evenly

NEGATIVE, POSITIVE, OTHER = b"\xff" * 16, b"\x01" * 16, b"\x02" * 16


def test_topics_of_equal_rank_have_the_order_of_kafkas_uuids() -> None:
    """UniformHeterogeneousAssignmentBuilder.topicComparator ends with Uuid.compareTo, which compares signed numbers."""
    both, one = (POSITIVE, NEGATIVE), (OTHER,)
    members = {name: MemberSpec(topics, {}, None) for name, topics in (("A", both), ("B", both), ("C", one))}
    assert assign_evenly(members, dict.fromkeys((NEGATIVE, POSITIVE, OTHER), 1)) == {
        "A": {NEGATIVE: frozenset({0})},
        "B": {POSITIVE: frozenset({0})},
        "C": {OTHER: frozenset({0})},
    }
