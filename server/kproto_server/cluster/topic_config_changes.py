"""Changes of a topic's configs, with Kafka's error messages (BA-93): all configs (KIP-133), or some (KIP-339)."""

from __future__ import annotations

import enum
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal
from kproto_server.cluster.version_behavior import AlterConfigsBehavior
from kproto_server.configuration.settings import ConfigType
from kproto_server.configuration.topic_configs import config_problem, topic_configs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kproto_server.releases.kafka_version import KafkaVersion


class Operation(enum.IntEnum):
    """An operation of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """A change of one config."""

    name: str
    operation: int
    value: str | None


def replaced(
    topic_name: str,
    wanted: Iterable[tuple[str, str | None]],
    kafka_version: KafkaVersion,
    topic_error: Refusal | None = None,
) -> dict[str, str] | Refusal:
    """Return the configs of a topic that AlterConfigs has set.

    ``topic_error``: an error of the topic, which is reported before errors of values.
    """
    configs = with_values(wanted, kafka_version)
    if isinstance(configs, Refusal):
        return configs
    return topic_error or _checked(topic_name, configs, kafka_version)


def with_values(wanted: Iterable[tuple[str, str | None]], kafka_version: KafkaVersion) -> dict[str, str] | Refusal:
    """Return the configs of AlterConfigs, or refuse those without a value."""
    given = dict(wanted)
    configs = {name: value for name, value in given.items() if value is not None}
    if len(configs) == len(given):
        return configs
    if kafka_version.behavior(AlterConfigsBehavior).preprocesses_changes:
        return _null_values([name for name in given if name not in configs])
    return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)


def _null_values(names: Iterable[str]) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(names)}")


def changed(
    topic_name: str,
    configs: Mapping[str, str],
    changes: Sequence[ConfigChange],
    kafka_version: KafkaVersion,
    topic_error: Refusal | None = None,
) -> dict[str, str] | Refusal:
    """Return the configs of a topic after the changes of IncrementalAlterConfigs.

    ``topic_error``: an error of the topic, which is reported before errors of values.
    """
    refusal = check_changes(changes, kafka_version)
    if refusal is not None:
        return refusal
    after = dict(configs)
    for change in changes:
        refusal = _apply(after, change, kafka_version)
        if refusal is not None:
            return refusal
    return topic_error or _checked(topic_name, after, kafka_version)


def check_duplicates(names: Sequence[str], kafka_version: KafkaVersion) -> Refusal | None:
    """Refuse configs if one of them is named more than once."""
    counts = Counter(names)
    duplicates = [name for name, count in counts.items() if count > 1]
    if not duplicates:
        return None
    message = "Error due to duplicate config keys"
    if not kafka_version.behavior(AlterConfigsBehavior).preprocesses_changes:
        message += f" : {duplicates[0]}"
    return Refusal(ErrorCode.INVALID_REQUEST, message)


def check_changes(changes: Sequence[ConfigChange], kafka_version: KafkaVersion) -> Refusal | None:
    """Refuse changes with an unknown operation, without a value, or of one config twice."""
    refusal = check_duplicates([change.name for change in changes], kafka_version)
    if refusal is not None:
        return refusal
    behavior = kafka_version.behavior(AlterConfigsBehavior)
    for name, operation, value in changes:
        if operation not in Operation.__members__.values():
            return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None if behavior.explains_invalid_changes else "null")
        if value is None and operation != Operation.DELETE:
            if not behavior.explains_invalid_changes:
                return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
            if behavior.preprocesses_changes:
                return _null_values(one.name for one in changes if one.value is None and one[1] != Operation.DELETE)
            return _null_values([f"{Operation(operation).name}:{name}"])
    return None


def _apply(after: dict[str, str], change: ConfigChange, kafka_version: KafkaVersion) -> Refusal | None:
    """Change a config. What is not set for the topic is taken for Kafka's default, whatever the broker's settings."""
    name, operation, value = change
    if operation == Operation.DELETE or value is None:
        after.pop(name, None)
        return None
    if operation == Operation.SET:
        after[name] = value
        return None
    config = topic_configs(kafka_version).get(name)
    if config is None and not kafka_version.is_kraft:
        return unknown_list(name, kafka_version)
    if config is None or config.type is not ConfigType.LIST:
        return not_a_list(name, Operation(operation), kafka_version)
    after[name] = changed_list(after.get(name, config.default), operation, value, kafka_version)
    return None


def changed_list(value: str, operation: int, given: str, kafka_version: KafkaVersion) -> str:
    """Return the value of a list after APPEND or SUBTRACT. SUBTRACT removes an item once for each time it is given.

    ``value``: its value, or Kafka's default; ``given``: items with commas between them. White space is part of an item.
    """
    repeats_items = kafka_version.behavior(AlterConfigsBehavior).repeats_appended_items
    items = value.split(",") if value or repeats_items else []
    given_items = given.split(",")
    if operation == Operation.SUBTRACT:
        left = Counter(given_items)
        kept = []
        for item in items:
            if left[item]:
                left[item] -= 1
            else:
                kept.append(item)
        return ",".join(kept)
    present = set() if repeats_items else set(items)
    new_items = given_items if repeats_items else dict.fromkeys(given_items)
    return ",".join([*items, *(item for item in new_items if item not in present)])


def changed_values(
    configs: Mapping[str, str], changes: Sequence[ConfigChange], kafka_version: KafkaVersion
) -> dict[str, str] | Refusal:
    """Return the configs of a group or of a client metrics resource after the changes: no operation on lists."""
    refusal = check_changes(changes, kafka_version)
    if refusal is not None:
        return refusal
    after = dict(configs)
    for name, operation, value in changes:
        if operation == Operation.DELETE or value is None:
            after.pop(name, None)
        elif operation == Operation.SET:
            after[name] = value
        else:
            return not_a_list(name, Operation(operation), kafka_version)
    return after


def unknown_list(name: str, kafka_version: KafkaVersion) -> Refusal:
    """Return the error of an APPEND to a config that the release does not have, or a SUBTRACT from it."""
    behavior = kafka_version.behavior(AlterConfigsBehavior)
    if behavior.names_unknown_lists:
        return Refusal(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
    message = None if behavior.explains_invalid_changes else f"key not found: {name}"
    return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, message)


def not_a_list(name: str, operation: Operation, kafka_version: KafkaVersion) -> Refusal:
    """Return the error of an APPEND to, or a SUBTRACT from, a config that has one value."""
    if kafka_version.is_kraft:
        message = f"Can't {operation.name} to key {name} because its type is not LIST."
        return Refusal(ErrorCode.INVALID_CONFIG, message)
    message = f"Config value {operation.name.lower()} is not allowed for config key: {name}"
    return Refusal(ErrorCode.INVALID_REQUEST, message)


def _checked(topic_name: str, configs: dict[str, str], kafka_version: KafkaVersion) -> dict[str, str] | Refusal:
    problem = config_problem(kafka_version, configs)
    if problem is None:
        return configs
    if kafka_version.is_kraft or problem.startswith("Unknown topic config name"):
        return Refusal(ErrorCode.INVALID_CONFIG, problem)
    resource = kafka_version.behavior(AlterConfigsBehavior).resource_name("TOPIC", topic_name)
    return Refusal(ErrorCode.INVALID_REQUEST, f"Invalid config value for resource {resource}: {problem}")
