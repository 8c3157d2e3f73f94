"""IncrementalAlterConfigs (API key 44): change some configs of a resource, as AlterConfigs (KIP-339, BA-93).

DEVIATION: broker loggers have no configs; of a broker's settings, those change that kproto knows as dynamic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k44_incremental_alter_configs import AlterConfigsResourceResponse, IncrementalAlterConfigsResponse
from kproto_server.cluster.broker_config_changes import changed_settings
from kproto_server.cluster.topic_config_changes import ConfigChange, Operation, changed, changed_values, check_changes
from kproto_server.cluster.topics import Refusal
from kproto_server.deferred import in_slices
from kproto_server.handlers._config_changes import (
    changes_client_metrics,
    changes_groups,
    check_broker_to_change,
    set_client_metrics,
    set_configs,
    set_group_configs,
    topic_to_change,
    with_first_refusals,
)
from kproto_server.handlers._config_resources import ResourceType
from kproto_server.handlers._config_slices import ConfigSlices
from kproto_server.handlers._listener_stores import change_broker, names_store

if TYPE_CHECKING:
    from collections.abc import Generator

    from kproto.messages.k44_incremental_alter_configs import AlterConfigsResource, IncrementalAlterConfigsRequest
    from kproto_server.deferred import DelayedOperation
    from kproto_server.requests.context import RequestContext


def handle(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse | DelayedOperation:
    return in_slices(_slices(request, context), context.now_ms)


def _slices(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> Generator[None, None, IncrementalAlterConfigsResponse]:
    """Alter the resources. If the client goes between two slices, the rest stay as they are."""
    responses = []
    pause = ConfigSlices()
    for resource, first_refusal in with_first_refusals(request.resources, context):
        if pause.is_due(config.value for config in resource.configs):
            yield
        refusal = first_refusal or _alter(resource, context, validate_only=request.validate_only)
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
    changes = [ConfigChange(config.name, config.config_operation, config.value) for config in resource.configs]
    if resource.resource_type == ResourceType.BROKER:
        return _alter_broker(resource.resource_name, changes, context, validate_only=validate_only)
    if resource.resource_type == ResourceType.GROUP and changes_groups(context):
        return _alter_group(resource.resource_name, changes, context, validate_only=validate_only)
    if resource.resource_type == ResourceType.CLIENT_METRICS and changes_client_metrics(context):
        return _alter_client_metrics(resource.resource_name, changes, context, validate_only=validate_only)
    target = topic_to_change(resource.resource_type, resource.resource_name, context)
    if target.first_error is not None:
        return target.first_error
    topic = target.topic
    configs = changed(
        resource.resource_name,
        {} if topic is None else topic.configs,
        changes,
        context.kafka_version,
        target.error_before_values,
    )
    if isinstance(configs, Refusal):
        return configs
    if topic is None:
        return target.last_error
    if not validate_only:
        set_configs(topic, configs, context)
    return None


def _alter_broker(
    name: str, changes: list[ConfigChange], context: RequestContext, *, validate_only: bool
) -> Refusal | None:
    refusal = check_changes(changes, context.kafka_version) or check_broker_to_change(name, context)
    if refusal is not None:
        return refusal
    stores = {
        one.name: one.value if one.operation == Operation.SET else None
        for one in changes
        if one.operation in (Operation.SET, Operation.DELETE) and names_store(name, one.name)
    }
    rest = [one for one in changes if one.name not in stores]
    current = context.settings.of(context.node.node_id)
    configs = changed_settings(name, context.settings.configs.get(name, {}), rest, current)
    return change_broker(name, configs, stores, context, validate_only=validate_only)


def _alter_group(
    group_id: str, changes: list[ConfigChange], context: RequestContext, *, validate_only: bool
) -> Refusal | None:
    from kproto_server.cluster.group_config_changes import changed_group  # rarely used: not imported at the start

    configs = changed_group(group_id, context.settings.groups.get(group_id, {}), changes, context.settings.current)
    if isinstance(configs, Refusal):
        return configs
    return None if validate_only else set_group_configs(group_id, configs, context)


def _alter_client_metrics(
    name: str, changes: list[ConfigChange], context: RequestContext, *, validate_only: bool
) -> Refusal | None:
    from kproto_server.client_metrics.configs import checked  # rarely used: not imported at the start

    configs = changed_values(context.settings.client_metrics.get(name, {}), changes, context.kafka_version)
    if not isinstance(configs, Refusal):
        configs = checked(name, configs, context.kafka_version)
    if isinstance(configs, Refusal):
        return configs
    return None if validate_only else set_client_metrics(name, configs, context)
