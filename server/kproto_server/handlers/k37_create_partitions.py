"""CreatePartitions: topics grow, and never shrink (BA-91)."""

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
from kproto_server.handlers._controller import DuplicateTopicsBehavior, names_standing_twice, not_controller

if TYPE_CHECKING:
    from kproto_server.requests.context import RequestContext


def handle(request: CreatePartitionsRequest, context: RequestContext) -> CreatePartitionsResponse:
    twice = names_standing_twice(topic.name for topic in request.topics)
    by_name = {topic.name: topic for topic in request.topics}
    results = []
    for name, topic in by_name.items():
        if not_controller(context):
            refusal: Refusal | None = Refusal(ErrorCode.NOT_CONTROLLER)
        elif name in twice:
            refusal = Refusal(
                ErrorCode.INVALID_REQUEST,
                context.behavior(DuplicateTopicsBehavior).create_partitions_message,
            )
        else:
            refusal = _grow(topic, request.validate_only, context)
        error, message = refusal or (ErrorCode.NONE, None)
        results.append(CreatePartitionsTopicResult(name=name, error_code=error, error_message=message))
    return CreatePartitionsResponse(throttle_time_ms=0, results=tuple(results))


def _grow(asked: CreatePartitionsTopic, validate_only: bool, context: RequestContext) -> Refusal | None:
    cluster = context.cluster
    topic = cluster.topic(asked.name)
    if topic is None:
        message = None if context.kafka_version.is_kraft else f"The topic '{asked.name}' does not exist."
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    assignments = None if asked.assignments is None else [told.broker_ids for told in asked.assignments]
    return cluster.add_partitions(topic, asked.count, assignments, validate_only=validate_only)
