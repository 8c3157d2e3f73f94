"""What a Fetch reads of one partition: its records within the limits, or its error (BA-70..75)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.messages.k01_fetch import AbortedTransaction, EpochEndOffset, FetchPartition, FetchRequest, LeaderIdAndEpoch
from kproto.messages.k01_fetch import PartitionData as PartitionResponse
from kproto.records.compression import Compression
from kproto_server.handlers._partitions import end_of_epoch, leader_error
from kproto_server.handlers._unreadable import error_of_read
from kproto_server.partition_log.fetch_behavior import FetchBehavior
from kproto_server.partition_log.log_config import log_config
from kproto_server.storage.errors import UNREADABLE

if TYPE_CHECKING:
    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.partition_log.partition_data import PartitionData
    from kproto_server.requests.context import RequestContext

MAX_BYTES_SINCE = 3
STORAGE_ERROR_SINCE = 6
ZSTD_SINCE = 10
FOLLOWERS_SINCE = 11
"""The version from which on consumers may read from any replica (KIP-392)."""
DIVERGENCE_SINCE = 12
"""The version from which on a fetcher may send the epoch of its last record, and receives the diverging epoch."""
IDS_SINCE = 13
LEADER_HINTS_SINCE = 16
"""The version from which on the response names the leader that the client should fetch from (KIP-951)."""
ABORTED_MAX = 30_000
"""Aborted transactions of a response: they take 50 ms. DEVIATION: no limit in Kafka."""
ABORTED_MIN_BYTES = 140
"""Bytes of an aborted transaction: a batch and a marker."""

UNKNOWN_OFFSET = -1
NO_DIVERGENCE = EpochEndOffset()
"""The records of the fetcher are those of the log."""


class Budget:
    """What the response may still have."""

    def __init__(self, left: int) -> None:
        self.left: int = left
        """Bytes."""
        self.is_unused: bool = True
        self.aborted_left: int = ABORTED_MAX
        """Aborted transactions."""

    def take(self, size: int) -> None:
        if size:
            self.is_unused = False
            self.left = max(0, self.left - size)


class Read(NamedTuple):
    """The result for one partition of the request."""

    data: PartitionResponse
    is_missing: bool
    """Whether the partition does not exist; such a partition does not end the wait."""


def read_partition(
    topic: Topic | None, fetch: FetchPartition, request: FetchRequest, budget: Budget, context: RequestContext
) -> Read:
    """Read a partition that a request names, and take from the budget what was read."""
    if topic is None and context.api_version >= IDS_SINCE:
        return _missing(fetch, ErrorCode.UNKNOWN_TOPIC_ID, context)
    partition = topic and topic.partition(fetch.partition)
    if not partition:
        return _missing(fetch, context.behavior(FetchBehavior).unknown_topic_error(context.api_version), context)
    assert topic is not None, "it has the partition"
    error = error_of(partition, fetch, context)
    if error != ErrorCode.NOT_LEADER_OR_FOLLOWER and _has_unknown_compression(topic, context):
        return not_compressed_for(fetch, context)
    if error:
        return Read(_failed(partition, fetch, error, context), is_missing=False)
    try:
        diverging = _diverging(partition, fetch, context)
        stable_offset = partition.data.last_stable_offset
        end_offset = stable_offset if request.isolation_level else None
        records = _records(partition, fetch, end_offset, budget, context) if diverging == NO_DIVERGENCE else b""
    except UNREADABLE as unreadable:
        read_error = error_of_read(unreadable, topic.name, fetch.partition)
        if read_error is ErrorCode.KAFKA_STORAGE_ERROR and context.api_version < STORAGE_ERROR_SINCE:
            read_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return not_compressed_for(fetch, context, read_error)
    aborted: tuple[AbortedTransaction, ...] | None = None
    if end_offset is not None and diverging == NO_DIVERGENCE:
        aborted = (
            _aborted(partition.data, fetch.fetch_offset, end_offset, len(records)) if budget.aborted_left > 0 else ()
        )
        budget.aborted_left -= len(aborted)
    has_stable_offset = request.isolation_level or context.behavior(FetchBehavior).returns_last_stable_offset_to_all
    return Read(
        PartitionResponse(
            partition_index=fetch.partition,
            error_code=ErrorCode.NONE,
            high_watermark=partition.high_watermark,
            last_stable_offset=stable_offset if has_stable_offset else UNKNOWN_OFFSET,
            log_start_offset=partition.log_start_offset,
            diverging_epoch=diverging,
            aborted_transactions=aborted,
            records=records,
        ),
        is_missing=False,
    )


def readable_bytes(partition: Partition, fetch: FetchPartition, isolation_level: int) -> int:
    """Return the size of the batches that the request may have of a partition; nothing is read."""
    try:
        end_offset = partition.data.last_stable_offset if isolation_level else None
        return partition.data.readable_bytes(fetch.fetch_offset, fetch.partition_max_bytes, end_offset)
    except UNREADABLE:  # the partition has an error in the response
        return 0


def _has_unknown_compression(topic: Topic, context: RequestContext) -> bool:
    """Return whether the topic's codec is one that the version of the request does not know."""
    return (
        context.api_version < ZSTD_SINCE
        and context.behavior(FetchBehavior).refuses_topics_with_zstd
        and log_config(context.settings.of(context.node.node_id), topic.configs).compression is Compression.ZSTD
    )


def not_compressed_for(
    fetch: FetchPartition, context: RequestContext, error: ErrorCode = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
) -> Read:
    """Return the error of records that the version of the request cannot have."""
    behavior = context.behavior(FetchBehavior)
    failed = PartitionResponse(
        partition_index=fetch.partition,
        error_code=error,
        high_watermark=UNKNOWN_OFFSET,
        aborted_transactions=behavior.aborted_transactions_beside_error,
        records=behavior.records_beside_error,
    )
    return Read(failed, is_missing=False)


def _aborted(data: PartitionData, offset: int, end_offset: int, size: int) -> tuple[AbortedTransaction, ...]:
    """Return the aborted transactions among the ``size`` bytes of records from an offset on."""
    if offset >= end_offset or not data.known_transactions.aborted_since(offset):
        return ()
    found = data.known_transactions.aborted_in(offset, data.end_of_read(offset, size))
    return tuple(AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset) for one in found)


def _records(
    partition: Partition, fetch: FetchPartition, end_offset: int | None, budget: Budget, context: RequestContext
) -> bytes:
    """Return the records within the limits; the first batch of a response whatever its size (BA-72).

    ``end_offset``: where they end for the consumer; None: at the high watermark.
    """
    min_one_batch = budget.is_unused and context.api_version >= MAX_BYTES_SINCE
    limit = min(fetch.partition_max_bytes, budget.left)
    if end_offset is not None and partition.data.known_transactions.aborted_since(fetch.fetch_offset):
        # No records come without the aborted transactions among them.
        limit = min(limit, max(0, budget.aborted_left) * ABORTED_MIN_BYTES)
        min_one_batch = min_one_batch and budget.aborted_left > 0
    records = partition.data.read(fetch.fetch_offset, limit, min_one_batch=min_one_batch, end_offset=end_offset)
    if not records and limit > 0 and context.api_version < MAX_BYTES_SINCE:
        # Before v3 a batch that is too large is truncated, and the client fetches again with a larger limit.
        records = partition.data.read(fetch.fetch_offset, 0, min_one_batch=True)[:limit]
    budget.take(len(records))
    return records


def error_of(partition: Partition, fetch: FetchPartition, context: RequestContext) -> ErrorCode:
    """Return why a node does not serve the request's offset, or NONE."""
    any_replica = context.api_version >= FOLLOWERS_SINCE
    error = leader_error(partition, context.node.node_id, fetch.current_leader_epoch, any_replica=any_replica)
    if error:
        return error
    if _has_fetched_epoch(fetch, context):
        # An offset behind the end is a divergence then, not an error.
        in_range = fetch.fetch_offset >= partition.log_start_offset
        in_range = in_range and fetch.last_fetched_epoch <= partition.leader_epoch
    else:
        in_range = partition.log_start_offset <= fetch.fetch_offset <= partition.high_watermark
    return ErrorCode.NONE if in_range else ErrorCode.OFFSET_OUT_OF_RANGE


def _has_fetched_epoch(fetch: FetchPartition, context: RequestContext) -> bool:
    """Return whether the fetcher sent the epoch of its last record. A session may have it from a later version."""
    return fetch.last_fetched_epoch >= 0 and context.api_version >= DIVERGENCE_SINCE


def _diverging(partition: Partition, fetch: FetchPartition, context: RequestContext) -> EpochEndOffset:
    """Return the last epoch and offset that the fetcher's records have in common with this log (KIP-595)."""
    end = end_of_epoch(partition, fetch.last_fetched_epoch) if _has_fetched_epoch(fetch, context) else None
    if end is None or (end[0] == fetch.last_fetched_epoch and end[1] >= fetch.fetch_offset):
        return NO_DIVERGENCE
    return EpochEndOffset(epoch=end[0], end_offset=end[1])


def has_diverged(partition: Partition, fetch: FetchPartition, context: RequestContext) -> bool:
    """Return whether the response has a diverging epoch, or the error of a partition that cannot be read."""
    try:
        return _diverging(partition, fetch, context) != NO_DIVERGENCE
    except UNREADABLE:  # the partition has an error in the response
        return True


def _missing(fetch: FetchPartition, error: int, context: RequestContext) -> Read:
    data = PartitionResponse(
        partition_index=fetch.partition,
        error_code=error,
        high_watermark=UNKNOWN_OFFSET,
        aborted_transactions=context.behavior(FetchBehavior).aborted_transactions_beside_error,
        records=b"",
    )
    return Read(data, is_missing=True)


def _failed(
    partition: Partition, fetch: FetchPartition, error: ErrorCode, context: RequestContext
) -> PartitionResponse:
    leader = LeaderIdAndEpoch()
    if context.api_version >= LEADER_HINTS_SINCE and error in (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
    ):
        leader = LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
    return PartitionResponse(
        partition_index=fetch.partition,
        error_code=error,
        high_watermark=UNKNOWN_OFFSET,
        current_leader=leader,
        aborted_transactions=None,
        records=b"",
    )
