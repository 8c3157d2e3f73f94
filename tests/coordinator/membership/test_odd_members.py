"""Members as no client library makes them: they leave the group consistent, and the clock goes on."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kproto.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kproto.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_member_data,
)
from kproto_server.testing import InMemoryBroker
from kproto_server.testing.in_memory import ConnectedPair

DAY_MS = 86_400_000


def join(client: ConnectedPair, member_id: str = "", instance: str | None = None, rebalance_ms: int = 10_000) -> None:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    client.send(request, 5)


def sync(client: ConnectedPair, member_id: str, instance: str) -> None:
    client.send(
        SyncGroupRequest(
            group_id="g", generation_id=1, member_id=member_id, group_instance_id=instance, assignments=()
        ),
        3,
    )


@pytest.fixture
def broker() -> InMemoryBroker:
    made = InMemoryBroker(topics={"t": 3})
    made.connect().ask(FindCoordinatorRequest(key="g"), 2)
    return made


def test_a_group_of_static_members_with_a_rebalance_timeout_of_0_waits_for_them(broker: InMemoryBroker) -> None:
    """The wait was over and began again for ever: an advance of the clock did not return."""
    clients = {"i": broker.connect(), "j": broker.connect()}
    join(clients["i"], instance="i")
    join(clients["j"], instance="j", rebalance_ms=0)
    broker.advance(milliseconds=0)
    ids = {instance: client.responses.pop().member_id for instance, client in clients.items()}  # type: ignore[attr-defined]
    for instance in ("j", "i"):
        sync(clients[instance], ids[instance], instance)
    left = MemberIdentity(member_id=ids["i"], group_instance_id="i")
    clients["i"].send(LeaveGroupRequest(group_id="g", members=(left,)), 3)
    before = broker.clock.event_count
    broker.advance(milliseconds=DAY_MS)
    assert broker.clock.event_count - before < 100
    group: Any = broker.state.coordinator.groups.get("g")
    assert group is None or not group.members


def test_a_member_id_of_a_dynamic_member_is_of_no_instance(broker: InMemoryBroker) -> None:
    """GP-14: as on 2.3.1 to 4.4.0. It made two members of one instance, whose removal failed in a timer."""
    static, dynamic = broker.connect(), broker.connect()
    join(static, instance="i")
    broker.advance(milliseconds=0)
    member_id = static.responses.pop().member_id  # type: ignore[attr-defined]
    sync(static, member_id, "i")
    join(dynamic)
    given = dynamic.responses.pop().member_id  # type: ignore[attr-defined]
    join(dynamic, given, "i")
    response: Any = dynamic.responses.pop()
    assert (response.error_code, response.member_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")
    group: Any = broker.state.coordinator.groups.get("g")
    assert group.static_members == {"i": member_id}
    broker.advance(milliseconds=DAY_MS)
    assert broker.state.coordinator.groups.get("g") is None or not group.members


def test_an_instance_id_that_a_member_gives_up_is_free(broker: InMemoryBroker) -> None:
    """A member of KIP-848 may join again with another one (4.1 and later)."""
    client = broker.connect()

    def heartbeat(member_id: str, epoch: int, instance: str) -> int:
        request = ConsumerGroupHeartbeatRequest(
            group_id="c",
            member_id=member_id,
            member_epoch=epoch,
            instance_id=instance,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=("t",),
            topic_partitions=(),
        )
        response: Any = client.ask(request, 1)
        return int(response.error_code)

    assert [heartbeat("m", 0, "a"), heartbeat("m", 0, "b")] == [0, 0]
    group: Any = broker.state.coordinator.groups.get("c")
    assert group.static_members == {"b": "m"}
    assert heartbeat("m", -1, "b") == 0
    assert heartbeat("n", 0, "a") == 0
    assert group.static_members == {"a": "n"}


def test_partitions_that_no_topic_can_have_are_assigned_to_nobody() -> None:
    """A classic leader may have assigned them before a member of KIP-848 joins."""
    settings = {"group.consumer.migration.policy": "bidirectional"}
    broker = InMemoryBroker(topics={"t": 3, "u": 1}, settings=settings)
    broker.connect().ask(FindCoordinatorRequest(key="g"), 2)
    classic, consumer = broker.connect(), broker.connect()
    subscription = encode_member_data(ConsumerProtocolSubscription(topics=("t",)), 0)
    joined = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=subscription),),
    )
    classic.send(joined, 3)
    broker.advance(milliseconds=0)
    member_id = classic.responses.pop().member_id  # type: ignore[attr-defined]
    partitions = (TopicPartition(topic="t", partitions=(-100_000,)),)
    assignment = encode_member_data(ConsumerProtocolAssignment(assigned_partitions=partitions), 0)
    assigned = SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
    synced = SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id, assignments=(assigned,))
    assert not classic.ask(synced, 2).error_code  # type: ignore[attr-defined]
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=("t", "u"),
        topic_partitions=(),
    )
    assert not consumer.ask(heartbeat, 1).error_code  # type: ignore[attr-defined]
