"""Produce (API key 0): validate the records, append them, and return their offsets (BA-60..65).

Theory of operation. The records of all partitions are prechecked first, since some of them fail the whole request. Then
each partition is handled alone: its errors are looked for in the order of a real broker, the batch is validated and
appended. If records have to be decompressed or decoded, other clients are served between two MiB of them. The response
is built when the log has all batches, or has failed to write them. Produce with ``acks=0`` has no response; if a
partition fails, the connection closes instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k00_produce import (
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kproto.records.batch_header import header_struct, position_of
from kproto_server.deferred import NO_RESPONSE, CloseConnection, in_slices
from kproto_server.handlers._appended_batches import (
    NO_TIMESTAMP,
    AppendResult,
    append_batch,
    appended_response,
    refused_response,
)
from kproto_server.handlers._partitions import leader_endpoints, leader_error, topic_names
from kproto_server.handlers._plain_batches import ALL_ACKS, VALID_ACKS, VERIFICATION_SETTING, plain_batches
from kproto_server.handlers._replica_wait import lags, wait_for_replicas
from kproto_server.handlers._unreadable import warn_of_missing_package
from kproto_server.log_manager.in_sync_replicas import has_too_few_in_sync
from kproto_server.partition_log.log_config import log_config
from kproto_server.partition_log.precheck import BATCHES_SINCE, Finding, precheck, unreadable_message
from kproto_server.partition_log.producers import NO_PRODUCER_ID, BatchMetadata
from kproto_server.partition_log.validation import Accepted, LayoutBudget, Refused, Validation
from kproto_server.partition_log.version_behavior import ProduceBehavior

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from kproto.messages.k00_produce import ProduceRequest
    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.deferred import DeferredResponse, DelayedOperation, NoResponse
    from kproto_server.partition_log.precheck import Precheck
    from kproto_server.requests.context import RequestContext

    Prechecked = list[tuple[TopicProduceData, list[Precheck]]]
    Results = list[tuple[TopicProduceData, list["PartitionProduceResponse | AppendResult"]]]

NO_ACKS = 0
IDS_SINCE = 13
"""The version from which on topics have ids instead of names."""
LEADER_HINTS_SINCE = 10
"""The version from which on the response names the leader that the client should send to (KIP-951)."""
CONCURRENT_SINCE = 12
"""The version from which on clients know CONCURRENT_TRANSACTIONS."""
COORDINATOR_ERRORS = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors of the verification of a transaction after which it is repeated."""
PRODUCER_OF = header_struct("producer_id", "producer_epoch")
PRODUCER = slice(position_of("producer_id"), position_of("base_sequence"))
"""The bytes of both in a batch."""
SEQUENCE_OF = header_struct("producer_id", "producer_epoch", "base_sequence")
NO_EPOCH = -1
ADMIN_CLIENT_ID = "__admin_client"
"""The only client id that may write to internal topics (BA-63)."""


def handle(
    request: ProduceRequest, context: RequestContext
) -> ProduceResponse | DeferredResponse | DelayedOperation | NoResponse:
    version = context.api_version
    topics = request.topic_data
    if len(topics) > 1 or (topics and len(topics[0].partition_data) > 1):
        topics = _each_partition_once(topics)
    prechecked = [(topic, [precheck(data.records, version) for data in topic.partition_data]) for topic in topics]
    behavior = context.behavior(ProduceBehavior)
    refused = _request_refusal(request, prechecked, version, behavior, context)
    if refused is None:
        return in_slices(_slices(request, prechecked, behavior, context), context.now_ms)
    results: Results = [
        (topic, [refused_response(one.index, refused) for one in topic.partition_data]) for topic, _ in prechecked
    ]
    return _result(request, results, context)


def _each_partition_once(topics: tuple[TopicProduceData, ...]) -> tuple[TopicProduceData, ...]:
    """Return each topic and partition once. Of a partition that the request names twice the last records count."""
    data_by_topic: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        data_by_topic.setdefault((topic.name, topic.topic_id), {}).update(
            [(data.index, data) for data in topic.partition_data]
        )
    counts = [len(topic.partition_data) for topic in topics]
    if [len(data) for data in data_by_topic.values()] == counts:
        return topics
    return tuple(
        TopicProduceData(name=name, topic_id=topic_id, partition_data=tuple(data.values()))
        for (name, topic_id), data in data_by_topic.items()
    )


def _slices(
    request: ProduceRequest, prechecked: Prechecked, behavior: ProduceBehavior, context: RequestContext
) -> Generator[None, None, ProduceResponse | DeferredResponse | DelayedOperation | NoResponse]:
    """Append the records of each partition, or refuse them, in slices; return the result of the request."""
    if context.log_manager.unindexed:
        names = topic_names([topic.topic_id for topic in request.topic_data], context)
        yield from context.log_manager.index_steps(names.union([topic.name for topic in request.topic_data]))
    budget = LayoutBudget()
    results: Results = []
    for topic, checks in prechecked:
        append = _appending(topic, request, behavior, budget, context)
        partitions: list[PartitionProduceResponse | AppendResult] = []
        results.append((topic, partitions))
        for data, check in zip(topic.partition_data, checks, strict=True):
            if not budget.covers(data.records):
                yield
                budget = LayoutBudget()
                budget.covers(data.records)
                append = _appending(topic, request, behavior, budget, context)  # the topic may have changed meanwhile
            partitions.append(append(data, check))
    return _result(request, results, context)


def _result(
    request: ProduceRequest, results: Results, context: RequestContext
) -> ProduceResponse | DeferredResponse | DelayedOperation | NoResponse:
    """Return the result of a request whose records are appended, or refused."""
    if request.acks == NO_ACKS:
        if any(partition.error_code for _, partitions in results for partition in partitions):
            raise CloseConnection("Produce with acks=0 failed, and it has no response for the error")
        return NO_RESPONSE

    def respond() -> ProduceResponse | DeferredResponse:
        return context.coordinator.log.then(lambda: _response(results, context))

    if request.acks == ALL_ACKS and context.cluster.silent:
        waiting = [
            one.replicated(context)
            for _, partitions in results
            for one in partitions
            if isinstance(one, AppendResult) and lags(one.partition, context)
        ]
        if waiting:
            return wait_for_replicas(waiting, request.timeout_ms, context, respond)
    return respond()


def _request_refusal(
    request: ProduceRequest,
    prechecked: Prechecked,
    api_version: int,
    behavior: ProduceBehavior,
    context: RequestContext,
) -> Refused | None:
    """Return why all partitions of the request are refused, because of the records of one of them.

    Raises:
        CloseConnection: the release closes the connection on such records.
    """
    is_transactional = False
    for topic, checks in prechecked:
        for data, check in zip(topic.partition_data, checks, strict=True):
            finding = check.finding
            is_after_transactional, is_transactional = is_transactional, is_transactional or check.is_transactional
            if finding is Finding.VALID or data.records is None:
                continue
            if behavior.closes_connection(finding, api_version):
                raise CloseConnection(f"Produce: {finding.value}")
            # The broker looks for the first transactional batch, and at none behind it.
            is_reached = not is_after_transactional
            if finding is Finding.UNREADABLE and is_reached and behavior.unreadable_records_fail_request:
                return Refused(ErrorCode.CORRUPT_MESSAGE, unreadable_message(data.records))
    if is_transactional and request.transactional_id is None and behavior.refuses_transactions_without_id:
        return Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if is_transactional and behavior.refuses_several_transactions and _has_several_transactions(prechecked, context):
        verifies = request.acks in VALID_ACKS and context.settings.current.bool(
            "transaction.partition.verification.enable"
        )
        if verifies or behavior.looks_for_several_transactions_first:
            return Refused(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
            )
    return None


def _has_several_transactions(prechecked: Prechecked, context: RequestContext) -> bool:
    """Return whether the batches for existing partitions belong to transactions of several producers."""
    cluster = context.cluster
    senders = {
        data.records[PRODUCER]
        for requested, checks in prechecked
        for data, check in zip(requested.partition_data, checks, strict=True)
        if check.is_transactional and data.records
    }
    if len(senders) < 2:
        return False
    producers = set()
    for requested, checks in prechecked:
        by_id = context.api_version >= IDS_SINCE
        topic = cluster.topic_by_id(requested.topic_id) if by_id else cluster.topic(requested.name)
        for data, check in zip(requested.partition_data, checks, strict=True):
            is_counted = check.is_transactional and check.finding is Finding.VALID
            if is_counted and data.records and topic and topic.partition(data.index):
                producers.add(PRODUCER_OF.unpack_from(data.records))
    return len([producer_id for producer_id, _ in producers if producer_id != NO_PRODUCER_ID]) > 1


def _response(results: Results, context: RequestContext) -> ProduceResponse:
    """Return the response. The log has written the appended batches by now, or has failed to write them."""
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(
                    one.response() if isinstance(one, AppendResult) else one for one in partitions
                ),
            )
            for topic, partitions in results
        ),
        node_endpoints=_leader_endpoints(results, context),
    )


def _appending(
    requested: TopicProduceData,
    request: ProduceRequest,
    behavior: ProduceBehavior,
    budget: LayoutBudget,
    context: RequestContext,
) -> Callable[[PartitionProduceData, Precheck], PartitionProduceResponse | AppendResult]:
    """Return the function that appends the records of a partition of this topic, or refuses them."""
    cluster = context.cluster
    if context.api_version >= IDS_SINCE:
        topic, unknown = cluster.topic_by_id(requested.topic_id), ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic, unknown = cluster.topic(requested.name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic is None:
        return lambda data, check: refused_response(data.index, Refused(unknown))
    config = log_config(context.settings.of(context.node.node_id), topic.configs)
    validation = Validation(topic.name, config, context.now_ms, behavior, budget)
    plain = plain_batches(topic, validation, request, context)

    def append(data: PartitionProduceData, check: Precheck) -> PartitionProduceResponse | AppendResult:
        result = None if plain is None else plain(data, check)
        return result or _partition(topic, data, check, validation, request, context)

    return append


def _partition(
    topic: Topic,
    requested: PartitionProduceData,
    check: Precheck,
    validation: Validation,
    request: ProduceRequest,
    context: RequestContext,
) -> PartitionProduceResponse | AppendResult:
    """Append the records of one partition, or refuse them, with the errors in the order of a real broker."""
    partition = topic.partition(requested.index)
    error = _early_error(partition, check, request, validation.behavior, context)
    if error is not None:
        return refused_response(requested.index, Refused(error))
    assert partition is not None, "checked above"
    assert requested.records is not None, "checked above"
    if check.is_transactional:
        refused = _unverified(
            topic, partition, requested.records, request.transactional_id, validation.behavior, context
        )
        if refused is None and request.acks not in VALID_ACKS:
            refused = Refused(ErrorCode.INVALID_REQUIRED_ACKS)
        if refused is not None:
            return refused_response(requested.index, refused)
    if topic.internal and context.client_id != ADMIN_CLIENT_ID:
        return refused_response(requested.index, Refused(ErrorCode.INVALID_TOPIC_EXCEPTION))
    error = leader_error(partition, context.node.node_id, NO_EPOCH)
    if error:
        return refused_response(
            requested.index, Refused(error), partition if context.api_version >= LEADER_HINTS_SINCE else None
        )
    validated = validation.accept(requested.index, requested.records, check)
    may_lack_replicas = len(partition.isr) < validation.config.in_sync_replicas_min
    if (
        may_lack_replicas
        and request.acks == ALL_ACKS
        and has_too_few_in_sync(context.settings.of(context.node.node_id), topic, partition)
    ):
        validated = Refused(ErrorCode.NOT_ENOUGH_REPLICAS, reached_log=True)
    if isinstance(validated, Refused):
        if validated.error is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE and validated.message is not None:
            warn_of_missing_package(topic.name, validated.message)
        return refused_response(requested.index, validated, log_start=partition.log_start_offset)
    try:
        return _append(topic, partition, validated, validation, check.is_transactional, context)
    except OSError:
        return refused_response(partition.index, Refused(ErrorCode.KAFKA_STORAGE_ERROR))


def _early_error(
    partition: Partition | None,
    check: Precheck,
    request: ProduceRequest,
    behavior: ProduceBehavior,
    context: RequestContext,
) -> ErrorCode | None:
    """Return the error that a broker finds before it opens the log; None: the broker opens the log.

    Message sets without a whole message are dropped without an error.
    """
    finding = check.finding
    has_wrong_acks = request.acks not in VALID_ACKS
    if finding is Finding.VALID and partition is not None and not has_wrong_acks:
        return None
    if finding is Finding.NULL:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if partition is None and not (has_wrong_acks and behavior.checks_acks_before_partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if finding is Finding.SEVERAL or (finding is Finding.NO_BATCH and context.api_version >= BATCHES_SINCE):
        return behavior.invalid_records_error
    if finding is Finding.TRAILING_BYTES:
        return ErrorCode.CORRUPT_MESSAGE
    if finding is Finding.ZSTD_TOO_EARLY and behavior.supports_zstd:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if has_wrong_acks and not (check.is_transactional and behavior.verifies_before_acks):
        return ErrorCode.INVALID_REQUIRED_ACKS
    return ErrorCode.NONE if finding is Finding.NO_BATCH else None


def _append(
    topic: Topic,
    partition: Partition,
    accepted: Accepted,
    validation: Validation,
    is_transactional: bool,
    context: RequestContext,
) -> PartitionProduceResponse | AppendResult:
    """Append a batch, unless the log already has it or its sequence is not the next one (BA-65).

    Raises:
        OSError: the log cannot be read, created, or begin the leader epoch.
    """
    data = context.log_manager.data_of(topic, partition)
    producer = accepted.producer_id, accepted.producer_epoch
    if accepted.producer_id != NO_PRODUCER_ID:
        if context.cluster.dropped_producer(accepted.producer_id):
            return refused_response(partition.index, Refused(ErrorCode.UNKNOWN_PRODUCER_ID, reached_log=True))
        behavior = validation.behavior
        checked = data.producers.check(
            *producer,
            accepted.first_sequence,
            accepted.record_count,
            refuses_unknown=behavior.requires_sequence_zero(context.api_version, is_transactional=is_transactional),
            after_marker_error=behavior.after_marker_error,
            knows_only_last=behavior.knows_only_last_batch,
            is_transactional=is_transactional,
        )
        if isinstance(checked, BatchMetadata):
            first = data.append_in_flight(checked.base_offset)
            if first is not None:
                return AppendResult(topic, partition, first, checked.timestamp_ms)
            return appended_response(partition, checked.base_offset, checked.timestamp_ms)
        if checked:
            refused = Refused(behavior.sequence_error(checked), reached_log=True)
            return refused_response(partition.index, refused, log_start=partition.log_start_offset)
    append = append_batch(data, partition, accepted, is_transactional, context)
    return AppendResult(topic, partition, append, context.now_ms if validation.config.has_append_time else NO_TIMESTAMP)


def _unverified(
    topic: Topic,
    partition: Partition,
    records: bytes,
    transactional_id: str | None,
    behavior: ProduceBehavior,
    context: RequestContext,
) -> Refused | None:
    """Return why a batch may not begin a transaction in a partition (KIP-890): as an error that older clients retry."""
    producer_id, producer_epoch, first_sequence = SEQUENCE_OF.unpack_from(records)
    if producer_id == NO_PRODUCER_ID or leader_error(partition, context.node.node_id, NO_EPOCH):
        return None
    if not (behavior.verifies_transactions and context.settings.current.bool(VERIFICATION_SETTING)):
        return None
    try:
        data = context.log_manager.data_of(topic, partition)
        producers = data.producers
    except OSError:
        return Refused(ErrorCode.KAFKA_STORAGE_ERROR)
    if producers.has_open_transaction(producer_id, producer_epoch):
        return None
    producers.begin_verification(producer_id, producer_epoch, first_sequence, context.now_ms)
    version = context.api_version
    error = context.log_manager.verify_transaction(
        transactional_id, producer_id, producer_epoch, topic.name, partition.index, version
    )
    if not error:
        return None
    is_known = error is ErrorCode.CONCURRENT_TRANSACTIONS and version >= CONCURRENT_SINCE
    if error in COORDINATOR_ERRORS and not is_known:
        message = f"Unable to verify the partition has been added to the transaction. Underlying error: {error.name}"
        return Refused(ErrorCode.NOT_ENOUGH_REPLICAS, message)
    if error is ErrorCode.INVALID_TXN_STATE:
        return Refused(error, "Partition was not added to the transaction")
    return Refused(error, None if behavior.verifies_before_acks else error.message)


def _leader_endpoints(results: Results, context: RequestContext) -> tuple[NodeEndpoint, ...]:
    """Return the addresses of the leaders that the response names."""
    leaders = {
        one.current_leader.leader_id
        for _, partitions in results
        for one in partitions
        if isinstance(one, PartitionProduceResponse)
    }
    return leader_endpoints(NodeEndpoint, leaders, context)
