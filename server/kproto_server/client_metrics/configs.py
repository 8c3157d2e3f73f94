"""The configs of client metrics resources: their valid values, and the entries of DescribeConfigs.

Error messages have the words of real brokers, because clients print them.

Source:
    IncrementalAlterConfigs, AlterConfigs and DescribeConfigs responses of 3.7.2 to 4.4.0 (fixtures/telemetry).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.errors import KprotoError
from kproto.jvm.text import trimmed
from kproto_server.client_metrics.matching import InvalidPattern, Matching
from kproto_server.cluster.topics import Refusal
from kproto_server.configuration.config_type import split_list
from kproto_server.configuration.settings import ConfigSource, ConfigType, whole_number
from kproto_server.configuration.topic_configs import InvalidValue
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kproto_server.releases.kafka_version import KafkaVersion

INTERVAL, MATCH, METRICS = "interval.ms", "match", "metrics"
TYPES = {INTERVAL: ConfigType.INT, MATCH: ConfigType.LIST, METRICS: ConfigType.LIST}
"""The configs, in the order of DescribeConfigs."""
INTERVAL_DEFAULT_MS = 300_000
INTERVAL_MIN_MS, INTERVAL_MAX_MS = 100, 3_600_000
DEFAULTS = {INTERVAL: str(INTERVAL_DEFAULT_MS), MATCH: "", METRICS: ""}
ALL_METRICS = "*"
NO_NAME = Refusal(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")


class ClientMetricsEntry(NamedTuple):
    """A config of a client metrics resource as DescribeConfigs returns it."""

    name: str
    type: ConfigType | None
    """None: UNKNOWN."""
    value: str
    source: ConfigSource
    synonyms: tuple[tuple[str, str, ConfigSource], ...]


class ClientMetricsBehavior(VersionBehavior):
    """What Kafka releases do differently in the configs of client metrics."""

    @cached_property
    def checks_content(self) -> bool:
        """Whether a push whose content cannot be uncompressed gets INVALID_RECORD: from 3.8 on (measured on 3.7.2 and
        3.8.1)."""
        return self.at_least(3, 8)

    @cached_property
    def asks_again(self) -> bool:
        """Whether a client may ask for its subscription at once after a push with an outdated one: from 4.1 on. Before,
        it gets THROTTLING_QUOTA_EXCEEDED until an interval has passed (measured on 4.0.0 and 4.1.2)."""
        return self.at_least(4, 1)

    @cached_property
    def forgets_disconnected(self) -> bool:
        """Whether the end of a connection ends what is known of the client that it has made known: from 4.0 on
        (measured on 4.4.0; 4.0.0 has the class for it, 3.9.2 has not)."""
        return self.at_least(4, 0)

    @cached_property
    def parses_values(self) -> bool:
        """Whether values have types: blanks around a number are allowed, what is no number is INVALID_CONFIG, and the
        list of no patterns matches all clients. Before 4.0 the error is UNKNOWN_SERVER_ERROR, and a pattern must not be
        empty (measured on 3.9.2 and 4.0.0)."""
        return self.at_least(4, 0)

    @cached_property
    def describes_all(self) -> bool:
        """Whether DescribeConfigs returns all configs, with types, synonyms and values as Kafka writes them. Before 4.1
        it returns those that are set, as they were set, whichever the request names (measured on 4.0.0 and 4.1.2)."""
        return self.at_least(4, 1)

    @cached_property
    def refuses_empty_items(self) -> bool:
        """Whether a list must not have empty items, and has each item once (measured on 4.1.2 and 4.2.2)."""
        return self.at_least(4, 2)


class InvalidConfigs(KprotoError, ValueError):
    """A resource cannot have these configs; ``refusal`` has the words of a broker."""

    def __init__(self, error: ErrorCode, message: str | None) -> None:
        super().__init__(message or error.message)
        self.refusal: Refusal = Refusal(error, message)


def checked(name: str, configs: dict[str, str], kafka_version: KafkaVersion) -> dict[str, str] | Refusal:
    """Return the configs of a resource, or why it cannot have them."""
    if not name:
        return NO_NAME
    for one in configs:
        if one not in TYPES:
            return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {one}")
    try:
        subscription(configs, kafka_version)
    except InvalidConfigs as invalid:
        return invalid.refusal
    return configs


class Subscription(NamedTuple):
    """What a resource subscribes the clients to that it matches."""

    metrics: tuple[str, ...]
    interval_ms: int
    matching: Matching


def subscription(configs: Mapping[str, str], kafka_version: KafkaVersion) -> Subscription:
    """Return what these configs mean in a release.

    Raises:
        InvalidConfigs: one of them has a value that it cannot have.
    """
    behavior = kafka_version.behavior(ClientMetricsBehavior)
    lists = {name: _items(name, configs.get(name, ""), behavior) for name in (METRICS, MATCH)}
    interval_ms = _interval_ms(configs.get(INTERVAL, DEFAULTS[INTERVAL]), behavior)
    patterns = lists[MATCH]
    if not patterns and configs.get(MATCH) is not None and not behavior.parses_values:
        patterns = [""]
    try:
        return Subscription(tuple(lists[METRICS]), interval_ms, Matching(patterns))
    except InvalidPattern as invalid:
        raise InvalidConfigs(ErrorCode.INVALID_CONFIG, str(invalid)) from None


def describe(configs: Mapping[str, str], kafka_version: KafkaVersion) -> Iterator[ClientMetricsEntry]:
    """Yield the configs of a resource with these configs of its own."""
    behavior = kafka_version.behavior(ClientMetricsBehavior)
    for name, kind in TYPES.items():
        if not behavior.describes_all:
            if name in configs:
                yield ClientMetricsEntry(name, None, configs[name], ConfigSource.CLIENT_METRICS, ())
            continue
        value = _written(name, configs.get(name, DEFAULTS[name]), behavior)
        is_own = name in configs
        source = ConfigSource.CLIENT_METRICS if is_own else ConfigSource.DEFAULT
        yield ClientMetricsEntry(name, kind, value, source, ((name, value, source),) if is_own else ())


def _written(name: str, text: str, behavior: ClientMetricsBehavior) -> str:
    if TYPES[name] is ConfigType.LIST:
        return ",".join(_items(name, text, behavior))
    return trimmed(text)


def _interval_ms(text: str, behavior: ClientMetricsBehavior) -> int:
    number = whole_number(trimmed(text) if behavior.parses_values else text, ConfigType.INT)
    if number is None:
        if not behavior.parses_values:
            raise InvalidConfigs(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        reason = InvalidValue(INTERVAL, text, f"Not a number of type {ConfigType.INT.name}")
        raise InvalidConfigs(ErrorCode.INVALID_CONFIG, str(reason))
    if not INTERVAL_MIN_MS <= number <= INTERVAL_MAX_MS:
        allowed = f"interval must be between {INTERVAL_MIN_MS} and {INTERVAL_MAX_MS} (1 hour)"
        raise InvalidConfigs(ErrorCode.INVALID_REQUEST, f"Invalid value {number} for {INTERVAL}, {allowed}")
    return number


def _items(name: str, text: str, behavior: ClientMetricsBehavior) -> list[str]:
    found = split_list(trimmed(text))
    if not behavior.refuses_empty_items:
        return found
    if not all(found):
        raise InvalidConfigs(ErrorCode.INVALID_CONFIG, f"Configuration '{name}' values must not be empty.")
    return list(dict.fromkeys(found))
