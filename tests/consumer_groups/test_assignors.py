"""The server assignors for members with equal subscriptions: who gets what, and what members keep."""

from __future__ import annotations

import pytest

from kproto_server.coordinator.consumer_groups.assignor_input import MemberSpec
from kproto_server.coordinator.consumer_groups.assignors import assign_ranges, assign_uniformly, changed_targets
from kproto_server.deferred import at_once

T, U = b"\x01" * 16, b"\x02" * 16


def test_static_members_have_the_first_ranges_in_the_order_of_their_instances() -> None:
    """RangeAssignor: then the others, by member id."""
    instances = {"A": None, "B": "j", "C": None, "D": "i"}
    members = {name: MemberSpec((T,), {}, instance) for name, instance in instances.items()}
    assert at_once(assign_ranges(members, {T: 5})) == {
        "D": {T: frozenset({0, 1})},
        "B": {T: frozenset({2})},
        "A": {T: frozenset({3})},
        "C": {T: frozenset({4})},
    }


@pytest.mark.parametrize("keeps_sizes", [False, True])
def test_new_members_share_all_partitions(keeps_sizes: bool) -> None:
    members = {name: MemberSpec((T,), {}) for name in "ABC"}
    assigned = at_once(assign_uniformly(members, {T: 6}, keeps_sizes=keeps_sizes))
    assert [len(assigned[name][T]) for name in "ABC"] == [2, 2, 2]
    assert frozenset().union(*(assigned[name][T] for name in "ABC")) == frozenset(range(6))


@pytest.mark.parametrize(("kept", "gone"), [(T, U), (U, T)])
def test_a_member_keeps_its_partitions_when_it_gives_up_another_topic(kept: bytes, gone: bytes) -> None:
    target = {gone: frozenset({0}), kept: frozenset({1, 2})}
    assigned = at_once(assign_uniformly({"A": MemberSpec((kept,), target)}, {kept: 3}, keeps_sizes=True))
    assert assigned == {"A": {kept: frozenset({0, 1, 2})}}


def test_a_target_that_is_equal_stays_the_same_object() -> None:
    """Only other objects are written to the log."""
    before = {"A": {T: frozenset({0})}, "B": {T: frozenset({1})}}
    after = {"A": {T: frozenset({0})}, "C": {T: frozenset({1})}}
    targets = changed_targets(before, after, ("A", "B", "C"))
    assert targets == {"A": {T: frozenset({0})}, "B": {}, "C": {T: frozenset({1})}}
    assert targets["A"] is before["A"]
