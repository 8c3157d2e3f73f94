"""ListOffsets (API key 2): the offsets of a partition's start, its end, or a timestamp (BA-80..83)."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from kproto_server.deferred import CloseConnection, in_slices
from kproto_server.handlers._partitions import leader_error, make_records
from kproto_server.handlers._unreadable import error_of_read
from kproto_server.partition_log.lookup import lookup_budget, record_at
from kproto_server.releases.release import VersionBehavior
from kproto_server.storage.errors import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Container, Generator, Iterable

    from kproto_server.cluster.topics import Partition
    from kproto_server.deferred import DelayedOperation
    from kproto_server.partition_log.decoding import DecodingBudget
    from kproto_server.requests.context import RequestContext

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6

SINCE_VERSION = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""The special timestamps, with the first version that has them (BA-80)."""

CONSUMER, DEBUGGING_CONSUMER = -1, -2
"""The replica ids of clients. Any replica responds to a debugging consumer, in every version (3.9.2, two brokers)."""
LIST_OFFSETS = 2
EPOCH_SINCE = 4

NONE_FOUND = -1
NO_EPOCH = -1

ISOLATION_LEVELS = (0, 1)


class FoundOffset(NamedTuple):
    """The offset of a timestamp; by default none was found."""

    offset: int = NONE_FOUND
    leader_epoch: int = NO_EPOCH
    timestamp: int = -1


class ListOffsetsBehavior(VersionBehavior):
    """What Kafka releases do differently in ListOffsets."""

    @cached_property
    def responds_to_unknown_isolation_level(self) -> bool:
        """Whether an unknown isolation level gives UNKNOWN_SERVER_ERROR; before 2.8 it closes the connection (measured
        on 2.4.1 and 2.8.2)."""
        return self.at_least(2, 8)

    @cached_property
    def returns_each_duplicate(self) -> bool:
        """Whether a partition that the request names twice is refused twice, from 2.8 to 3.9; other releases refuse it
        once (BA-82; measured on 2.4.1, 2.8.2, 3.9.2 and 4.4.0)."""
        return self.at_least(2, 8) and not self.at_least(4, 0)

    @cached_property
    def rejects_unknown_special_timestamps(self) -> bool:
        """Whether a negative timestamp without meaning in the version gives UNSUPPORTED_VERSION before the topic is
        looked up. Earlier releases take such a timestamp for a time (BA-81; measured on 3.8.1 and 3.9.2)."""
        return self.at_least(3, 9)

    @cached_property
    def returns_leader_epochs(self) -> bool:
        """Whether the response has the leader epoch of the offset, also at both ends of an empty log: not in 2.1, which
        has the field (BA-82; measured on 2.1.1 and 2.2.2)."""
        return self.at_least(2, 2)


def handle(request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse | DelayedOperation:
    return in_slices(_slices(request, context), context.now_ms)


def _slices(request: ListOffsetsRequest, context: RequestContext) -> Generator[None, None, ListOffsetsResponse]:
    yield from make_records([topic.name for topic in request.topics], context)
    budget = lookup_budget()
    topics = []
    counts = Counter((topic.name, one.partition_index) for topic in request.topics for one in topic.partitions)
    duplicates = {key for key, count in counts.items() if count > 1}
    for topic in request.topics:
        partitions = yield from _partitions(topic, request, context, budget, duplicates)
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
    if duplicates and not context.behavior(ListOffsetsBehavior).returns_each_duplicate:
        topics = _each_once(topics)
    return ListOffsetsResponse(topics=tuple(topics))


def _each_once(topics: Iterable[ListOffsetsTopicResponse]) -> list[ListOffsetsTopicResponse]:
    by_name: dict[str, dict[int, ListOffsetsPartitionResponse]] = {}
    for topic in topics:
        by_name.setdefault(topic.name, {}).update({one.partition_index: one for one in topic.partitions})
    return [
        ListOffsetsTopicResponse(name=name, partitions=tuple(partitions.values()))
        for name, partitions in by_name.items()
    ]


def _partitions(
    requested: ListOffsetsTopic,
    request: ListOffsetsRequest,
    context: RequestContext,
    budget: DecodingBudget,
    duplicates: Container[tuple[str, int]],
) -> Generator[None, None, tuple[ListOffsetsPartitionResponse, ...]]:
    """Return the response of each partition. Duplicates are refused, except by v0 (BA-82)."""
    behavior = context.behavior(ListOffsetsBehavior)
    if request.isolation_level not in ISOLATION_LEVELS:
        if not behavior.responds_to_unknown_isolation_level:
            raise CloseConnection(f"ListOffsets: no isolation level {request.isolation_level}")
        return tuple(
            _refused(partition.partition_index, ErrorCode.UNKNOWN_SERVER_ERROR) for partition in requested.partitions
        )
    responses = []
    for partition in requested.partitions:
        if context.api_version > 0 and (requested.name, partition.partition_index) in duplicates:
            responses.append(_refused(partition.partition_index, ErrorCode.INVALID_REQUEST))
            continue
        responses.append((yield from _partition(requested.name, partition, request, context, budget)))
        if budget.ends_slice():
            yield
    return tuple(responses)


def _partition(
    topic_name: str,
    requested: ListOffsetsPartition,
    request: ListOffsetsRequest,
    context: RequestContext,
    budget: DecodingBudget,
) -> Generator[None, None, ListOffsetsPartitionResponse]:
    if requested.timestamp < 0 and _is_refused(requested.timestamp, context):
        return _refused(requested.partition_index, ErrorCode.UNSUPPORTED_VERSION)
    topic = context.cluster.topic(topic_name)
    partition = (topic and topic.partition(requested.partition_index)) or None
    any_replica = request.replica_id == DEBUGGING_CONSUMER
    error = leader_error(partition, context.node.node_id, requested.current_leader_epoch, any_replica=any_replica)
    if error or partition is None:
        return _refused(requested.partition_index, error)
    try:
        if context.api_version == 0:
            return _v0_response(requested, partition, context)
        is_committed = request.isolation_level and request.replica_id == CONSUMER
        end_offset = partition.data.last_stable_offset if is_committed else partition.high_watermark
        found = yield from _find_offset(partition, requested.timestamp, end_offset, context, budget)
    except UNREADABLE as unreadable:
        return _refused(requested.partition_index, error_of_read(unreadable, topic_name, requested.partition_index))
    if found is None:  # the client asks again
        return _refused(requested.partition_index, ErrorCode.REQUEST_TIMED_OUT)
    return ListOffsetsPartitionResponse(
        partition_index=requested.partition_index,
        error_code=error,
        offset=found.offset,
        timestamp=found.timestamp,
        leader_epoch=found.leader_epoch if _has_leader_epoch(context) else NO_EPOCH,
    )


def _refused(index: int, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=error)


def _is_refused(timestamp: int, context: RequestContext) -> bool:
    """Return whether a negative timestamp gets UNSUPPORTED_VERSION; old releases take it for a time (BA-81)."""
    is_checked = context.behavior(ListOffsetsBehavior).rejects_unknown_special_timestamps
    return is_checked and not _is_special(timestamp, context)


def _is_special(timestamp: int, context: RequestContext) -> bool:
    """Return whether a timestamp has a special meaning.

    From 3.9 on the request version must have it. Up to 3.8 the newest version of the broker decides for all versions.
    """
    rejects = context.behavior(ListOffsetsBehavior).rejects_unknown_special_timestamps
    newest = context.api_version if rejects else context.kafka_version.api_versions[LIST_OFFSETS][1]
    return timestamp in SINCE_VERSION and SINCE_VERSION[timestamp] <= newest


def _find_offset(
    partition: Partition, timestamp: int, end_offset: int, context: RequestContext, budget: DecodingBudget
) -> Generator[None, None, FoundOffset | None]:
    """Return the offset of a timestamp among those below ``end_offset``; None: the budget is used up."""
    is_special = _is_special(timestamp, context)
    if is_special and timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = partition.log_start_offset
        is_empty = start >= partition.high_watermark
        return FoundOffset(start, partition.leader_epoch if is_empty else partition.data.epoch_at(start))
    if is_special and timestamp == LATEST:
        return FoundOffset(end_offset, partition.leader_epoch)
    if is_special and timestamp < 0 and timestamp != MAX_TIMESTAMP:
        return FoundOffset()
    if budget.is_used_up:
        return None
    is_greatest = is_special and timestamp == MAX_TIMESTAMP
    offsets = range(partition.log_start_offset, partition.high_watermark)
    record = yield from record_at(partition.data, None if is_greatest else timestamp, offsets, budget)
    if record is None or record.offset >= end_offset:
        return FoundOffset()
    return FoundOffset(record.offset, partition.data.epoch_at(record.offset), record.timestamp)


def _has_leader_epoch(context: RequestContext) -> bool:
    return context.api_version >= EPOCH_SINCE and context.behavior(ListOffsetsBehavior).returns_leader_epochs


def _v0_response(
    requested: ListOffsetsPartition, partition: Partition, context: RequestContext
) -> ListOffsetsPartitionResponse:
    """Return the response of v0: at most ``max_num_offsets`` segment starts before a time, newest first (BA-82).

    A real broker uses the modification times of its files. kproto treats the log as one segment, modified just now.
    """
    start, end = partition.log_start_offset, partition.high_watermark
    found: tuple[int, ...] = ()
    if requested.timestamp == LATEST or requested.timestamp >= context.now_ms:
        found = (end, start) if end > start else (end,)
    elif requested.timestamp == EARLIEST or (
        requested.timestamp == EARLIEST_LOCAL and _is_special(EARLIEST_LOCAL, context)
    ):
        found = (start,)
    return ListOffsetsPartitionResponse(
        partition_index=requested.partition_index,
        error_code=ErrorCode.NONE,
        old_style_offsets=found[: max(0, requested.max_num_offsets)],
    )
