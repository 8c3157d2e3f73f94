"""Members of a group on real sockets wait for each other, and no event leaves them waiting forever.

Method: a broker in the process with a manual clock, and raw clients, each with its own connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kproto_server.broker.broker import Broker
from tests.network.raw_client import RawClient
from tests.network.requests import find_coordinator

JOIN_V, SYNC_V, HEARTBEAT_V = 3, 2, 2
"""Versions: the last that admit a member at once."""


@pytest.fixture
def broker() -> Iterator[Broker]:
    settings = {"group.min.session.timeout.ms": "1"}
    with Broker.running(clock="manual", settings=settings) as running:
        yield running


@pytest.fixture
def clients(broker: Broker) -> Iterator[list[RawClient]]:
    with ExitStack() as stack:
        found = [stack.enter_context(RawClient(broker.bootstrap_servers)) for _ in range(2)]
        assert find_coordinator(found[0], "g") in (0, 15)
        yield found


def join_request(member_id: str = "", *, session_ms: int = 10_000, rebalance_ms: int = 60_000) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )


def sync_request(member_id: str, generation: int, assignments: dict[str, bytes] | None = None) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id="g",
        generation_id=generation,
        member_id=member_id,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=to, assignment=data) for to, data in (assignments or {}).items()
        ),
    )


def heartbeat(client: RawClient, member_id: str, generation: int) -> int:
    request = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
    return int(client.ask(request, HEARTBEAT_V).error_code)


def test_members_wait_for_each_other(broker: Broker, clients: list[RawClient]) -> None:
    first, second = clients
    leader = first.ask(join_request(), JOIN_V)
    second.send((join_request(), JOIN_V))
    broker.snapshot()  # the broker has read the join
    assert heartbeat(first, leader.member_id, 1) == 27
    again = first.ask(join_request(leader.member_id), JOIN_V)
    assert (again.error_code, again.generation_id, len(again.members)) == (0, 2, 2)
    assert second.read_ids(1) == [1]
    (follower,) = [member.member_id for member in again.members if member.member_id != leader.member_id]
    second.send((sync_request(follower, 2), SYNC_V))
    response = first.ask(sync_request(leader.member_id, 2, {leader.member_id: b"1", follower: b"2"}), SYNC_V)
    assert (response.error_code, response.assignment) == (0, b"1")
    assert second.read_frame()[-1:] == b"2"


def test_a_request_after_a_join_waits_for_it(broker: Broker, clients: list[RawClient]) -> None:
    """BA-8."""
    first, second = clients
    leader = first.ask(join_request(), JOIN_V)
    second.send((join_request(), JOIN_V), (sync_request("unknown-member", 1), SYNC_V))
    broker.snapshot()
    first.ask(join_request(leader.member_id), JOIN_V)
    assert second.read_ids(2) == [1, 2]


def test_a_manual_clock_does_not_delay_a_rebalance(clients: list[RawClient]) -> None:
    """D7: the rebalance timeout passes in the client's time too."""
    first, second = clients
    first.ask(join_request(rebalance_ms=150), JOIN_V)
    response = second.ask(join_request(rebalance_ms=150), JOIN_V)
    assert (response.error_code, response.generation_id, len(response.members)) == (0, 2, 1)


def test_a_manual_clock_keeps_every_member(broker: Broker, clients: list[RawClient]) -> None:
    first, _ = clients
    leader = first.ask(join_request(session_ms=1), JOIN_V)
    first.ask(sync_request(leader.member_id, 1), SYNC_V)
    for _ in range(20):
        assert heartbeat(first, leader.member_id, 1) == 0
    broker.clock.advance(milliseconds=1)
    assert heartbeat(first, leader.member_id, 1) == 25


def test_a_broker_that_stops_responds_to_pending_requests(broker: Broker, clients: list[RawClient]) -> None:
    first, second = clients
    first.ask(join_request(), JOIN_V)
    second.send((join_request(), JOIN_V))
    broker.snapshot()
    broker.stop()
    assert second.read_ids_to_the_end() == [1]


def test_a_member_of_a_node_that_stops_finds_the_group_at_another_node() -> None:
    settings = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "2"}
    with Broker.running(brokers=2, clock="manual", settings=settings) as broker, ExitStack() as stack:
        nodes = [stack.enter_context(RawClient(address)) for address in broker.bootstrap_servers.split(",")]
        find_coordinator(nodes[0], "g")
        responses = [node.ask(join_request(), JOIN_V) for node in nodes]
        (owner,) = [number for number, response in enumerate(responses) if response.error_code == 0]
        member_id = responses[owner].member_id
        broker.stop_node(owner + 1)
        nodes[owner].wait_closed()
        assert nodes[1 - owner].ask(join_request(member_id), JOIN_V).error_code == 0


def test_a_member_whose_connection_breaks_while_it_joins_comes_back(broker: Broker, clients: list[RawClient]) -> None:
    first, second = clients
    leader = first.ask(join_request(), JOIN_V)
    second.send((join_request(), JOIN_V))
    broker.snapshot()
    second.reset()
    again = first.ask(join_request(leader.member_id), JOIN_V)
    assert (again.generation_id, len(again.members)) == (2, 2)
    with RawClient(broker.bootstrap_servers) as third:
        lost = next(member.member_id for member in again.members if member.member_id != leader.member_id)
        assert heartbeat(third, lost, 2) == 0
