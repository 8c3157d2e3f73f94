"""Classic members of a consumer group: which ones may join, how long they may take, and what becomes of the group."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kproto.codes import ErrorCode
from kproto.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_member_data,
    read_assignment,
)
from kproto_server.coordinator.consumer_groups.consumer_protocol import Subscription, assignment_bytes, subscription_of
from kproto_server.coordinator.groups import Group
from kproto_server.state import BrokerState
from kproto_server.testing.in_memory import virtual_clock
from tests.consumer_groups.members import REBALANCE_MS, SESSION_MS, Conversation
from tests.coordinator.broker_state import new_state
from tests.membership.in_memory_transport import InMemoryTransport

LASTING = {"group.consumer.session.timeout.ms": "600000", "group.consumer.max.session.timeout.ms": "600000"}
"""Members of KIP-848 stay."""
LONG_MS = 600_000
INTERVAL_MS = 1100
"""More than the assignment interval."""
REFUSED, FULL = ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.GROUP_MAX_SIZE_REACHED
UNKNOWN, REBALANCE = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS


def new_group(release: str = "4.4", settings: Mapping[str, str] | None = None) -> tuple[BrokerState, Conversation]:
    state = new_state(release, topics={"x": 6}, settings=LASTING | dict(settings or {}), clock=virtual_clock())
    group = Conversation(InMemoryTransport(state), "g", release=release)
    group.learn_topics("x")
    return state, group


def last_error(group: Conversation) -> int:
    [[response]] = group.steps[-1].responses.values()
    return int(response["error_code"])


@pytest.mark.parametrize("policy", ["bidirectional", "upgrade", "downgrade", "disabled"])
@pytest.mark.parametrize("release", ["4.1", "4.2", "4.4"])
def test_only_a_disabled_migration_refuses_classic_members(release: str, policy: str) -> None:
    _, group = new_group(release, {"group.consumer.migration.policy": policy})
    group.join("A", ("x",))
    group.join_classic("B", ("x",))
    assert last_error(group) == (REFUSED if policy == "disabled" and release != "4.1" else 0)


@pytest.mark.parametrize("release", ["4.3", "4.4"])
def test_a_full_group_refuses_classic_members_but_those_in_place_of_another(release: str) -> None:
    _, group = new_group(release, {"group.consumer.max.size": "2"})
    group.join("A", ("x",), instance_id="i")
    group.join_classic("B", ("x",))
    group.join_classic("C", ("x",))
    assert last_error(group) == FULL
    group.join_classic("B", ("x",))
    assert last_error(group) == 0
    group.join_classic("D", ("x",), instance="i")
    assert last_error(group) == (FULL if release == "4.3" else 0)


def test_a_member_of_another_protocol_type_is_refused() -> None:
    _, group = new_group()
    group.join("A", ("x",))
    group.join_classic("B", ("x",), protocol_type="connect")
    assert last_error(group) == REFUSED


def test_an_instance_has_one_member() -> None:
    _, group = new_group()
    group.join("A", ("x",))
    group.join_classic("B", ("x",), instance="i")
    for instance, error in (("i", ErrorCode.FENCED_INSTANCE_ID), ("k", UNKNOWN)):
        group.join_classic("C", ("x",), member_id="another", instance=instance)
        assert last_error(group) == error
    group.join_classic("B", ("x",), instance="i")
    assert last_error(group) == 0


def test_an_instance_leaves_and_another_member_takes_it() -> None:
    _, group = new_group()
    group.join("A", ("x",))
    for instance, member_id, error in (("i", "", 0), ("k", "", UNKNOWN), ("i", "other", ErrorCode.FENCED_INSTANCE_ID)):
        group.join_classic("B", ("x",), instance="i", member_id="")
        group.leave_classic("B", instance, member_id)
        [[response]] = group.steps[-1].responses.values()
        assert [one["error_code"] for one in response["members"]] == [error]
    group.leave_classic("B", "i", "")
    group.join("C", ("x",), instance_id="i")
    assert group.members["C"].epoch > 0


def joined(session_ms: int) -> Conversation:
    """Return a group in which the classic member B has joined, and not yet synced."""
    _, group = new_group()
    group.join("A", ("x",))
    group.join_classic("B", ("x",), session_ms=session_ms)
    return group


def found_group(state: BrokerState) -> Group:
    found = state.coordinator.groups.get("g")
    assert found is not None
    return found


def is_member(group: Conversation, name: str) -> bool:
    """Ask without a heartbeat."""
    group.describe()
    [[response]] = group.steps[-1].responses.values()
    return f"<id of {name}>" in [member["member_id"] for member in response["groups"][0]["members"]]


@pytest.mark.parametrize("syncs", [False, True])
def test_a_member_that_does_not_sync_is_removed(syncs: bool) -> None:
    group = joined(LONG_MS)
    if syncs:
        group.sync("B")
    group.pass_time(REBALANCE_MS - 1)
    assert is_member(group, "B")
    group.pass_time(1)
    assert is_member(group, "B") == syncs


@pytest.mark.parametrize("joins", [False, True])
def test_a_member_that_does_not_join_for_a_rebalance_is_removed(joins: bool) -> None:
    """The time does not begin again with each heartbeat."""
    group = joined(LONG_MS)
    group.sync("B")
    group.pass_time(INTERVAL_MS)
    group.settle("A", rounds=2)
    group.beat_classic("B")
    assert last_error(group) == REBALANCE
    group.pass_time(REBALANCE_MS - 1)
    group.beat_classic("B")
    assert last_error(group) == REBALANCE
    if joins:
        group.join_classic("B", ("x",), session_ms=LONG_MS)
        group.sync("B")
    group.pass_time(1)
    assert is_member(group, "B") == joins
    group.pass_time(REBALANCE_MS)
    assert is_member(group, "B") == joins


@pytest.mark.parametrize("request_", ["join", "sync", "heartbeat"])
def test_a_session_begins_anew_with_each_request(request_: str) -> None:
    group = joined(SESSION_MS)
    group.sync("B")
    group.pass_time(SESSION_MS - 1)
    if request_ == "join":
        group.join_classic("B", ("x",))
    elif request_ == "sync":
        group.sync("B")
    else:
        group.beat_classic("B")
    group.pass_time(SESSION_MS - 1)
    assert is_member(group, "B")
    group.pass_time(1)
    assert not is_member(group, "B")


@pytest.mark.parametrize(
    ("settings", "becomes_classic"),
    [
        ({}, True),
        ({"group.consumer.migration.policy": "downgrade"}, True),
        ({"group.consumer.migration.policy": "upgrade"}, False),
        ({"group.max.size": "2"}, True),
        ({"group.max.size": "1"}, False),
    ],
    ids=str,
)
def test_the_group_becomes_a_classic_one_with_its_last_other_member(
    settings: Mapping[str, str], becomes_classic: bool
) -> None:
    state, group = new_group(settings=settings)
    group.join("A", ("x",))
    group.join("A2", ("x",))
    for name in ("B", "C"):
        group.join_classic(name, ("x",))
    group.leave("A")
    assert found_group(state).kind == "consumer"
    group.leave("A2")
    found = found_group(state)
    assert found.kind == ("classic" if becomes_classic else "consumer")
    clients = [(member.client_id, member.client_host) for member in found.members.values()]
    assert clients == [("B", "/127.0.0.1"), ("C", "/127.0.0.1")]


def test_the_group_stays_as_it_is_while_it_has_another_member_of_kip_848() -> None:
    state, group = new_group()
    group.join("A", ("x",), instance_id="i")
    group.join("A2", ("x",))
    group.join_classic("B", ("x",), instance="i")
    found = found_group(state)
    assert (found.kind, set(found.members)) == ("consumer", {"A2", group.members["B"].member_id})


@pytest.mark.parametrize("how", ["leave", "replace"])
@pytest.mark.parametrize("release", ["4.0", "4.4"])
def test_sessions_end_in_a_group_that_has_become_a_classic_one(release: str, how: str) -> None:
    state, group = new_group(release)
    group.join("A", ("x",), instance_id="i")
    group.join_classic("B", ("x",))
    group.pass_time(INTERVAL_MS)
    group.settle("A", rounds=2)
    if how == "leave":
        group.leave("A")
    else:
        group.join_classic("C", ("x",), instance="i")
    found = found_group(state)
    assert (found.kind, len(found.members)) == ("classic", 1 if how == "leave" else 2)
    group.pass_time(REBALANCE_MS + SESSION_MS)
    assert not found.members


def test_what_members_own_is_read_by_topic() -> None:
    """A topic may come twice, and may be gone."""
    state, group = new_group()
    owned = (("x", (0, 1)), ("x", (2,)), ("x", ()), ("gone", (0,)))
    subscription = ConsumerProtocolSubscription(
        topics=("x", "gone"),
        owned_partitions=tuple(TopicPartition(topic=topic, partitions=indexes) for topic, indexes in owned),
        rack_id="r",
    )
    found = subscription_of(state.coordinator, encode_member_data(subscription, 3))
    assert found == Subscription(frozenset({"x", "gone"}), {group.topic_ids["x"]: frozenset({0, 1, 2})}, "r")


def test_a_member_keeps_its_rack_until_it_has_another() -> None:
    _, group = new_group()
    group.join("A", ("x",))
    for rack, expected in (("r", "r"), (None, "r"), ("s", "s")):
        subscription = ConsumerProtocolSubscription(topics=("x",), rack_id=rack)
        group.join_classic("B", metadata=encode_member_data(subscription, 3))
        group.describe()
        [[response]] = group.steps[-1].responses.values()
        racks = {member["member_id"]: member.get("rack_id") for member in response["groups"][0]["members"]}
        assert racks == {"A": None, "<id of B>": expected}


def test_an_upgraded_member_keeps_its_rack_and_its_session() -> None:
    """Its heartbeats extend the session that began with the classic group."""
    _, group = new_group(settings={"group.initial.rebalance.delay.ms": "0"})
    subscription = ConsumerProtocolSubscription(topics=("x",), rack_id="r")
    group.join_classic("B", metadata=encode_member_data(subscription, 3))
    group.sync("B", assigns={"x": range(6)})
    group.join("A", ("x",))
    group.describe()
    [[response]] = group.steps[-1].responses.values()
    racks = {member["member_id"]: member.get("rack_id") for member in response["groups"][0]["members"]}
    assert racks == {"A": None, "<id of B>": "r"}
    group.pass_time(SESSION_MS - 1)
    group.beat_classic("B")
    group.pass_time(SESSION_MS - 1)
    assert is_member(group, "B")
    group.pass_time(1)
    assert not is_member(group, "B")


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_has_the_version_of_the_members_subscription(version: int) -> None:
    state, group = new_group()
    metadata = encode_member_data(ConsumerProtocolSubscription(topics=("x",)), version)
    data = assignment_bytes(state.coordinator, {group.topic_ids["x"]: frozenset({1})}, metadata)
    assigned = ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="x", partitions=(1,)),))
    assert read_assignment(data) == (version, assigned)
