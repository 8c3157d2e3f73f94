"""The data of groups: states, their timestamps, subscriptions, and the registry."""

from __future__ import annotations

from kproto_server.coordinator.groups import Group, GroupState, Member
from kproto_server.coordinator.registry import GroupRegistry


def test_new_group_is_empty_since_its_creation() -> None:
    """EX-10, EX-11, EX-14: a group made by a commit has no protocol type, and generation 0 (OC-21)."""
    group = Group("g", 5000)
    assert (group.state, group.state_timestamp_ms) == (GroupState.EMPTY, 5000)
    assert (group.protocol_type, group.generation, group.members) == (None, 0, {})


def test_each_transition_resets_the_state_timestamp() -> None:
    """EX-11: also a transition to the same state."""
    group = Group("g", 1)
    group.transition_to(GroupState.PREPARING_REBALANCE, 2)
    group.transition_to(GroupState.EMPTY, 3)
    assert group.state_timestamp_ms == 3
    group.transition_to(GroupState.EMPTY, 4)
    assert group.state_timestamp_ms == 4


def test_unknown_subscription_of_members_counts_for_all_topics() -> None:
    """EX-22."""
    group = Group("g", 0)
    assert not group.is_subscribed_to("t")
    group.add_member(Member("m"))
    assert group.is_subscribed_to("t")
    group.subscribed_topics = frozenset({"u"})
    assert [group.is_subscribed_to(topic) for topic in ("t", "u")] == [False, True]


def test_static_member_is_found_by_its_instance_id() -> None:
    """OC-23."""
    group = Group("g", 0)
    group.add_member(Member("m1", group_instance_id="i"))
    group.add_member(Member("m2"))
    assert group.static_members == {"i": "m1"}
    assert list(group.members) == ["m1", "m2"]


def test_only_the_removal_of_the_leader_changes_the_leader() -> None:
    """GP-24: also if the leader is not the first of the members."""
    group = Group("g", 0)
    for member_id in ("m1", "m2", "m3"):
        group.add_member(Member(member_id))
    group.leader_id = "m2"
    group.remove_member("m3")
    assert group.leader_id == "m2"
    group.remove_member("m2")
    assert group.leader_id == "m1"


def test_an_instance_id_stays_with_the_member_that_has_it_last() -> None:
    """A log may have two members of one instance."""
    group = Group("g", 0)
    for member_id in ("m1", "m2"):
        group.add_member(Member(member_id, group_instance_id="i"))
    group.remove_member("m1")
    assert group.static_members == {"i": "m2"}


def test_removed_group_is_dead_and_its_id_can_be_used_again() -> None:
    """EX-36: the next group with its id is another object."""
    groups = GroupRegistry()
    first = groups.create("g", 1)
    groups.remove("g")
    groups.remove("g")
    assert first.state is GroupState.DEAD
    assert groups.get("g") is None
    second = groups.create("g", 2)
    assert second is not first
    assert list(groups) == [second]
    assert len(groups) == 1
