"""Classic members and groups that are none of theirs: of KIP-848, or simple ones (GP-52, GP-53, EX-14)."""

from __future__ import annotations

import pytest

from kproto_server.coordinator.groups import Group, GroupState, Member
from tests.coordinator.broker_state import commit
from tests.coordinator.membership.gathering import Coordinator, error_of, joined


def consumer_group(coordinator: Coordinator, *members: str) -> Group:
    group = coordinator.state.coordinator.groups.create("g", 0, "consumer")
    for member_id in members:
        group.add_member(Member(member_id, epoch=3, speaks_classic=False))
    group.state = GroupState.STABLE if members else GroupState.EMPTY
    return group


def test_a_group_of_kip_848_with_members_takes_no_classic_ones() -> None:
    """GP-53."""
    coordinator = Coordinator()
    group = consumer_group(coordinator, "m")
    assert error_of(coordinator.join()) == 23
    assert error_of(coordinator.join("m")) == 23
    assert error_of(coordinator.sync("m")) == 25
    assert coordinator.heartbeat("m") == 25
    assert coordinator.leave(("m", None)) == [25]
    assert coordinator.state.coordinator.groups.get("g") is group
    assert list(group.members) == ["m"]


def test_an_empty_one_becomes_a_classic_group() -> None:
    """GP-52, the other way round."""
    coordinator = Coordinator()
    consumer_group(coordinator)
    assert error_of(coordinator.join("m")) == 25
    assert joined(coordinator.join()).generation == 1
    assert (coordinator.group.kind, coordinator.group_state) == ("classic", GroupState.COMPLETING_REBALANCE)


@pytest.mark.parametrize("kafka_version", ["2.8", "3.9", "4.4"])
def test_in_a_simple_group_protocols_are_judged_before_the_member(kafka_version: str) -> None:
    """GP-10 rows 10 and 11; measured on 3.9.2 and 4.4.0."""
    coordinator = Coordinator(kafka_version)
    assert error_of(coordinator.join("nobody", protocols=())) == 25  # there is no group
    commit(coordinator.state, "g", {"t": {0: 7}})
    assert error_of(coordinator.join("nobody", protocols=())) == 23
    assert error_of(coordinator.join("nobody")) == 25


def test_a_simple_group_that_is_joined_keeps_its_offsets() -> None:
    """EX-14."""
    coordinator = Coordinator()
    commit(coordinator.state, "g", {"t": {0: 7}})
    assert error_of(coordinator.join("m")) == 25
    assert joined(coordinator.join()).generation == 1
    assert coordinator.group.protocol_type == "consumer"
    assert coordinator.state.coordinator.offsets.of_group("g")["t"][0].offset == 7
