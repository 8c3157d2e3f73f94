"""Random members and admin clients of one group: valid and invalid requests of all group APIs."""

from __future__ import annotations

import struct
from functools import partial
from typing import Any

from kproto.declaration import Struct
from kproto.message import Request
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kproto.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k16_list_groups import ListGroupsRequest, ListGroupsResponse
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.differential.broker_pair import ComparedBroker, Difference
from tests.differential.history import History, create_topics, topic_fields
from tests.network.raw_client import RawClient
from tests.waiting import wait_until

MEMBERS = 5
ADMIN = 9
"""The slot of requests outside the membership."""
SESSION_MS, LONG_MS = 600_000, 900_000
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.max.session.timeout.ms": "3600000",
    "auto.create.topics.enable": "false",
}
SUBSCRIPTIONS = (
    struct.pack(">hih", 0, 1, 1) + b"t" + struct.pack(">i", -1),
    struct.pack(">hih", 1, 2, 1) + b"t" + struct.pack(">h", 1) + b"u" + struct.pack(">ii", -1, 0),
)
Topics = list[tuple[str, list[int]]]


class Member:
    """The state of a member, as of its connection's last response."""

    def __init__(self) -> None:
        self.name = ""
        self.requested_name = ""
        """The member id (by name) in the last JoinGroup or SyncGroup."""
        self.requested_instance: str | None = None
        """The instance id in that request."""
        self.generation = 0
        self.protocol: str | None = None
        self.is_leader = False
        self.instance: str | None = None


class GroupHistory(History):
    def prepare(self) -> None:
        pick = self.random
        for broker in self.pair.brokers:
            create_topics(broker, {"t": (3, {}), "u": (1, {})}, self.versions)
            wait_until(partial(_is_coordinator, broker), "a coordinator")
        self.group = f"g{self.seed}"
        self.members = {slot: Member() for slot in range(MEMBERS)}
        self.names: list[str] = []
        """The names of all member ids that the brokers assigned."""
        self.static: set[str] = set()
        """The names of static members."""
        self.protocols = pick.choice([["range"], ["range", "roundrobin"], ["roundrobin", "range"], ["x"]])
        self.protocol_type = self.mostly("consumer", "connect", percent=80)
        self.is_static = pick.random() < 0.4 and self.versions[11][1] >= 5
        if self.is_static:
            for slot, member in self.members.items():
                member.instance = pick.choice([None, f"i{slot}"])

    def step(self) -> None:
        free = [slot for slot in range(MEMBERS) if not self.pair.is_pending(slot)]
        by_members = {self.join: 30, self.sync: 22, self.heartbeat: 8, self.leave: 6, self.commit: 14}
        by_admins = {self.fetch: 9, self.describe: 6, self.list: 2, self.delete: 2, self.delete_offsets: 2}
        actions = by_admins if not free else {**by_members, **by_admins}
        (action,) = self.random.choices(list(actions), list(actions.values()))
        action(ADMIN if action in by_admins else self.random.choice(free))

    def learn(self, broker: ComparedBroker, slot: int, response: Any) -> None:
        if not isinstance(response, JoinGroupResponse) or response.error_code not in (0, 79):
            return
        if not broker.has_name(response.member_id):
            count = sum(1 for name in self.names if broker.value(name) != name)
            broker.note(f"m{count}", response.member_id)
        member = self.members[slot]
        member.name = broker.replace_value(response.member_id)[1:-1]
        if member.name not in self.names:
            self.names.append(member.name)
            if member.requested_instance is not None:
                self.static.add(member.name)
        if response.error_code == 0:
            member.generation, member.protocol = response.generation_id, response.protocol_name
            member.is_leader = response.leader == response.member_id

    def normalize(self, struct: Struct, fields: dict[str, Any]) -> None:
        if isinstance(struct, ListGroupsResponse):
            fields["groups"] = [group for group in fields["groups"] if group["group_id"].startswith(self.group)]

    def is_allowed(self, difference: Difference) -> bool:
        """Return whether the leader or a tie of protocols differs: a hash map decides in real brokers."""
        if difference.request.api != "JoinGroup":
            return False
        paths = {path for path, *_ in difference.parts}
        return bool(paths & {".leader", ".protocol_name"}) and ".error_code" not in paths

    # -- targets

    def _group(self) -> str:
        return str(self.mostly(self.group, f"{self.group}b", "", f"{self.group}c", percent=92))

    def _member(self, slot: int) -> str:
        own = self.members[slot].name if slot in self.members else ""
        return str(self.mostly(own, self.random.choice(self.names or [""]), "", "bogus"))

    def _generation(self, slot: int) -> int:
        own = self.members[slot].generation if slot in self.members else 0
        newest = max(member.generation for member in self.members.values())
        return int(self.mostly(own, newest, -1, own + 1, own - 1, 0))

    def _instance(self, slot: int) -> str | None:
        own = self.members[slot].instance
        instance: str | None = self.mostly(own, None, "i0", "i1", "", percent=90) if self.is_static else None
        return instance

    def _has_pending_request(self, name: str) -> bool:
        """Return whether a request of this member is pending: real brokers drop the earlier one of two requests."""
        return name != "" and any(
            member.requested_name == name and self.pair.is_pending(slot) for slot, member in self.members.items()
        )

    def _topics(self) -> Topics:
        found: Topics = []
        for _ in range(self.mostly(1, 2, 0, percent=60)):
            name = self.random.choices(["t", "u", "nope", ""], [60, 25, 10, 5])[0]
            with_invalid = self.random.random() < 0.3
            numbers = [0, 1, 2, 7, -1] if with_invalid else [0, 1, 2]
            found.append((name, self.random.choices(numbers, k=self.random.randint(0 if with_invalid else 1, 3))))
        return found

    # -- requests

    def join(self, slot: int) -> None:
        version = self.version(11, 5 if self.is_static else 0)
        member, name = self.members[slot], self._member(slot)
        if self._has_pending_request(name):
            return
        instance = self._instance(slot)
        if instance is not None and name in self.names and name not in self.static:
            return  # real brokers fail if a dynamic member sends an instance id later
        member.requested_name, member.requested_instance = name, instance
        none = [] if self.release >= (1, 0) else ["other"]  # DEVIATION: without protocols a group of 0.11 stops
        offered = self.mostly(self.protocols, none, ["other"], [""], self.protocols[::-1], percent=90)
        protocol_type = self.mostly(self.protocol_type, "consumer", "connect", "", percent=94)
        session_ms = self.mostly(SESSION_MS, LONG_MS, 5, 10_000_000, percent=88)
        group, metadata = self._group(), self.random.choice(SUBSCRIPTIONS)
        protocols = tuple(JoinGroupRequestProtocol(name=each, metadata=metadata) for each in offered)

        def build(broker: ComparedBroker) -> JoinGroupRequest:
            return JoinGroupRequest(
                group_id=group,
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=LONG_MS,
                member_id=broker.value(name),
                group_instance_id=instance,
                protocol_type=protocol_type,
                protocols=protocols,
            )

        self.pair.send(slot, build, version)

    def sync(self, slot: int) -> None:
        version = self.version(14)
        member, name = self.members[slot], self._member(slot)
        if self._has_pending_request(name):
            return
        member.requested_name = name
        instance = self._instance(slot) if version >= 3 else None
        assigned = list(self.names) if member.is_leader or self.random.random() < 0.05 else []
        assignment = bytes([self.random.randint(0, 255)]) * self.random.randint(0, 5)
        protocol_type = self.mostly(self.protocol_type, None, "zz", percent=90) if version >= 5 else None
        protocol = self.mostly(member.protocol, None, "zz", percent=90) if version >= 5 else None
        group, generation = self._group(), self._generation(slot)

        def build(broker: ComparedBroker) -> SyncGroupRequest:
            return SyncGroupRequest(
                group_id=group,
                generation_id=generation,
                member_id=broker.value(name),
                group_instance_id=instance,
                protocol_type=protocol_type,
                protocol_name=protocol,
                assignments=tuple(
                    SyncGroupRequestAssignment(member_id=broker.value(each), assignment=assignment) for each in assigned
                ),
            )

        self.pair.send(slot, build, version)

    def heartbeat(self, slot: int) -> None:
        version = self.version(12)
        group, generation, name = self._group(), self._generation(slot), self._member(slot)
        instance = self._instance(slot) if version >= 3 else None
        self.pair.send(
            slot,
            lambda broker: HeartbeatRequest(
                group_id=group, generation_id=generation, member_id=broker.value(name), group_instance_id=instance
            ),
            version,
        )

    def leave(self, slot: int) -> None:
        version, group = self.version(13), self._group()
        names = [self._member(slot) for _ in range(self.mostly(1, 2, 0))] if version >= 3 else [self._member(slot)]
        if any(map(self._has_pending_request, names)):
            return  # real brokers up to 2.5 send no response to a pending request of a member that leaves
        if version < 3:
            self.pair.send(
                slot, lambda broker: LeaveGroupRequest(group_id=group, member_id=broker.value(names[0])), version
            )
            return
        instances = [self._instance(slot) for _ in names]

        def build(broker: ComparedBroker) -> LeaveGroupRequest:
            leaving = zip(names, instances, strict=True)
            members = [MemberIdentity(member_id=broker.value(name), group_instance_id=each) for name, each in leaving]
            return LeaveGroupRequest(group_id=group, members=tuple(members))

        self.pair.send(slot, build, version)

    def commit(self, slot: int) -> None:
        version, group, topics = self.version(8, 1), self._group(), self._topics()
        is_simple = self.random.random() < 0.25
        name, generation = ("", -1) if is_simple else (self._member(slot), self._generation(slot))
        instance = self._instance(slot) if version >= 7 else None
        metadata = self.mostly("m", "", None)
        offset = self.random.choice([0, 5, 100, -1, -5])
        epoch = self.random.choice([-1, 0, 3]) if version >= 6 else -1

        def build(broker: ComparedBroker) -> OffsetCommitRequest:
            return OffsetCommitRequest(
                group_id=group,
                generation_id_or_member_epoch=generation,
                member_id=broker.value(name),
                group_instance_id=instance,
                topics=tuple(
                    OffsetCommitRequestTopic(
                        **topic_fields(broker, topic, by_id=version >= 10),
                        partitions=tuple(
                            OffsetCommitRequestPartition(
                                partition_index=index,
                                committed_offset=offset,
                                committed_leader_epoch=epoch,
                                committed_metadata=metadata,
                            )
                            for index in indexes
                        ),
                    )
                    for topic, indexes in topics
                ),
            )

        self.pair.send(slot, build, version)

    def fetch(self, slot: int) -> None:
        version = self.version(9, 1)
        topics = None if version >= 2 and self.random.random() < 0.4 else self._topics()
        groups = [self._group() for _ in range(self.mostly(1, 2))]

        def build(broker: ComparedBroker) -> OffsetFetchRequest:
            if version < 8:
                old = [OffsetFetchRequestTopic(name=name, partition_indexes=tuple(p)) for name, p in topics or ()]
                return OffsetFetchRequest(group_id=groups[0], topics=None if topics is None else tuple(old))
            new = [
                OffsetFetchRequestTopics(
                    **topic_fields(broker, name, by_id=version >= 10), partition_indexes=tuple(indexes)
                )
                for name, indexes in topics or ()
            ]
            wanted = None if topics is None else tuple(new)
            return OffsetFetchRequest(groups=tuple(OffsetFetchRequestGroup(group_id=g, topics=wanted) for g in groups))

        self.pair.send(slot, build, version)

    def describe(self, slot: int) -> None:
        groups = (self.group,) if self.random.random() < 0.8 else (self._group(), self._group())
        self._look(slot, DescribeGroupsRequest(groups=groups), self.version(15))

    def list(self, slot: int) -> None:
        version = self.version(16)
        states = self.mostly((), ("Stable",), ("Empty", "Dead"), ("stable",), percent=50) if version >= 4 else ()
        self._look(slot, ListGroupsRequest(states_filter=states), version)

    def _look(self, slot: int, request: Request, version: int) -> None:
        """Describe or list groups: from 4.0 on a new group is visible when its record is written (DEVIATIONS)."""
        send = self.pair.send_until_equal if self.release >= (4, 0) else self.pair.send
        send(slot, lambda broker: request, version)

    def delete(self, slot: int) -> None:
        if self.serves(42):
            groups = tuple(self._group() for _ in range(self.mostly(1, 2, 0)))
            self.pair.send(slot, lambda broker: DeleteGroupsRequest(groups_names=groups), self.version(42))

    def delete_offsets(self, slot: int) -> None:
        if not self.serves(47):
            return
        topics = tuple(
            OffsetDeleteRequestTopic(
                name=name, partitions=tuple(OffsetDeleteRequestPartition(partition_index=index) for index in indexes)
            )
            for name, indexes in self._topics()
        )
        group = self._group()
        self.pair.send(slot, lambda broker: OffsetDeleteRequest(group_id=group, topics=topics), self.version(47))


def _is_coordinator(broker: ComparedBroker) -> bool:
    """Return whether the broker is a coordinator; the first FindCoordinator creates the offsets topic."""
    with RawClient(broker.address) as client:
        found = client.ask(FindCoordinatorRequest(key="g"), 0)
        described = client.ask(DescribeGroupsRequest(groups=("g",)), 0)
    return {found.error_code, described.groups[0].error_code} == {0}
