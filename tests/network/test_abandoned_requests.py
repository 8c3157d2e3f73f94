"""A client that ends while its request is delayed gives up its connection at once, and a group keeps its member.

Method: real sockets and a manual clock, so that no deadline of a request passes; `connection_count` is the number of
connections that the broker has open.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from kproto.messages.k13_leave_group import LeaveGroupRequest
from kproto_server.broker.broker import Broker
from tests.network.raw_client import RawClient
from tests.network.requests import ALL_TOPICS, commit_offset, committed, create_topic, find_coordinator, long_poll
from tests.network.test_members import JOIN_V, join_request
from tests.waiting import wait_until

HOUR_MS = 3_600_000


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.running(clock="manual") as running:
        with RawClient(running.bootstrap_servers) as client:
            create_topic(client)
            find_coordinator(client, "g")
        yield running


def connection_count(broker: Broker) -> int:
    return broker._call(lambda server: sum(len(listener.transports) for listener in server.nodes.listeners.values()))


def wait_for_connections(broker: Broker, count: int) -> None:
    wait_until(lambda: connection_count(broker) == count, f"{count} connections, not {connection_count(broker)}")


def wait_for_requests(broker: Broker, api: str, count: int) -> None:
    broker.requests.wait(api=api, count=count, timeout_s=60)


def test_long_polls_of_clients_that_have_closed_keep_no_connection(broker: Broker) -> None:
    clients = [RawClient(broker.bootstrap_servers) for _ in range(200)]
    for client in clients:
        client.send((long_poll(HOUR_MS), 4))
    wait_for_requests(broker, "Fetch", 200)
    for client in clients:
        client.socket.close()
    wait_for_connections(broker, 0)


def test_joins_of_clients_that_have_closed_keep_their_members_and_no_connection(broker: Broker) -> None:
    """The leader does not join again, so no JoinGroup completes."""
    with RawClient(broker.bootstrap_servers) as leader:
        leader.ask(join_request(), JOIN_V)
        clients = [RawClient(broker.bootstrap_servers) for _ in range(200)]
        for client in clients:
            client.send((join_request(), JOIN_V))
        wait_for_requests(broker, "JoinGroup", 201)
        for client in clients:
            client.socket.close()
        wait_for_connections(broker, 1)
        assert len(broker.groups.members("g")) == 201


def test_a_request_behind_the_join_of_a_closed_client_is_handled(broker: Broker) -> None:
    """A real broker handles the LeaveGroup when the rebalance completes."""
    with RawClient(broker.bootstrap_servers) as other:
        leaving = RawClient(broker.bootstrap_servers)
        member_id = leaving.ask(join_request(), JOIN_V).member_id
        other.send((join_request(), JOIN_V))
        wait_for_requests(broker, "JoinGroup", 2)
        remaining = RawClient(broker.bootstrap_servers)
        remaining.send((join_request(), JOIN_V), (LeaveGroupRequest(group_id="g", member_id=member_id), 0))
        remaining.socket.close()
        assert other.read_ids(1) == [1], "the member that the others waited for has left"
        leaving.socket.close()


def test_a_client_that_only_sends_no_more_gets_its_responses_at_once(broker: Broker) -> None:
    with RawClient(broker.bootstrap_servers) as client:
        sent = client.send((ALL_TOPICS, 1), (long_poll(HOUR_MS), 4), (ALL_TOPICS, 1), (long_poll(HOUR_MS), 4))
        client.socket.shutdown(socket.SHUT_WR)
        assert client.read_ids_to_the_end() == sent


def test_a_client_that_sends_no_more_while_it_joins_gets_no_response(broker: Broker) -> None:
    with RawClient(broker.bootstrap_servers) as leader, RawClient(broker.bootstrap_servers) as client:
        leader.ask(join_request(), JOIN_V)
        client.send((join_request(), JOIN_V))
        client.socket.shutdown(socket.SHUT_WR)
        assert client.read_ids_to_the_end() == []
        assert len(broker.groups.members("g")) == 2


def test_a_commit_behind_a_long_poll_of_a_closed_client_is_kept(broker: Broker) -> None:
    with RawClient(broker.bootstrap_servers) as watching:
        assert commit_offset(watching, offset=1) == 0
        client = RawClient(broker.bootstrap_servers)
        (commit,) = broker.requests.where(api="OffsetCommit")
        client.send((long_poll(HOUR_MS), 4), (commit.request, commit.api_version))
        client.socket.close()
        wait_for_connections(broker, 1)
        assert committed(watching) == 1
        wait_for_requests(broker, "OffsetCommit", 2)
