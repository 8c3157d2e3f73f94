"""Members of a group, simulated: each joins, sends heartbeats when told to, and leaves, with requests made by hand."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from kproto.message import Request
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k13_leave_group import LeaveGroupRequest
from kproto.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from kproto.records.consumer_protocol import ConsumerProtocolSubscription, encode_member_data
from tests.coordinator.line import SESSION_S

LEAVING = -1
REBALANCE_TIMEOUT_MS = 60_000


class Ask(Protocol):
    def __call__(self, request: Request, version: int) -> Any: ...


class ClassicMember:
    """One that speaks JoinGroup and SyncGroup: alone in its group, so it leads, and is assigned nothing."""

    COMMIT_VERSION: ClassVar[int] = 3
    """The OffsetCommit it sends, which has room for a retention time."""

    def __init__(self, ask: Ask, group_id: str) -> None:
        self._ask = ask
        self._group_id = group_id
        self.member_id = ""
        self.generation = -1

    def join(self, topics: tuple[str, ...], protocol_type: str) -> None:
        """Join and sync."""
        joined = self._ask(self._request(topics, protocol_type), 2)
        assert joined.error_code == 0
        self.member_id, self.generation = joined.member_id, joined.generation_id
        synced = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=(SyncGroupRequestAssignment(member_id=self.member_id, assignment=b""),),
        )
        assert self._ask(synced, 1).error_code == 0

    def join_once(self) -> int:
        """Send a JoinGroup that knows of KIP-394, with the id that the last one was given; return the error."""
        answer = self._ask(self._request(("t",), "consumer"), 4)
        self.member_id = answer.member_id
        return int(answer.error_code)

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
        asked = HeartbeatRequest(group_id=self._group_id, generation_id=self.generation, member_id=self.member_id)
        assert self._ask(asked, 1).error_code == 0

    def leave(self) -> None:
        assert self._ask(LeaveGroupRequest(group_id=self._group_id, member_id=self.member_id), 1).error_code == 0


class ConsumerMember:
    """One of KIP-848."""

    COMMIT_VERSION: ClassVar[int] = 9

    def __init__(self, ask: Ask, group_id: str) -> None:
        self._ask = ask
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
        asked = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self.member_id, member_epoch=self.generation, **fields
        )
        answer = self._ask(asked, 0)
        assert answer.error_code == 0
        self.member_id, self.generation = answer.member_id, answer.member_epoch
        if answer.assignment is not None:
            given = answer.assignment.topic_partitions
            self._owned = tuple(TopicPartitions(topic_id=t.topic_id, partitions=t.partitions) for t in given)
