"""What AlterConfigs and IncrementalAlterConfigs have in common: the resources that they can change, and the errors."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kproto.codes import ErrorCode
from kproto_server.cluster.topic_config_changes import ConfigChange, Operation, check_changes
from kproto_server.cluster.topics import Refusal, Topic, name_problem
from kproto_server.cluster.version_behavior import AlterConfigsBehavior
from kproto_server.handlers._config_resources import ConfigResourceBehavior, ResourceType, check_broker_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kproto.messages.k33_alter_configs import AlterConfigsResource
    from kproto.messages.k44_incremental_alter_configs import AlterConfigsResource as ChangedResource
    from kproto_server.requests.context import RequestContext

    Configs = Mapping[str, dict[str, str]]
    """By resource."""
    Change = Callable[[str, dict[str, str]], None]

ResourceT = TypeVar("ResourceT", "AlterConfigsResource", "ChangedResource")

DUPLICATE = Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
UNEXPECTED_TYPE = Refusal(ErrorCode.INVALID_REQUEST, "Unexpected resource type UNKNOWN")
UNSUPPORTED_RESOURCE = "kproto changes the configs of topics, brokers, groups and client metrics only"
GROUPS_MAX = 10_000
CLIENT_METRICS_MAX = 1000
SIZE_MAX = 10_000
"""Characters of a group or a client metrics resource: its name and its configs."""
TOO_MANY_GROUPS = Refusal(
    ErrorCode.POLICY_VIOLATION, f"kproto keeps configs of at most {GROUPS_MAX} groups, of {SIZE_MAX} characters each"
)

TOO_MANY_CLIENT_METRICS = Refusal(
    ErrorCode.POLICY_VIOLATION,
    f"kproto keeps at most {CLIENT_METRICS_MAX} client metrics resources, of {SIZE_MAX} characters each",
)


class Target(NamedTuple):
    """The topic whose configs change, or its error. The fields say when a broker reports the error."""

    topic: Topic | None = None
    first_error: Refusal | None = None
    """Reported before the changes are checked."""
    error_before_values: Refusal | None = None
    """Reported after the changes are checked, and before their values are."""
    last_error: Refusal | None = None
    """Reported after the values are checked."""


def with_first_refusals(
    resources: Iterable[ResourceT], context: RequestContext
) -> list[tuple[ResourceT, Refusal | None]]:
    """Return the resources of a request, each with the reason to refuse it before any is changed.

    Up to 3.1 with ZooKeeper an unknown type fails the whole request, and the last one of a duplicate resource counts.
    """
    if not context.behavior(AlterConfigsBehavior).preprocesses_changes:
        resources = {(one.resource_type, one.resource_name): one for one in resources}.values()
        are_known = all(_is_known(one.resource_type, context) for one in resources)
        return [(one, None if are_known else UNEXPECTED_TYPE) for one in resources]
    counts = Counter((one.resource_type, one.resource_name) for one in resources)
    return [(one, _first_refusal(one, counts[one.resource_type, one.resource_name], context)) for one in resources]


def _first_refusal(
    resource: AlterConfigsResource | ChangedResource, count: int, context: RequestContext
) -> Refusal | None:
    if count > 1:
        return DUPLICATE
    changes = [
        ConfigChange(one.name, getattr(one, "config_operation", Operation.SET), one.value) for one in resource.configs
    ]
    refusal = check_changes(changes, context.kafka_version)
    if refusal is None and not _is_known(resource.resource_type, context):
        return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}")
    return refusal


def topic_to_change(resource_type: int, name: str, context: RequestContext) -> Target:
    """Return the topic of a resource, or its error. KRaft reports a missing topic last, ZooKeeper before the values."""
    kafka_version = context.kafka_version
    behavior = kafka_version.behavior(AlterConfigsBehavior)
    if resource_type != ResourceType.TOPIC:
        return Target(first_error=Refusal(ErrorCode.POLICY_VIOLATION, UNSUPPORTED_RESOURCE))
    topic = context.cluster.topic(name)
    if topic is not None:
        return Target(topic)
    missing = Refusal(*behavior.missing_topic_error(name))
    problem = name_problem(name, kafka_version)
    invalid_name = None if problem is None else Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if kafka_version.is_kraft:
        no_name = Refusal(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        return Target(error_before_values=invalid_name if name else no_name, last_error=missing)
    if invalid_name is not None and behavior.checks_name_of_missing_topics:
        return Target(error_before_values=invalid_name)
    return Target(error_before_values=missing)


def check_broker_to_change(name: str, context: RequestContext) -> Refusal | None:
    """Refuse a broker resource that this node cannot change: a node changes its own configs, and those of all ("")."""
    if not name:
        return None
    noun = "Node" if context.kafka_version.is_kraft else "Broker"
    return check_broker_id(name, context, expected="{},", noun=noun)


def returned_type(resource_type: int, context: RequestContext) -> int:
    """Return the resource type that the AlterConfigs response has."""
    returns_unknown = context.behavior(AlterConfigsBehavior).returns_unknown_resource_types
    return resource_type if returns_unknown or _is_known(resource_type, context) else ResourceType.UNKNOWN


def set_configs(topic: Topic, configs: dict[str, str], context: RequestContext) -> None:
    """Set the configs of a topic, and invalidate what depends on them."""
    if configs != topic.configs:
        context.cluster.unsaved.append(partial(setattr, topic, "configs", topic.configs))
        topic.configs = configs
        context.cluster.version += 1


def set_broker_configs(name: str, configs: dict[str, str], context: RequestContext) -> None:
    """Set the dynamic configs of a broker, or of all brokers ("")."""
    settings = context.settings
    _set(name, configs, settings.configs, settings.change, context)


def set_group_configs(group_id: str, configs: dict[str, str], context: RequestContext) -> Refusal | None:
    """Set the configs of a group, or refuse more than clients may make a broker keep."""
    settings = context.settings
    if _are_too_many(group_id, configs, settings.groups, GROUPS_MAX):
        return TOO_MANY_GROUPS
    _set(group_id, configs, settings.groups, settings.change_group, context)
    return None


def set_client_metrics(name: str, configs: dict[str, str], context: RequestContext) -> Refusal | None:
    """Set the configs of a client metrics resource, or refuse more than clients may make a broker keep."""
    settings = context.settings
    if _are_too_many(name, configs, settings.client_metrics, CLIENT_METRICS_MAX):
        return TOO_MANY_CLIENT_METRICS
    _set(name, configs, settings.client_metrics, settings.change_client_metrics, context)
    return None


def _are_too_many(name: str, configs: dict[str, str], kept: Configs, kept_max: int) -> bool:
    """Return whether a resource has too long configs, or is one too many that has any."""
    size = len(name) + sum(len(config) + len(value) for config, value in configs.items())
    return bool(configs) and (size > SIZE_MAX or (not kept.get(name) and len(kept) >= kept_max))


def _set(name: str, configs: dict[str, str], kept: Configs, change: Change, context: RequestContext) -> None:
    """Change the configs of a resource; they are as before if they cannot be saved."""
    context.cluster.unsaved.append(partial(change, name, kept.get(name, {})))
    change(name, configs)


def changes_client_metrics(context: RequestContext) -> bool:
    """Return whether there are client metrics resources in the release."""
    return _is_known(ResourceType.CLIENT_METRICS, context) and context.kafka_version.is_kraft


def changes_groups(context: RequestContext) -> bool:
    """Return whether groups have configs in the release."""
    return _is_known(ResourceType.GROUP, context)


def _is_known(resource_type: int, context: RequestContext) -> bool:
    return resource_type in context.behavior(ConfigResourceBehavior).resource_types
