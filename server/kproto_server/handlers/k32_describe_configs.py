"""DescribeConfigs (API key 32): the configs of topics and groups, and of the node that received the request (BA-92).

DEVIATION: settings that kproto does not have are described with their defaults; broker loggers have no configs.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.messages.k32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kproto_server.cluster.topics import Refusal, name_problem
from kproto_server.configuration.listeners import ADVERTISED, bracketed
from kproto_server.configuration.settings import NODE_IDS, ConfigType
from kproto_server.configuration.topic_configs import ConfigSource, describe_topic
from kproto_server.deferred import LargeResponse, in_slices
from kproto_server.handlers._config_resources import ConfigResourceBehavior, ResourceType, check_broker_id
from kproto_server.handlers._hash_order import configs_in_hash_order, group_configs_in_hash_order
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from kproto_server.configuration.settings import ConfigEntry
    from kproto_server.deferred import DelayedOperation
    from kproto_server.requests.context import RequestContext


UNKNOWN_TYPE = 0
UNSET_ID = "-1"
LOG_DIRS, LISTENERS = "log.dirs", "listeners"
OF_KRAFT = {"process.roles": "broker,controller", "controller.listener.names": "CONTROLLER"}
"""Settings of every broker in KRaft mode."""
SMALL_CONFIGS = 2000
"""Configs that are described at once: about 20 ms. A response with more is made in slices."""


class Entry(NamedTuple):
    """One config of a resource."""

    name: str
    type: ConfigType | None
    """None: UNKNOWN."""
    value: str | None
    source: ConfigSource
    read_only: bool
    synonyms: Sequence[tuple[str, str | None, ConfigSource]] = ()
    is_secret: bool = False
    """Whether no value is returned, as for passwords."""


class DescribeConfigsBehavior(VersionBehavior):
    """What Kafka releases do differently in DescribeConfigs."""

    @cached_property
    def has_generated_protocol(self) -> bool:
        """Whether DescribeConfigs behaves as since 2.7, when Kafka began to generate its protocol code for it.

        From 2.7 on an empty list of keys means all keys, a resource is returned as often as the request names it, the
        message of a success is empty, and v0 marks no value as default. Before, an empty list means no keys, a resource
        is returned once, the message is null, and v0 marks defaults (BA-92; measured on 2.6.3 and 2.7.2).
        """
        return self.at_least(2, 7)

    @cached_property
    def describes_missing_topics(self) -> bool:
        """Whether a topic that does not exist has the default configs, instead of UNKNOWN_TOPIC_OR_PARTITION: before
        2.0 (BA-92; measured on 1.1.1 and 2.0.1)."""
        return not self.at_least(2, 0)

    @cached_property
    def has_lists_of_listeners(self) -> bool:
        """Whether the type of `advertised.listeners` is LIST instead of STRING (measured on 4.2.2)."""
        return self.at_least(4, 2)

    @cached_property
    def has_node_id(self) -> bool:
        """Whether a broker has `node.id` beside `broker.id` (measured on 2.8.2 and 3.0.2)."""
        return self.at_least(3, 0)

    @cached_property
    def has_same_node_id(self) -> bool:
        """Whether `node.id` is the id in a cluster with ZooKeeper, too, not -1 (measured on 3.0.2 and 3.1.2)."""
        return self.at_least(3, 1)

    @cached_property
    def requires_node_id(self) -> bool:
        """Whether `node.id` has no default (measured on 3.9.2 and 4.0.0)."""
        return self.at_least(4, 0)

    @cached_property
    def has_fixed_listeners(self) -> bool:
        """Whether `advertised.listeners` is read-only (measured on 1.0.2 and 1.1.1, 3.9.2 and 4.0.0)."""
        return self.at_least(4, 0) or not self.at_least(1, 1)


def handle(
    request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResponse | LargeResponse | DelayedOperation:
    return in_slices(_slices(request, context), context.now_ms)


def _slices(
    request: DescribeConfigsRequest, context: RequestContext
) -> Generator[None, None, DescribeConfigsResponse | LargeResponse]:
    resources: Iterable[DescribeConfigsResource] = request.resources
    if not context.behavior(DescribeConfigsBehavior).has_generated_protocol:
        resources = {(_type(one, context), one.resource_name): one for one in resources}.values()
    unknown = [one for one in resources if _type(one, context) is ResourceType.UNKNOWN]
    if unknown:
        return DescribeConfigsResponse(throttle_time_ms=0, results=_all_refused(resources, unknown[0], context))
    described: dict[DescribeConfigsResource, DescribeConfigsResult] = {}
    config_count, pause_at = 0, SMALL_CONFIGS
    results = []
    for one in resources:
        if one not in described:
            described[one] = _result(one, request, context)
        results.append(described[one])
        config_count += len(described[one].configs or ())
        if config_count > pause_at:
            pause_at = config_count + SMALL_CONFIGS
            yield
    response = DescribeConfigsResponse(throttle_time_ms=0, results=tuple(results))
    if config_count <= SMALL_CONFIGS:
        return response
    return LargeResponse(response, [one.error_code for one in results if one.error_code])


def _result(
    requested: DescribeConfigsResource, request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResult:
    is_generated = context.behavior(DescribeConfigsBehavior).has_generated_protocol
    resource_type = _type(requested, context)
    entries = _DESCRIBE[resource_type](requested.resource_name, context)
    if isinstance(entries, Refusal):
        message = entries.message or ("" if is_generated else None)
        return _described(requested, entries.error, message)
    keys = requested.configuration_keys
    if keys is not None and (keys or not is_generated) and _filters(requested, context):
        entries = [entry for entry in entries if entry.name in keys]
    texts, no_text = _documentation(resource_type, request, context)
    configs = tuple(
        _config(entry, request.include_synonyms, texts.get(entry.name, no_text), context) for entry in entries
    )
    return _described(requested, ErrorCode.NONE, "" if is_generated else None, configs)


def _documentation(
    resource_type: ResourceType, request: DescribeConfigsRequest, context: RequestContext
) -> tuple[Mapping[str, str], str | None]:
    """Return the documentation by config, and what configs without one have."""
    if resource_type is ResourceType.CLIENT_METRICS:
        from kproto_server.client_metrics.configs import ClientMetricsBehavior

        if not context.behavior(ClientMetricsBehavior).describes_all:
            return {}, ""
    if not request.include_documentation:
        return {}, None
    from kproto_server.configuration.documentation import documentation  # rarely used: not imported at the start

    return documentation(resource_type.name.lower(), context.kafka_version), None


def _filters(requested: DescribeConfigsResource, context: RequestContext) -> bool:
    """Return whether the keys of a request choose among the configs of a resource."""
    if requested.resource_type != ResourceType.CLIENT_METRICS:
        return True
    from kproto_server.client_metrics.configs import ClientMetricsBehavior

    return context.behavior(ClientMetricsBehavior).describes_all


def _described(
    requested: DescribeConfigsResource,
    error: ErrorCode,
    message: str | None,
    configs: tuple[DescribeConfigsResourceResult, ...] = (),
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error,
        error_message=message,
        resource_type=requested.resource_type,
        resource_name=requested.resource_name,
        configs=configs,
    )


def _all_refused(
    resources: Iterable[DescribeConfigsResource], unknown: DescribeConfigsResource, context: RequestContext
) -> tuple[DescribeConfigsResult, ...]:
    """Refuse all resources of a request with an unknown type; releases before 2.7 return each unknown type as 0."""
    error = ErrorCode.INVALID_REQUEST
    if context.behavior(DescribeConfigsBehavior).has_generated_protocol:
        return tuple(_described(one, error, error.message) for one in resources)
    message = f"Unexpected resource type UNKNOWN for resource {unknown.resource_name}"
    typed = (one.replace(resource_type=_type(one, context)) for one in resources)
    return tuple(_described(one, error, message) for one in typed)


def _type(requested: DescribeConfigsResource, context: RequestContext) -> ResourceType:
    """Return the type of a resource, UNKNOWN if the release does not have the type."""
    known = context.behavior(ConfigResourceBehavior).resource_types
    return ResourceType(requested.resource_type) if requested.resource_type in known else ResourceType.UNKNOWN


def _topic(name: str, context: RequestContext) -> Refusal | list[Entry]:
    problem = name_problem(name, context.kafka_version)
    if problem is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    topic = context.cluster.topic(name)
    if topic is None and not context.behavior(DescribeConfigsBehavior).describes_missing_topics:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    described = describe_topic(context.settings.of(context.node.node_id), topic.configs if topic else {})
    return [
        Entry(entry.name, entry.type, entry.value, entry.source, read_only=False, synonyms=entry.synonyms)
        for entry in configs_in_hash_order(described, context.kafka_version)
    ]


def _broker(name: str, context: RequestContext) -> Refusal | list[Entry]:
    if not name:
        return _cluster_wide(context)
    refusal = check_broker_id(name, context, expected="{} or empty string,")
    if refusal is not None:
        return refusal
    fixed = {LOG_DIRS: context.log_manager.log_dir, LISTENERS: _addresses(context)}
    if context.kafka_version.is_kraft:
        fixed |= OF_KRAFT
    found = [_advertised_listeners(context), *_node_ids(context)]
    for entry in context.settings.of(context.node.node_id).entries():
        if entry.name in fixed and _source(entry.sources) is ConfigSource.DEFAULT:
            given = (entry.name, fixed[entry.name], ConfigSource.STATIC_BROKER)
            entry = entry._replace(value=fixed[entry.name], sources=[given, *entry.sources])
        found.append(_of_broker(entry, entry.sources))
    return found


def _advertised_listeners(context: RequestContext) -> Entry:
    value = _addresses(context)
    behavior, source = context.behavior(DescribeConfigsBehavior), ConfigSource.STATIC_BROKER
    type_ = ConfigType.LIST if behavior.has_lists_of_listeners else ConfigType.STRING
    synonyms = ((ADVERTISED, value, source),)
    return Entry(ADVERTISED, type_, value, source, behavior.has_fixed_listeners, synonyms)


def _addresses(context: RequestContext) -> str:
    """Return the addresses that clients of the node get, by listener."""
    node = context.node
    addresses = {context.cluster.main_listener: node.address(""), **node.others}
    return ",".join(f"{name}://{bracketed(host)}:{port}" for name, (host, port) in addresses.items())


def _node_ids(context: RequestContext) -> Iterator[Entry]:
    """Yield the id of the node under its two names."""
    behavior = context.behavior(DescribeConfigsBehavior)
    node_id = str(context.node.node_id)
    for name in NODE_IDS if behavior.has_node_id else NODE_IDS[:1]:
        is_broker_id = name == NODE_IDS[0]
        has_default = is_broker_id or not behavior.requires_node_id
        default = ((name, UNSET_ID, ConfigSource.DEFAULT),) if has_default else ()
        is_given = is_broker_id or behavior.has_same_node_id
        given = ((name, node_id, ConfigSource.STATIC_BROKER),) if is_given else ()
        synonyms = (*given, *default)
        yield Entry(name, ConfigType.INT, synonyms[0][1], synonyms[0][2], read_only=True, synonyms=synonyms)


def _of_broker(entry: ConfigEntry, synonyms: Sequence[tuple[str, str | None, ConfigSource]]) -> Entry:
    source, is_secret = _source(entry.sources), entry.type is None
    return Entry(entry.name, entry.type, entry.value, source, entry.read_only, synonyms, is_secret)


def _source(sources: Sequence[tuple[str, str, ConfigSource]]) -> ConfigSource:
    return sources[0][2] if sources else ConfigSource.DEFAULT


def _cluster_wide(context: RequestContext) -> list[Entry]:
    """Return the dynamic settings of all brokers; a new cluster may have some, too."""
    found = []
    for entry in context.settings.current.entries():
        if _source(entry.sources) is ConfigSource.DYNAMIC_DEFAULT_BROKER:
            found.append(_of_broker(entry, entry.sources[:1]))
    return configs_in_hash_order(found, context.kafka_version)


def _broker_logger(name: str, context: RequestContext) -> Refusal | list[Entry]:
    if not name:
        return Refusal(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    return check_broker_id(name, context, expected="{}") or []


def _client_metrics(name: str, context: RequestContext) -> Refusal | list[Entry]:
    from kproto_server.client_metrics.configs import describe  # rarely used: not imported at the start

    if not name:
        return Refusal(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
    if not context.kafka_version.is_kraft:
        return Refusal(ErrorCode.INVALID_REQUEST, "Config type client-metrics is only supported on KRaft clusters")
    described = describe(context.settings.client_metrics.get(name, {}), context.kafka_version)
    return [
        Entry(entry.name, entry.type, entry.value, entry.source, read_only=False, synonyms=entry.synonyms)
        for entry in described
    ]


def _group(name: str, context: RequestContext) -> Refusal | list[Entry]:
    from kproto_server.configuration.group_configs import describe_group  # rarely used: not imported at the start

    if not name:
        return Refusal(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    described = describe_group(context.settings.of(context.node.node_id), context.settings.groups.get(name, {}))
    return [
        Entry(entry.name, entry.type, entry.value, entry.source, read_only=False, synonyms=entry.synonyms)
        for entry in group_configs_in_hash_order(described, context.kafka_version)
    ]


_DESCRIBE: dict[ResourceType, Callable[[str, RequestContext], Refusal | list[Entry]]] = {
    ResourceType.TOPIC: _topic,
    ResourceType.BROKER: _broker,
    ResourceType.BROKER_LOGGER: _broker_logger,
    ResourceType.CLIENT_METRICS: _client_metrics,
    ResourceType.GROUP: _group,
}


def _config(
    entry: Entry, with_synonyms: bool, documentation: str | None, context: RequestContext
) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if with_synonyms else ()
    is_secret = entry.is_secret or entry.type is ConfigType.PASSWORD
    marks_defaults = context.api_version == 0 and not context.behavior(DescribeConfigsBehavior).has_generated_protocol
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=None if is_secret else entry.value,
        read_only=entry.read_only,
        is_default=marks_defaults and entry.source is ConfigSource.DEFAULT,
        config_source=entry.source,
        is_sensitive=is_secret,
        synonyms=tuple(
            DescribeConfigsSynonym(name=name, value=None if is_secret else value, source=source)
            for name, value, source in synonyms
        ),
        config_type=entry.type or UNKNOWN_TYPE,
        documentation=documentation,
    )
