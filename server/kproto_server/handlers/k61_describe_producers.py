"""DescribeProducers (API key 61): the idempotent producers of partitions, and their open transactions (KIP-664)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k61_describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kproto_server.handlers._hash_order import ids_in_hash_order
from kproto_server.handlers._partitions import leader_error
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from kproto.messages.k61_describe_producers import DescribeProducersRequest
    from kproto_server.requests.context import RequestContext

UNKNOWN = -1


class DescribeProducersBehavior(VersionBehavior):
    """What Kafka releases do differently in DescribeProducers."""

    @cached_property
    def has_message_for_missing_topic(self) -> bool:
        """Whether a topic that does not exist gives an error message (measured on 2.8.2 and 3.0.2, and on 3.2.3 and
        3.3.2)."""
        return self.is_kraft or (self.at_least(3, 0) and not self.at_least(3, 3))


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
        has_message = topic is None and context.behavior(DescribeProducersBehavior).has_message_for_missing_topic
        message = error.message if has_message else None
        return PartitionResponse(partition_index=index, error_code=error, error_message=message, active_producers=())
    producers = dict(partition.data.producers.items())
    in_order = [(producer_id, producers[producer_id]) for producer_id in ids_in_hash_order(producers)]
    return PartitionResponse(
        partition_index=index,
        error_code=ErrorCode.NONE,
        active_producers=tuple(
            ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp_ms,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=UNKNOWN
                if producer.transaction_first_offset is None
                else producer.transaction_first_offset,
            )
            for producer_id, producer in in_order
        ),
    )
