"""The group of a timeline on a broker, real or kproto: the script's actions as requests, without a client library."""

from __future__ import annotations

import time
from typing import Any, Protocol

from kproto.message import Request
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k08_offset_commit import OffsetCommitRequest
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from kproto.messages.k26_end_txn import EndTxnRequest
from kproto.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kproto.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from tests.coordinator.broker_state import commit_request
from tests.coordinator.timeline import DEAD, Timeline
from tests.network.raw_client import RawClient
from tests.oracle.expiry_members import ClassicMember, ConsumerMember
from tests.waiting import wait_until

HEARTBEAT_S = 2.0
TRANSACTION_LIMIT_MS = 600_000
GROUP, TRANSACTION = 0, 1
"""Key types of FindCoordinator."""
COORDINATOR_ERRORS = {14, 15, 16}
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR."""
GROUP_ID_NOT_FOUND = 69
PARTITIONS = {"t": 2, "u": 1, "x": 1}
"""Partition counts of the scripts' topics."""


class Time(Protocol):
    """The time source of a line."""

    @property
    def now_s(self) -> float: ...

    def pass_until(self, time_s: float) -> None: ...

    def now_ms(self) -> int:
        """Return the broker's wall clock time since the epoch."""


class RealTime:
    """Real time, relative to a start that is set when all groups are ready."""

    zero_s: float

    def __init__(self) -> None:
        self.begin(0)

    def begin(self, in_s: float) -> None:
        self.zero_s = time.monotonic() + in_s

    @property
    def now_s(self) -> float:
        return time.monotonic() - self.zero_s

    def pass_until(self, time_s: float) -> None:
        time.sleep(max(0.0, time_s - self.now_s))

    def now_ms(self) -> int:
        return round(time.time() * 1000)


class WireTimeline(Timeline):
    """One group, and one connection for all requests about it."""

    def __init__(self, address: str, group_id: str, clock: Time) -> None:
        super().__init__()
        self._address = address
        self._group_id = group_id
        self._clock = clock
        self._client: RawClient | None = self._connect()
        self._member: ClassicMember | ConsumerMember | None = None
        self._beats_at_s: float | None = None
        self._producer = (-1, -1)
        self._was_down = False

    def _connect(self) -> RawClient:
        return RawClient(self._address)

    def close(self) -> None:
        if self._client is not None:
            self._client.socket.close()

    # -- before the script starts

    def set_up(self, *, in_transaction: bool) -> None:
        """Create the topics, and wait for the coordinators of the group and of its transactions."""
        for name, partition_count in PARTITIONS.items():
            self._create_topic(self._topic_name(name), partition_count)
        wait_until(lambda: self._find_coordinator(GROUP) == 0, "a coordinator")
        wait_until(lambda: self._see() is not None, "the group's offsets")
        if in_transaction:
            wait_until(lambda: self._find_coordinator(TRANSACTION) == 0, "a transaction coordinator")
            wait_until(self._have_producer_id, "a producer id")

    def _topic_name(self, name: str) -> str:
        """Return the topic's name on the broker: each group has its own topic "x", which scripts delete."""
        return f"{self._group_id}-x" if name == "x" else name

    def _create_topic(self, name: str, partition_count: int) -> None:
        """Create a topic, and wait until the broker's metadata has it, which may be after the CreateTopics response."""
        topic = CreatableTopic(
            name=name, num_partitions=partition_count, replication_factor=1, assignments=(), configs=()
        )
        self._send(CreateTopicsRequest(topics=(topic,), timeout_ms=20_000), 2)
        request = MetadataRequest(topics=(MetadataRequestTopic(name=name),))
        wait_until(lambda: self._send(request, 1).topics[0].error_code == 0, f"topic {name}")

    def _find_coordinator(self, key_type: int) -> int:
        response = self._send(FindCoordinatorRequest(key=self._group_id, key_type=key_type), 1)
        return int(response.error_code)

    def _have_producer_id(self) -> bool:
        request = InitProducerIdRequest(transactional_id=self._group_id, transaction_timeout_ms=TRANSACTION_LIMIT_MS)
        response = self._send(request, 0)
        self._producer = (response.producer_id, response.producer_epoch)
        return bool(response.error_code == 0)

    def _send(self, request: Request, version: int) -> Any:
        assert self._client is not None
        return self._client.ask(request, version)

    # -- time and observation

    @property
    def now_s(self) -> float:
        return self._clock.now_s

    def _pass_until(self, time_s: float) -> None:
        self._clock.pass_until(time_s)
        if self._member is not None and self._beats_at_s is not None and self.now_s >= self._beats_at_s:
            self._member.beat()
            self._beats_at_s = self.now_s + HEARTBEAT_S

    def _see(self) -> tuple[set[str], str] | None:
        try:
            if self._client is None:
                self._client = self._connect()
            stored, state = self._stored(), self._state()
        except OSError:  # the broker is down
            self.close()
            self._client = None
            self._was_down = True
            return None
        if stored is None or state is None:
            return None
        if self._was_down and self.loaded_s is None:
            self.loaded_s = round(self.now_s, 2)
        return stored, state

    def _stored(self) -> set[str] | None:
        """Return the offsets in the OffsetFetch response, or None while the coordinator loads."""
        topics = tuple(
            OffsetFetchRequestTopic(name=self._topic_name(name), partition_indexes=tuple(range(count)))
            for name, count in PARTITIONS.items()
        )
        response = self._send(OffsetFetchRequest(group_id=self._group_id, topics=topics), 2)
        if response.error_code in COORDINATOR_ERRORS:
            return None
        assert response.error_code == 0
        names = {self._topic_name(name): name for name in PARTITIONS}
        return {
            f"{names[topic.name]}-{partition.partition_index}"
            for topic in response.topics
            for partition in topic.partitions
            if partition.committed_offset != -1
        }

    def _state(self) -> str | None:
        if isinstance(self._member, ConsumerMember):
            (group,) = self._send(
                ConsumerGroupDescribeRequest(group_ids=(self._group_id,), include_authorized_operations=False), 0
            ).groups
            if group.error_code == GROUP_ID_NOT_FOUND:
                return DEAD
        else:
            (group,) = self._send(DescribeGroupsRequest(groups=(self._group_id,)), 0).groups
        if group.error_code in COORDINATOR_ERRORS:
            return None
        assert group.error_code == 0
        return str(group.group_state)

    # -- offsets

    def commit(self, topic: str = "t", partition: int = 0, *, ret: int = -1, member: bool = False) -> None:
        fields: dict[str, Any] = {"retention_time_ms": ret}
        version = ClassicMember.COMMIT_VERSION
        if member:
            assert self._member is not None
            fields |= {"generation_id_or_member_epoch": self._member.generation, "member_id": self._member.member_id}
            version = self._member.COMMIT_VERSION
        self._commit(commit_request(self._group_id, {self._topic_name(topic): {partition: 7}}, **fields), version)
        self._committed(topic, partition)

    def commit_v1(self, ago_ms: int) -> None:
        request = commit_request(self._group_id, {"t": {0: 7}})
        (topic,) = request.topics
        stamped = topic.partitions[0].replace(commit_timestamp=self._clock.now_ms() - ago_ms)
        self._commit(request.replace(topics=(topic.replace(partitions=(stamped,)),)), 1)
        self._committed("t", 0)

    def _commit(self, request: OffsetCommitRequest, version: int) -> None:
        response = self._send(request, version)
        assert [p.error_code for topic in response.topics for p in topic.partitions] == [0]

    def delete_topic(self, topic: str) -> None:
        response = self._send(DeleteTopicsRequest(topic_names=(self._topic_name(topic),), timeout_ms=10_000), 1)
        assert [topic.error_code for topic in response.responses] == [0]

    # -- members

    def join(self, *subscribed: str, protocol_type: str = "consumer") -> None:
        self._member = member = ClassicMember(self._send, self._group_id)
        member.join(tuple(self._topic_name(name) for name in subscribed), protocol_type)
        self._beats_at_s = self.now_s + HEARTBEAT_S

    def join_848(self, *subscribed: str) -> None:
        self._member = member = ConsumerMember(self._send, self._group_id)
        member.join(subscribed)
        self._beats_at_s = self.now_s + HEARTBEAT_S

    def leave(self) -> None:
        assert self._member is not None
        self._beats_at_s = None
        self._member.leave()

    def fall_silent(self) -> None:
        assert self._member is not None
        self._beats_at_s = None
        self._member.beat()

    def ask_for_member_id(self) -> None:
        self._member = ClassicMember(self._send, self._group_id)
        self.join_with_member_id()

    def join_with_member_id(self) -> None:
        assert isinstance(self._member, ClassicMember)
        self.error_codes.append(self._member.join_once())

    # -- transactions

    def commit_in_transaction(self, partition: int = 0) -> None:
        producer_id, producer_epoch = self._producer
        producer: dict[str, Any] = {
            "transactional_id": self._group_id,
            "producer_id": producer_id,
            "producer_epoch": producer_epoch,
        }
        request = AddOffsetsToTxnRequest(**producer, group_id=self._group_id)
        wait_until(lambda: self._send(request, 0).error_code == 0, "the group in the transaction")
        partition_data = TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=8, committed_metadata=""
        )
        topics = (TxnOffsetCommitRequestTopic(name="t", partitions=(partition_data,)),)
        response = self._send(TxnOffsetCommitRequest(**producer, group_id=self._group_id, topics=topics), 0)
        assert [p.error_code for topic in response.topics for p in topic.partitions] == [0]

    def end_transaction(self, *, committed: bool) -> None:
        producer_id, producer_epoch = self._producer
        request = EndTxnRequest(
            transactional_id=self._group_id, producer_id=producer_id, producer_epoch=producer_epoch, committed=committed
        )
        assert self._send(request, 0).error_code == 0
