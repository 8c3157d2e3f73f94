"""What ShareFetch and ShareAcknowledge share: checks of acknowledgements, and what becomes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal
from kproto_server.security.acls import Operation, ResourceType
from kproto_server.share_groups.sessions import TopicIdPartition
from kproto_server.share_groups.share_partition import GAP, REJECT, RENEW, Acknowledgement
from kproto_server.share_groups.share_states import SharePartitionKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kproto_server.cluster.topics import Partition
    from kproto_server.requests.context import RequestContext
    from kproto_server.share_groups.partitions import Outcome

MEMBER_ID_LENGTH_MAX = 36
"""The length of a UUID as text."""


class _AckBatch(Protocol):
    @property
    def first_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def acknowledge_types(self) -> tuple[int, ...]: ...


class _AckPartition(Protocol):
    @property
    def partition_index(self) -> int: ...
    @property
    def acknowledgement_batches(self) -> Sequence[_AckBatch]: ...


class _AckTopic(Protocol):
    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> Sequence[_AckPartition]: ...


def is_valid(group_id: str | None, member_id: str | None) -> bool:
    """Return whether a request has a group id and a member id."""
    return group_id is not None and bool(member_id) and len(member_id or "") <= MEMBER_ID_LENGTH_MAX


def offsets_problem(group_id: str, context: RequestContext, *, creates: bool) -> Refusal | None:
    """Return why the offsets of a share group cannot be changed; None if they can. ``creates``: it may be new."""
    if not context.share_groups.is_enabled:
        return Refusal(ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_VERSION.message)
    if not group_id:
        return Refusal(ErrorCode.INVALID_GROUP_ID, ErrorCode.INVALID_GROUP_ID.message)
    error = context.coordinator.error_at(context.node, group_id)
    if error:
        return Refusal(ErrorCode(error), ErrorCode(error).message)
    group = context.coordinator.group(group_id)
    known = context.share_groups.members.known(group_id)
    if group is not None and known is None:
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    if known is None and not creates:
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if known is not None and known.members:
        return Refusal(ErrorCode.NON_EMPTY_GROUP, ErrorCode.NON_EMPTY_GROUP.message)
    return None


def may_read(topic: str, context: RequestContext) -> bool:
    """Return whether the client may read a topic.

    Share sessions keep denied topics: only the handlers know them, so this is no check that comes before these.
    """
    authorizer, connection = context.cluster.authorizer, context.connection
    if authorizer is None:
        return True
    host = connection.client_host.lstrip("/")
    return authorizer.allows(connection.principal, host, Operation.READ, ResourceType.TOPIC, topic)


def partition_of(one: TopicIdPartition, context: RequestContext) -> Partition | None:
    """Return a partition that a request names; None if it does not exist."""
    topic = context.cluster.topic_by_id(one.topic_id)
    return (topic and topic.partition(one.partition)) or None


def acknowledgements_of(topics: Iterable[_AckTopic]) -> dict[TopicIdPartition, list[Acknowledgement]]:
    """Return the acknowledgements of a request, by partition."""
    return {
        TopicIdPartition(topic.topic_id, partition.partition_index): [
            Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)
            for batch in partition.acknowledgement_batches
        ]
        for topic in topics
        for partition in topic.partitions
    }


def acknowledge(
    group_id: str,
    member_id: str,
    acknowledgements: Mapping[TopicIdPartition, Sequence[Acknowledgement]],
    context: RequestContext,
    *,
    renews: bool,
) -> dict[TopicIdPartition, Outcome]:
    """Do what a member acknowledges; return the outcome of each partition, complete when the log has it.

    As in Kafka, partitions without acknowledgements have no outcome if no other partition is acknowledged.
    """
    from kproto_server.share_groups.partitions import Outcome

    outcomes, is_any, without_batches = {}, False, []
    for partition, batches in acknowledgements.items():
        topic = context.cluster.topic_by_id(partition.topic_id)
        if topic is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif not _is_valid(batches, renews=renews):
            error = ErrorCode.INVALID_REQUEST
        elif not may_read(topic.name, context):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic.partition(partition.partition) is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            error = ErrorCode.NONE
        if error:
            outcomes[partition] = Outcome(error)
        elif batches:
            is_any = True
            key = SharePartitionKey(group_id, *partition)
            outcomes[partition] = context.share_groups.partitions.acknowledge(key, member_id, batches, context.now_ms)
        else:
            without_batches.append(partition)
    return outcomes | {partition: Outcome() for partition in without_batches if is_any}


def _is_valid(batches: Iterable[Acknowledgement], *, renews: bool) -> bool:
    """Return whether batches are in order, and have acknowledge types that the request may have."""
    last_offset = -1
    for batch in batches:
        count = len(batch.types)
        if batch.first_offset > batch.last_offset or batch.first_offset < last_offset or not count:
            return False
        if count > 1 and count != batch.last_offset - batch.first_offset + 1:
            return False
        if any(not GAP <= number <= (RENEW if renews else REJECT) for number in batch.types):
            return False
        last_offset = batch.last_offset
    return True
