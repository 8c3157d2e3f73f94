"""Members of a share group with connections of their own, and the transcript of the responses that they get.

A script is a function that makes members send requests (`scripts`). The transports are those of `tests.membership`.
Transcripts can be compared: topic ids are replaced by the names of the topics, and records by the offsets of batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kproto.declaration import Struct, fields_of
from kproto.message import Request
from kproto.messages import APIS
from kproto.messages.k01_fetch import FetchPartition as FetchRequestPartition
from kproto.messages.k01_fetch import FetchRequest
from kproto.messages.k01_fetch import FetchTopic as FetchRequestTopic
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest, TopicPartitions
from kproto.messages.k77_share_group_describe import ShareGroupDescribeRequest
from kproto.messages.k77_share_group_describe import TopicPartitions as DescribedPartitions
from kproto.messages.k78_share_fetch import AcknowledgementBatch as FetchAcknowledgement
from kproto.messages.k78_share_fetch import FetchPartition, FetchTopic, ForgottenTopic, ShareFetchRequest
from kproto.messages.k79_share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from kproto.messages.k90_describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kproto.messages.k91_alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kproto.messages.k92_delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kproto.records.batches import batch_end, first_offset, last_offset, read_batches, read_records
from kproto.records.record_batch import RecordBatch
from kproto_server.releases.kafka_version import KafkaVersion
from tests.membership.members import Step, Transport
from tests.share_groups.setup import Setup

Acks = Mapping[int, Sequence[tuple[int, int, Sequence[int]]]]
"""Partition: first and last offset, and acknowledge types."""


class Sharers(Setup):
    """The members of one share group; each of their requests is a step of the transcript."""

    def __init__(self, transport: Transport, kafka_version: KafkaVersion, name: str) -> None:
        super().__init__(transport, name)
        self.steps: list[Step] = []
        self.kafka_version = kafka_version
        self.epochs: dict[str, int] = {}
        """Member epochs."""
        self.session_epochs: dict[str, int] = {}
        """The epochs of the next requests of sessions."""

    def warm_up(self) -> None:
        """Have the broker create its internal topics: return when a group has an assignment."""
        self.create()
        self.heartbeat("warm", epoch=0, topics=["t"])
        while not any(
            response.get("assignment", {}).get("topic_partitions")
            for step in self.steps
            for response in step.responses.get("warm", ())
        ):
            self.heartbeat("warm")
        self.heartbeat("warm", epoch=-1)

    # Requests.

    def heartbeat(
        self,
        member: str,
        *,
        epoch: int | None = None,
        topics: Sequence[str] | None = None,
        group: str = "g",
        rack: str | None = None,
        waits: int = 300,
    ) -> None:
        """Send a heartbeat; then wait until the broker has initialized states."""
        request = ShareGroupHeartbeatRequest(
            group_id=self.full(group) if group else group,
            member_id=member,
            member_epoch=self.epochs.get(member, 0) if epoch is None else epoch,
            rack_id=rack,
            subscribed_topic_names=None if topics is None else tuple(map(self.full, topics)),
        )
        for response in self.send(member, request):
            if not response.error_code:
                self.epochs[member] = response.member_epoch
        if waits:
            self._transport.pass_time(waits)

    def join(self, member: str, *topics: str) -> None:
        """Join, and send heartbeats until partitions were assigned."""
        self.heartbeat(member, epoch=0, topics=topics or ("t",))
        self.heartbeat(member)

    def fetch(
        self,
        member: str,
        *partitions: int,
        topic: str = "t",
        epoch: int | None = None,
        acks: Acks | None = None,
        forget: Sequence[int] = (),
        wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        max_records: int = 500,
        batch_size: int = 500,
        mode: int = 0,
        renews: bool = False,
        group: str | None = "g",
        member_id: str | None = "",
    ) -> None:
        """Fetch, with the next epoch of the member's session."""
        acks = acks or {}
        topic_id = self.topic_ids[topic]
        parts = tuple(
            FetchPartition(
                partition_index=index,
                acknowledgement_batches=tuple(
                    FetchAcknowledgement(first_offset=first, last_offset=last, acknowledge_types=tuple(types))
                    for first, last, types in acks.get(index, ())
                ),
            )
            for index in dict.fromkeys((*partitions, *acks))
        )
        request = ShareFetchRequest(
            group_id=self.full(group) if group else group,
            member_id=member if member_id == "" else member_id,
            share_session_epoch=self.session_epochs.get(member, 0) if epoch is None else epoch,
            max_wait_ms=wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            max_records=max_records,
            batch_size=batch_size,
            share_acquire_mode=mode,
            is_renew_ack=renews,
            topics=(FetchTopic(topic_id=topic_id, partitions=parts),) if parts else (),
            forgotten_topics_data=(ForgottenTopic(topic_id=topic_id, partitions=tuple(forget)),) if forget else (),
        )
        responses = self.send(member, request, waits=wait_ms)
        self._note_session(member, request.share_session_epoch, responses)

    def acknowledge(
        self,
        member: str,
        acks: Acks,
        *,
        topic: str = "t",
        epoch: int | None = None,
        renews: bool = False,
        group: str | None = "g",
        member_id: str | None = "",
    ) -> None:
        request = ShareAcknowledgeRequest(
            group_id=self.full(group) if group else group,
            member_id=member if member_id == "" else member_id,
            share_session_epoch=self.session_epochs.get(member, 0) if epoch is None else epoch,
            is_renew_ack=renews,
            topics=(
                AcknowledgeTopic(
                    topic_id=self.topic_ids[topic],
                    partitions=tuple(
                        AcknowledgePartition(
                            partition_index=index,
                            acknowledgement_batches=tuple(
                                AcknowledgementBatch(
                                    first_offset=first, last_offset=last, acknowledge_types=tuple(types)
                                )
                                for first, last, types in batches
                            ),
                        )
                        for index, batches in acks.items()
                    ),
                ),
            )
            if acks
            else (),
        )
        self._note_session(member, request.share_session_epoch, self.send(member, request))

    def _note_session(self, member: str, epoch: int, responses: list[Any]) -> None:
        if epoch >= 0 and responses and not responses[0].error_code:
            self.session_epochs[member] = epoch + 1

    def describe(self, group: str = "g") -> None:
        self.send(
            "admin", ShareGroupDescribeRequest(group_ids=(self.full(group),), include_authorized_operations=False)
        )

    # Administration.

    def describe_offsets(self, *topics: str, group: str = "g", partitions: Sequence[int] = (0,)) -> None:
        """Describe the start offsets of topics; without topics, of all."""
        asked = tuple(
            DescribeShareGroupOffsetsRequestTopic(topic_name=self.full(topic), partitions=tuple(partitions))
            for topic in topics
        )
        one = DescribeShareGroupOffsetsRequestGroup(group_id=self.full(group), topics=asked or None)
        self.send("admin", DescribeShareGroupOffsetsRequest(groups=(one,)), waits=2_000)

    def alter_offsets(self, offsets: Mapping[str, Mapping[int, int]], group: str = "g") -> None:
        """Set start offsets, by topic and partition."""
        topics = tuple(
            AlterShareGroupOffsetsRequestTopic(
                topic_name=self.full(topic),
                partitions=tuple(
                    AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
                    for index, offset in parts.items()
                ),
            )
            for topic, parts in offsets.items()
        )
        group_id = self.full(group) if group else group
        self.send("admin", AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics))
        self._transport.pass_time(300)

    def delete_offsets(self, *topics: str, group: str = "g") -> None:
        asked = tuple(DeleteShareGroupOffsetsRequestTopic(topic_name=self.full(topic)) for topic in topics)
        group_id = self.full(group) if group else group
        self.send("admin", DeleteShareGroupOffsetsRequest(group_id=group_id, topics=asked))
        self._transport.pass_time(300)

    def list_groups(self, *types: str, states: Sequence[str] = ()) -> None:
        """List the script's groups; those of other scripts are left out."""
        request = ListGroupsRequest(states_filter=tuple(states), types_filter=types)
        response = self._ask(request, 5)
        groups = tuple(one for one in response.groups if one.group_id.startswith(f"{self.name}-"))
        self._note(f"admin: ListGroups {', '.join((*types, *states))}", [("admin", response.replace(groups=groups))])

    def delete_groups(self, *groups: str) -> None:
        self.send("admin", DeleteGroupsRequest(groups_names=tuple(map(self.full, groups))))
        self._transport.pass_time(300)

    def read_letters(self, prefix: str, topic: str) -> None:
        """Read all records of a topic, with their headers."""
        letters = []
        for record in read_records(self._read_all(prefix + self.full(topic))):
            headers = [f"{name}: {(value or b'').decode()}" for name, value in record.headers]
            letters.append([repr(record.key), repr(record.value), *headers])
        self.steps.append(Step("dead letters", {"queue": [self.as_json(str(one)) for one in letters]}))

    def read_letter_sizes(self, prefix: str, topic: str) -> None:
        """Read the sizes of the values of a topic, and its headers' names, by batch."""
        sizes = []
        for batch in read_batches(self._read_all(prefix + self.full(topic))):
            assert isinstance(batch, RecordBatch)
            for record in batch.records():
                names = [name for name, _ in record.headers]
                sizes.append([batch.base_offset, repr(record.key), len(record.value or b""), *names])
        self.steps.append(Step("dead letters by size", {"queue": [str(one) for one in sizes]}))

    def _read_all(self, topic: str) -> bytes:
        part = FetchRequestPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            replica_id=-1, max_wait_ms=0, min_bytes=0, topics=(FetchRequestTopic(topic=topic, partitions=(part,)),)
        )
        records: bytes = self._ask(request, 12).responses[0].partitions[0].records
        return records

    def disconnect(self, member: str) -> None:
        """Close a member's connection, and wait until the broker has noticed; its next request opens another one."""
        self._transport.disconnect(member)
        self._transport.pass_time(500)

    def pass_time(self, duration_ms: int) -> None:
        self._transport.pass_time(duration_ms)
        self._note(f"{duration_ms} ms pass")

    def send(self, member: str, request: Request, version: int | None = None, *, waits: int = 0) -> list[Any]:
        """Send a request that may wait for a while; return the responses to this connection."""
        api_key = type(request)._api_key
        if version is None:
            version = self.kafka_version.api_versions[api_key][1]
        self._transport.send(member, request, version)
        responses = self._transport.responses()
        if waits and not responses:
            self._transport.pass_time(waits)
        return self._note(f"{member}: {APIS[api_key]} v{version}", responses).get(member, [])

    # Responses.

    def _note(self, action: str, responses: Sequence[tuple[str, Any]] = ()) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for name, response in (*responses, *self._transport.responses()):
            found.setdefault(name, []).append(response)
        step = {name: [self.as_json(response) for response in responses] for name, responses in sorted(found.items())}
        self.steps.append(Step(action, step))
        return found

    def as_json(self, value: Any) -> Any:
        """Return a value as JSON, without empty fields and without what differs between recordings.

        Of assigned partitions only the number remains: random topic ids decide which ones a member gets.
        """
        if isinstance(value, Struct):
            fields = {field.name: self.as_json(getattr(value, field.name)) for field in fields_of(type(value))}
            for name in ("throttle_time_ms", "host", "port"):
                fields.pop(name, None)
            if isinstance(value, TopicPartitions | DescribedPartitions):
                fields["partitions"] = len(value.partitions)
            return {name: item for name, item in fields.items() if type(item) in (int, dict) or item}
        if value == bytes(16):
            return "no id"
        if isinstance(value, bytes):
            for topic, topic_id in self.topic_ids.items():
                if value == topic_id:
                    return f"<{topic}>"
            return _offsets(value)
        if isinstance(value, str):
            return value.replace(f"{self.name}-", "")
        if isinstance(value, tuple):
            items = [self.as_json(item) for item in value]
            return items if all(isinstance(item, int) for item in items) else sorted(items, key=str)
        return value


def _offsets(records: bytes) -> str:
    found, start = [], 0
    while (end := batch_end(records, start)) is not None:
        found.append(f"{first_offset(records, start)}-{last_offset(records, start)}")
        start = end
    return " ".join(found)
