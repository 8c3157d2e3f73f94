"""Classic groups and consumer groups from their records (LF-35, EX-16, EX-52)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kproto.records import consumer_group_records as consumer
from kproto.records.coordinator import CoordinatorKey
from kproto.records.group_records import GroupMetadataKey, GroupMetadataValue
from kproto_server.coordinator.groups import GroupState
from tests.coordinator.loading.group_values import MEMBER, consumer_group, consumer_member, group_value
from tests.coordinator.loading.logs import NOW, Log, Pair, loaded, stored

if TYPE_CHECKING:
    pass


def group_log(value: GroupMetadataValue, version: int = 3) -> Log:
    log = Log()
    log.records((GroupMetadataKey(group="g"), (value, version)))
    return log


def test_a_group_with_members_is_stable() -> None:
    """LF-35."""
    (group,) = loaded(group_log(group_value(MEMBER)).data).load.groups
    assert (group.state, group.generation, group.protocol_type, group.protocol_name) == (
        GroupState.STABLE,
        3,
        "consumer",
        "range",
    )
    assert group.subscribed_topics == frozenset({"t"})
    assert (group.leader_id, group.static_members) == ("m", {"i": "m"})
    assert group.protocol_counts == {"range": 1}
    (member,) = group.members.values()
    assert (member.assignment, member.protocols) == (b"a", (("range", MEMBER.subscription),))
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (10_000, 300_000)


@pytest.mark.parametrize(("version", "timestamp_ms"), [(0, None), (1, None), (2, NOW - 5), (3, NOW - 5), (4, NOW - 5)])
def test_a_group_without_members_is_empty_since_its_timestamp(version: int, timestamp_ms: int | None) -> None:
    """LF-35, EX-16, EX-52: values written before 2.1 have no timestamp."""
    (group,) = loaded(group_log(group_value(), version).data).load.groups
    assert (group.state, group.state_timestamp_ms) == (GroupState.EMPTY, timestamp_ms)
    assert (group.generation, group.protocol_type, group.leader_id) == (3, "consumer", None)
    assert group.subscribed_topics == frozenset()


@pytest.mark.parametrize(("version", "rebalance_timeout_ms"), [(0, 10_000), (1, 300_000)])
def test_the_first_values_have_one_timeout(version: int, rebalance_timeout_ms: int) -> None:
    """LF-16."""
    (group,) = loaded(group_log(group_value(MEMBER), version).data).load.groups
    assert group.members["m"].rebalance_timeout_ms == rebalance_timeout_ms


def test_a_group_without_members_ever_has_no_protocol_type() -> None:
    """LF-14, EX-14."""
    value = group_value(protocol_type="", generation=0)
    (group,) = loaded(group_log(value).data).load.groups
    assert (group.protocol_type, group.generation, group.subscribed_topics) == (None, 0, None)


def test_unreadable_subscriptions_are_unknown() -> None:
    """EX-22."""
    for subscription in (b"", b"\0\0\0\0\0\5", b"nothing"):
        (group,) = loaded(group_log(group_value(MEMBER.replace(subscription=subscription))).data).load.groups
        assert group.subscribed_topics is None
    (group,) = loaded(group_log(group_value(MEMBER, protocol_type="connect")).data).load.groups
    assert group.subscribed_topics is None


def test_the_last_record_of_a_group_counts() -> None:
    log = group_log(group_value(MEMBER))
    log.records((GroupMetadataKey(group="g"), (group_value(generation=4), 3)))
    (group,) = loaded(log.data).load.groups
    assert (group.state, group.generation, group.members) == (GroupState.EMPTY, 4, {})


def test_later_offsets_of_a_removed_group_are_a_simple_group() -> None:
    """LF-35: the order between offset records and group records does not matter."""
    log = group_log(group_value())
    log.commit("g", [("t", [(0, stored(1))])])
    log.remove_group("g")
    log.commit("g", [("t", [(0, stored(2))])])
    found = loaded(log.data)
    assert found.load.groups == []
    assert found.state.coordinator.groups.get("g") is None
    assert found.offsets_as_dicts() == {"g": {"t": {0: 2}}}


def tombstones_of_member(member_id: str) -> tuple[Pair, ...]:
    keys: tuple[CoordinatorKey, ...] = (
        consumer.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id=member_id),
        consumer.ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id=member_id),
        consumer.ConsumerGroupMemberMetadataKey(group_id="g", member_id=member_id),
    )
    return tuple((key, None) for key in keys)


def test_a_consumer_group() -> None:
    """EX-21 row 6: the subscribed topics are known."""
    log = Log()
    consumer_group(log, "m", "n")
    (group,) = loaded(log.data).load.groups
    assert (group.kind, group.state, group.generation) == ("consumer", GroupState.ASSIGNING, 9)
    assert group.subscribed_topics == frozenset({"t", "of-m", "of-n"})
    assert {member_id: member.epoch for member_id, member in group.members.items()} == {"m": 8, "n": 8}
    log.records(*tombstones_of_member("m"))
    (group,) = loaded(log.data).load.groups
    assert list(group.members) == ["n"]
    assert group.subscribed_topics == frozenset({"t", "of-n"})
    log.records(*tombstones_of_member("n"))
    (group,) = loaded(log.data).load.groups
    assert (group.state, group.subscribed_topics) == (GroupState.EMPTY, frozenset())
    log.records(
        (consumer.ConsumerGroupTargetAssignmentMetadataKey(group_id="g"), None),
        (consumer.ConsumerGroupMetadataKey(group_id="g"), None),
    )
    assert loaded(log.data).load.groups == []


def test_regular_expressions_of_a_consumer_group() -> None:
    log = Log()
    consumer_group(log)
    log.records(
        (consumer.ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"), (consumer_member(regex="a.*"), 0))
    )
    regex_key = consumer.ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="a.*")
    resolved = consumer.ConsumerGroupRegularExpressionValue(topics=("a1", "a2"), version=1, timestamp=NOW)
    log.records((regex_key, (resolved, 0)))
    (group,) = loaded(log.data).load.groups
    assert group.subscribed_topics == frozenset({"a1", "a2"})
    log.records((regex_key, None))
    (group,) = loaded(log.data).load.groups
    assert group.subscribed_topics == frozenset()


def test_a_member_of_a_consumer_group_that_uses_the_classic_protocol() -> None:
    metadata = consumer.ClassicMemberMetadata(
        session_timeout_ms=7000, supported_protocols=(consumer.ClassicProtocol(name="range", metadata=b"s"),)
    )
    log = Log()
    value = consumer_member("t").with_classic_member_metadata(metadata)
    log.records((consumer.ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"), (value, 0)))
    (group,) = loaded(log.data).load.groups
    (member,) = group.members.values()
    assert (member.speaks_classic, member.session_timeout_ms) == (True, 7000)
    assert member.protocols == (("range", b"s"),)


def test_a_group_that_changed_its_protocol() -> None:
    """KIP-848: the last record decides the kind of a group; tombstones of the other kind have no effect."""
    log = group_log(group_value(MEMBER))
    log.remove_group("g")
    consumer_group(log, "m")
    log.remove_group("g")
    (group,) = loaded(log.data).load.groups
    assert group.kind == "consumer"
    log.records((consumer.ConsumerGroupMetadataKey(group_id="g"), None))
    log.records((GroupMetadataKey(group="g"), (group_value(MEMBER), 3)))
    log.records(*tombstones_of_member("m"), (consumer.ConsumerGroupMetadataKey(group_id="g"), None))
    (group,) = loaded(log.data).load.groups
    assert (group.kind, list(group.members)) == ("classic", ["m"])
