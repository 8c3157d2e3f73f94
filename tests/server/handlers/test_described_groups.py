"""Descriptions of groups that are not there: by a broker without their coordinator, and with it, measured on 4.x."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto.messages.k77_share_group_describe import ShareGroupDescribeRequest
from kproto.messages.k89_streams_group_describe import StreamsGroupDescribeRequest
from tests.coordinator.broker_state import ask, new_state

if TYPE_CHECKING:
    from kproto.message import Request

NOT_COORDINATOR = "This is not the correct coordinator."
RELEASES = ("4.0", "4.1", "4.2", "4.3", "4.4")
EMPTY = ("", 24, None)
"""INVALID_GROUP_ID."""

Described = list[tuple[str, int, str | None]]


def described(kafka_version: str, request: Request, version: int, *, is_coordinator: bool) -> Described:
    state = new_state(kafka_version, with_offsets_topic=is_coordinator)
    response: Any = ask(state, request, version)
    return [(group.group_id, group.error_code, group.error_message) for group in response.groups]


@pytest.mark.parametrize("release", RELEASES)
def test_consumer_groups(release: str) -> None:
    request = ConsumerGroupDescribeRequest(group_ids=("x", ""), include_authorized_operations=False)
    missing: Described = [EMPTY, ("x", 69, "Group x not found.")]
    assert described(release, request, 1, is_coordinator=False) == [EMPTY, ("x", 16, None)]
    assert described(release, request, 1, is_coordinator=True) == missing


MANY = (*(f"g{number}" for number in range(9)), "", "zz", "missing", "a", "b", "c", "g3", "g7", "ü")
BY_PARTITION = ["g6", "a", "g7", "b", "g7", "g4", "g5", "g2", "g3", "g3", "g0", "g1", "missing", "zz", "g8", "c", "ü"]
"""The order of 4.0.2 and 4.4.0 with 50 offsets partitions, without the empty id."""


@pytest.mark.parametrize("release", ["4.0", "4.4"])
def test_groups_are_in_the_order_of_their_offsets_partitions(release: str) -> None:
    settings = {"offsets.topic.num.partitions": "50"}
    state = new_state(release, settings=settings)
    requests: dict[Request, int] = {
        DescribeGroupsRequest(groups=MANY, include_authorized_operations=False): 5,
        ConsumerGroupDescribeRequest(group_ids=MANY, include_authorized_operations=False): 1,
    }
    orders = []
    for request, version in requests.items():
        response: Any = ask(state, request, version)
        orders.append([group.group_id for group in response.groups])
    by_partition = BY_PARTITION.copy()
    by_partition.insert(2, "")
    assert orders == [by_partition, ["", *BY_PARTITION]]


@pytest.mark.parametrize(("release", "first"), [("4.0", "g6 a"), ("4.1", "a g6"), ("4.4", "a g6")])
def test_deleted_groups_are_in_this_order_too(release: str, first: str) -> None:
    """From 4.1 on those of a partition are in the order of a hash set: "a" before "g6"."""
    state = new_state(release, settings={"offsets.topic.num.partitions": "50"})
    response: Any = ask(state, DeleteGroupsRequest(groups_names=MANY), 2)
    assert [result.group_id for result in response.results] == [*first.split(), "", *dict.fromkeys(BY_PARTITION[2:])]


def test_up_to_3_9_deleted_groups_have_the_order_of_the_request() -> None:
    """Kafka's order is that of a Scala set."""
    response: Any = ask(new_state("3.9"), DeleteGroupsRequest(groups_names=MANY), 2)
    assert [result.group_id for result in response.results] == list(dict.fromkeys(MANY))


@pytest.mark.parametrize("is_coordinator", [False, True])
def test_an_empty_id_among_consumer_groups_of_4_0_0(is_coordinator: bool) -> None:
    request = ConsumerGroupDescribeRequest(group_ids=("x", ""), include_authorized_operations=False)
    found = described("4.0.0", request, 1, is_coordinator=is_coordinator)
    assert found == [("x", -1, None), ("", -1, None)]


def test_a_release_without_the_protocol() -> None:
    """Measured on 3.9.2."""
    request = ConsumerGroupDescribeRequest(group_ids=("x", ""), include_authorized_operations=False)
    found = described("3.9", request, 0, is_coordinator=True)
    assert found == [("x", 35, None), ("", 35, None)]


@pytest.mark.parametrize("release", RELEASES[2:])
def test_share_groups(release: str) -> None:
    request = ShareGroupDescribeRequest(group_ids=("x", ""), include_authorized_operations=False)
    missing: Described = [EMPTY, ("x", 69, "Group x not found.")]
    assert described(release, request, 1, is_coordinator=False) == [EMPTY, ("x", 16, NOT_COORDINATOR)]
    assert described(release, request, 1, is_coordinator=True) == missing


@pytest.mark.parametrize("release", RELEASES[2:])
def test_streams_groups(release: str) -> None:
    request = StreamsGroupDescribeRequest(group_ids=("x", ""), include_authorized_operations=False)
    missing: Described = [EMPTY, ("x", 69, "Group x not found.")]
    assert described(release, request, 0, is_coordinator=False) == [EMPTY, ("x", 16, None)]
    assert described(release, request, 0, is_coordinator=True) == missing


@pytest.mark.parametrize("release", RELEASES[2:])
def test_heartbeats_of_share_groups_without_a_coordinator(release: str) -> None:
    member_id = "AAAAAAAAAAAAAAAAAAAAAQ"
    request = ShareGroupHeartbeatRequest(
        group_id="x", member_id=member_id, member_epoch=0, rack_id=None, subscribed_topic_names=("t",)
    )
    response: Any = ask(new_state(release, with_offsets_topic=False), request, 1)
    assert (response.error_code, response.error_message) == (16, None)
