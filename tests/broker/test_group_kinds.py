"""What a test changes in groups applies to share and streams groups, too, as their members see by their heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto.messages.k88_streams_group_heartbeat import StreamsGroupHeartbeatRequest, Topology
from kproto_server import Broker
from tests.network.raw_client import RawClient
from tests.streams_groups.members import STATELESS

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = {
    "num.partitions": 2,
    "group.share.assignment.interval.ms": 0,
    "group.streams.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
}
KINDS = ("share", "streams")


class Member:
    """A member that sends a heartbeat with its epoch whenever it is asked to."""

    def __init__(self, client: RawClient, kind: str) -> None:
        self._client = client
        self._is_share = kind == "share"
        self.epoch = 0

    def beat(self) -> Any:
        """Send a heartbeat and return its response."""
        joins = self.epoch == 0
        common: dict[str, Any] = {"group_id": "billing", "member_id": "m" * 22, "member_epoch": self.epoch}
        if self._is_share:
            names = ("orders",) if joins else None
            request: Any = ShareGroupHeartbeatRequest(**common, rack_id=None, subscribed_topic_names=names)
            response = self._client.ask(request, 1)
        else:
            joined: dict[str, Any] = {
                "rebalance_timeout_ms": 60_000,
                "topology": Topology(epoch=0, subtopologies=STATELESS),
                "active_tasks": (),
                "standby_tasks": (),
                "warmup_tasks": (),
                "process_id": "p",
                "client_tags": (),
            }
            request = StreamsGroupHeartbeatRequest(**common, endpoint_information_epoch=0, **(joined if joins else {}))
            response = self._client.ask(request, 0)
        if not response.error_code:
            self.epoch = response.member_epoch
        return response


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.running(clock="manual", settings=SETTINGS) as broker:
        broker.topics.create("orders")
        broker.topics.create("t")
        broker.groups.commit("other", {("orders", 0): 0})  # creates the topic of the offsets
        yield broker


@pytest.fixture
def member(broker: Broker, kind: str) -> Iterator[Member]:
    with RawClient(broker.bootstrap_servers) as client:
        joined = Member(client, kind)
        response = joined.beat()
        assert not response.error_code, response
        joined.beat()
        assert [(one.kind, one.member_count) for one in broker.groups.list() if one.group_id == "billing"] == [
            (kind, 1)
        ]
        yield joined


def test_a_forced_rebalance_raises_the_epoch(broker: Broker, member: Member) -> None:
    before = member.epoch
    broker.groups.force_rebalance("billing")
    assert not member.beat().error_code
    assert member.epoch == before + 1


def test_an_expired_member_is_unknown(broker: Broker, member: Member) -> None:
    broker.groups.expire_member("billing", member_id="m" * 22)
    broker.groups.wait_empty("billing", timeout_s=0.0)
    assert member.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_frozen_heartbeats_take_no_effect(broker: Broker, member: Member) -> None:
    with broker.groups.freeze_heartbeats("billing", client_id="raw"):
        for _ in range(3):
            response = member.beat()
            assert (response.error_code, response.member_id, response.heartbeat_interval_ms) == (0, "m" * 22, 5000)
            broker.clock.advance(seconds=20)
        assert broker.groups.state("billing") == "Empty"
        assert member.beat().error_code == 0
    assert member.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_rebalances_are_not_held(broker: Broker, member: Member, kind: str) -> None:
    with pytest.raises(ValueError, match=f"group 'billing' is a {kind} group, whose members reconcile one by one"):
        broker.groups.hold_rebalance("billing")
