"""Members of a group continue after a restart of the broker on its data directory (LF-30)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto_server import Broker
from kproto_server.configuration.data_directory import DataDirectory, Durability
from tests.membership.members import SUBSCRIPTION
from tests.network.raw_client import RawClient
from tests.waiting import wait_until

SESSION_MS = 10_000
JOIN = JoinGroupRequest(
    group_id="g",
    session_timeout_ms=SESSION_MS,
    rebalance_timeout_ms=SESSION_MS,
    member_id="",
    protocol_type="consumer",
    protocols=(JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
)


def wait_coordinator(client: RawClient) -> None:
    request = FindCoordinatorRequest(key="g")
    wait_until(lambda: client.ask(request, 1).error_code == 0, "the coordinator")


def two_members(address: str) -> tuple[str, str]:
    """Make a Stable group of generation 2; return the ids of its leader and of the other member."""
    with RawClient(address) as one, RawClient(address) as two:
        wait_coordinator(one)
        leader = one.ask(JOIN, 3).member_id
        two.send((JOIN, 3))
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=leader)
        wait_until(lambda: one.ask(beat, 1).error_code == ErrorCode.REBALANCE_IN_PROGRESS, "a rebalance")
        joined = one.ask(JOIN.replace(member_id=leader), 3)
        other = next(member.member_id for member in joined.members if member.member_id != leader)
        parts = tuple(SyncGroupRequestAssignment(member_id=m, assignment=m.encode()) for m in (leader, other))
        synced = one.ask(sync(leader).replace(assignments=parts), 1)
        assert (joined.generation_id, synced.error_code) == (2, 0)
    return leader, other


def sync(member_id: str) -> SyncGroupRequest:
    return SyncGroupRequest(group_id="g", generation_id=2, member_id=member_id, assignments=())


def heartbeats(client: RawClient, *member_ids: str) -> list[int]:
    requests = (HeartbeatRequest(group_id="g", generation_id=2, member_id=member_id) for member_id in member_ids)
    return [client.ask(request, 1).error_code for request in requests]


@pytest.mark.parametrize("durability", ["os", "fsync"])
@pytest.mark.parametrize("kafka_version", ["2.0", "4.4"])
def test_members_continue_after_a_restart(kafka_version: str, durability: Durability, tmp_path: Path) -> None:
    data = DataDirectory(str(tmp_path), durability)
    with Broker.running(data=data, kafka_version=kafka_version, clock="manual") as broker:
        leader, other = two_members(broker.bootstrap_servers)
        with RawClient(broker.bootstrap_servers) as client:
            before = client.ask(DescribeGroupsRequest(groups=("g",)), 1)
    assert [(group.group_state, len(group.members)) for group in before.groups] == [("Stable", 2)]

    with (
        Broker.running(data=data, kafka_version=kafka_version, clock="manual") as broker,
        RawClient(broker.bootstrap_servers) as client,
    ):
        wait_coordinator(client)
        assert client.ask(DescribeGroupsRequest(groups=("g",)), 1) == before
        assert heartbeats(client, leader, other) == [0, 0]
        assert client.ask(sync(other), 1).assignment == other.encode()
        broker.clock.advance(milliseconds=SESSION_MS - 1)
        assert heartbeats(client, other) == [0]
        broker.clock.advance(milliseconds=1)  # the session of the leader expires
        assert heartbeats(client, leader, other) == [25, ErrorCode.REBALANCE_IN_PROGRESS]
