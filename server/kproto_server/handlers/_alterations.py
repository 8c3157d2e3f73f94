"""What AlterConfigs and IncrementalAlterConfigs have in common: which resources can be altered, and by whose words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal, Topic, name_problem

if TYPE_CHECKING:
    from kproto_server.call import Call

TOPIC, BROKER = 2, 4
KNOWN_TYPES = frozenset({2, 4, 8, 16, 32})
NOT_THESE = "kproto changes the configs of topics and brokers only"


def topic_to_alter(resource_type: int, name: str, call: Call) -> Topic | Refusal:
    """Return the topic that is to be altered, or why it can't be."""
    profile = call.state.profile
    if resource_type not in KNOWN_TYPES:
        anew = f"Unknown resource type {resource_type}"
        told = anew if profile.looks_through_changes else "Unexpected resource type UNKNOWN"
        return Refusal(ErrorCode.INVALID_REQUEST, told)
    if resource_type != TOPIC:
        return Refusal(ErrorCode.POLICY_VIOLATION, NOT_THESE)
    topic = call.state.cluster.topic(name)
    if topic is not None:
        return topic
    problem = name_problem(name, profile)
    if problem is not None and profile.words_missing_topics_by_name:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    error, message = profile.missing_topic_to_alter
    return Refusal(ErrorCode(error), message and message.format(name))


def broker_to_alter(name: str, call: Call) -> Refusal | None:
    """Say why settings of this broker, or of all, can't be changed here: a broker changes its own."""
    if not name:
        return None
    if not (name.removeprefix("-").isdigit() and name.isascii()):
        node = "Node" if call.state.profile.is_kraft else "Broker"
        return Refusal(ErrorCode.INVALID_REQUEST, f"{node} id must be an integer, but it is: {name}")
    if int(name) != call.node.node_id:
        told = f"Unexpected broker id, expected {call.node.node_id}, but received {name}"
        return Refusal(ErrorCode.INVALID_REQUEST, told)
    return None


def told_type(resource_type: int, call: Call) -> int:
    """Return what an answer to AlterConfigs has for a type."""
    return resource_type if resource_type in KNOWN_TYPES or call.state.profile.remembers_unknown_types else 0


def keep(topic: Topic, configs: dict[str, str], call: Call) -> None:
    """Give a topic its new configs."""
    if configs != topic.configs:
        topic.configs = configs
        call.state.cluster.version += 1
