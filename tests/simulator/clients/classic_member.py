"""A member of a classic group: it joins, assigns if it leads, commits, and rejoins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.codes import ErrorCode
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kproto.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_member_data,
    read_assignment,
)
from tests.simulator.broker import REBALANCE_TIMEOUT_MS, SESSION_TIMEOUT_MS, TOPIC
from tests.simulator.clients.client import GROUP, MOVED, REQUEST_TIMEOUT_MS, RETRY_MS, Call, Client, Steps
from tests.simulator.clients.committer import commit_error, commit_request

if TYPE_CHECKING:
    from kproto.message import Request

JOIN_TIMEOUT_MS = REBALANCE_TIMEOUT_MS + SESSION_TIMEOUT_MS
HEARTBEAT_MS = 120
REJOIN = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID})
PROTOCOL = "range"


class Fenced(Exception):
    """Another member has the instance id."""


class ClassicMember(Client):
    """A consumer of the classic group protocol. It revokes all of its partitions before it rejoins."""

    def main(self) -> Steps[None]:
        self.group = self.line.text("group")
        instance = self.line.get("instance")
        self.instance = None if instance is None else str(instance)
        self.member_id = ""
        self.generation = -1
        self.owned: tuple[int, ...] = ()
        try:
            while not self.finishing:
                if (yield from self._join()):
                    yield from self._consume()
            yield from self._leave()
        except Fenced:
            return

    def _ask(self, request: Request, wanted: int, timeout_ms: int = REQUEST_TIMEOUT_MS) -> Steps[Any]:
        return (yield from self.ask_coordinator(self.group, GROUP, request, wanted, timeout_ms))

    def _note_error(self, error: int) -> None:
        """Forget what an error shows to be wrong."""
        if error in MOVED:
            self.forget_coordinator(self.group, GROUP)
        elif error == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        elif error == ErrorCode.FENCED_INSTANCE_ID:
            raise Fenced

    def _join(self) -> Steps[bool]:
        """Join, and fetch the assignment; return whether there is one."""
        subscription = ConsumerProtocolSubscription(topics=(TOPIC,))
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name=PROTOCOL, metadata=encode_member_data(subscription, 0)),),
        )
        joined = yield from self._ask(request, 7, JOIN_TIMEOUT_MS)
        if joined is None or joined.error_code not in (0, ErrorCode.MEMBER_ID_REQUIRED):
            self._note_error(0 if joined is None else joined.error_code)
            yield RETRY_MS
            return False
        self.member_id = joined.member_id
        if joined.error_code:
            return False
        self.generation = joined.generation_id
        if self.chance.random() < 0.2:
            yield self.chance.randrange(1, 100)
        return (yield from self._sync(joined))

    def _sync(self, joined: Any) -> Steps[bool]:
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocol_name=PROTOCOL,
            assignments=self._assignments(joined) if joined.leader == self.member_id else (),
        )
        synced = yield from self._ask(request, 5, JOIN_TIMEOUT_MS)
        if synced is None or synced.error_code:
            self._note_error(0 if synced is None else synced.error_code)
            yield RETRY_MS
            return False
        assigned = read_assignment(synced.assignment)[1].assigned_partitions if synced.assignment else ()
        self.owned = tuple(index for topic in assigned for index in topic.partitions)
        return True

    def _assignments(self, joined: Any) -> tuple[SyncGroupRequestAssignment, ...]:
        """Return an assignment in which each partition has one member."""
        member_ids = sorted(member.member_id for member in joined.members)
        count = self.surroundings.partition_count
        return tuple(
            SyncGroupRequestAssignment(
                member_id=member_id,
                assignment=encode_member_data(
                    ConsumerProtocolAssignment(
                        assigned_partitions=(
                            TopicPartition(topic=TOPIC, partitions=tuple(range(index, count, len(member_ids)))),
                        )
                    ),
                    0,
                ),
            )
            for index, member_id in enumerate(member_ids)
        )

    def _consume(self) -> Steps[None]:
        """Fetch the offsets, then send heartbeats and commits, until the member has to rejoin."""
        if self.owned:
            topics = (OffsetFetchRequestTopic(name=TOPIC, partition_indexes=self.owned),)
            yield from self._ask(OffsetFetchRequest(group_id=self.group, topics=topics, require_stable=True), 7)
        now_ms = self.surroundings.now_ms
        heartbeat_ms, commit_ms = now_ms + HEARTBEAT_MS, now_ms + self.chance.randrange(1, 150)
        rejoins_ms = 0
        """Until then the member does not react to rebalances, as one that is busy with records."""
        if self.chance.random() < 0.2:
            rejoins_ms = now_ms + self.chance.randrange(2000)
        while not self.finishing:
            yield max(1, min(heartbeat_ms, commit_ms) - self.surroundings.now_ms)
            now_ms = self.surroundings.now_ms
            if now_ms >= heartbeat_ms:
                heartbeat_ms = now_ms + HEARTBEAT_MS
                error = yield from self._heartbeat()
                if error == ErrorCode.REBALANCE_IN_PROGRESS:
                    yield from self._commit_last()
            else:
                commit_ms = now_ms + self.chance.randrange(30, 400)
                error = yield from self._commit()
            if error == ErrorCode.REBALANCE_IN_PROGRESS and now_ms < rejoins_ms:
                continue
            self._note_error(error)
            if error in REJOIN:
                return

    def _heartbeat(self) -> Steps[int]:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
        )
        response = yield from self._ask(request, 3)
        return 0 if response is None else int(response.error_code)

    def _commit(self) -> Steps[int]:
        """Commit all partitions; repeat it at once if no response comes, sometimes."""
        if not self.owned:
            return 0
        offsets = {index: self.surroundings.next_offset() for index in self.owned}
        request = commit_request(self.group, offsets, self.generation, self.member_id, self.instance)
        response = yield from self._ask(request, 7)
        if response is None and self.chance.random() < 0.5:
            response = yield from self._ask(request, 7)
        return 0 if response is None else int(commit_error(response))

    def _commit_last(self) -> Steps[None]:
        """Commit before the member revokes its partitions; often it rejoins before the commit arrives."""
        if self.chance.random() < 0.3:
            yield from self._commit()
        elif self.owned and (node_id := self.known_coordinator(self.group, GROUP)) is not None:
            offsets = {index: self.surroundings.next_offset() for index in self.owned}
            request = commit_request(self.group, offsets, self.generation, self.member_id, self.instance)
            delay_ms = self.chance.choice((0, 20, 100, 400))
            version = self.surroundings.version(request._api_key, 7)
            yield Call(node_id, request, version, background=True, delay_ms=delay_ms)

    def _leave(self) -> Steps[None]:
        if self.member_id and (self.instance is None or self.chance.random() < 0.5):
            member = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
            yield from self._ask(LeaveGroupRequest(group_id=self.group, members=(member,)), 3)
