"""Simulated group members: they join, send heartbeats and leave by single requests, without a client library."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from kproto.message import Request
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k13_leave_group import LeaveGroupRequest
from kproto.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from kproto.records.consumer_protocol import ConsumerProtocolSubscription, encode_member_data
from tests.coordinator.timeline import SESSION_S

LEAVING = -1
REBALANCE_TIMEOUT_MS = 60_000


class Send(Protocol):
    """Sends a request and returns its response."""

    def __call__(self, request: Request, version: int) -> Any: ...


class ClassicMember:
    """A member of the classic protocol: the only one in its group, so it leads; its assignment is empty."""

    COMMIT_VERSION: ClassVar[int] = 3
    """The version of OffsetCommit, which has a retention time."""

    def __init__(self, send: Send, group_id: str) -> None:
        self._send = send
        self._group_id = group_id
        self.member_id = ""
        self.generation = -1

    def join(self, topics: tuple[str, ...], protocol_type: str) -> None:
        """Send JoinGroup and SyncGroup."""
        joined = self._send(self._request(topics, protocol_type), 2)
        assert joined.error_code == 0
        self.member_id, self.generation = joined.member_id, joined.generation_id
        synced = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=(SyncGroupRequestAssignment(member_id=self.member_id, assignment=b""),),
        )
        assert self._send(synced, 1).error_code == 0

    def join_once(self) -> int:
        """Send a JoinGroup with KIP-394 and the member id of the last response; return the error code."""
        response = self._send(self._request(("t",), "consumer"), 4)
        self.member_id = response.member_id
        return int(response.error_code)

    def _request(self, topics: tuple[str, ...], protocol_type: str) -> JoinGroupRequest:
        metadata = encode_member_data(ConsumerProtocolSubscription(topics=topics), 0)
        return JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=SESSION_S * 1000,
            rebalance_timeout_ms=SESSION_S * 1000,
            member_id=self.member_id,
            protocol_type=protocol_type,
            protocols=(JoinGroupRequestProtocol(name="range", metadata=metadata),),
        )

    def beat(self) -> None:
        request = HeartbeatRequest(group_id=self._group_id, generation_id=self.generation, member_id=self.member_id)
        assert self._send(request, 1).error_code == 0

    def leave(self) -> None:
        assert self._send(LeaveGroupRequest(group_id=self._group_id, member_id=self.member_id), 1).error_code == 0


class ConsumerMember:
    """A member of the KIP-848 protocol."""

    COMMIT_VERSION: ClassVar[int] = 9

    def __init__(self, send: Send, group_id: str) -> None:
        self._send = send
        self._group_id = group_id
        self.member_id = ""
        self.generation = 0
        self._owned: tuple[TopicPartitions, ...] = ()

    def join(self, topics: tuple[str, ...]) -> None:
        self._beat(subscribed_topic_names=topics, rebalance_timeout_ms=REBALANCE_TIMEOUT_MS, topic_partitions=())

    def beat(self) -> None:
        self._beat(topic_partitions=self._owned)

    def leave(self) -> None:
        self.generation = LEAVING
        self._beat()

    def _beat(self, **fields: Any) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self.member_id, member_epoch=self.generation, **fields
        )
        response = self._send(request, 0)
        assert response.error_code == 0
        self.member_id, self.generation = response.member_id, response.member_epoch
        if response.assignment is not None:
            assigned = response.assignment.topic_partitions
            self._owned = tuple(TopicPartitions(topic_id=t.topic_id, partitions=t.partitions) for t in assigned)
