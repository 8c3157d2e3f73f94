"""Produce (API key 0): records are judged, appended to their partitions, and answered with their offsets (BA-60..65).

With acks 0 nothing is answered, whatever came of it. What a partition is refused is its own matter; the others are
written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k00_produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kproto.records.compression import Compression
from kproto_server.call import NO_ANSWER, CloseConnection
from kproto_server.configuration.topic_configs import topic_config
from kproto_server.handlers._partitions import leader_error
from kproto_server.topic_log.producers import NO_PRODUCER_ID, Written, sequence_after
from kproto_server.topic_log.validation import Accepted, Refused, Terms, accept

if TYPE_CHECKING:
    from kproto.messages.k00_produce import ProduceRequest
    from kproto_server.call import Call, NoAnswer
    from kproto_server.cluster.topics import Partition, Topic

NO_ACKS, LEADER_ACKS, ALL_ACKS = 0, 1, -1
IDS_SINCE = 13
LEADER_HINTS_SINCE = 10
"""From here on an answer names the leader that a client should have asked (KIP-951)."""
NO_OFFSET = -1
NO_EPOCH = -1
ADMIN_CLIENT_ID = "__admin_client"
"""The one client that may write to internal topics (BA-63)."""


def handle(request: ProduceRequest, call: Call) -> ProduceResponse | NoAnswer:
    if request.acks not in (NO_ACKS, LEADER_ACKS, ALL_ACKS):
        error = Refused(ErrorCode.INVALID_REQUIRED_ACKS)
        topics = [(topic, [_refused(p.index, error) for p in topic.partition_data]) for topic in request.topic_data]
    else:
        topics = [(topic, _topic(topic, request, call)) for topic in request.topic_data]
    if request.acks == NO_ACKS:
        if any(partition.error_code for _, partitions in topics for partition in partitions):
            raise CloseConnection("Produce with acks 0 failed, and there is no answer to say so in")
        return NO_ANSWER
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=tuple(partitions))
            for topic, partitions in topics
        ),
        node_endpoints=_endpoints(topics, call),
    )


def _topic(asked: TopicProduceData, request: ProduceRequest, call: Call) -> list[PartitionProduceResponse]:
    cluster = call.state.cluster
    if call.api_version >= IDS_SINCE:
        topic, unknown = cluster.topic_by_id(asked.topic_id), ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic, unknown = cluster.topic(asked.name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic is None:
        return [_refused(partition.index, Refused(unknown)) for partition in asked.partition_data]
    if topic.internal and call.client_id != ADMIN_CLIENT_ID:
        error = Refused(ErrorCode.INVALID_TOPIC_EXCEPTION)
        return [_refused(partition.index, error) for partition in asked.partition_data]
    terms = _terms(topic, call)
    return [_partition(topic, partition, terms, request, call) for partition in asked.partition_data]


def _partition(
    topic: Topic, asked: PartitionProduceData, terms: Terms, request: ProduceRequest, call: Call
) -> PartitionProduceResponse:
    partition = topic.partition(asked.index)
    error = leader_error(partition, call.node.node_id, NO_EPOCH)
    if error or partition is None:
        return _refused(asked.index, Refused(error), partition if call.api_version >= LEADER_HINTS_SINCE else None)
    if request.acks == ALL_ACKS and len(partition.isr) < _min_in_sync(topic, call):
        return _refused(asked.index, Refused(ErrorCode.NOT_ENOUGH_REPLICAS))
    judged = accept(asked.records, call.api_version, terms, call.now_ms, call.state.profile)
    if isinstance(judged, Refused):
        if judged.error is ErrorCode.CORRUPT_MESSAGE and call.state.profile.closes_on_corrupt_records:
            raise CloseConnection(f"Produce: {judged.message}")
        return _refused(asked.index, judged)
    append_ms = call.now_ms if terms.has_append_time else -1
    written = _write(partition, judged, call)
    if isinstance(written, Written):
        return _answer(partition, written.base_offset, written.timestamp_ms)
    if isinstance(written, Refused):
        return _refused(asked.index, written)
    return _answer(partition, written, append_ms)


def _write(partition: Partition, accepted: Accepted, call: Call) -> int | Written | Refused:
    """Append a batch; return its base offset, the batch that it repeats, or why it is refused."""
    data = partition.make_data()
    idempotent = accepted.producer_id != NO_PRODUCER_ID
    producer = accepted.producer_id, accepted.producer_epoch
    if idempotent:
        checked = data.producers.check(
            *producer,
            accepted.first_sequence,
            accepted.record_count,
            refuses_unknown=call.state.profile.refuses_sequences_of_unknown_producers,
        )
        if isinstance(checked, Written):
            return checked
        if checked:
            return Refused(checked)
    epoch = partition.leader_epoch
    base_offset = data.append(accepted.batch, accepted.last_offset_delta, accepted.max_timestamp, epoch)
    if idempotent:
        last_sequence = sequence_after(accepted.first_sequence, accepted.record_count - 1)
        batch = Written(accepted.first_sequence, last_sequence, base_offset, accepted.max_timestamp)
        data.producers.written(*producer, batch, call.now_ms)
    return base_offset


def _answer(partition: Partition, base_offset: int, append_ms: int) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=partition.index,
        error_code=0,
        base_offset=base_offset,
        log_append_time_ms=append_ms,
        log_start_offset=partition.log_start_offset,
    )


def _refused(index: int, refused: Refused, elsewhere: Partition | None = None) -> PartitionProduceResponse:
    leader = LeaderIdAndEpoch()
    if elsewhere is not None and refused.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        leader = LeaderIdAndEpoch(leader_id=elsewhere.leader, leader_epoch=elsewhere.leader_epoch)
    return PartitionProduceResponse(
        index=index,
        error_code=refused.error,
        base_offset=NO_OFFSET,
        error_message=refused.message,
        current_leader=leader,
    )


def _terms(topic: Topic, call: Call) -> Terms:
    profile, settings = call.state.profile, call.state.settings

    def config(name: str) -> str:
        return topic_config(profile, settings, topic.configs, name)

    compression = config("compression.type")
    return Terms(
        size_max_bytes=int(config("max.message.bytes")),
        is_compacted="compact" in config("cleanup.policy"),
        has_append_time=config("message.timestamp.type") == "LogAppendTime",
        compression=None if compression in ("", "producer") else _compression(compression),
        after_max_ms=_limit(config("message.timestamp.after.max.ms")),
        before_max_ms=_limit(config("message.timestamp.before.max.ms")),
    )


def _compression(name: str) -> Compression:
    return Compression.NONE if name == "uncompressed" else Compression[name.upper()]


def _limit(value: str) -> int | None:
    return int(value) if value else None


def _min_in_sync(topic: Topic, call: Call) -> int:
    value = topic_config(call.state.profile, call.state.settings, topic.configs, "min.insync.replicas")
    return int(value or 1)


def _endpoints(
    topics: list[tuple[TopicProduceData, list[PartitionProduceResponse]]], call: Call
) -> tuple[NodeEndpoint, ...]:
    """Tell the addresses of the leaders that the answer points to."""
    leaders = {partition.current_leader.leader_id for _, partitions in topics for partition in partitions}
    nodes = (node for node in call.state.cluster.alive_nodes() if node.node_id in leaders)
    return tuple(NodeEndpoint(node_id=n.node_id, host=n.host, port=n.port, rack=n.rack) for n in nodes)
