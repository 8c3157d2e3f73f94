"""CreateTopics (API key 19): create topics by partition count or by replica assignment (BA-90, BA-50)."""

from __future__ import annotations

from functools import cached_property, partial
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
from kproto.records.partitioning import CLUSTER_METADATA_TOPIC
from kproto_server.cluster.rules import BROKER_DEFAULT
from kproto_server.cluster.topics import NO_LEADER, Refusal
from kproto_server.configuration.settings import UNITS_MS, ConfigSource
from kproto_server.configuration.topic_configs import describe_topic
from kproto_server.deferred import LargeResponse, in_slices, sum_exceeds
from kproto_server.handlers._config_slices import ConfigSlices
from kproto_server.handlers._controller import (
    DuplicateTopicsBehavior,
    MetadataTopicBehavior,
    duplicate_counts,
    excess_partitions,
    not_controller,
)
from kproto_server.handlers._topic_quota import TopicQuota
from kproto_server.observation.error_codes import error_codes
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from kproto_server.cluster.topics import Topic
    from kproto_server.configuration.settings import Settings
    from kproto_server.configuration.topic_configs import TopicConfigEntry
    from kproto_server.deferred import DelayedOperation
    from kproto_server.requests.context import RequestContext

DETAILS_SINCE = 5
"""The version from which on the response has the counts and configs of the new topic."""
SMALL_CONFIGS = 10_000
"""Configs that are returned at once: about 10 ms. A response with more is encoded in slices."""


def handle(
    request: CreateTopicsRequest, context: RequestContext
) -> CreateTopicsResponse | LargeResponse | DelayedOperation:
    return in_slices(_slices(request, context), context.now_ms)


def _slices(
    request: CreateTopicsRequest, context: RequestContext
) -> Generator[None, None, CreateTopicsResponse | LargeResponse]:
    """Create the topics. If the client goes between two slices, the rest are not created."""
    quota = TopicQuota(context)
    topics = []
    for result in _results(request, quota, context):
        if result is None:
            yield
        else:
            topics.append(result)
    response = CreateTopicsResponse(throttle_time_ms=quota.throttle_ms, topics=tuple(topics))
    is_small = not sum_exceeds(SMALL_CONFIGS, (1 + len(topic.configs or ()) for topic in topics))
    return response if is_small else LargeResponse(response, error_codes(response))


def _results(
    request: CreateTopicsRequest, quota: TopicQuota, context: RequestContext
) -> Iterator[CreatableTopicResult | None]:
    """Yield the result of each topic, and None where a slice ends."""
    if not_controller(context):
        yield from (_refused(topic.name, Refusal(ErrorCode.NOT_CONTROLLER, "")) for topic in request.topics)
        return
    excess = excess_partitions(_partition_count(topic, context) for topic in request.topics)
    if excess is not None:
        yield from (_refused(topic.name, excess) for topic in request.topics)
        return
    behavior = context.behavior(DuplicateTopicsBehavior)
    configs = _Configs(context)
    duplicates = duplicate_counts(topic.name for topic in request.topics)
    prohibited = {CLUSTER_METADATA_TOPIC} if context.behavior(MetadataTopicBehavior).cannot_be_created else set()
    pause = ConfigSlices()
    for topic in request.topics:
        if topic.name not in duplicates and topic.name not in prohibited:
            if pause.is_due(config.value for config in topic.configs):
                yield None
            yield _create(topic, request.validate_only, quota, configs, context)
    for topic in request.topics:
        if topic.name in prohibited and topic.name not in duplicates:
            message = f"Creation of internal topic {topic.name} is prohibited."
            yield _refused(topic.name, Refusal(ErrorCode.INVALID_REQUEST, message))
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
    requested: CreatableTopic, validate_only: bool, quota: TopicQuota, configs: _Configs, context: RequestContext
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
        configs=configs.of(made) if context.api_version >= DETAILS_SINCE else (),
    )


def _refused(name: str, refusal: Refusal) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=refusal.error, error_message=refusal.message)


class CreatedConfigsBehavior(VersionBehavior):
    """What Kafka releases do differently with the configs in a response."""

    @cached_property
    def internal_configs(self) -> Mapping[str, str]:
        """Configs of later releases that KRaft's controller returns with their defaults; DescribeConfigs does not name
        them (measured on 3.3.2, 3.4.1, 3.5.2 and 3.6.2)."""
        has_some = self.is_kraft and not self.at_least(3, 6)
        return INTERNAL_CONFIGS if has_some else {}


INTERNAL_CONFIGS = {"local.retention.bytes": "-2", "local.retention.ms": "-2", "remote.storage.enable": "false"}


class _Configs:
    """The configs of created topics. Those that no topic has of its own are described once for a request."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context

    def of(self, topic: Topic) -> tuple[CreatableTopicConfigs, ...]:
        if not topic.configs:
            return self._of_broker
        return tuple((self._by_name | self._described(topic.configs)).values())

    @cached_property
    def _by_name(self) -> dict[str, CreatableTopicConfigs]:
        internal = {
            name: CreatableTopicConfigs(
                name=name, value=value, read_only=False, config_source=ConfigSource.DEFAULT, is_sensitive=False
            )
            for name, value in self._context.behavior(CreatedConfigsBehavior).internal_configs.items()
        }
        described = self._described(None)
        return dict(sorted({**described, **internal}.items())) if internal else described

    @cached_property
    def _of_broker(self) -> tuple[CreatableTopicConfigs, ...]:
        return tuple(self._by_name.values())

    @cached_property
    def _settings(self) -> Settings:
        return self._context.settings.of(self._context.node.node_id)

    def _described(self, given: Mapping[str, str] | None) -> dict[str, CreatableTopicConfigs]:
        """Return these configs of a topic, or, with None, all of a topic without own configs."""
        return {
            entry.name: CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=False,
                config_source=self._source(entry),
                is_sensitive=False,
            )
            for entry in describe_topic(self._settings, given or {}, given)
        }

    def _source(self, entry: TopicConfigEntry) -> ConfigSource:
        """Return where a value comes from. To a controller of KRaft, each of a config's settings is a synonym, such as
        log.roll.hours; DescribeConfigs names the first one alone (PlaintextAdminIntegrationTest of Kafka 3.9)."""
        if entry.source is not ConfigSource.DEFAULT or not self._context.kafka_version.is_kraft:
            return entry.source
        is_set = any(self._settings.is_set(name) for name in UNITS_MS.get(entry.name, ()))
        return ConfigSource.STATIC_BROKER if is_set else ConfigSource.DEFAULT
