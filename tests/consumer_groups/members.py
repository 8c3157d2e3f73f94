"""The members of a consumer group, each with a connection of its own, and the transcript of their responses.

A script makes members send requests (`scripts`), to a real broker or to kproto's connections without sockets. In a
transcript, topic ids are replaced by names, and generated member ids by the name of the member that got them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from kproto.codes import ErrorCode
from kproto.declaration import Struct, fields_of
from kproto.message import Request
from kproto.messages import APIS
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kproto.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from kproto.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from kproto.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_member_data,
    read_assignment,
)
from kproto_server.releases.kafka_version import KafkaVersion
from tests.membership.members import Step, Transport

REBALANCE_MS = 60_000
SESSION_MS = 30_000
Partitions = Mapping[str, Sequence[int]]
"""Partition indexes by topic name."""


ASSIGNED: Partitions = {"stands for": ()}
"""Stands for what a member was assigned."""


class Member(NamedTuple):
    """What a member knows from its responses."""

    member_id: str
    epoch: int = 0
    assigned: Partitions = MappingProxyType({})


def _assignment(partitions: Partitions) -> bytes:
    topics = tuple(TopicPartition(topic=topic, partitions=tuple(indexes)) for topic, indexes in partitions.items())
    return encode_member_data(ConsumerProtocolAssignment(assigned_partitions=topics), 3)


class Conversation:
    """The members of one group."""

    def __init__(self, transport: Transport, group_id: str, *, version: int = 1, release: str = "latest") -> None:
        self.steps: list[Step] = []
        self.group_id = group_id
        self.version = version
        self._kafka_version = KafkaVersion.named(release)
        self.members: dict[str, Member] = {}
        self._transport = transport
        self.topic_ids: dict[str, bytes] = {}
        self._generated: dict[str, str] = {}
        self._kept: list[tuple[str, Any]] = []
        """Responses that came with one that is no step."""

    def serves(self, api_key: int, version: int) -> bool:
        """Return whether the broker's release serves a version of an API."""
        return self._kafka_version.serves(api_key, version)

    def learn_topics(self, *names: str) -> None:
        """Ask for the ids of topics, which are auto-created."""
        request = MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in names))
        self._transport.send("topics", request, 10)
        [(_, response)] = self._transport.responses()
        self.topic_ids = {topic.name: topic.topic_id for topic in response.topics}

    # Requests. A name stands for the connection and for its member; its id is the name unless the broker gave one.

    def join(self, name: str, topics: Iterable[str] | None = ("t",), **fields: Any) -> None:
        """Send a heartbeat with epoch 0 and all fields."""
        given: dict[str, Any] = {
            "rebalance_timeout_ms": REBALANCE_MS,
            "subscribed_topic_names": None if topics is None else tuple(topics),
            "topic_partitions": (),
            **fields,
        }
        self.beat(name, 0, owned=None, **given)

    def beat(self, name: str, epoch: int | None = None, owned: Partitions | None = ASSIGNED, **fields: Any) -> None:
        """Send a heartbeat, by default with the member's epoch and all that it was assigned."""
        known = self.members.get(name, Member("" if self.version == 0 and name.startswith("new") else name))
        if owned is ASSIGNED:
            owned = known.assigned
        if owned is not None:
            fields.setdefault("topic_partitions", self._by_id(owned))
        request = ConsumerGroupHeartbeatRequest(
            **{
                "group_id": self.group_id,
                "member_id": known.member_id,
                "member_epoch": known.epoch if epoch is None else epoch,
                **fields,
            }
        )
        for response in self.send(name, request, self.version):
            if response.error_code == ErrorCode.NONE:
                assigned = known.assigned
                if response.assignment is not None:
                    assigned = self._by_name(response.assignment.topic_partitions)
                self.members[name] = Member(response.member_id, response.member_epoch, assigned)
            elif response.error_code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
                self.members[name] = known._replace(epoch=0, assigned={})

    def leave(self, name: str, epoch: int = -1, **fields: Any) -> None:
        self.beat(name, epoch, owned=None, **fields)

    def settle(self, *names: str, rounds: int = 4) -> None:
        """Send heartbeats of all members in turn."""
        for _ in range(rounds):
            for name in names:
                self.beat(name)

    def describe(self) -> None:
        self.send(
            "admin", ConsumerGroupDescribeRequest(group_ids=(self.group_id,), include_authorized_operations=False), 1
        )

    def describe_classic(self) -> None:
        self.send("admin", DescribeGroupsRequest(groups=(self.group_id,)), 5)

    def list_groups(self) -> None:
        self.send("admin", ListGroupsRequest(states_filter=(), types_filter=()), 5)

    def delete(self) -> None:
        self.send("admin", DeleteGroupsRequest(groups_names=(self.group_id,)), 2)

    def commit(self, name: str, epoch: int | None = None, *, member_id: str | None = None, version: int = 9) -> None:
        known = self.members.get(name, Member(name))
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=known.epoch if epoch is None else epoch,
            member_id=known.member_id if member_id is None else member_id,
            topics=(
                OffsetCommitRequestTopic(
                    name="t",
                    topic_id=self.topic_ids.get("t", bytes(16)),
                    partitions=(
                        OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata=""),
                    ),
                ),
            ),
        )
        self.send(name, request, version)

    def fetch(self, name: str, epoch: int | None = None, *, member_id: str | None = "", version: int = 9) -> None:
        known = self.members.get(name, Member(name))
        group = OffsetFetchRequestGroup(
            group_id=self.group_id,
            member_id=known.member_id if member_id == "" else member_id,
            member_epoch=known.epoch if epoch is None else epoch,
            topics=(
                OffsetFetchRequestTopics(name="t", topic_id=self.topic_ids.get("t", bytes(16)), partition_indexes=(0,)),
            ),
        )
        self.send(name, OffsetFetchRequest(groups=(group,), require_stable=False), version)

    # Requests of classic members.

    def join_classic(
        self,
        name: str,
        topics: Sequence[str] = ("t",),
        *,
        owned: Partitions | None = None,
        member_id: str | None = None,
        instance: str | None = None,
        protocol: str = "range",
        protocol_type: str = "consumer",
        metadata: bytes | None = None,
        session_ms: int = SESSION_MS,
    ) -> None:
        known = self.members.get(name, Member(""))
        mine = known.assigned if owned is None else owned
        subscription = ConsumerProtocolSubscription(
            topics=tuple(topics),
            owned_partitions=tuple(
                TopicPartition(topic=topic, partitions=tuple(indexes)) for topic, indexes in sorted(mine.items())
            ),
            generation_id=known.epoch,
        )
        for attempt in range(2):
            request = JoinGroupRequest(
                group_id=self.group_id,
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=REBALANCE_MS,
                member_id=known.member_id if member_id is None else member_id,
                group_instance_id=instance,
                protocol_type=protocol_type,
                protocols=(
                    JoinGroupRequestProtocol(
                        name=protocol, metadata=encode_member_data(subscription, 3) if metadata is None else metadata
                    ),
                ),
            )
            again = False
            for response in self.send(name, request, 9):
                if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                    known = Member(response.member_id)
                    again = attempt == 0
                elif response.error_code == 0:
                    self.members[name] = Member(response.member_id, response.generation_id, known.assigned)
            if not again:
                return

    def sync(
        self,
        name: str,
        epoch: int | None = None,
        *,
        assigns: Partitions | None = None,
        assignment: bytes | None = None,
        protocol_type: str = "consumer",
    ) -> None:
        """Send SyncGroup; ``assigns`` or ``assignment``: what the leader of a classic group assigns to itself."""
        known = self.members.get(name, Member(name))
        given = assignment if assigns is None else _assignment(assigns)
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=known.epoch if epoch is None else epoch,
            member_id=known.member_id,
            protocol_type=protocol_type,
            protocol_name="range",
            assignments=()
            if given is None
            else (SyncGroupRequestAssignment(member_id=known.member_id, assignment=given),),
        )
        for response in self.send(name, request, 5):
            if response.error_code == 0 and response.assignment and assignment is None:
                _, read = read_assignment(response.assignment)
                assigned = {one.topic: tuple(one.partitions) for one in read.assigned_partitions}
                self.members[name] = known._replace(assigned=assigned)

    def beat_classic(self, name: str, epoch: int | None = None) -> None:
        known = self.members.get(name, Member(name))
        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=known.epoch if epoch is None else epoch, member_id=known.member_id
        )
        self.send(name, request, 4)

    def leave_classic(self, name: str, instance: str | None = None, member_id: str | None = None) -> None:
        known = self.members.get(name, Member(name)).member_id if member_id is None else member_id
        members = (MemberIdentity(member_id=known, group_instance_id=instance),)
        self.send(name, LeaveGroupRequest(group_id=self.group_id, members=members), 5)

    def pass_time(self, duration_ms: int) -> None:
        self._transport.pass_time(duration_ms)

    def send(self, name: str, request: Request, version: int) -> list[Any]:
        """Send a request, and note all responses that come; return the member's own."""
        self._transport.send(name, request, version)
        found = self._kept + self._transport.responses()
        self._kept = []
        by_name: dict[str, list[Any]] = {}
        for to, response in found:
            self._learn_id(to, response)
            by_name.setdefault(to, []).append(self._plain(response))
        self.steps.append(Step(f"{name}: {APIS[request._api_key]} v{version}", dict(sorted(by_name.items()))))
        return [response for to, response in found if to == name]

    def _learn_id(self, name: str, response: Any) -> None:
        member_id = getattr(response, "member_id", None)
        if member_id and member_id != name:
            self._generated.setdefault(member_id, name)

    def _by_id(self, partitions: Partitions) -> tuple[TopicPartitions, ...]:
        return tuple(
            TopicPartitions(topic_id=self.topic_ids.get(name, bytes(16)), partitions=tuple(indexes))
            for name, indexes in partitions.items()
        )

    def _by_name(self, partitions: Iterable[TopicPartitions]) -> Partitions:
        names = {topic_id: name for name, topic_id in self.topic_ids.items()}
        return {names[one.topic_id]: tuple(sorted(one.partitions)) for one in partitions}

    def _plain(self, value: Any) -> Any:
        """Return a value that JSON has and that another broker can have too."""
        if isinstance(value, Struct):
            return {
                field.name: self._plain(getattr(value, field.name))
                for field in fields_of(type(value))
                if getattr(value, field.name) is not None and field.name != "client_host"
            }
        if isinstance(value, tuple):
            items = [self._plain(item) for item in value]
            if all(isinstance(item, dict) and "group_id" in item for item in items):
                items = [item for item in items if item["group_id"] in ("", "<group>")]
            return sorted(items, key=str) if all(isinstance(item, dict) for item in items) else sorted(items)
        if isinstance(value, bytes):
            names = {topic_id: name for name, topic_id in self.topic_ids.items()}
            return names.get(value, value.hex())
        if isinstance(value, str):
            for member_id, name in self._generated.items():
                value = value.replace(member_id, f"<id of {name}>")
            value = value.replace(self.group_id, "<group>") if self.group_id else value
        return value
