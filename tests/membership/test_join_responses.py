"""Fields of JoinGroup responses that transcripts leave out: member ids, null and empty names; and the timeout of v0."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto_server.coordinator.groups import GroupState
from tests.membership.in_memory_transport import InMemoryTransport
from tests.membership.members import SUBSCRIPTION

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
JOIN = JoinGroupRequest(
    group_id="g",
    session_timeout_ms=6000,
    rebalance_timeout_ms=60_000,
    member_id="",
    protocol_type="consumer",
    protocols=(JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
)


def response_to(transport: InMemoryTransport, name: str, request: Any, version: int) -> Any:
    transport.send(name, request, version)
    ((receiver, response),) = transport.responses()
    assert receiver == name
    return response


@pytest.mark.parametrize(
    ("client_id", "instance", "start"), [("app", None, "app-"), ("", None, "-"), ("app", "one", "one-")]
)
def test_a_member_id_is_a_name_and_a_uuid(client_id: str, instance: str | None, start: str) -> None:
    """GP-6, GP-11: in a group that the JoinGroup creates."""
    transport = InMemoryTransport.of("4.4")
    assert transport.state.coordinator.groups.get("g") is None
    joined = response_to(transport, client_id, JOIN.replace(group_instance_id=instance), 5 if instance else 3)
    assert joined.error_code == 0
    assert re.fullmatch(start + UUID, joined.member_id)
    assert joined.leader == joined.member_id
    group = transport.state.coordinator.groups.get("g")
    assert group is not None
    assert (list(group.members), group.generation) == ([joined.member_id], 1)


@pytest.mark.parametrize(("kafka_version", "generation"), [("2.0", 0), ("2.1", 0), ("2.2", -1), ("4.4", -1)])
def test_a_rejected_join_has_empty_fields(kafka_version: str, generation: int) -> None:
    """GP-3."""
    transport = InMemoryTransport.of(kafka_version)
    refused = response_to(transport, "client", JOIN.replace(member_id="ghost"), 3)
    assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert (refused.generation_id, refused.protocol_name, refused.leader) == (generation, "", "")
    assert (refused.member_id, refused.members) == ("ghost", ())


@pytest.mark.parametrize(("version", "name"), [(0, ""), (6, ""), (7, None), (9, None)])
def test_a_missing_protocol_is_null_from_v7_on(version: int, name: str | None) -> None:
    """GP-3."""
    refused = response_to(InMemoryTransport.of("4.4"), "client", JOIN.replace(member_id="ghost"), version)
    assert refused.protocol_name == name


@pytest.mark.parametrize(("version", "is_out"), [(0, True), (1, False)])
def test_v0_uses_the_session_timeout_as_rebalance_timeout(version: int, is_out: bool) -> None:
    """GP-2: for a member that sends heartbeats but does not rejoin."""
    transport = InMemoryTransport.of("4.4")
    first = response_to(transport, "first", JOIN, version).member_id
    own = SyncGroupRequestAssignment(member_id=first, assignment=b"all")
    synced = response_to(
        transport, "first", SyncGroupRequest(group_id="g", generation_id=1, member_id=first, assignments=(own,)), 0
    )
    assert synced.error_code == 0
    transport.send("second", JOIN, version)
    transport.pass_time(5000)
    alive = HeartbeatRequest(group_id="g", generation_id=1, member_id=first)
    assert response_to(transport, "first", alive, 0).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    transport.pass_time(1000)
    received = dict(transport.responses())
    group = transport.state.coordinator.groups.get("g")
    assert group is not None
    assert (first not in group.members, "second" in received) == (is_out, is_out)
    assert group.state is (GroupState.COMPLETING_REBALANCE if is_out else GroupState.PREPARING_REBALANCE)


@pytest.mark.parametrize(("version", "error_code", "shown"), [(4, 79, "Empty"), (3, 0, "CompletingRebalance")])
def test_a_new_group_is_visible_with_the_first_response(version: int, error_code: int, shown: str) -> None:
    """GroupMetadataManager.describeGroups of 4.0 and later: when its record is committed (measured on 4.1.2)."""
    transport = InMemoryTransport.of("4.1")
    assert response_to(transport, "A", JOIN, version).error_code == error_code
    (described,) = response_to(transport, "admin", DescribeGroupsRequest(groups=("g",)), 6).groups
    assert (described.error_code, described.group_state) == (0, shown)
    assert [one.group_id for one in response_to(transport, "admin", ListGroupsRequest(), 2).groups] == ["g"]
