"""TxnOffsetCommit (API key 28): commit a group's offsets in a producer's transaction (OC-50 to OC-55)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k28_txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto_server.coordinator.commit import DEFAULT, expire_timestamp, limits_of, metadata_too_large
from kproto_server.coordinator.offsets import OffsetAndMetadata
from kproto_server.coordinator.transactional_offsets import add_offsets, membership_error
from kproto_server.coordinator.write_errors import commit_write_error
from kproto_server.handlers._member_requests import GroupIdBehavior
from kproto_server.handlers._offsets import OffsetsBehavior
from kproto_server.transactions.transitions import ProducerIdAndEpoch
from kproto_server.transactions.version_behavior import TransactionBehavior

if TYPE_CHECKING:
    from kproto.messages.k28_txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitRequestTopic
    from kproto_server.cluster.topics import Topic
    from kproto_server.deferred import DeferredResponse
    from kproto_server.requests.context import RequestContext

TOPIC_IDS_SINCE = 6
ADDS_OFFSETS_SINCE = 5
"""The first version that does what AddOffsetsToTxn does (KIP-890)."""
ABORTABLE_SINCE = 4
"""The first version that may return TRANSACTION_ABORTABLE (OC-54)."""
LOADING_SINCE = 2
"""The first version whose clients know COORDINATOR_LOAD_IN_PROGRESS (OC-53)."""

Errors = dict[tuple[str, bytes, int], int]
"""Topic name, topic id, partition."""


def handle(request: TxnOffsetCommitRequest, context: RequestContext) -> TxnOffsetCommitResponse | DeferredResponse:
    errors: Errors = {}
    entries: list[tuple[str, list[tuple[int, OffsetAndMetadata]]]] = []
    for topic in request.topics:
        _decide(topic, errors, entries, context)
    if not entries and not any(error == ErrorCode.OFFSET_METADATA_TOO_LARGE for error in errors.values()):
        return _response(request, errors)
    error = _group_error(request, context)
    if error:
        _fail(errors, error, context)
        return _response(request, errors)
    if not entries:
        _make_group(request, context)
        return _response(request, errors)
    error = _append_error(request, context)
    if error:
        _fail(errors, error, context, of=(ErrorCode.NONE,))
        return _response(request, errors)
    partition = context.coordinator.owned_partition(context.node, request.group_id)
    assert partition is not None, "the node coordinates the group"
    failure = 0

    def settle(log_error: int) -> None:
        nonlocal failure
        failure = log_error

    add_offsets(
        context.coordinator,
        partition,
        request.group_id,
        entries,
        request.producer_id,
        request.producer_epoch,
        context.now_ms,
        settle,
    )

    def respond() -> TxnOffsetCommitResponse:
        if failure:
            _fail(errors, commit_write_error(failure, context.coordinator.behavior), context)
        return _response(request, errors)

    return context.coordinator.log.then(respond)


def _decide(
    topic: TxnOffsetCommitRequestTopic,
    errors: Errors,
    entries: list[tuple[str, list[tuple[int, OffsetAndMetadata]]]],
    context: RequestContext,
) -> None:
    """Add the offsets of a topic to the entries, or their errors."""
    coordinator = context.coordinator
    known, unknown_error = _topic(topic, context)
    limits = limits_of(context.settings.current)
    expire_ms = expire_timestamp(context.now_ms, DEFAULT, limits, coordinator.behavior)
    checks_partitions = context.behavior(OffsetsBehavior).checks_partitions_of_commit
    accepted: list[tuple[int, OffsetAndMetadata]] = []
    for one in topic.partitions:
        index, metadata = one.partition_index, one.committed_metadata or ""
        error = ErrorCode.NONE
        if known is None:
            error = unknown_error
        elif checks_partitions and known.partition(index) is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif metadata_too_large(metadata, limits.metadata_max_bytes):
            error = ErrorCode.OFFSET_METADATA_TOO_LARGE
        else:
            stored = OffsetAndMetadata(
                one.committed_offset, one.committed_leader_epoch, metadata, context.now_ms, expire_ms, known.topic_id
            )
            accepted.append((index, stored))
        errors[topic.name, topic.topic_id, index] = error
    if accepted and known is not None:
        entries.append((known.name, accepted))


def _topic(topic: TxnOffsetCommitRequestTopic, context: RequestContext) -> tuple[Topic | None, ErrorCode]:
    if context.api_version >= TOPIC_IDS_SINCE:
        return context.cluster.topic_by_id(topic.topic_id), ErrorCode.UNKNOWN_TOPIC_ID
    return context.cluster.topic(topic.name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _group_error(request: TxnOffsetCommitRequest, context: RequestContext) -> int:
    """Return why no offset of the request is accepted; 0 if those of known partitions are (OC-51)."""
    coordinator = context.coordinator
    if not request.group_id and context.behavior(GroupIdBehavior).members_need_group_id:
        return ErrorCode.INVALID_GROUP_ID
    error = coordinator.error_at(context.node, request.group_id)
    if error:
        return error
    if not coordinator.behavior.is_new_coordinator:
        _make_group(request, context)
    error = _transaction_error(request, context)
    group = coordinator.group(request.group_id)
    return error or membership_error(group, request, context.api_version, coordinator.behavior, coordinator.topics)


def _make_group(request: TxnOffsetCommitRequest, context: RequestContext) -> None:
    """Create the group as coordinators do before they decide about the offsets: up to 3.9 before all checks
    (GroupCoordinator.handleTxnCommitOffsets), from 4.0 on once the request is valid."""
    coordinator = context.coordinator
    if coordinator.group(request.group_id) is None:
        coordinator.groups.create(request.group_id, context.now_ms)


def _transaction_error(request: TxnOffsetCommitRequest, context: RequestContext) -> int:
    """Return why the offsets partition is no part of the producer's transaction (OC-54).

    The transaction coordinator decides that, unless the partition knows an open transaction of the producer: then it
    does not matter which transactional id the request names (UnifiedLog.maybeStartTransactionVerification).
    """
    partition = context.coordinator.partition_of(request.group_id)
    assert partition is not None, "the node coordinates the group"
    behavior = context.behavior(TransactionBehavior)
    if not behavior.verifies_offsets:
        return ErrorCode.NONE
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    adds = context.api_version >= ADDS_OFFSETS_SINCE
    if not adds and not context.settings.current.bool("transaction.partition.verification.enable"):
        return ErrorCode.NONE
    pending = context.coordinator.pending_offsets.get(partition)
    open_epoch = None if pending is None else pending.open_epochs.get(request.producer_id)
    if open_epoch == request.producer_epoch:
        return ErrorCode.NONE
    if open_epoch is not None and request.producer_epoch < open_epoch and behavior.partitions_refuse_old_epochs:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    error = context.transactions.join(request.transactional_id, producer, (OFFSETS_TOPIC, partition), adds=adds)
    if error == ErrorCode.TRANSACTION_ABORTABLE and context.api_version < ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    return error


def _append_error(request: TxnOffsetCommitRequest, context: RequestContext) -> ErrorCode:
    """Return why the log refuses the offsets of a producer, in releases that do not ask the transaction coordinator."""
    behavior = context.behavior(TransactionBehavior)
    if behavior.verifies_offsets:
        return ErrorCode.NONE
    if request.producer_epoch < 0:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    pending = context.coordinator.pending_offsets_of(request.group_id)
    if pending is None or not behavior.fences_old_epochs_of_offsets:
        return ErrorCode.NONE
    is_old = request.producer_epoch < pending.newest_epoch(request.producer_id)
    return ErrorCode.INVALID_PRODUCER_EPOCH if is_old else ErrorCode.NONE


def _fail(
    errors: Errors,
    error: int,
    context: RequestContext,
    of: tuple[int, ...] = (ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE),
) -> None:
    """Set the error of the partitions that have one of these errors: by default, of all that exist."""
    if error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and context.api_version < LOADING_SINCE:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    for key, own in errors.items():
        if own in of:
            errors[key] = error


def _response(request: TxnOffsetCommitRequest, errors: Errors) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        throttle_time_ms=0,
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=one.partition_index,
                        error_code=errors[topic.name, topic.topic_id, one.partition_index],
                    )
                    for one in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )
