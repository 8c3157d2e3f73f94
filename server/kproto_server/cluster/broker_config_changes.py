"""Changes of broker settings while brokers run (KIP-226), with Kafka's error messages.

Source:
    AlterConfigs and IncrementalAlterConfigs responses of 2.8.2, 3.9.2 and 4.4.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.topic_config_changes import Operation, changed_list, unknown_list
from kproto_server.cluster.topics import Refusal
from kproto_server.cluster.version_behavior import AlterConfigsBehavior
from kproto_server.configuration.config_type import ConfigType
from kproto_server.configuration.other_settings import all_settings, is_read_only
from kproto_server.configuration.per_broker_names import PER_BROKER_NAMES
from kproto_server.configuration.setting_table import STORE_SETTINGS
from kproto_server.configuration.settings import (
    OF_LISTENER,
    RETENTION_UNITS_MS,
    SETTINGS,
    SettingError,
    SettingsBehavior,
    connection_overrides,
)
from kproto_server.configuration.topic_configs import InvalidValue, TopicConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kproto_server.cluster.topic_config_changes import ConfigChange
    from kproto_server.configuration.setting_table import Setting
    from kproto_server.configuration.settings import Settings
    from kproto_server.releases.kafka_version import KafkaVersion

ADVERTISED, ADVERTISED_FIXED_SINCE = "advertised.listeners", (4, 0)
OVERRIDES = "max.connections.per.ip.overrides"
MIN_IN_SYNC = "min.insync.replicas"
LOWEST = {"log.roll.ms": 1, "log.roll.jitter.ms": 0}
"""Bounds whose error has no value in it."""
THREADS = frozenset({
    "background.threads", "num.io.threads", "num.network.threads", "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
})  # fmt: skip
CLEANER_THREADS, CLEANER_BUFFER = "log.cleaner.threads", "log.cleaner.dedupe.buffer.size"
CLEANER_BUFFER_MIN_BYTES = 1024 * 1024
"""The buffer of each thread of the cleaner has more."""
DYNAMIC_PROBLEM = (
    "Invalid value org.apache.kafka.common.config.ConfigException: {} for configuration Invalid dynamic configuration"
)
OTHERS_MAX = 10_000
"""Characters of settings that kproto does not have, those of plugins among them, that a broker keeps."""
TOO_MANY_OTHERS = f"kproto keeps at most {OTHERS_MAX} characters of settings that it does not have"
FIXED = "Cannot update these configs dynamically"
PER_LISTENER = "These security configs can be dynamically updated only per-listener using the listener prefix"
PER_BROKER = "Cannot update these configs at default cluster level, broker id must be specified"
IN_SYNC_FIXED = "{}-level min.insync.replicas cannot be {} while ELR is enabled."


def changed_settings(
    name: str, configs: Mapping[str, str], changes: Sequence[ConfigChange], current: Settings
) -> dict[str, str] | Refusal:
    """Return the dynamic settings of a node, or of all nodes (""), after the changes of IncrementalAlterConfigs.

    ``current``: the settings of the node that has the request.
    """
    kafka_version = current.kafka_version
    after = dict(configs)
    for change in changes:
        if change.operation in (Operation.APPEND, Operation.SUBTRACT):
            refusal = _change_list(after, change, kafka_version)
            if refusal is not None:
                return refusal
        elif change.operation == Operation.DELETE:
            after.pop(change.name, None)
        else:
            after[change.name] = change.value or ""
    touched = {change.name for change in changes}
    return _checked(name, configs, after, touched, current)


def _change_list(after: dict[str, str], change: ConfigChange, kafka_version: KafkaVersion) -> Refusal | None:
    """APPEND to a setting or SUBTRACT from it. If it is not set, its value is Kafka's default."""
    name, operation, value = change
    setting = all_settings(kafka_version).get(name)
    if setting is None or not setting.is_described_in(kafka_version):
        return unknown_list(name, kafka_version)
    if setting.type is not ConfigType.LIST:
        error = ErrorCode.INVALID_CONFIG if kafka_version.is_kraft else ErrorCode.INVALID_REQUEST
        message = f"Config value {Operation(operation).name.lower()} is not allowed for config key: {name}"
        return Refusal(error, message)
    before = after.get(name, setting.default_in(kafka_version))
    after[name] = changed_list(before or "", operation, value or "", kafka_version)
    return None


def replaced_settings(
    name: str, configs: Mapping[str, str], after: dict[str, str], current: Settings
) -> dict[str, str] | Refusal:
    """As `changed_settings`, with all dynamic settings that AlterConfigs has set."""
    return _checked(name, configs, after, set(after), current)


def _checked(
    name: str, before: Mapping[str, str], after: dict[str, str], touched: set[str], current: Settings
) -> dict[str, str] | Refusal:
    kafka_version = current.kafka_version
    of_plugins = {one for one in after if _is_of_a_plugin(one, kafka_version)}
    new = {one: value for one, value in after.items() if before.get(one) != value and one not in of_plugins}
    problem = _problem(new, kafka_version) or _problem_of_cluster(name, before, after, kafka_version)
    problem = problem or _problem_of_threads(new, current)
    if problem is not None:
        return problem if problem.error is ErrorCode.POLICY_VIOLATION else _with_resource(problem, name, kafka_version)
    if kafka_version.behavior(SettingsBehavior).has_cluster_min_in_sync_replicas:
        if name and MIN_IN_SYNC in touched:
            return Refusal(ErrorCode.INVALID_CONFIG, IN_SYNC_FIXED.format("Broker", "altered"))
        if not name and MIN_IN_SYNC not in after:
            return Refusal(ErrorCode.INVALID_CONFIG, IN_SYNC_FIXED.format("Cluster", "removed"))
    if sum(len(one) + len(value) for one, value in after.items() if one not in SETTINGS) > OTHERS_MAX:
        return Refusal(ErrorCode.POLICY_VIOLATION, TOO_MANY_OTHERS)
    settings = all_settings(kafka_version)
    return {one: _parsed(settings[one], value, kafka_version) if one in new else value for one, value in after.items()}


def _problem(new: Mapping[str, str], kafka_version: KafkaVersion) -> Refusal | None:
    settings = all_settings(kafka_version)
    fixed = []
    for one in new:
        setting = settings.get(one)
        if setting is None or not setting.is_described_in(kafka_version):
            if not _is_read_only(one, kafka_version):
                return Refusal(ErrorCode.POLICY_VIOLATION, f"kproto knows no broker setting {one}")
            fixed.append(one)
        elif not setting.is_dynamic_in(kafka_version):
            fixed.append(one)
    if fixed:
        return _refused(FIXED, fixed, kafka_version)
    of_stores = sorted(STORE_SETTINGS & new.keys())
    if of_stores:
        return _refused(PER_LISTENER, of_stores, kafka_version, collection="HashSet")
    for one, value in new.items():
        try:
            parsed = _parsed(settings[one], value, kafka_version)
            if one == OVERRIDES:
                connection_overrides(parsed)
        except (InvalidValue, SettingError) as invalid:
            return Refusal(ErrorCode.INVALID_REQUEST, str(invalid))
        if one in RETENTION_UNITS_MS and int(parsed) == 0:
            message = f"requirement failed: {one} must be unlimited (-1) or, greater than or equal to 1"
            return Refusal(ErrorCode.INVALID_REQUEST, message)
        if one in LOWEST and int(parsed) < LOWEST[one]:
            message = f"requirement failed: {one} must be greater than or equal to {LOWEST[one]}"
            return Refusal(ErrorCode.INVALID_REQUEST, message)
    return None


def _problem_of_cluster(
    name: str, before: Mapping[str, str], after: Mapping[str, str], kafka_version: KafkaVersion
) -> Refusal | None:
    """Refuse settings of all brokers (``name`` is empty) that only one broker can have."""
    if name:
        return None
    found = [
        one
        for one, value in after.items()
        if before.get(one) != value and one in PER_BROKER_NAMES and kafka_version.at_least(*PER_BROKER_NAMES[one])
    ]
    return _refused(PER_BROKER, found, kafka_version) if found else None


def _refused(text: str, names: Sequence[str], kafka_version: KafkaVersion, *, collection: str = "Set") -> Refusal:
    in_brackets = kafka_version.behavior(AlterConfigsBehavior).lists_fixed_settings_in_brackets
    listed = ", ".join(names)
    return Refusal(ErrorCode.INVALID_REQUEST, f"{text}: {f'[{listed}]' if in_brackets else f'{collection}({listed})'}")


def _is_of_a_plugin(name: str, kafka_version: KafkaVersion) -> bool:
    """Return whether Kafka has no such setting: then it may be one of a plugin, which is kept and has no effect."""
    is_known = name in all_settings(kafka_version) or name.startswith(OF_LISTENER)
    return not is_known and not _is_read_only(name, kafka_version)


def _is_read_only(name: str, kafka_version: KafkaVersion) -> bool:
    """Return whether clients cannot change a setting that kproto does not have."""
    return is_read_only(name) or (name == ADVERTISED and kafka_version.at_least(*ADVERTISED_FIXED_SINCE))


def _problem_of_threads(new: Mapping[str, str], current: Settings) -> Refusal | None:
    """Refuse numbers of threads that are far from the current ones, and a buffer that is too small for them."""

    def numbers(names: Iterable[str]) -> dict[str, int]:
        return {one: int(_parsed(SETTINGS[one], new[one], current.kafka_version)) for one in names if one in new}

    cleaner = numbers((CLEANER_THREADS, CLEANER_BUFFER))
    if cleaner:
        both = {one: current.int(one) for one in (CLEANER_THREADS, CLEANER_BUFFER)} | cleaner
        if both[CLEANER_BUFFER] // both[CLEANER_THREADS] <= CLEANER_BUFFER_MIN_BYTES:
            message = f"requirement failed: {CLEANER_BUFFER} must be at least 1MB per cleaner thread."
            return Refusal(ErrorCode.INVALID_REQUEST, message)
        count, before = both[CLEANER_THREADS], current.int(CLEANER_THREADS)
        if not before // 2 <= count <= before * 2:
            side = "reduced to less than half" if count < before else "increased to more than double"
            message = f"Log cleaner threads cannot be {side} the current value {before}"
            return Refusal(ErrorCode.INVALID_REQUEST, DYNAMIC_PROBLEM.format(message))
    for one, count in numbers(one for one in new if one in THREADS).items():
        before = current.int(one)
        if before // 2 <= count <= before * 2:
            continue
        bound = "be at least half" if count < before else "not be greater than double"
        message = (
            f"Dynamic thread count update validation failed for {one}={count}, "
            f"value should {bound} the current value {before}"
        )
        return Refusal(ErrorCode.INVALID_REQUEST, DYNAMIC_PROBLEM.format(message))
    return None


def _parsed(setting: Setting, value: str, kafka_version: KafkaVersion) -> str:
    """Return a value in Kafka's notation.

    Raises:
        InvalidValue: the setting cannot have the value.
    """
    repeated = kafka_version.behavior(SettingsBehavior).repeated_items
    bounds = setting.low, setting.high, setting.choices
    return TopicConfig(setting.name, setting.type, None, "", *bounds, repeated).parse(value)


def _with_resource(problem: Refusal, name: str, kafka_version: KafkaVersion) -> Refusal:
    if kafka_version.behavior(AlterConfigsBehavior).preprocesses_changes:
        return problem
    resource = kafka_version.behavior(AlterConfigsBehavior).resource_name("BROKER", name)
    return problem._replace(message=f"Invalid config value for resource {resource}: {problem.message}")
