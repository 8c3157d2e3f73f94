"""IncrementalAlterConfigs (API key 44): some configs of a topic or a broker are set or removed (BA-93).

DEVIATION: groups, loggers and client metrics have none; of brokers those change that kproto knows as such.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k44_incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kproto_server.cluster.altering import Alteration, altered, unclear
from kproto_server.cluster.broker_altering import altered_settings
from kproto_server.cluster.topics import Refusal
from kproto_server.cluster.version_behavior import AlterConfigsBehavior
from kproto_server.handlers._alterations import BROKER, broker_to_alter, keep, topic_to_alter

if TYPE_CHECKING:
    from kproto.messages.k44_incremental_alter_configs import AlterConfigsResource, IncrementalAlterConfigsRequest
    from kproto_server.requests.context import RequestContext

TWICE = Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")


def handle(request: IncrementalAlterConfigsRequest, context: RequestContext) -> IncrementalAlterConfigsResponse:
    resources = {(asked.resource_type, asked.resource_name): asked for asked in request.resources}
    keeps_duplicates = context.behavior(AlterConfigsBehavior).preprocesses_changes
    asked_for = request.resources if keeps_duplicates else tuple(resources.values())
    names = [(asked.resource_type, asked.resource_name) for asked in asked_for]
    responses = []
    for resource, name in zip(asked_for, names, strict=True):
        refusal = TWICE if names.count(name) > 1 else _alter(resource, context, validate_only=request.validate_only)
        responses.append(
            AlterConfigsResourceResponse(
                error_code=refusal.error if refusal else ErrorCode.NONE,
                error_message=refusal.message if refusal else None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return IncrementalAlterConfigsResponse(throttle_time_ms=0, responses=tuple(responses))


def _alter(resource: AlterConfigsResource, context: RequestContext, *, validate_only: bool) -> Refusal | None:
    if resource.resource_type == BROKER:
        return _alter_broker(resource, context, validate_only=validate_only)
    target = topic_to_alter(resource.resource_type, resource.resource_name, context)
    if target.at_once is not None:
        return target.at_once
    topic = target.topic
    before = {} if topic is None else topic.configs
    changes = _changes(resource)
    name, problem = resource.resource_name, target.before_values
    configs = altered(name, before, changes, context.kafka_version, context.settings.current, problem)
    if isinstance(configs, Refusal):
        return configs
    if topic is None:
        return target.at_last
    if not validate_only:
        keep(topic, configs, context)
    return None


def _alter_broker(resource: AlterConfigsResource, context: RequestContext, *, validate_only: bool) -> Refusal | None:
    name, changes = resource.resource_name, _changes(resource)
    refusal = unclear(changes, context.kafka_version) or broker_to_alter(name, context)
    if refusal is not None:
        return refusal
    configs = altered_settings(name, context.settings.configs.get(name, {}), changes, context.kafka_version)
    if isinstance(configs, Refusal):
        return configs
    if not validate_only:
        context.settings.change(name, configs)
    return None


def _changes(resource: AlterConfigsResource) -> list[Alteration]:
    return [Alteration(config.name, config.config_operation, config.value) for config in resource.configs]
