"""The members of a group, each with a connection of its own, and the transcript of the responses that they get.

A script is a function that makes members send requests (`scripts`). A `Transport` carries the requests to the socket of
a real broker (`socket_transport`) or to kproto's connections without sockets (`in_memory_transport`). Transcripts can
be compared: member ids, which brokers generate, are replaced by the name of the member that got them first, and lists
without an order are sorted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from kproto.codes import ErrorCode
from kproto.declaration import Struct, fields_of
from kproto.message import Request
from kproto.messages import APIS
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kproto.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.records.consumer_protocol import ConsumerProtocolSubscription, encode_member_data
from kproto_server.releases.kafka_version import KafkaVersion

SESSION_MS = 30_000
REBALANCE_MS = 60_000
SUBSCRIPTION = encode_member_data(ConsumerProtocolSubscription(topics=("t",)), 0)

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A part of each generated member id."""

TIERS: Mapping[int, Mapping[int, int]] = {
    # JoinGroup version: versions of the other APIs of the same time
    0: {8: 2, 12: 0, 13: 0, 14: 0, 15: 0, 16: 0, 42: 0},
    1: {8: 2, 12: 0, 13: 0, 14: 0, 15: 0, 16: 0, 42: 0},
    2: {8: 3, 12: 1, 13: 1, 14: 1, 15: 1, 16: 1, 42: 1},
    3: {8: 4, 12: 2, 13: 2, 14: 2, 15: 2, 16: 2, 42: 1},
    4: {8: 6, 12: 2, 13: 2, 14: 2, 15: 2, 16: 2, 42: 1},
    5: {8: 7, 12: 3, 13: 2, 14: 3, 15: 4, 16: 2, 42: 1},
    6: {8: 8, 12: 4, 13: 4, 14: 4, 15: 5, 16: 4, 42: 2},
    7: {8: 8, 12: 4, 13: 4, 14: 5, 15: 5, 16: 4, 42: 2},
    8: {8: 8, 12: 4, 13: 5, 14: 5, 15: 5, 16: 4, 42: 2},
    9: {8: 9, 12: 4, 13: 5, 14: 5, 15: 6, 16: 5, 42: 2},
}


class Transport(Protocol):
    """Connections to a broker, one for each name."""

    def send(self, name: str, request: Request, version: int) -> None: ...

    def responses(self) -> list[tuple[str, Any]]:
        """Return the responses since the last call, with the connections' names; wait until no more are expected."""
        ...

    def pass_time(self, duration_ms: int) -> None: ...

    def disconnect(self, name: str) -> None:
        """Close a connection, which has no pending request."""
        ...

    @property
    def waiting(self) -> list[str]:
        """The names of connections with a pending request."""
        ...


class Step(NamedTuple):
    """An action, and the responses that came after it."""

    action: str
    responses: dict[str, list[Any]]


class Members:
    """The members of one group."""

    def __init__(self, transport: Transport, kafka_version: KafkaVersion, group_id: str, join_version: int) -> None:
        self.steps: list[Step] = []
        self.group_id = group_id
        self.join_version = join_version
        self.generation = -1
        """The generation of the last successful JoinGroup."""
        self.ids: dict[str, str] = {}
        """Member ids by connection."""
        self._transport = transport
        self._kafka_version = kafka_version
        self._names: dict[str, str] = {}
        """Connections by member id: the first that got it."""

    # Requests. A name stands for the connection and for its member.

    def join(
        self,
        name: str,
        *,
        member_id: str | None = None,
        instance: str | None = None,
        protocols: Mapping[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        sends_required_id: bool = True,
    ) -> None:
        """Send JoinGroup; after MEMBER_ID_REQUIRED send it again with the id if ``sends_required_id``."""
        known = self.ids.get(name, "") if member_id is None else member_id
        for attempt in (known, None):
            request = JoinGroupRequest(
                group_id=self.group_id,
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=rebalance_ms,
                member_id=self.ids[name] if attempt is None else attempt,
                group_instance_id=instance,
                protocol_type=protocol_type,
                protocols=tuple(
                    JoinGroupRequestProtocol(name=key, metadata=value)
                    for key, value in (protocols if protocols is not None else {"range": SUBSCRIPTION}).items()
                ),
            )
            responses = self.send(name, request, self.join_version)
            if not sends_required_id or not any(
                isinstance(a, JoinGroupResponse) and a.error_code == ErrorCode.MEMBER_ID_REQUIRED for a in responses
            ):
                return

    def sync(
        self,
        name: str,
        assignments: Mapping[str, bytes] | None = None,
        *,
        generation: int | None = None,
        member_id: str | None = None,
        instance: str | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
    ) -> None:
        """Send SyncGroup; ``assignments``: the leader's, by connection."""
        self.send(
            name,
            SyncGroupRequest(
                group_id=self.group_id,
                generation_id=self.generation if generation is None else generation,
                member_id=self._id(name, member_id),
                group_instance_id=instance,
                protocol_type=protocol_type,
                protocol_name=protocol_name,
                assignments=tuple(
                    SyncGroupRequestAssignment(member_id=self.ids.get(to, to), assignment=assignment)
                    for to, assignment in (assignments or {}).items()
                ),
            ),
        )

    def heartbeat(
        self, name: str, *, generation: int | None = None, member_id: str | None = None, instance: str | None = None
    ) -> None:
        self.send(
            name,
            HeartbeatRequest(
                group_id=self.group_id,
                generation_id=self.generation if generation is None else generation,
                member_id=self._id(name, member_id),
                group_instance_id=instance,
            ),
        )

    def leave(self, name: str, *members: tuple[str, str | None]) -> None:
        """Send LeaveGroup, for the member itself or for these (member id or connection, instance id)."""
        identities = tuple(
            MemberIdentity(member_id=self.ids.get(member, member), group_instance_id=instance)
            for member, instance in (members or ((name, None),))
        )
        if self.version(13) >= 3:
            self.send(name, LeaveGroupRequest(group_id=self.group_id, members=identities))
        else:
            for identity in identities:
                self.send(name, LeaveGroupRequest(group_id=self.group_id, member_id=identity.member_id))

    def commit(
        self, name: str, *, generation: int | None = None, member_id: str | None = None, instance: str | None = None
    ) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
        self.send(
            name,
            OffsetCommitRequest(
                group_id=self.group_id,
                generation_id_or_member_epoch=self.generation if generation is None else generation,
                member_id=self._id(name, member_id),
                group_instance_id=instance,
                topics=(OffsetCommitRequestTopic(name="t", partitions=(partition,)),),
            ),
        )

    def describe(self) -> None:
        self.send("admin", DescribeGroupsRequest(groups=(self.group_id,)))

    def list_groups(self) -> None:
        """Send ListGroups; the transcript has this group only."""
        self.send("admin", ListGroupsRequest())

    def delete(self) -> None:
        self.send("admin", DeleteGroupsRequest(groups_names=(self.group_id,)))

    def pass_time(self, duration_ms: int) -> None:
        self._transport.pass_time(duration_ms)
        self._note(f"{duration_ms} ms pass")

    def send(self, name: str, request: Request, version: int | None = None) -> list[Any]:
        """Send a request; return the responses to this connection that come at once."""
        api_key = type(request)._api_key
        if version is None:
            version = self.version(api_key)
        self._transport.send(name, request, version)
        return self._note(f"{name}: {APIS[api_key]} v{version}").get(name, [])

    # Responses.

    def version(self, api_key: int) -> int:
        """Return the version of an API from the time of the members' JoinGroup, if the release has it."""
        low, high = self._kafka_version.api_versions[api_key]
        return max(low, min(high, TIERS[self.join_version][api_key]))

    def serves(self, api_key: int) -> bool:
        return api_key in self._kafka_version.api_versions

    def _id(self, name: str, member_id: str | None) -> str:
        return self.ids.get(name, "") if member_id is None else member_id

    def _note(self, action: str) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for name, response in self._transport.responses():
            found.setdefault(name, []).append(response)
            if isinstance(response, JoinGroupResponse):
                self._take(name, response)
        step = {name: [self._as_json(response) for response in responses] for name, responses in sorted(found.items())}
        self.steps.append(Step(action, step))
        return found

    def _take(self, name: str, response: JoinGroupResponse) -> None:
        if response.member_id and response.error_code in (0, ErrorCode.MEMBER_ID_REQUIRED):
            self.ids[name] = response.member_id
            self._names.setdefault(response.member_id, name)
        if response.error_code == 0:
            self.generation = response.generation_id

    def _as_json(self, value: Any) -> Any:
        """Return a value as JSON, without empty fields and without what differs between recordings."""
        if isinstance(value, Struct):
            fields = {field.name: self._as_json(getattr(value, field.name)) for field in fields_of(type(value))}
            fields.pop("throttle_time_ms", None)
            return {name: item for name, item in fields.items() if type(item) is int or item}
        if isinstance(value, bytes):
            return value.hex()
        if isinstance(value, str):
            for member_id in sorted(self._names, key=len, reverse=True):
                value = value.replace(member_id, f"<{self._names[member_id]}>")
            return UUID.sub("<new>", value.replace(self.group_id, "<group>") if self.group_id else value)
        if isinstance(value, tuple):
            items = [self._as_json(item) for item in value]
            if all(isinstance(item, dict) and "group_id" in item for item in items):
                items = [item for item in items if item["group_id"] == "<group>"]
            return sorted(items, key=str)
        return value


def differences(ours: Sequence[Step], theirs: Sequence[Step]) -> list[str]:
    """Return a text for the first difference between two transcripts of a script; it leads to others."""
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        if mine != other:
            return [
                f"step {number}: {other.action} (kproto: {mine.action})",
                f"  broker {other.responses}",
                f"  kproto {mine.responses}",
            ]
    if len(ours) != len(theirs):
        return [f"{len(ours)} steps of kproto, {len(theirs)} of the broker"]
    return []
