"""Static members that leave for a while and return."""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
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


def leaves_before_it_has_revoked(group: Conversation) -> None:
    group.join("A", ("w",), instance_id="i", rebalance_timeout_ms=1_000)
    group.pass_time(1_100)
    group.join("B", ("w",))
    group.beat("A", instance_id="i")
    group.leave("A", -2, instance_id="i")
    group.pass_time(1_500)
    group.beat("B")
    group.describe()
    group.join("C", ("w",), instance_id="i")
    group.settle("B", "C", rounds=2)
    group.describe()


@pytest.mark.parametrize("release", ["4.0", "4.4"])
def test_the_end_of_its_revocation_does_not_remove_a_static_member_that_is_away(release: str) -> None:
    """Kafka's timer only fences a member that still has the epoch (measured on 4.0.2 and 4.4.0)."""
    group = new_group(release)
    leaves_before_it_has_revoked(group)
    assert len(group.members["C"].assigned["w"]) in (3, 4)
    assert group.members["B"].epoch == group.members["C"].epoch


def test_a_static_member_that_does_not_return_is_removed_at_the_end_of_its_session() -> None:
    group = new_group("4.4")
    group.join("A", ("w",), instance_id="i")
    group.pass_time(1_000)
    group.leave("A", -2, instance_id="i")
    for waits_ms, count in ((1_999, 1), (1, 0)):
        group.pass_time(waits_ms)
        group.describe()
        [[response]] = group.steps[-1].responses.values()
        assert len(response["groups"][0]["members"]) == count


@pytest.mark.parametrize("release", ["4.0", "4.1"])
def test_a_member_that_has_revoked_and_has_to_revoke_again_gets_the_next_epoch(release: str) -> None:
    """CurrentAssignmentBuilder of 4.0.0 and 4.1.2: the epoch of the member and one, not that of the group."""
    group = new_group(release)
    group.join("A", ("x",))
    group.pass_time(1_100)
    group.join("B", ("x",))
    group.beat("A")
    first = group.members["A"]
    assert len(first.assigned["x"]) == 3
    group.pass_time(1_100)
    group.join("C", ("x",))
    group.beat("A")
    assert len(group.members["A"].assigned["x"]) == 2
    assert group.members["A"].epoch == first.epoch + 1


@pytest.mark.parametrize(
    ("release", "expected"), [("4.3", ErrorCode.GROUP_MAX_SIZE_REACHED), ("4.4", ErrorCode.UNRELEASED_INSTANCE_ID)]
)
def test_a_full_group_lets_a_static_member_replace_another(release: str, expected: int) -> None:
    """GroupMetadataManager.throwIfConsumerGroupIsFull (mixed scripts on 4.4.0, seeds 26 and 35)."""
    settings = SETTINGS | {"group.consumer.max.size": "1"}
    state = new_state(release, topics=TOPICS, settings=settings, clock=virtual_clock())
    group = Conversation(InMemoryTransport(state), "g", release=release)
    group.learn_topics(*TOPICS)
    group.join("A", instance_id="i")
    group.join("B", instance_id="i")
    [[response]] = group.steps[-1].responses.values()
    assert response["error_code"] == expected
    group.leave("A", -2, instance_id="i")
    group.join("B", instance_id="i")
    assert ("B" in group.members) == (release == "4.4")
    group.join("C", instance_id="j")
    [[response]] = group.steps[-1].responses.values()
    assert response["error_code"] == ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize("release", ["4.0", "4.1", "4.4"])
def test_a_static_member_that_replaces_a_classic_one_with_its_topics(release: str) -> None:
    """It does not raise the epoch from 4.1 on, where ConsumerGroup.fromClassicGroup knows the topics of the members
    (crowds on 4.0.0 to 4.4.0, seed 3005)."""
    group = new_group(release)
    group.join_classic("C", ("t",), instance="i")
    group.join("A", ("t",), instance_id="i")
    expected = (2, {"t": (0, 1, 2)}) if release == "4.0" else (1, {})
    assert (group.members["A"].epoch, group.members["A"].assigned) == expected
    group.beat("A", subscribed_topic_names=("t", "u"))
    if release != "4.0":
        assert (group.members["A"].epoch, group.members["A"].assigned) == (2, {"t": (0, 1, 2), "u": (0,)})


@pytest.mark.parametrize("release", ["4.0", "4.4"])
def test_a_dynamic_member_that_becomes_static_has_no_partitions_until_the_next_assignment(release: str) -> None:
    """ConsumerGroup.targetAssignment(memberId, instanceId) (crowds on 4.3.1 and 4.4.0, seed 3001)."""
    group = new_group(release)
    group.join("A", ("t",))
    group.pass_time(1100)
    group.join("B", ("u",))
    group.join("A", ("t",), instance_id="i")
    assert (group.members["A"].epoch, group.members["A"].assigned) == (group.members["B"].epoch, {})
    group.pass_time(1100)
    group.beat("A", subscribed_topic_names=("t", "x"))
    assert group.members["A"].assigned == {"t": (0, 1, 2), "x": tuple(range(6))}


@pytest.mark.parametrize("release", ["4.0", "4.2", "4.4"])
def test_a_classic_member_that_replaces_the_last_other_leaves_the_generation(release: str) -> None:
    """ClassicGroup.fromConsumerGroup has the epoch of the group without the member's change (crowds on 4.2.2 and 4.4.0,
    seed 3005)."""
    group = new_group(release)
    group.join("A", ("x",), instance_id="i")
    group.join_classic("C", ("t",), instance="i")
    assert group.members["C"].epoch == (group.members["A"].epoch + 1 if release == "4.0" else 0)
    group.join("B", ("x",))
    assert group.members["B"].epoch == group.members["A"].epoch + 1


def test_a_classic_member_that_replaces_one_with_an_expression_removes_its_result() -> None:
    """GroupMetadataManager.maybeUpdateRegularExpressions (measured on 4.4.0: the log gets its tombstone)."""
    state = new_state("4.4", topics=TOPICS, settings=SETTINGS, clock=virtual_clock())
    group = Conversation(InMemoryTransport(state), "g", release="4.4")
    group.learn_topics(*TOPICS)
    group.join("A", None, subscribed_topic_regex="w", instance_id="i")
    group.join("B")
    found = state.coordinator.groups.get("g")
    assert isinstance(found, ConsumerGroup)
    assert list(found.data.resolved) == ["w"]
    group.leave("A", -2, instance_id="i")
    assert list(found.data.resolved) == ["w"]
    group.join_classic("C", instance="i")
    assert state.coordinator.groups.get("g") is found
    assert not found.data.resolved


def new_group(release: str) -> Conversation:
    state = new_state(release, topics=TOPICS, settings=SETTINGS, clock=virtual_clock())
    group = Conversation(InMemoryTransport(state), "g", release=release)
    group.learn_topics(*TOPICS)
    return group


def error_of_commit(group: Conversation) -> int:
    [[response]] = group.steps[-1].responses.values()
    return int(response["topics"][0]["partitions"][0]["error_code"])
