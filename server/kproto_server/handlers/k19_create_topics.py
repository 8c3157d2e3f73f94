"""CreateTopics (API key 19): create topics by partition count or by replica assignment (BA-90, BA-50)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.declaration import ZERO_UUID
from kproto.messages.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kproto_server.cluster.rules import BROKER_DEFAULT
from kproto_server.cluster.topics import NO_LEADER, Refusal
from kproto_server.configuration.topic_configs import describe_topic
from kproto_server.handlers._controller import (
    DuplicateTopicsBehavior,
    duplicate_counts,
    excess_partitions,
    not_controller,
)
from kproto_server.handlers._topic_quota import TopicQuota

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.cluster.topics import Topic
    from kproto_server.requests.context import RequestContext

DETAILS_SINCE = 5
"""The version from which on the response has the counts and configs of the new topic."""


def handle(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    quota = TopicQuota(context)
    topics = tuple(_results(request, quota, context))
    return CreateTopicsResponse(throttle_time_ms=quota.throttle_ms, topics=topics)


def _results(
    request: CreateTopicsRequest, quota: TopicQuota, context: RequestContext
) -> Iterator[CreatableTopicResult]:
    if not_controller(context):
        yield from (_refused(topic.name, Refusal(ErrorCode.NOT_CONTROLLER, "")) for topic in request.topics)
        return
    excess = excess_partitions(_partition_count(topic, context) for topic in request.topics)
    if excess is not None:
        yield from (_refused(topic.name, excess) for topic in request.topics)
        return
    behavior = context.behavior(DuplicateTopicsBehavior)
    duplicates = duplicate_counts(topic.name for topic in request.topics)
    for topic in request.topics:
        if topic.name not in duplicates:
            yield _create(topic, request.validate_only, quota, context)
    for name, count in duplicates.items():
        message = behavior.create_topics_message(name, context.client_id)
        refused = _refused(name, Refusal(ErrorCode.INVALID_REQUEST, message))
        yield from [refused] * (count if behavior.returns_each_duplicate else 1)


def _partition_count(requested: CreatableTopic, context: RequestContext) -> int:
    if requested.assignments:
        return len(requested.assignments)
    is_default = requested.num_partitions == BROKER_DEFAULT
    return context.cluster.defaults.num_partitions if is_default else requested.num_partitions


def _create(
    requested: CreatableTopic, validate_only: bool, quota: TopicQuota, context: RequestContext
) -> CreatableTopicResult:
    create = partial(
        context.cluster.create_topic,
        requested.name,
        partition_count=requested.num_partitions,
        replication_factor=requested.replication_factor,
        assignments=[(assignment.partition_index, assignment.broker_ids) for assignment in requested.assignments],
        configs={config.name: config.value for config in requested.configs},
        now_ms=context.now_ms,
    )
    if quota.is_limited and (context.kafka_version.is_kraft or not validate_only):
        checked = create(validate_only=True)
        refused = checked if isinstance(checked, Refusal) else quota.take(len(checked.partitions))
        if refused is not None:
            return _refused(requested.name, refused)
    made = create(validate_only=validate_only)
    if isinstance(made, Refusal):
        return _refused(requested.name, made)
    is_kept = context.kafka_version.is_kraft or not validate_only
    if is_kept and any(partition.leader == NO_LEADER for partition in made.partitions):
        # A ZooKeeper broker waits for the leaders, which may take longer than the request's timeout.
        error = ErrorCode.REQUEST_TIMED_OUT
        return CreatableTopicResult(name=made.name, topic_id=made.topic_id, error_code=error, error_message=None)
    return CreatableTopicResult(
        name=made.name,
        topic_id=made.topic_id if is_kept else ZERO_UUID,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=len(made.partitions),
        replication_factor=made.replication_factor,
        configs=tuple(_configs(made, context)) if context.api_version >= DETAILS_SINCE else (),
    )


def _refused(name: str, refusal: Refusal) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=refusal.error, error_message=refusal.message)


def _configs(topic: Topic, context: RequestContext) -> Iterator[CreatableTopicConfigs]:
    for entry in describe_topic(context.settings.of(context.node.node_id), topic.configs):
        yield CreatableTopicConfigs(
            name=entry.name, value=entry.value, read_only=False, config_source=entry.source, is_sensitive=False
        )
