"""Classic members in consumer groups and simple groups (GP-52, GP-53, EX-14)."""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto_server.coordinator.groups import Group, GroupState, Kind, Member
from tests.coordinator.broker_state import commit
from tests.coordinator.consumer_group import add_consumer_group
from tests.coordinator.membership.group_driver import GroupDriver, error_of, joined


def consumer_group(driver: GroupDriver, *members: str) -> Group:
    return add_consumer_group(driver.state.coordinator, 0, *members)


def test_a_consumer_group_with_members_rejects_malformed_subscriptions() -> None:
    """GP-53."""
    driver = GroupDriver()
    group = consumer_group(driver, "m")
    malformed = (("range", b""),)
    assert error_of(driver.join("n", protocols=malformed)) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error_of(driver.join("m", protocols=malformed)) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error_of(driver.sync("m")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.heartbeat("m") == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.leave(("n", None)) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert driver.state.coordinator.groups.get("g") is group
    assert list(group.members) == ["m"]
    assert driver.leave(("m", None)) == [0]
    assert list(group.members) == []


@pytest.mark.parametrize("kind", ["share", "streams"])
def test_share_and_streams_groups_reject_classic_members(kind: Kind) -> None:
    driver = GroupDriver()
    group = Group("g", 0)
    group.kind = kind
    group.add_member(Member("m"))
    driver.state.coordinator.groups.add(group)
    for member_id in ("", "m"):
        rejected = driver.join(member_id)
        assert rejected.result is not None
        assert rejected.result.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert rejected.result.member_id == ""
    assert list(group.members) == ["m"]


def test_an_empty_consumer_group_becomes_a_classic_group() -> None:
    """GP-52, in the other direction."""
    driver = GroupDriver()
    consumer_group(driver)
    assert error_of(driver.join("m")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert joined(driver.join()).generation == 1
    assert (driver.group.kind, driver.group_state) == ("classic", GroupState.COMPLETING_REBALANCE)


@pytest.mark.parametrize("kafka_version", ["2.8", "3.9", "4.4"])
def test_in_a_simple_group_protocols_are_checked_before_the_member(kafka_version: str) -> None:
    """GP-10 rows 10 and 11; measured on 3.9.2 and 4.4.0."""
    driver = GroupDriver(kafka_version)
    assert error_of(driver.join("unknown", protocols=())) == ErrorCode.UNKNOWN_MEMBER_ID  # the group does not exist
    commit(driver.state, "g", {"t": {0: 7}})
    assert error_of(driver.join("unknown", protocols=())) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error_of(driver.join("unknown")) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_simple_group_keeps_its_offsets_when_it_is_joined() -> None:
    """EX-14."""
    driver = GroupDriver()
    commit(driver.state, "g", {"t": {0: 7}})
    assert error_of(driver.join("m")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert joined(driver.join()).generation == 1
    assert driver.group.protocol_type == "consumer"
    assert driver.state.coordinator.offsets.of_group("g")["t"][0].offset == 7
