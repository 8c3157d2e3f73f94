"""A member of a consumer group (KIP-848): heartbeats carry what it owns, and its assignment comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.codes import ErrorCode
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from tests.simulator.broker import REBALANCE_TIMEOUT_MS, TOPIC
from tests.simulator.clients.client import GROUP, MOVED, RETRY_MS, Client, Steps
from tests.simulator.clients.committer import commit_error, commit_request

if TYPE_CHECKING:
    from kproto.message import Request

HEARTBEAT_MS = 100
JOIN, LEAVE, LEAVE_FOR_A_WHILE = 0, -1, -2
REJOIN = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND})
LOST = frozenset({ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID})


class ConsumerMember(Client):
    """A member that revokes partitions before it says that it does not own them any more."""

    def main(self) -> Steps[None]:
        self.group = self.line.text("group")
        instance = self.line.get("instance")
        self.instance = None if instance is None else str(instance)
        self.member_id = f"{self.name}-{self.incarnation}"
        self.topic_id = yield from self._find_topic()
        self.epoch = JOIN
        self.owned: frozenset[int] = frozenset()
        self.says_all = True
        """Whether the next heartbeat has all fields: the broker may not have got the last one."""
        commit_ms = self.surroundings.now_ms + self.chance.randrange(1, 300)
        while not self.finishing:
            error = yield from self._heartbeat()
            if error in LOST and self.epoch != JOIN:
                return
            if error:
                yield RETRY_MS
                continue
            until_ms = self.surroundings.now_ms + HEARTBEAT_MS
            while commit_ms < until_ms and not self.finishing:
                yield max(1, commit_ms - self.surroundings.now_ms)
                yield from self._commit()
                commit_ms = self.surroundings.now_ms + self.chance.randrange(30, 400)
            yield max(1, until_ms - self.surroundings.now_ms)
        yield from self._leave()

    def _find_topic(self) -> Steps[bytes]:
        while True:
            metadata = yield from self.ask_any(MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), 12)
            if metadata is not None and metadata.topics[0].topic_id != bytes(16):
                return bytes(metadata.topics[0].topic_id)
            yield RETRY_MS

    def _ask(self, request: Request, wanted: int, *, drops: bool = False) -> Steps[Any]:
        response = yield from self.ask_coordinator(self.group, GROUP, request, wanted, drops=drops)
        return response

    def _heartbeat_request(self) -> Request:
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if self.says_all else -1,
            subscribed_topic_names=(TOPIC,) if self.says_all else None,
            topic_partitions=self._topic_partitions() if self.says_all else None,
        )

    def _assigned(self, response: Any) -> frozenset[int] | None:
        """Return the partitions that a response assigns; None: those of the last one."""
        if response.assignment is None:
            return None
        return frozenset(index for topic in response.assignment.topic_partitions for index in topic.partitions)

    def _leave_request(self, epoch: int) -> Request:
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=epoch, instance_id=self.instance
        )

    def _heartbeat(self) -> Steps[int]:
        """Send a heartbeat, and take the assignment; return an error, or -1 without a response.

        A heartbeat that the member has given up must not arrive later: brokers take what it says as new.
        """
        response = yield from self._ask(self._heartbeat_request(), 1, drops=True)
        if response is None:
            self._note_lost_response()
            return -1
        error = int(response.error_code)
        if error:
            self.says_all = True
            if error in MOVED:
                self.forget_coordinator(self.group, GROUP)
            elif error in REJOIN:
                self.epoch, self.owned = JOIN, frozenset()
            return error
        self.epoch = response.member_epoch
        self.says_all = False
        assigned = self._assigned(response)
        if assigned is not None:
            yield from self._reconcile(assigned)
        return 0

    def _note_lost_response(self) -> None:
        self.says_all = True

    def _topic_partitions(self) -> tuple[TopicPartitions, ...]:
        if not self.owned:
            return ()
        return (TopicPartitions(topic_id=self.topic_id, partitions=tuple(sorted(self.owned))),)

    def _reconcile(self, assigned: frozenset[int]) -> Steps[None]:
        if not assigned.issuperset(self.owned):
            if self.chance.random() < 0.5:
                yield from self._commit()
            if self.chance.random() < 0.3:
                yield self.chance.randrange(1, 150)
        fetched = assigned - self.owned
        if assigned != self.owned:
            self.says_all = True
        self.owned = assigned
        if fetched:
            topics = (OffsetFetchRequestTopics(name=TOPIC, partition_indexes=tuple(sorted(fetched))),)
            group = OffsetFetchRequestGroup(
                group_id=self.group, member_id=self.member_id, member_epoch=self.epoch, topics=topics
            )
            yield from self._ask(OffsetFetchRequest(groups=(group,), require_stable=True), 9)

    def _commit(self) -> Steps[None]:
        if not self.owned or self.epoch == JOIN:
            return
        offsets = {index: self.surroundings.next_offset() for index in sorted(self.owned)}
        request = commit_request(self.group, offsets, self.epoch, self.member_id, self.instance)
        response = yield from self._ask(request, 9)
        if response is not None and commit_error(response) in MOVED:
            self.forget_coordinator(self.group, GROUP)

    def _leave(self) -> Steps[None]:
        epoch = LEAVE if self.instance is None else LEAVE_FOR_A_WHILE
        if self.epoch != JOIN:
            yield from self._ask(self._leave_request(epoch), 1)
