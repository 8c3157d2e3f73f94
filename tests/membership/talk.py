"""Members that talk to a coordinator, each over a connection of its own, and the transcript of what they are told.

A script is a function that makes its members speak (`scripts.py`). A `Line` carries it, to a real broker's socket
(`wire.py`) or to sessions of ours (`sessions.py`), and the transcripts can be compared: member ids, which brokers
invent, stand there as the name of the member that was first told them, and lists without an order are sorted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

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
"""In an id that nobody was told yet."""

TIERS: Mapping[int, Mapping[int, int]] = {
    # JoinGroup: the other APIs' versions of that time
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


class Line(Protocol):
    """The way to a broker: a connection for each name."""

    def send(self, name: str, request: Request, version: int) -> None: ...

    def answers(self) -> list[tuple[str, Any]]:
        """The responses that have come since, with the connections' names; waits until no more are expected."""
        ...

    def pass_time(self, duration_ms: int) -> None: ...


class Step(NamedTuple):
    """What was done, and the answers that came then."""

    does: str
    answers: dict[str, list[Any]]


class Talk:
    """One group's members; what they say and are told."""

    def __init__(self, line: Line, kafka_version: KafkaVersion, group_id: str, join_version: int) -> None:
        self.steps: list[Step] = []
        self.group_id = group_id
        self.join_version = join_version
        self.generation = -1
        """Of the last join that was answered without an error."""
        self.ids: dict[str, str] = {}
        """Member id by connection."""
        self._line = line
        self._kafka_version = kafka_version
        self._names: dict[str, str] = {}
        """Connection by member id: the first that was told it."""

    # What members do. A name stands for the connection, and for the member that speaks over it.

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
        anew: bool = True,
    ) -> None:
        """Join; if the answer is that the member id is required, join again with it (unless not ``anew``)."""
        known = self.ids.get(name, "") if member_id is None else member_id
        for attempt in (known, None):
            asked = JoinGroupRequest(
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
            answers = self.say(name, asked, self.join_version)
            if not anew or not any(isinstance(a, JoinGroupResponse) and a.error_code == 79 for a in answers):
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
        """Ask for an assignment; ``assignments``, by connection, make it the leader's."""
        self.say(
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
        self.say(
            name,
            HeartbeatRequest(
                group_id=self.group_id,
                generation_id=self.generation if generation is None else generation,
                member_id=self._id(name, member_id),
                group_instance_id=instance,
            ),
        )

    def leave(self, name: str, *members: tuple[str, str | None]) -> None:
        """Leave, or have these (member id or connection, instance) leave."""
        identities = tuple(
            MemberIdentity(member_id=self.ids.get(who, who), group_instance_id=instance)
            for who, instance in (members or ((name, None),))
        )
        if self.version(13) >= 3:
            self.say(name, LeaveGroupRequest(group_id=self.group_id, members=identities))
        else:
            for identity in identities:
                self.say(name, LeaveGroupRequest(group_id=self.group_id, member_id=identity.member_id))

    def commit(
        self, name: str, *, generation: int | None = None, member_id: str | None = None, instance: str | None = None
    ) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
        self.say(
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
        self.say("admin", DescribeGroupsRequest(groups=(self.group_id,)))

    def list_groups(self) -> None:
        """List groups; others on the same broker don't count."""
        self.say("admin", ListGroupsRequest())

    def delete(self) -> None:
        self.say("admin", DeleteGroupsRequest(groups_names=(self.group_id,)))

    def pass_time(self, duration_ms: int) -> None:
        self._line.pass_time(duration_ms)
        self._note(f"{duration_ms} ms pass")

    def say(self, name: str, request: Request, version: int | None = None) -> list[Any]:
        """Send a request as it is; return what this connection is answered at once."""
        api_key = type(request)._api_key
        if version is None:
            version = self.version(api_key)
        self._line.send(name, request, version)
        return self._note(f"{name}: {APIS[api_key]} v{version}").get(name, [])

    # What comes of it.

    def version(self, api_key: int) -> int:
        """The version of an API that goes with the members' JoinGroup, as far as the release has it."""
        low, high = self._kafka_version.api_versions[api_key]
        return max(low, min(high, TIERS[self.join_version][api_key]))

    def serves(self, api_key: int) -> bool:
        return api_key in self._kafka_version.api_versions

    def _id(self, name: str, member_id: str | None) -> str:
        return self.ids.get(name, "") if member_id is None else member_id

    def _note(self, does: str) -> dict[str, list[Any]]:
        answers: dict[str, list[Any]] = {}
        for name, response in self._line.answers():
            answers.setdefault(name, []).append(response)
            if isinstance(response, JoinGroupResponse):
                self._take(name, response)
        told = {name: [self._plain(response) for response in responses] for name, responses in sorted(answers.items())}
        self.steps.append(Step(does, told))
        return answers

    def _take(self, name: str, response: JoinGroupResponse) -> None:
        if response.member_id and response.error_code in (0, 79):
            self.ids[name] = response.member_id
            self._names.setdefault(response.member_id, name)
        if response.error_code == 0:
            self.generation = response.generation_id

    def _plain(self, value: Any) -> Any:
        """A response as JSON has it, without what differs from one recording to the next, or is nothing."""
        if isinstance(value, Struct):
            told = {field.name: self._plain(getattr(value, field.name)) for field in fields_of(type(value))}
            told.pop("throttle_time_ms", None)
            return {name: item for name, item in told.items() if type(item) is int or item}
        if isinstance(value, bytes):
            return value.hex()
        if isinstance(value, str):
            for member_id in sorted(self._names, key=len, reverse=True):
                value = value.replace(member_id, f"<{self._names[member_id]}>")
            return UUID.sub("<new>", value.replace(self.group_id, "<group>") if self.group_id else value)
        if isinstance(value, tuple):
            items = [self._plain(item) for item in value]
            if all(isinstance(item, dict) and "group_id" in item for item in items):
                items = [item for item in items if item["group_id"] == "<group>"]
            return sorted(items, key=str)
        return value


def differences(ours: Sequence[Step], theirs: Sequence[Step]) -> list[str]:
    """Where two transcripts of one script part, in words; only the first place, as one leads to others."""
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        if mine != other:
            return [
                f"step {number}: {other.does} (ours: {mine.does})",
                f"  theirs {other.answers}",
                f"  ours   {mine.answers}",
            ]
    if len(ours) != len(theirs):
        return [f"{len(ours)} steps of ours, {len(theirs)} of theirs"]
    return []
