"""What AlterConfigs and IncrementalAlterConfigs have in common: which resources can be altered, and by whose words."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal, Topic, name_problem
from kproto_server.cluster.version_behavior import AlterConfigsBehavior

if TYPE_CHECKING:
    from kproto_server.requests.context import RequestContext

TOPIC, BROKER = 2, 4
KNOWN_TYPES = frozenset({2, 4, 8, 16, 32})
NOT_THESE = "kproto changes the configs of topics and brokers only"


class Target(NamedTuple):
    """The topic that is to be altered, and what is wrong with it, by the time at which it is told."""

    topic: Topic | None = None
    at_once: Refusal | None = None
    before_values: Refusal | None = None
    at_last: Refusal | None = None


def topic_to_alter(resource_type: int, name: str, context: RequestContext) -> Target:
    """Find the topic. That there is none is told when the changes are judged, in KRaft when their values are, too."""
    kafka_version = context.kafka_version
    behavior = kafka_version.behavior(AlterConfigsBehavior)
    if resource_type not in KNOWN_TYPES:
        message = "Unexpected resource type UNKNOWN"
        if behavior.preprocesses_changes:
            message = f"Unknown resource type {resource_type}"
        return Target(at_once=Refusal(ErrorCode.INVALID_REQUEST, message))
    if resource_type != TOPIC:
        return Target(at_once=Refusal(ErrorCode.POLICY_VIOLATION, NOT_THESE))
    topic = context.cluster.topic(name)
    if topic is not None:
        return Target(topic)
    missing = Refusal(*behavior.missing_topic_error(name))
    problem = name_problem(name, kafka_version)
    refusal = None if problem is None else Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if kafka_version.is_kraft:
        no_name = Refusal(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        return Target(before_values=refusal if name else no_name, at_last=missing)
    return Target(before_values=refusal if refusal is not None and behavior.checks_name_of_missing_topics else missing)


def broker_to_alter(name: str, context: RequestContext) -> Refusal | None:
    """Say why settings of this broker, or of all, can't be changed here: a broker changes its own."""
    if not name:
        return None
    if not (name.removeprefix("-").isdigit() and name.isascii()):
        node = "Node" if context.kafka_version.is_kraft else "Broker"
        return Refusal(ErrorCode.INVALID_REQUEST, f"{node} id must be an integer, but it is: {name}")
    if int(name) != context.node.node_id:
        told = f"Unexpected broker id, expected {context.node.node_id}, but received {name}"
        return Refusal(ErrorCode.INVALID_REQUEST, told)
    return None


def told_type(resource_type: int, context: RequestContext) -> int:
    """Return what an answer to AlterConfigs has for a type."""
    is_returned = context.behavior(AlterConfigsBehavior).returns_unknown_resource_types
    return resource_type if resource_type in KNOWN_TYPES or is_returned else 0


def keep(topic: Topic, configs: dict[str, str], context: RequestContext) -> None:
    """Give a topic its new configs."""
    if configs != topic.configs:
        topic.configs = configs
        context.cluster.version += 1
