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
from kproto_server.handlers._topic_quota import TopicQuota

if TYPE_CHECKING:
    from kproto_server.requests.context import RequestContext


def handle(request: CreatePartitionsRequest, context: RequestContext) -> CreatePartitionsResponse:
    quota = TopicQuota(context)
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
            refusal = _add_partitions(topic, request.validate_only, quota, context)
        error, message = refusal or (ErrorCode.NONE, None)
        results.append(CreatePartitionsTopicResult(name=name, error_code=error, error_message=message))
    return CreatePartitionsResponse(throttle_time_ms=quota.throttle_ms, results=tuple(results))


def _new_partition_count(requested: CreatePartitionsTopic, context: RequestContext) -> int:
    topic = context.cluster.topic(requested.name)
    return 0 if topic is None or requested.assignments is not None else requested.count - len(topic.partitions)


def _add_partitions(
    requested: CreatePartitionsTopic, validate_only: bool, quota: TopicQuota, context: RequestContext
) -> Refusal | None:
    cluster, is_kraft = context.cluster, context.kafka_version.is_kraft
    topic = cluster.topic(requested.name)
    if topic is None:
        message = None if is_kraft else f"The topic '{requested.name}' does not exist."
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    assignments = None if requested.assignments is None else [one.broker_ids for one in requested.assignments]
    if quota.is_limited and (is_kraft or not validate_only):
        refused = cluster.add_partitions(topic, requested.count, assignments, validate_only=True)
        refused = refused or quota.take(requested.count - len(topic.partitions))
        if refused is not None:
            return refused
    return cluster.add_partitions(topic, requested.count, assignments, validate_only=validate_only)
