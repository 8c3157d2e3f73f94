"""DescribeGroups, ListGroups and ConsumerGroupDescribe (GP-40 to GP-42, GP-56)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from kproto_server.coordinator.groups import GroupState, Member
from kproto_server.handlers._operations import AuthorizedOperationsBehavior
from tests.coordinator.broker_state import ask, commit, group_with, new_state
from tests.coordinator.consumer_group import add_consumer_group

if TYPE_CHECKING:
    from kproto_server.state import BrokerState

OLD_AND_NEW = pytest.mark.parametrize("kafka_version", ["2.0", "2.8", "3.9", "4.4", "latest"])
NOT_ASKED = -(2**31)


def describe(state: BrokerState, *groups: str, version: int = 5, node_id: int = 1, **fields: Any) -> Any:
    return ask(state, DescribeGroupsRequest(groups=groups, **fields), version, node_id=node_id).groups


def listed(state: BrokerState, version: int = 5, node_id: int = 1, **filters: Any) -> list[str]:
    return [group.group_id for group in ask(state, ListGroupsRequest(**filters), version, node_id=node_id).groups]


# DescribeGroups.


@pytest.mark.parametrize("version", range(7))
@OLD_AND_NEW
def test_simple_group_is_empty_and_without_a_protocol(kafka_version: str, version: int) -> None:
    """GP-40, EX-14."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1}})
    commit(state, "", {"t": {0: 1}})
    for group in describe(state, "g", "", version=version):
        assert (group.error_code, group.error_message, group.group_state) == (0, None, "Empty")
        assert (group.protocol_type, group.protocol_data, group.members) == ("", "", ())
        assert group.authorized_operations == (
            NOT_ASKED if version < 3 else state.kafka_version.behavior(AuthorizedOperationsBehavior).unrequested
        )


@pytest.mark.parametrize(("kafka_version", "responses"), [("2.2", 1), ("2.3", 2), ("4.4", 2)])
def test_group_named_twice(kafka_version: str, responses: int) -> None:
    """Measured on 2.2.2 and 2.3.1."""
    state = new_state(kafka_version)
    assert [group.group_id for group in describe(state, "g", "g", version=2)] == ["g"] * responses


@pytest.mark.parametrize(("kafka_version", "state_name"), [("0.10.0", "Dead"), ("0.10.1", "Empty")])
def test_offsets_alone_create_no_group_up_to_0_10_0(kafka_version: str, state_name: str) -> None:
    """Measured on 0.10.0.1 and 0.10.1.1; a generation gets ILLEGAL_GENERATION in both (OC-21)."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1}}, version=2)
    assert describe(state, "g", version=0)[0].group_state == state_name
    assert len(listed(state, version=0)) == (1 if state_name == "Empty" else 0)


@pytest.mark.parametrize("version", range(6))
@OLD_AND_NEW
def test_unknown_group_is_dead(kafka_version: str, version: int) -> None:
    """GP-40."""
    (group,) = describe(new_state(kafka_version), "unknown", version=version)
    assert (group.group_id, group.error_code, group.group_state) == ("unknown", 0, "Dead")


def test_unknown_group_is_an_error_from_v6_on() -> None:
    """GP-40; so is a consumer group, which this API does not describe (GP-41)."""
    state = new_state("4.4")
    add_consumer_group(state.coordinator, 0, group_id="modern")
    returned = [(g.error_code, g.error_message, g.group_state) for g in describe(state, "unknown", "modern", version=6)]
    assert returned == [(69, "Group unknown not found.", "Dead"), (69, "Group modern is not a classic group.", "Dead")]
    assert [(g.error_code, g.group_state) for g in describe(state, "modern", version=5)] == [(0, "Dead")]


@OLD_AND_NEW
def test_only_the_coordinator_describes_a_group(kafka_version: str) -> None:
    """GP-40: NOT_COORDINATOR with empty strings."""
    state = new_state(kafka_version, node_count=2)
    for partition in state.cluster.topics["__consumer_offsets"].partitions:
        partition.leader = 1
    commit(state, "g", {"t": {0: 1}})
    (group,) = describe(state, "g", node_id=2, include_authorized_operations=True)
    assert (group.error_code, group.group_state, group.protocol_type) == (16, "", "")
    assert group.authorized_operations == state.kafka_version.behavior(AuthorizedOperationsBehavior).unrequested


@pytest.mark.parametrize(("kafka_version", "operations"), [("2.8", 328), ("3.9", 328), ("4.4", 3400), ("latest", 3400)])
def test_authorized_operations_are_returned_on_request(kafka_version: str, operations: int) -> None:
    """GP-40: all operations of groups, also for a Dead group."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1}})
    groups = describe(state, "g", "unknown", include_authorized_operations=True)
    assert [group.authorized_operations for group in groups] == [operations, operations]


@pytest.mark.parametrize(
    ("state_of_group", "shows_protocol"),
    [(GroupState.STABLE, True), (GroupState.PREPARING_REBALANCE, False), (GroupState.COMPLETING_REBALANCE, False)],
)
def test_only_stable_groups_have_metadata(state_of_group: GroupState, shows_protocol: bool) -> None:
    """GP-40: the assignment is always returned."""
    state = new_state()
    member = Member(
        "m", group_instance_id="i", client_id="c", client_host="/1.2.3.4", metadata=b"topics", assignment=b"partitions"
    )
    group_with(state, "g", state_of_group, [member])
    (group,) = describe(state, "g")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range" if shows_protocol else "")
    (returned,) = group.members
    assert (returned.member_id, returned.group_instance_id, returned.client_id, returned.client_host) == (
        "m",
        "i",
        "c",
        "/1.2.3.4",
    )
    assert (returned.member_metadata, returned.member_assignment) == (
        b"topics" if shows_protocol else b"",
        b"partitions",
    )


@pytest.mark.parametrize(("kafka_version", "name"), [("0.11", "AwaitingSync"), ("1.0", "AwaitingSync"), ("1.1", None)])
def test_state_before_sync_was_renamed(kafka_version: str, name: str | None) -> None:
    """GP-40; measured on 0.11.0.3 and 1.1.1."""
    state = new_state(kafka_version)
    group_with(state, "g", GroupState.COMPLETING_REBALANCE, [Member("m")])
    assert describe(state, "g", version=0)[0].group_state == (name or "CompletingRebalance")


# ListGroups.


@OLD_AND_NEW
def test_groups_are_listed_with_state_and_type(kafka_version: str) -> None:
    """GP-42: simple groups without a protocol type."""
    state = new_state(kafka_version)
    commit(state, "simple", {"t": {0: 1}})
    group_with(state, "joined", GroupState.STABLE, [Member("m")])
    add_consumer_group(state.coordinator, 0, group_id="modern")
    response = ask(state, ListGroupsRequest(), 5)
    assert response.error_code == 0
    assert [(g.group_id, g.protocol_type, g.group_state, g.group_type) for g in response.groups] == [
        ("simple", "", "Empty", "classic"),
        ("joined", "consumer", "Stable", "classic"),
        ("modern", "consumer", "Empty", "consumer"),
    ]


def test_each_node_lists_the_groups_that_it_coordinates() -> None:
    """GP-42: together they list all groups, each once."""
    state = new_state(node_count=3)
    names = [f"group-{number}" for number in range(40)]
    for name in names:
        leader = state.cluster.coordinator_of(name)
        assert leader is not None
        state.coordinator.groups.create(name, 0)
    by_node = {node_id: listed(state, node_id=node_id) for node_id in (1, 2, 3)}
    assert all(by_node.values())
    assert sorted(name for found in by_node.values() for name in found) == sorted(names)


def test_nothing_is_listed_before_there_is_an_offsets_topic() -> None:
    """GP-42: empty, and no error."""
    assert listed(new_state(with_offsets_topic=False)) == []


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ["empty", "stable", "modern"]),
        ({"states_filter": ("Empty",)}, ["empty", "modern"]),
        ({"states_filter": ("EMPTY", "stable")}, ["empty", "stable", "modern"]),
        ({"states_filter": ("Odd",)}, []),
        ({"states_filter": ("Dead",)}, []),
        ({"types_filter": ("CLASSIC",)}, ["empty", "stable"]),
        ({"types_filter": ("Consumer", "Classic")}, ["empty", "stable", "modern"]),
        ({"types_filter": ("consumer",), "states_filter": ("empty",)}, ["modern"]),
        ({"types_filter": ("odd",)}, []),
    ],
)
def test_filters_ignore_case(filters: dict[str, Any], expected: list[str]) -> None:
    """GP-42: an unknown state or type matches no group, and is no error."""
    state = new_state("4.4")
    group_with(state, "empty", GroupState.EMPTY)
    group_with(state, "stable", GroupState.STABLE, [Member("m")])
    add_consumer_group(state.coordinator, 0, group_id="modern")
    assert listed(state, **filters) == expected


@pytest.mark.parametrize(("kafka_version", "expected"), [("2.8", []), ("3.7", []), ("3.8", ["g"]), ("4.4", ["g"])])
def test_filters_need_exact_names_up_to_3_7(kafka_version: str, expected: list[str]) -> None:
    """GP-42; measured on 2.8.2 and 3.9.2."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1}})
    assert listed(state, version=4, states_filter=("empty",)) == expected
    assert listed(state, version=4, states_filter=("Empty",)) == ["g"]


# ConsumerGroupDescribe.


def test_classic_and_unknown_groups_are_no_consumer_groups() -> None:
    """GP-56; the texts are those of 4.4.0."""
    state = new_state("4.4")
    commit(state, "g1", {"t": {0: 1}})
    request = ConsumerGroupDescribeRequest(group_ids=("g1", "nope"), include_authorized_operations=True)
    groups = ask(state, request, 1).groups
    assert [(g.group_id, g.error_code, g.error_message) for g in groups] == [
        ("g1", 69, "Group g1 is not a consumer group."),
        ("nope", 69, "Group nope not found."),
    ]
    for group in groups:
        assert (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name) == ("", 0, 0, "")
        assert (group.members, group.authorized_operations) == ((), NOT_ASKED)


def test_consumer_groups_are_described_by_their_coordinator() -> None:
    """GP-56."""
    request = ConsumerGroupDescribeRequest(group_ids=("g",), include_authorized_operations=False)
    (group,) = ask(new_state("4.4", with_offsets_topic=False), request, 1).groups
    assert (group.error_code, group.error_message) == (16, None)


@pytest.mark.parametrize("kafka_version", ["3.8", "3.9"])
def test_old_coordinator_has_no_consumer_groups(kafka_version: str) -> None:
    """GP-56: the API exists and returns UNSUPPORTED_VERSION (KafkaApis.handleConsumerGroupDescribe of 3.8)."""
    request = ConsumerGroupDescribeRequest(group_ids=("g",), include_authorized_operations=False)
    (group,) = ask(new_state(kafka_version), request, 0).groups
    assert (group.error_code, group.error_message) == (35, None)
