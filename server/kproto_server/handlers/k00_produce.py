"""Produce (API key 0): records are judged, appended to their partitions, and answered with their offsets (BA-60..65).

With acks 0 nothing is answered, whatever came of it. What a partition is refused is its own matter; the others are
written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k00_produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kproto.records.compression import Compression
from kproto_server.configuration.topic_configs import topic_config
from kproto_server.handlers._partitions import leader_error
from kproto_server.partition_log.precheck import BATCHES_SINCE, Glance, glance, is_transactional, why_unreadable
from kproto_server.partition_log.producers import NO_PRODUCER_ID, Written, sequence_after
from kproto_server.partition_log.validation import Accepted, Refused, Terms, accept
from kproto_server.requests.deferred import NO_RESPONSE, CloseConnection

if TYPE_CHECKING:
    from kproto.messages.k00_produce import ProduceRequest
    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.partition_log.partition_data import Append
    from kproto_server.requests.context import RequestContext
    from kproto_server.requests.deferred import DeferredResponse, NoResponse

    Answers = list[tuple[TopicProduceData, list["PartitionProduceResponse | Pending"]]]

NO_ACKS, LEADER_ACKS, ALL_ACKS = 0, 1, -1
IDS_SINCE = 13
LEADER_HINTS_SINCE = 10
"""From here on an answer names the leader that a client should have asked (KIP-951)."""
NO_OFFSET = -1
NO_BOUND = 2**63 - 1
NO_EPOCH = -1
ADMIN_CLIENT_ID = "__admin_client"
"""The one client that may write to internal topics (BA-63)."""


def handle(request: ProduceRequest, context: RequestContext) -> ProduceResponse | DeferredResponse | NoResponse:
    topics = _refused_as_a_whole(request, context)
    if topics is None:
        topics = [(topic, _topic(topic, request, context)) for topic in request.topic_data]
    if request.acks == NO_ACKS:
        if any(partition.error_code for _, partitions in topics for partition in partitions):
            raise CloseConnection("Produce with acks 0 failed, and there is no answer to say so in")
        return NO_RESPONSE
    return context.coordinator.log.then(lambda: _response(topics, context))


def _refused_as_a_whole(request: ProduceRequest, context: RequestContext) -> Answers | None:
    """Answer a request of which one partition's records spoil all; None: each partition is judged by itself.

    Raises:
        CloseConnection: records that the release finds out it can't read before it knows whom to answer what.
    """
    kafka_version, version = context.kafka_version, context.api_version
    found = [data.records for topic in request.topic_data for data in topic.partition_data if data.records is not None]
    for records in found:
        seen = glance(records, version)
        if kafka_version.closes_on(seen, version):
            raise CloseConnection(f"Produce: {seen.value}")
        if seen is Glance.UNREADABLE and kafka_version.unreadable_records_spoil_all:
            return _all_refused(request, Refused(ErrorCode.CORRUPT_MESSAGE, why_unreadable(records)))
    if (
        request.transactional_id is None
        and kafka_version.refuses_transactions_without_id
        and any(map(is_transactional, found))
    ):
        return _all_refused(request, Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    return None


def _all_refused(request: ProduceRequest, refused: Refused) -> Answers:
    return [(topic, [_refused(data.index, refused) for data in topic.partition_data]) for topic in request.topic_data]


def _response(topics: Answers, context: RequestContext) -> ProduceResponse:
    """Tell what has become of each partition's records, now that the log has them, or has failed to take them."""
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(one.answer() if isinstance(one, Pending) else one for one in partitions),
            )
            for topic, partitions in topics
        ),
        node_endpoints=_endpoints(topics, context),
    )


def _topic(
    asked: TopicProduceData, request: ProduceRequest, context: RequestContext
) -> list[PartitionProduceResponse | Pending]:
    cluster = context.cluster
    if context.api_version >= IDS_SINCE:
        topic, unknown = cluster.topic_by_id(asked.topic_id), ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic, unknown = cluster.topic(asked.name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic is None:
        return [_refused(partition.index, Refused(unknown)) for partition in asked.partition_data]
    terms = _terms(topic, context)
    return [
        _partition(topic, partition, terms._replace(name=f"{topic.name}-{partition.index}"), request, context)
        for partition in asked.partition_data
    ]


def _partition(
    topic: Topic, asked: PartitionProduceData, terms: Terms, request: ProduceRequest, context: RequestContext
) -> PartitionProduceResponse | Pending:
    partition = topic.partition(asked.index)
    answer = _at_sight(partition, asked, request, context)
    if answer is not None:
        return answer
    assert partition is not None, "seen at sight"
    assert asked.records is not None, "seen at sight"
    if topic.internal and context.client_id != ADMIN_CLIENT_ID:
        return _refused(asked.index, Refused(ErrorCode.INVALID_TOPIC_EXCEPTION))
    error = leader_error(partition, context.node.node_id, NO_EPOCH)
    if error:
        return _refused(asked.index, Refused(error), partition if context.api_version >= LEADER_HINTS_SINCE else None)
    judged = accept(asked.records, terms, context.now_ms, context.kafka_version)
    if request.acks == ALL_ACKS and len(partition.isr) < _min_in_sync(topic, context):
        judged = Refused(ErrorCode.NOT_ENOUGH_REPLICAS, reached_log=True)
    if isinstance(judged, Refused):
        return _refused(asked.index, judged, log_start=partition.log_start_offset)
    return _write(topic, partition, judged, terms, context)


def _at_sight(
    partition: Partition | None, asked: PartitionProduceData, request: ProduceRequest, context: RequestContext
) -> PartitionProduceResponse | None:
    """Answer what a broker sees before it opens the log, in the order in which it does; None: the log is opened."""
    if asked.records is None:
        return _refused(asked.index, Refused(ErrorCode.UNKNOWN_SERVER_ERROR))
    kafka_version, seen = context.kafka_version, glance(asked.records, context.api_version)
    has_batches = context.api_version >= BATCHES_SINCE
    has_wrong_acks = request.acks not in (NO_ACKS, LEADER_ACKS, ALL_ACKS)
    error = ErrorCode.NONE
    if partition is None and not (has_wrong_acks and kafka_version.checks_acks_before_partitions):
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif seen is Glance.SEVERAL or (seen is Glance.NOTHING and has_batches):
        error = kafka_version.invalid_records_error
    elif seen is Glance.TRAILED:
        error = ErrorCode.CORRUPT_MESSAGE
    elif seen is Glance.TOO_NEW and kafka_version.knows_zstd:
        error = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    elif has_wrong_acks:
        error = ErrorCode.INVALID_REQUIRED_ACKS
    if error or seen is Glance.NOTHING:
        return _refused(asked.index, Refused(error))
    return None


class Pending:
    """A batch that was appended, whose log has not said yet what became of it."""

    __slots__ = ("_append", "_append_ms", "_partition")

    error_code = 0

    def __init__(self, partition: Partition, append: Append, append_ms: int) -> None:
        self._partition = partition
        self._append = append
        self._append_ms = append_ms

    def answer(self) -> PartitionProduceResponse:
        append = self._append
        if append.error:
            return _refused(self._partition.index, Refused(ErrorCode(append.error)))
        return _answer(self._partition, append.base_offset, self._append_ms)


def _write(
    topic: Topic, partition: Partition, accepted: Accepted, terms: Terms, context: RequestContext
) -> PartitionProduceResponse | Pending:
    """Append a batch, unless the log has it already, or it does not come next (BA-65)."""
    try:
        data = context.log_manager.data_of(topic, partition)
    except OSError:
        return _refused(partition.index, Refused(ErrorCode.KAFKA_STORAGE_ERROR))
    producer = accepted.producer_id, accepted.producer_epoch
    if accepted.producer_id != NO_PRODUCER_ID:
        checked = data.producers.check(
            *producer,
            accepted.first_sequence,
            accepted.record_count,
            refuses_unknown=context.kafka_version.refuses_sequences_of_unknown_producers,
        )
        if isinstance(checked, Written):
            return _answer(partition, checked.base_offset, checked.timestamp_ms)
        if checked:
            checked = context.kafka_version.sequence_error(checked)
            return _refused(partition.index, Refused(checked, reached_log=True), log_start=partition.log_start_offset)
    if data.is_in_memory:
        context.log_manager.wrote_to_memory(len(accepted.batch))
    append = data.append(accepted.batch, accepted.last_offset_delta, accepted.max_timestamp, partition.leader_epoch)
    if accepted.producer_id != NO_PRODUCER_ID and not append.error:
        last_sequence = sequence_after(accepted.first_sequence, accepted.record_count - 1)
        batch = Written(accepted.first_sequence, last_sequence, append.base_offset, accepted.max_timestamp)
        data.producers.written(*producer, batch, context.now_ms)
    return Pending(partition, append, context.now_ms if terms.has_append_time else -1)


def _answer(partition: Partition, base_offset: int, append_ms: int) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=partition.index,
        error_code=0,
        base_offset=base_offset,
        log_append_time_ms=append_ms,
        log_start_offset=partition.log_start_offset,
    )


def _refused(
    index: int, refused: Refused, elsewhere: Partition | None = None, *, log_start: int = NO_OFFSET
) -> PartitionProduceResponse:
    leader = LeaderIdAndEpoch()
    if elsewhere is not None and refused.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        leader = LeaderIdAndEpoch(leader_id=elsewhere.leader, leader_epoch=elsewhere.leader_epoch)
    return PartitionProduceResponse(
        index=index,
        error_code=refused.error,
        base_offset=NO_OFFSET,
        log_start_offset=log_start if refused.reached_log else NO_OFFSET,
        record_errors=tuple(
            BatchIndexAndErrorMessage(batch_index=error.number, batch_index_error_message=error.message)
            for error in refused.record_errors
        ),
        error_message=refused.message,
        current_leader=leader,
    )


def _terms(topic: Topic, context: RequestContext) -> Terms:
    kafka_version, settings = context.kafka_version, context.settings.of(context.node.node_id)

    def config(name: str) -> str:
        return topic_config(kafka_version, settings, topic.configs, name)

    compression = config("compression.type")
    either = _limit(config("message.timestamp.difference.max.ms"))
    return Terms(
        name=topic.name,
        size_max_bytes=int(config("max.message.bytes")),
        is_compacted="compact" in config("cleanup.policy"),
        has_append_time=config("message.timestamp.type") == "LogAppendTime",
        compression=None if compression in ("", "producer") else _compression(compression),
        after_max_ms=_limit(config("message.timestamp.after.max.ms"), either),
        before_max_ms=_limit(config("message.timestamp.before.max.ms"), either),
    )


def _compression(name: str) -> Compression:
    return Compression.NONE if name == "uncompressed" else Compression[name.upper()]


def _limit(value: str, otherwise: int | None = None) -> int | None:
    """Return a bound; None if it is as good as none."""
    return int(value) if value and int(value) < NO_BOUND else otherwise


def _min_in_sync(topic: Topic, context: RequestContext) -> int:
    settings = context.settings.of(context.node.node_id)
    value = topic_config(context.kafka_version, settings, topic.configs, "min.insync.replicas")
    return int(value or 1)


def _endpoints(topics: Answers, context: RequestContext) -> tuple[NodeEndpoint, ...]:
    """Tell the addresses of the leaders that the answer points to."""
    leaders = {
        one.current_leader.leader_id
        for _, partitions in topics
        for one in partitions
        if isinstance(one, PartitionProduceResponse)
    }
    nodes = (node for node in context.cluster.alive_nodes() if node.node_id in leaders)
    return tuple(NodeEndpoint(node_id=n.node_id, host=n.host, port=n.port, rack=n.rack) for n in nodes)
