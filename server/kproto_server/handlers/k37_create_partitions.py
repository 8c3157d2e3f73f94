"""CreatePartitions (API key 37): add partitions to topics (BA-91)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from kproto_server.cluster.topics import Refusal
from kproto_server.handlers._controller import (
    DuplicateTopicsBehavior,
    duplicate_counts,
    excess_partitions,
    not_controller,
)

if TYPE_CHECKING:
    from kproto_server.requests.context import RequestContext


def handle(request: CreatePartitionsRequest, context: RequestContext) -> CreatePartitionsResponse:
    duplicates = duplicate_counts(topic.name for topic in request.topics)
    by_name = {topic.name: topic for topic in request.topics}
    adjective = context.cluster.behavior.added_partitions_adjective
    excess = excess_partitions((_new_partition_count(topic, context) for topic in by_name.values()), adjective)
    results = []
    for name, topic in by_name.items():
        if not_controller(context):
            refusal: Refusal | None = Refusal(ErrorCode.NOT_CONTROLLER)
        elif name in duplicates:
            refusal = Refusal(
                ErrorCode.INVALID_REQUEST, context.behavior(DuplicateTopicsBehavior).create_partitions_message
            )
        elif excess is not None:
            refusal = excess
        else:
            refusal = _add_partitions(topic, request.validate_only, context)
        error, message = refusal or (ErrorCode.NONE, None)
        results.append(CreatePartitionsTopicResult(name=name, error_code=error, error_message=message))
    return CreatePartitionsResponse(throttle_time_ms=0, results=tuple(results))


def _new_partition_count(requested: CreatePartitionsTopic, context: RequestContext) -> int:
    topic = context.cluster.topic(requested.name)
    return 0 if topic is None or requested.assignments is not None else requested.count - len(topic.partitions)


def _add_partitions(requested: CreatePartitionsTopic, validate_only: bool, context: RequestContext) -> Refusal | None:
    cluster = context.cluster
    topic = cluster.topic(requested.name)
    if topic is None:
        message = None if context.kafka_version.is_kraft else f"The topic '{requested.name}' does not exist."
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    assignments = None if requested.assignments is None else [one.broker_ids for one in requested.assignments]
    return cluster.add_partitions(topic, requested.count, assignments, validate_only=validate_only)
