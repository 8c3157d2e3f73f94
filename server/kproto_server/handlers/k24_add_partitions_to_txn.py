"""AddPartitionsToTxn (API key 24): add partitions to a producer's transaction (BA-101, BA-102)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from kproto.records.partitioning import OFFSETS_TOPIC, TRANSACTION_TOPIC
from kproto_server.handlers._transactions import coordinator_error, known_error
from kproto_server.transactions.transitions import EPOCH_FOR_EACH_TRANSACTION, ProducerIdAndEpoch
from kproto_server.transactions.version_behavior import TransactionBehavior

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from kproto.messages.k24_add_partitions_to_txn import (
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnTopic,
        AddPartitionsToTxnTransaction,
    )
    from kproto_server.deferred import DeferredResponse
    from kproto_server.requests.context import RequestContext

BATCHED_SINCE = 4
"""The first version with several transactions, which brokers send for their clients."""
FENCED_SINCE = 2
"""The first version that may return PRODUCER_FENCED."""

COORDINATOR_TOPICS = (OFFSETS_TOPIC, TRANSACTION_TOPIC)
"""Internal topics, whether they exist or not."""

TopicResults = tuple[AddPartitionsToTxnTopicResult, ...]


def handle(
    request: AddPartitionsToTxnRequest, context: RequestContext
) -> AddPartitionsToTxnResponse | DeferredResponse:
    if context.api_version >= BATCHED_SINCE:
        return _batch(request, context)
    producer = ProducerIdAndEpoch(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
    results = _added(request.v3_and_below_transactional_id, producer, request.v3_and_below_topics, context)
    return context.coordinator.log.then(
        lambda: AddPartitionsToTxnResponse(throttle_time_ms=0, results_by_topic_v3_and_below=results())
    )


def _batch(
    request: AddPartitionsToTxnRequest, context: RequestContext
) -> AddPartitionsToTxnResponse | DeferredResponse:
    of_each = [(one.transactional_id, _of_transaction(one, context)) for one in request.transactions]

    def respond() -> AddPartitionsToTxnResponse:
        found = tuple(AddPartitionsToTxnResult(transactional_id=name, topic_results=made()) for name, made in of_each)
        topics = (topic for result in found for topic in result.topic_results)
        errors = {one.partition_error_code for topic in topics for one in topic.results_by_partition}
        if ErrorCode.UNSUPPORTED_VERSION in errors:
            return AddPartitionsToTxnResponse(throttle_time_ms=0, error_code=ErrorCode.UNSUPPORTED_VERSION)
        return AddPartitionsToTxnResponse(throttle_time_ms=0, results_by_transaction=found)

    return context.coordinator.log.then(respond)


def _of_transaction(one: AddPartitionsToTxnTransaction, context: RequestContext) -> Callable[[], TopicResults]:
    producer = ProducerIdAndEpoch(one.producer_id, one.producer_epoch)
    if not one.verify_only:
        knows_versions = context.behavior(TransactionBehavior).has_client_versions
        version = EPOCH_FOR_EACH_TRANSACTION if knows_versions else 0
        return _added(one.transactional_id, producer, one.topics, context, version)
    errors = partition_errors(one.topics, context)
    if any(errors.values()):
        return lambda: results_of(one.topics, errors)
    error = coordinator_error(one.transactional_id, context)
    errors = {key: error or context.transactions.verify(one.transactional_id, producer, key) for key in errors}
    return lambda: results_of(one.topics, errors)


def _added(
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    topics: Sequence[AddPartitionsToTxnTopic],
    context: RequestContext,
    client_version: int = 0,
) -> Callable[[], TopicResults]:
    """Add partitions; return the function that returns the results once the log has them."""
    errors = partition_errors(topics, context)
    if any(errors.values()):
        return lambda: results_of(topics, errors)
    error = coordinator_error(transactional_id, context)
    if error:
        return lambda: results_of(topics, dict.fromkeys(errors, error))
    outcome = context.transactions.add_partitions(
        transactional_id, producer, list(errors), context.now_ms, client_version
    )
    return lambda: results_of(topics, dict.fromkeys(errors, known_error(outcome.error, FENCED_SINCE, context)))


def partition_errors(
    topics: Sequence[AddPartitionsToTxnTopic], context: RequestContext, denied: Collection[str] = ()
) -> dict[tuple[str, int], int]:
    """Return the error of each partition; if one has an error, the others have OPERATION_NOT_ATTEMPTED.

    ``denied``: the topics that the client may not write to.
    """
    errors: dict[tuple[str, int], int] = {}
    behavior = context.behavior(TransactionBehavior)
    for topic in topics:
        known = context.cluster.topic(topic.name)
        for index in topic.partitions:
            if topic.name in denied:
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif topic.name in COORDINATOR_TOPICS or (known is not None and known.internal):
                error = behavior.internal_topic_error
            else:
                exists = known is not None and (behavior.adds_missing_partitions or known.partition(index) is not None)
                error = ErrorCode.NONE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            errors[topic.name, index] = error
    if any(errors.values()):
        return {key: error or ErrorCode.OPERATION_NOT_ATTEMPTED for key, error in errors.items()}
    return errors


def results_of(topics: Sequence[AddPartitionsToTxnTopic], errors: Mapping[tuple[str, int], int]) -> TopicResults:
    """Return the results of the partitions of a request, with the error of each."""
    return tuple(
        [
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    [
                        AddPartitionsToTxnPartitionResult(
                            partition_index=index, partition_error_code=errors[topic.name, index]
                        )
                        for index in topic.partitions
                    ]
                ),
            )
            for topic in topics
        ]
    )
