"""Descriptions of groups that are not there: by a broker without their coordinator, and with it, measured on 4.x."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kproto.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto.messages.k77_share_group_describe import ShareGroupDescribeRequest
from kproto.messages.k89_streams_group_describe import StreamsGroupDescribeRequest
from tests.coordinator.broker_state import ask, new_state

if TYPE_CHECKING:
    from kproto.message import Request

NOT_COORDINATOR = "This is not the correct coordinator."
RELEASES = ("4.1", "4.2", "4.3", "4.4")
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


@pytest.mark.parametrize("is_coordinator", [False, True])
def test_an_empty_id_among_consumer_groups_of_4_0(is_coordinator: bool) -> None:
    request = ConsumerGroupDescribeRequest(group_ids=("x", ""), include_authorized_operations=False)
    found = described("4.0", request, 1, is_coordinator=is_coordinator)
    assert found == [("x", -1, None), ("", -1, None)]


def test_a_release_without_the_protocol() -> None:
    """Measured on 3.9.2."""
    request = ConsumerGroupDescribeRequest(group_ids=("x", ""), include_authorized_operations=False)
    found = described("3.9", request, 0, is_coordinator=True)
    assert sorted(found) == [("", 35, None), ("x", 35, None)]


@pytest.mark.parametrize("release", RELEASES[1:])
def test_share_groups(release: str) -> None:
    request = ShareGroupDescribeRequest(group_ids=("x", ""), include_authorized_operations=False)
    missing: Described = [EMPTY, ("x", 69, "Group x not found.")]
    assert described(release, request, 1, is_coordinator=False) == [EMPTY, ("x", 16, NOT_COORDINATOR)]
    assert described(release, request, 1, is_coordinator=True) == missing


@pytest.mark.parametrize("release", RELEASES[1:])
def test_streams_groups(release: str) -> None:
    request = StreamsGroupDescribeRequest(group_ids=("x", ""), include_authorized_operations=False)
    missing: Described = [EMPTY, ("x", 69, "Group x not found.")]
    assert described(release, request, 0, is_coordinator=False) == [EMPTY, ("x", 16, None)]
    assert described(release, request, 0, is_coordinator=True) == missing


@pytest.mark.parametrize("release", RELEASES[1:])
def test_heartbeats_of_share_groups_without_a_coordinator(release: str) -> None:
    member_id = "AAAAAAAAAAAAAAAAAAAAAQ"
    request = ShareGroupHeartbeatRequest(
        group_id="x", member_id=member_id, member_epoch=0, rack_id=None, subscribed_topic_names=("t",)
    )
    response: Any = ask(new_state(release, with_offsets_topic=False), request, 1)
    assert (response.error_code, response.error_message) == (16, None)
