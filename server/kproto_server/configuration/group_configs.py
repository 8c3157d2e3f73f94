"""Group-level configuration: the configs of a release, their valid values, and the entries of DescribeConfigs.

The value of a group's config is the group's own, else that of a broker setting (its synonym), else the default. Error
messages have the words of real brokers, because clients print them.

Source:
    AlterConfigs, IncrementalAlterConfigs and DescribeConfigs responses of 4.0.2, 4.1.2, 4.2.2, 4.3.1 and 4.4.0, and
    Kafka's configuration definitions (fixtures/kafka-configs.json).
"""

from __future__ import annotations

from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.configuration.durations import duration_ms
from kproto_server.configuration.group_config_table import CHOICES, INTERNAL, IRREGULAR_BOUNDS, KINDS, SYNONYMS, TABLE
from kproto_server.configuration.settings import SETTINGS, ConfigSource
from kproto_server.configuration.topic_configs import InvalidValue, TopicConfig
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kproto_server.configuration.settings import ConfigType, Settings
    from kproto_server.releases.kafka_version import KafkaVersion

EARLIEST, LATEST, BY_DURATION = "earliest", "latest", "by_duration:"
DEAD_LETTER_TOPIC = "errors.deadletterqueue.topic.name"
ASSIGNOR = "streams.assignor.name"
RACK_TAGS = "streams.rack.aware.assignment.tags"


class GroupConfigEntry(NamedTuple):
    """A config of a group as DescribeConfigs returns it."""

    name: str
    type: ConfigType
    value: str
    source: ConfigSource
    synonyms: tuple[tuple[str, str, ConfigSource], ...]


class GroupConfigs(VersionBehavior):
    """The group configs of a release, and how it checks them."""

    @cached_property
    def by_name(self) -> Mapping[str, TopicConfig]:
        known = {}
        for name, kind, steps in TABLE:
            reached = [step for step in steps if self.at_least(*step[0])]
            if reached:
                _, default, low = reached[-1]
                setting = SYNONYMS.get(name, f"group.{name}")
                inherits = self.inherits_streams_settings or not name.startswith("streams.")
                synonym = setting if inherits and self._has(setting) else None
                known[name] = TopicConfig(name, kind, synonym, default, low, None, CHOICES.get(name, ()))
        return MappingProxyType(known)

    @cached_property
    def limits(self) -> Mapping[str, tuple[str | None, str | None]]:
        """The broker settings with the lowest and the highest value of each config."""
        found = {}
        for name in self.by_name:
            kind, _, rest = name.partition(".")
            low, high = IRREGULAR_BOUNDS.get(name, (f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}"))
            pair = low if low and self._has(low) else None, high if high and self._has(high) else None
            if pair != (None, None):
                found[name] = pair
        return MappingProxyType(found)

    @cached_property
    def has_broker_synonyms(self) -> bool:
        """Whether DescribeConfigs returns broker settings as synonyms, instead of their value as a default (measured on
        4.2.2 and 4.3.1)."""
        return self.at_least(4, 3)

    @cached_property
    def inherits_streams_settings(self) -> bool:
        """Whether a streams group that has some configs has the broker's settings as others: from 4.3 on. Before, it
        has Kafka's defaults (measured on 4.2.2 and 4.3.1)."""
        return self.at_least(4, 3)

    @cached_property
    def checks_given_only(self) -> bool:
        """Whether the limits are checked for the group's own configs only, and named by value (measured on 4.3.1 and
        4.4.0)."""
        return self.at_least(4, 4)

    @cached_property
    def caps_values(self) -> bool:
        """Whether a config beyond the limits, which have changed since, has the limit as value: from 4.3 on."""
        return self.at_least(4, 3)

    @cached_property
    def duration_format(self) -> str:
        """The format of a duration in error messages (measured on 4.0.2 and 4.1.2)."""
        return "PnDTnHnMn.nS" if self.at_least(4, 1) else "PnDTnHnMn.nS."

    def _has(self, setting: str) -> bool:
        return setting in SETTINGS and self.at_least(*SETTINGS[setting].since)


def group_configs(kafka_version: KafkaVersion) -> Mapping[str, TopicConfig]:
    """Return the configs that groups have in a release, by name."""
    return kafka_version.behavior(GroupConfigs).by_name


def group_config_problem(settings: Settings, given: Mapping[str, str]) -> str | None:
    """Return why a group cannot have these configs, in a broker's words; None if it can."""
    known = group_configs(settings.kafka_version)
    for name in given:
        if name not in known:
            return f"Unknown group config name: {name}"
    try:
        values = parsed(settings.kafka_version, given)
    except InvalidValue as invalid:
        return str(invalid)
    return _beyond_limits(settings, values) or _out_of_order(settings, values) or _not_allowed(settings, values)


def parsed(kafka_version: KafkaVersion, given: Mapping[str, str]) -> dict[str, str]:
    """Return configs as Kafka writes them, without those that the release does not have.

    Raises:
        InvalidValue: a group cannot have one of the values, whatever the broker settings are.
    """
    known = group_configs(kafka_version)
    return {name: _parsed(config, given[name], kafka_version) for name, config in known.items() if name in given}


def effective(settings: Settings, given: Mapping[str, str]) -> dict[str, str]:
    """Return the configs of a group that has these, within the limits of the broker."""
    configs = settings.kafka_version.behavior(GroupConfigs)
    values = parsed(settings.kafka_version, given)
    if not configs.inherits_streams_settings:
        values = {name: one.default for name, one in configs.by_name.items() if one.synonym is None} | values
    if configs.caps_values:
        for name, (low, high) in configs.limits.items():
            if name in values:
                number = int(values[name])
                number = min(number, settings.int(high)) if high else number
                values[name] = str(max(number, settings.int(low)) if low else number)
    return values


def describe_group(settings: Settings, given: Mapping[str, str]) -> Iterator[GroupConfigEntry]:
    """Yield all configs of a group with these configs of its own."""
    has_synonyms = settings.kafka_version.behavior(GroupConfigs).has_broker_synonyms
    values = parsed(settings.kafka_version, given)
    for name, config in group_configs(settings.kafka_version).items():
        if name in INTERNAL:
            continue
        listed = [(name, values[name], ConfigSource.GROUP)] if name in values else []
        if has_synonyms and config.synonym:
            listed += settings.sources(config.synonym)
        elif has_synonyms or not listed:
            listed.append((name, _inherited(settings, config), ConfigSource.DEFAULT))
        value = values.get(name, _inherited(settings, config))
        yield GroupConfigEntry(name, config.type, value, listed[0][2], tuple(listed))


def _inherited(settings: Settings, config: TopicConfig) -> str:
    return settings.str(config.synonym) if config.synonym else config.default


def _parsed(config: TopicConfig, text: str, kafka_version: KafkaVersion) -> str:
    value = config.parse(text)
    if config.name == "share.auto.offset.reset" and not _is_reset_strategy(value):
        form = kafka_version.behavior(GroupConfigs).duration_format
        reason = (
            f"Invalid value `{value}` for configuration {config.name}. The value must be either 'earliest', 'latest' "
            f"or of the format 'by_duration:<{form}>'."
        )
        raise InvalidValue(config.name, value, reason)
    return value


def _is_reset_strategy(value: str) -> bool:
    if not value.startswith(BY_DURATION):
        return value in (EARLIEST, LATEST)
    duration = duration_ms(value.removeprefix(BY_DURATION))
    return duration is not None and duration >= 0


def _beyond_limits(settings: Settings, values: Mapping[str, str]) -> str | None:
    configs = settings.kafka_version.behavior(GroupConfigs)
    for name, (low, high) in configs.limits.items():
        value = values.get(name)
        if value is None:
            if configs.checks_given_only:
                continue
            value = _inherited(settings, configs.by_name[name])
        is_low = low is not None and int(value) < settings.int(low)
        is_high = high is not None and int(value) > settings.int(high)
        if not (is_low or is_high):
            continue
        if configs.checks_given_only and low and high:
            return f"{name} must be in the range {settings.int(low)} to {settings.int(high)} inclusive."
        limit = (low if is_low else high) or ""
        shown = settings.int(limit) if configs.checks_given_only else limit
        return f"{name} must be {'greater' if is_low else 'less'} than or equal to {shown}"
    return None


def _out_of_order(settings: Settings, values: Mapping[str, str]) -> str | None:
    configs = settings.kafka_version.behavior(GroupConfigs)
    for kind in KINDS:
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if session not in configs.by_name or (configs.checks_given_only and not {session, heartbeat} & values.keys()):
            continue
        session_ms, heartbeat_ms = (
            int(values[name] if name in values else _inherited(settings, configs.by_name[name]))
            for name in (session, heartbeat)
        )
        if session_ms <= heartbeat_ms:
            return f"{session} must be greater than {heartbeat}"
    return None


def _not_allowed(settings: Settings, values: Mapping[str, str]) -> str | None:
    if values.get(DEAD_LETTER_TOPIC, "").startswith("__"):
        return f"{DEAD_LETTER_TOPIC}: DLQ topic name must not start with '__'"
    tags = values.get(RACK_TAGS, "").split(",")
    if len(set(tags)) < len(tags):
        return f"{RACK_TAGS} must not contain duplicate tag keys."
    assignors = settings.str("group.streams.assignors").split(",")
    if values.get(ASSIGNOR, assignors[0]) not in assignors:
        listed = ", ".join(assignors)
        return (
            f"{ASSIGNOR} '{values[ASSIGNOR]}' is not a registered task assignor. Registered assignors are: [{listed}]."
        )
    return None
