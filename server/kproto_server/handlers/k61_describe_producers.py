"""DescribeProducers (API key 61): the idempotent producers that partitions know of (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k61_describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kproto_server.handlers._partitions import leader_error

if TYPE_CHECKING:
    from kproto.messages.k61_describe_producers import DescribeProducersRequest
    from kproto_server.requests.context import RequestContext

UNKNOWN = -1


def handle(request: DescribeProducersRequest, context: RequestContext) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        throttle_time_ms=0,
        topics=tuple(
            TopicResponse(
                name=topic.name,
                partitions=tuple(_partition(topic.name, index, context) for index in topic.partition_indexes),
            )
            for topic in request.topics
        ),
    )


def _partition(topic_name: str, index: int, context: RequestContext) -> PartitionResponse:
    topic = context.cluster.topic(topic_name)
    partition = (topic and topic.partition(index)) or None
    error = leader_error(partition, context.node.node_id, UNKNOWN)
    if error or partition is None:
        message = error.message if topic is None and context.kafka_version.words_missing_partitions else None
        return PartitionResponse(partition_index=index, error_code=error, error_message=message, active_producers=())
    return PartitionResponse(
        partition_index=index,
        error_code=ErrorCode.NONE,
        active_producers=tuple(
            ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.batches[-1].last_sequence,
                last_timestamp=producer.batches[-1].timestamp_ms,
                coordinator_epoch=UNKNOWN,
            )
            for producer_id, producer in partition.data.producers.items()
        ),
    )
