"""AlterConfigs (API key 33): replace all configs of a resource: topic, broker, group, client metrics (KIP-133, BA-93).

DEVIATION: broker loggers have no configs; of a broker's settings, those change that kproto knows as dynamic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k33_alter_configs import AlterConfigsResourceResponse, AlterConfigsResponse
from kproto_server.cluster.broker_config_changes import replaced_settings
from kproto_server.cluster.topic_config_changes import replaced, with_values
from kproto_server.cluster.topics import Refusal
from kproto_server.deferred import in_slices
from kproto_server.handlers._config_changes import (
    changes_client_metrics,
    changes_groups,
    check_broker_to_change,
    returned_type,
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

    from kproto.messages.k33_alter_configs import AlterConfigsRequest, AlterConfigsResource
    from kproto_server.deferred import DelayedOperation
    from kproto_server.requests.context import RequestContext


def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse | DelayedOperation:
    return in_slices(_slices(request, context), context.now_ms)


def _slices(request: AlterConfigsRequest, context: RequestContext) -> Generator[None, None, AlterConfigsResponse]:
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
                resource_type=returned_type(resource.resource_type, context),
                resource_name=resource.resource_name,
            )
        )
    return AlterConfigsResponse(throttle_time_ms=0, responses=tuple(responses))


def _alter(resource: AlterConfigsResource, context: RequestContext, *, validate_only: bool) -> Refusal | None:
    if resource.resource_type == ResourceType.BROKER:
        return _alter_broker(resource, context, validate_only=validate_only)
    if resource.resource_type == ResourceType.GROUP and changes_groups(context):
        return _alter_group(resource, context, validate_only=validate_only)
    if resource.resource_type == ResourceType.CLIENT_METRICS and changes_client_metrics(context):
        return _alter_client_metrics(resource, context, validate_only=validate_only)
    target = topic_to_change(resource.resource_type, resource.resource_name, context)
    if target.first_error is not None:
        return target.first_error
    wanted = ((config.name, config.value) for config in resource.configs)
    configs = replaced(resource.resource_name, wanted, context.kafka_version, target.error_before_values)
    if isinstance(configs, Refusal):
        return configs
    if target.topic is None:
        return target.last_error
    if not validate_only:
        set_configs(target.topic, configs, context)
    return None


def _alter_broker(resource: AlterConfigsResource, context: RequestContext, *, validate_only: bool) -> Refusal | None:
    name = resource.resource_name
    wanted = with_values(((config.name, config.value) for config in resource.configs), context.kafka_version)
    if isinstance(wanted, Refusal):
        return wanted
    refusal = check_broker_to_change(name, context)
    if refusal is not None:
        return refusal
    stores = {one: value for one, value in wanted.items() if names_store(name, one)}
    rest = {one: value for one, value in wanted.items() if one not in stores}
    current = context.settings.of(context.node.node_id)
    configs = replaced_settings(name, context.settings.configs.get(name, {}), rest, current)
    return change_broker(name, configs, stores, context, validate_only=validate_only)


def _alter_group(resource: AlterConfigsResource, context: RequestContext, *, validate_only: bool) -> Refusal | None:
    from kproto_server.cluster.group_config_changes import replaced_group  # rarely used: not imported at the start

    wanted = ((config.name, config.value) for config in resource.configs)
    configs = replaced_group(resource.resource_name, wanted, context.settings.current)
    if isinstance(configs, Refusal):
        return configs
    return None if validate_only else set_group_configs(resource.resource_name, configs, context)


def _alter_client_metrics(
    resource: AlterConfigsResource, context: RequestContext, *, validate_only: bool
) -> Refusal | None:
    from kproto_server.client_metrics.configs import checked  # rarely used: not imported at the start

    configs = with_values(((config.name, config.value) for config in resource.configs), context.kafka_version)
    if not isinstance(configs, Refusal):
        configs = checked(resource.resource_name, configs, context.kafka_version)
    if isinstance(configs, Refusal):
        return configs
    return None if validate_only else set_client_metrics(resource.resource_name, configs, context)
