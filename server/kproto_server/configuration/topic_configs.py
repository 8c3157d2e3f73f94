"""Topic-level configuration: the configs of a release, their valid values, and the entries of DescribeConfigs.

The value of a topic's config is the topic's own, else that of a broker setting (its synonym), else the default. Error
messages have the words of real brokers, because clients print them.

Source:
    CreateTopics and DescribeConfigs responses of running brokers, and Kafka's configuration definitions
    (fixtures/kafka-configs.json).
"""

from __future__ import annotations

import re
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import UsageError
from kproto.jvm.doubles import double_text, parse_double
from kproto.jvm.text import trimmed
from kproto_server.configuration.config_type import Repeated, split_list
from kproto_server.configuration.message_format_versions import CONFIG as FORMAT_VERSION
from kproto_server.configuration.message_format_versions import MessageFormatVersions
from kproto_server.configuration.settings import SETTINGS, UNITS_MS, ConfigSource, ConfigType, whole_number
from kproto_server.configuration.topic_config_table import CHOICES, NOT_YET, TABLE
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from kproto_server.configuration.settings import Settings
    from kproto_server.releases.kafka_version import KafkaVersion

__all__ = ["ConfigSource", "TopicConfig", "TopicConfigEntry", "config_problem", "describe_topic", "topic_configs"]


SYNONYM_IF_SET = {name: next(iter(units_ms)) for name, units_ms in UNITS_MS.items()}
"""The synonyms that DescribeConfigs returns only if the broker sets them; log.retention.minutes or .hours alone is not
returned (BA-92; measured on 3.9.2 and 4.4.0)."""
NO_TIERED_STORAGE = (
    "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
)


class TopicConfig(NamedTuple):
    """One config of one release."""

    name: str
    type: ConfigType
    synonym: str | None
    """The broker setting that is the default; None if DescribeConfigs returns no synonym."""
    default: str
    low: int | None
    high: int | None
    choices: tuple[str, ...]
    repeated: Repeated = Repeated.KEPT
    """Of a list."""

    def parse(self, text: str) -> str:
        """Return a value as Kafka writes it.

        Raises:
            InvalidValue: the config cannot have the value.
        """
        value = trimmed(text)
        match self.type:
            case ConfigType.BOOLEAN:
                if value.lower() not in ("true", "false"):
                    raise InvalidValue(self.name, text, "Expected value to be either true or false")
                return value.lower()
            case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
                return str(self._bounded(whole_number(value, self.type), text))
            case ConfigType.DOUBLE:
                return double_text(self._bounded(parse_double(value), text))
            case ConfigType.LIST:
                return ",".join(self._items(value))
            case _:
                return self._chosen(value)

    def _bounded(self, number: float | None, text: str) -> float:
        if number is None:
            raise InvalidValue(self.name, text, f"Not a number of type {self.type.name}")
        if self.name == "compression.gzip.level" and not (number == -1 or 1 <= number <= 9):
            raise InvalidValue(self.name, number, "Value must be between 1 and 9 or equal to -1")
        if self.low is not None and number < self.low:
            raise InvalidValue(self.name, number, f"Value must be at least {self.low}")
        if self.high is not None and number > self.high:
            raise InvalidValue(self.name, number, f"Value must be no more than {self.high}")
        return number

    def _items(self, value: str) -> list[str]:
        items = [self._item(item) for item in split_list(value)]
        if (
            self.name.endswith("throttled.replicas")
            and items != ["*"]
            and not all(re.fullmatch(r"[0-9]+:[0-9]+", item) for item in items)
        ):
            raise InvalidValue(
                self.name,
                f"[{', '.join(items)}]",
                f"{self.name} must be the literal '*' or a list of replicas in the following format: "
                "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
            )
        if self.repeated is Repeated.KEPT:
            return items
        unique = list(dict.fromkeys(items))
        if self.repeated is Repeated.REFUSED and len(unique) < len(items):
            raise InvalidList(self.name, "duplicated")
        return unique

    def _item(self, item: str) -> str:
        if not item and self.repeated is not Repeated.KEPT:
            raise InvalidList(self.name, "empty")
        return self._chosen(item)

    def _chosen(self, value: str) -> str:
        if self.choices and value not in self.choices:
            raise InvalidValue(self.name, value, f"String must be one of: {', '.join(self.choices)}")
        return value


class InvalidValue(UsageError):
    """A config cannot have a value; the text has a broker's words."""

    def __init__(self, name: str, value: object, reason: str) -> None:
        value = double_text(value) if isinstance(value, float) else value
        super().__init__(f"Invalid value {value} for configuration {name}: {reason}")


class InvalidList(InvalidValue):
    """A list cannot have its items."""

    def __init__(self, name: str, problem: str) -> None:
        UsageError.__init__(self, f"Configuration '{name}' values must not be {problem}.")


class TopicConfigEntry(NamedTuple):
    """A config of a topic as DescribeConfigs returns it."""

    name: str
    type: ConfigType
    value: str
    source: ConfigSource
    synonyms: tuple[tuple[str, str, ConfigSource], ...]
    """Name, value and source of each value that the config could have; the first one is in effect."""


class TopicConfigs(VersionBehavior):
    """The topic configs of a release."""

    @cached_property
    def by_name(self) -> Mapping[str, TopicConfig]:
        known = {}
        for name, kind, synonym, steps in TABLE:
            reached = [step for step in steps if self.at_least(*step[0])]
            _, default, low, high = reached[-1] if reached else NOT_YET
            if default is not None:
                choices = [choices for release, choices in CHOICES.get(name, ()) if self.at_least(*release)]
                repeated = Repeated.DROPPED if name == "cleanup.policy" and self.at_least(4, 2) else Repeated.KEPT
                last = choices[-1] if choices else ()
                known[name] = TopicConfig(name, kind, synonym, default, low, high, last, repeated)
        return MappingProxyType(dict(sorted(known.items())))


def topic_configs(kafka_version: KafkaVersion) -> Mapping[str, TopicConfig]:
    """Return the configs that topics have in a release, by name."""
    return kafka_version.behavior(TopicConfigs).by_name


def config_problem(kafka_version: KafkaVersion, given: Mapping[str, str]) -> str | None:
    """Return why a topic cannot have these configs, in a broker's words; None if it can (BA-90, INVALID_CONFIG)."""
    known = topic_configs(kafka_version)
    for name in given:
        if name not in known:
            return f"Unknown topic config name: {name}"
    values = {}
    for name, text in given.items():
        try:
            values[name] = known[name].parse(text)
        except InvalidValue as invalid:
            return str(invalid)
    if FORMAT_VERSION in values:
        problem = kafka_version.behavior(MessageFormatVersions).problem(values[FORMAT_VERSION])
        if problem:
            return str(InvalidValue(FORMAT_VERSION, values[FORMAT_VERSION], problem))
    return _conflict(values)


def _conflict(values: Mapping[str, str]) -> str | None:
    low, high = values.get("min.compaction.lag.ms"), values.get("max.compaction.lag.ms")
    if low is not None and high is not None and int(low) > int(high):
        return f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
    if values.get("remote.storage.enable") == "true":
        return NO_TIERED_STORAGE
    return None


def describe_topic(
    settings: Settings, given: Mapping[str, str], names: Container[str] | None = None
) -> Iterator[TopicConfigEntry]:
    """Yield all configs of a topic with these configs of its own, sorted by name (BA-92); ``names``: only these."""
    for config in topic_configs(settings.kafka_version).values():
        if names is not None and config.name not in names:
            continue
        listed = _listed(config, settings, given)
        source = listed[0][2] if listed else ConfigSource.DEFAULT
        yield TopicConfigEntry(config.name, config.type, _value(config, settings, given), source, tuple(listed))


def topic_config(settings: Settings, given: Mapping[str, str], name: str) -> str:
    """Return one config of a topic: its own value, the broker's or Kafka's default; empty if the release lacks it."""
    config = topic_configs(settings.kafka_version).get(name)
    return "" if config is None else _value(config, settings, given)


def _value(config: TopicConfig, settings: Settings, given: Mapping[str, str]) -> str:
    if config.name in given:
        return config.parse(given[config.name])
    if config.name in UNITS_MS:
        return str(settings.topic_default_ms(config.name))
    return settings.str(config.synonym) if config.synonym and config.synonym in SETTINGS else config.default


def _listed(config: TopicConfig, settings: Settings, given: Mapping[str, str]) -> list[tuple[str, str, ConfigSource]]:
    own = [(config.name, config.parse(given[config.name]), ConfigSource.TOPIC)] if config.name in given else []
    synonym = config.synonym or SYNONYM_IF_SET.get(config.name)
    if synonym is None:
        return own
    if synonym in SETTINGS:
        return own + settings.sources(synonym)
    return [*own, (synonym, config.default, ConfigSource.DEFAULT)]
