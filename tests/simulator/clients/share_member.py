"""A member of a share group (KIP-932): it acquires records, and accepts, releases or rejects them, or forgets them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.codes import ErrorCode
from kproto.messages import k78_share_fetch as fetching
from kproto.messages import k79_share_acknowledge as acknowledging
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.simulator.broker import TOPIC
from tests.simulator.clients.client import GROUP, MOVED, RETRY_MS, Client, Steps

if TYPE_CHECKING:
    from kproto.message import Request

HEARTBEAT_MS = 100
JOIN, LEAVE = 0, -1
FIRST, FINAL = 0, -1
"""Epochs of a share session."""
ACCEPT, RELEASE, REJECT = 1, 2, 3
REJOIN = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND})


class Acquired(NamedTuple):
    """Records that the member has to acknowledge."""

    partition: int
    first_offset: int
    last_offset: int


class ShareMember(Client):
    """A member that opens a share session for each few records that it acquires.

    What it has given up must not arrive later: the end of a session would end the next one, too, and a heartbeat with
    the previous epoch would get an assignment that the broker does not repeat (Kafka accepts that epoch, too).
    """

    def main(self) -> Steps[None]:
        self.group = self.line.text("group")
        self.member_id = base64.urlsafe_b64encode(self.chance.randbytes(16)).decode().rstrip("=")
        self.epoch = JOIN
        self.assigned: tuple[int, ...] = ()
        self.says_all = True
        """Whether the next heartbeat has all fields: a response was lost, perhaps with an assignment."""
        self.topic_id = bytes(16)
        self.leaders: dict[int, int] = {}
        while not self.finishing:
            error = yield from self._heartbeat()
            if not error and self.assigned:
                yield from self._read()
            yield RETRY_MS if error else self.chance.randrange(10, HEARTBEAT_MS)
        if self.epoch != JOIN:
            self.epoch = LEAVE
            yield from self._heartbeat()

    def _ask_group(self, request: Request) -> Steps[Any]:
        return (yield from self.ask_coordinator(self.group, GROUP, request, 1, drops=True))

    def _heartbeat(self) -> Steps[int]:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            subscribed_topic_names=(TOPIC,) if self.says_all or self.epoch == JOIN else None,
        )
        response = yield from self._ask_group(request)
        self.says_all = response is None or bool(response.error_code)
        if response is None:
            return -1
        error = int(response.error_code)
        if error in MOVED:
            self.forget_coordinator(self.group, GROUP)
        elif error in REJOIN:
            self.epoch, self.assigned = JOIN, ()
        elif not error:
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.assigned = tuple(
                    index for topic in response.assignment.topic_partitions for index in topic.partitions
                )
        return error

    def _find_leaders(self) -> Steps[None]:
        metadata = yield from self.ask_any(MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), 12)
        if metadata is not None:
            (topic,) = metadata.topics
            self.topic_id = topic.topic_id
            self.leaders = {one.partition_index: one.leader_id for one in topic.partitions if one.leader_id >= 0}

    def _read(self) -> Steps[None]:
        """Acquire records of one node, acknowledge some of them, and end the session."""
        if not self.leaders:
            yield from self._find_leaders()
        partition = self.chance.choice(self.assigned)
        node_id = self.leaders.get(partition)
        if node_id is None:
            self.leaders = {}
            return
        acquired = yield from self._fetch(node_id, [one for one in self.assigned if self.leaders.get(one) == node_id])
        epoch = FIRST + 1
        while acquired:
            if self.chance.random() < 0.15:
                break  # forgets them: their locks expire, or end with the session
            yield self.chance.choice((1, 5, 30, self.chance.randrange(1, 400)))
            count = self.chance.randint(1, len(acquired))
            is_known = yield from self._acknowledge(node_id, epoch, acquired[:count])
            if not is_known:
                return
            acquired, epoch = acquired[count:], epoch + 1
        if self.chance.random() < 0.5:
            yield from self._acknowledge(node_id, FINAL, [])

    def _fetch(self, node_id: int, partitions: list[int]) -> Steps[list[Acquired]]:
        request = fetching.ShareFetchRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=FIRST,
            max_wait_ms=self.chance.choice((0, 60)),
            min_bytes=1,
            max_records=self.chance.choice((1, 2, 10)),
            batch_size=self.chance.choice((1, 2, 10)),
            topics=(
                fetching.FetchTopic(
                    topic_id=self.topic_id,
                    partitions=tuple(
                        fetching.FetchPartition(partition_index=index, acknowledgement_batches=())
                        for index in partitions
                    ),
                ),
            ),
            forgotten_topics_data=(),
        )
        response = yield from self.ask(node_id, request, 2, drops=True)
        if response is None or response.error_code:
            self.leaders = {}
            return []
        found = []
        for topic in response.responses:
            for one in topic.partitions:
                if one.error_code:
                    self.leaders = {}
                found += [
                    Acquired(one.partition_index, batch.first_offset, batch.last_offset)
                    for batch in one.acquired_records
                ]
        return found

    def _acknowledge(self, node_id: int, epoch: int, acquired: list[Acquired]) -> Steps[bool]:
        """Acknowledge records; return whether the session goes on."""
        request = acknowledging.ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=epoch,
            topics=self._acknowledgements(acquired),
        )
        response = yield from self.ask(node_id, request, 2, drops=True)
        return response is not None and not response.error_code

    def _acknowledgements(self, acquired: list[Acquired]) -> tuple[acknowledging.AcknowledgeTopic, ...]:
        """Return an acknowledgement of each batch, in the form that a request has: each partition once."""
        by_partition: dict[int, list[acknowledging.AcknowledgementBatch]] = {}
        for one in acquired:
            kind = self.chance.choice((ACCEPT, ACCEPT, ACCEPT, RELEASE, REJECT))
            by_partition.setdefault(one.partition, []).append(
                acknowledging.AcknowledgementBatch(
                    first_offset=one.first_offset, last_offset=one.last_offset, acknowledge_types=(kind,)
                )
            )
        if not by_partition:
            return ()
        partitions = tuple(
            acknowledging.AcknowledgePartition(partition_index=index, acknowledgement_batches=tuple(batches))
            for index, batches in by_partition.items()
        )
        return (acknowledging.AcknowledgeTopic(topic_id=self.topic_id, partitions=partitions),)
