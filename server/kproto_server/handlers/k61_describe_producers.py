"""DescribeProducers (API key 61): the idempotent producers of partitions, and their open transactions (KIP-664)."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k61_describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kproto_server.cluster.topics import name_problem
from kproto_server.deferred import LargeResponse, array_of, noting_errors, sum_exceeds
from kproto_server.handlers._hash_order import ids_in_hash_order
from kproto_server.handlers._partitions import indexed, leader_error
from kproto_server.handlers._unreadable import error_of_read
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from kproto.messages.k61_describe_producers import DescribeProducersRequest, TopicRequest
    from kproto_server.cluster.topics import Partition
    from kproto_server.deferred import DelayedOperation
    from kproto_server.partition_log import producers
    from kproto_server.requests.context import RequestContext

UNKNOWN = -1
SMALL_PRODUCERS = 2000
"""Producers that are described at once: about 5 ms. A response with more is made in slices; what a producer does
meanwhile may be in its state."""


class DescribeProducersBehavior(VersionBehavior):
    """What Kafka releases do differently in DescribeProducers."""

    @cached_property
    def has_message_for_missing_topic(self) -> bool:
        """Whether a topic that does not exist gives an error message (measured on 2.8.2 and 3.0.2, and on 3.2.3 and
        3.3.2)."""
        return self.is_kraft or (self.at_least(3, 0) and not self.at_least(3, 3))

    @cached_property
    def checks_names(self) -> bool:
        """Whether a name that no topic can have gives INVALID_TOPIC_EXCEPTION, instead of
        UNKNOWN_TOPIC_OR_PARTITION (measured on 2.8.2 and 3.2.3)."""
        return self.at_least(3, 0)


def handle(
    request: DescribeProducersRequest, context: RequestContext
) -> DescribeProducersResponse | LargeResponse | DelayedOperation:
    return indexed([topic.name for topic in request.topics], context, lambda: _handle(request, context))


def _handle(request: DescribeProducersRequest, context: RequestContext) -> DescribeProducersResponse | LargeResponse:
    counts = (
        _producer_count(topic.name, index, context) for topic in request.topics for index in topic.partition_indexes
    )
    is_large = sum_exceeds(SMALL_PRODUCERS, counts)
    # The partitions of a large response are described when they are encoded, so they do not report their errors here.
    error_codes: list[int] = []
    response = DescribeProducersResponse(
        throttle_time_ms=0,
        topics=tuple([_topic(topic, context, error_codes, is_large=is_large) for topic in request.topics]),
    )
    return LargeResponse(response, error_codes) if is_large else response


def _topic(topic: TopicRequest, context: RequestContext, error_codes: list[int], *, is_large: bool) -> TopicResponse:
    partition = noting_errors(partial(_partition, topic.name, context=context), error_codes)
    return TopicResponse(name=topic.name, partitions=array_of(partition, topic.partition_indexes, is_large=is_large))


def _replica(topic_name: str, index: int, context: RequestContext) -> Partition | ErrorCode:
    """Return a partition that this node has a replica of, or why there is none."""
    topic = context.cluster.topic(topic_name)
    partition = (topic and topic.partition(index)) or None
    error = leader_error(partition, context.node.node_id, UNKNOWN, any_replica=True)
    return error if error or partition is None else partition


def _producer_count(topic_name: str, index: int, context: RequestContext) -> int:
    partition = _replica(topic_name, index, context)
    try:
        return 0 if isinstance(partition, ErrorCode) else len(partition.data.producers)
    except OSError:  # the partition has an error in the response
        return 0


def _partition(topic_name: str, index: int, context: RequestContext) -> PartitionResponse:
    partition = _replica(topic_name, index, context)
    if isinstance(partition, ErrorCode):
        behavior = context.behavior(DescribeProducersBehavior)
        problem = name_problem(topic_name, context.kafka_version) if behavior.checks_names else None
        if problem is not None:
            error = ErrorCode.INVALID_TOPIC_EXCEPTION
            return PartitionResponse(
                partition_index=index, error_code=error, error_message=problem, active_producers=()
            )
        is_missing = context.cluster.topic(topic_name) is None
        has_message = is_missing and behavior.has_message_for_missing_topic
        message = partition.message if has_message else None
        return PartitionResponse(
            partition_index=index, error_code=partition, error_message=message, active_producers=()
        )
    try:
        known = dict(partition.data.producers.items())
    except OSError as unreadable:
        error = error_of_read(unreadable, topic_name, index)
        return PartitionResponse(partition_index=index, error_code=error, active_producers=())
    in_order = [(producer_id, known[producer_id]) for producer_id in ids_in_hash_order(known)]
    active = array_of(_producer, in_order, is_large=len(in_order) > SMALL_PRODUCERS)
    return PartitionResponse(partition_index=index, error_code=ErrorCode.NONE, active_producers=active)


def _producer(item: tuple[int, producers.ProducerState]) -> ProducerState:
    producer_id, producer = item
    first_offset = producer.transaction_first_offset
    return ProducerState(
        producer_id=producer_id,
        producer_epoch=producer.epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp_ms,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=UNKNOWN if first_offset is None else first_offset,
    )
