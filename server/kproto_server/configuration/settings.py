"""Broker configuration by Kafka's own names: typed, checked, and with the defaults of the release.

    Settings(kafka_version).with_values({"offsets.retention.minutes": "1440"}).with_assignments(["num.partitions=3"])

No setting is ignored silently. An unknown name raises `SettingError`. So does a setting that means nothing in kproto,
and one that kproto does not implement yet, unless its value is the default.
"""

from __future__ import annotations

import builtins
import enum
from functools import cache, cached_property
from itertools import dropwhile
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.configuration.config_type import ConfigType, Repeated
from kproto_server.configuration.setting_table import (
    INT_MAX,
    SETTINGS,
    STORE_SETTINGS,
    Setting,
    SettingError,
    whole_number,
)
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

__all__ = [
    "NODE_IDS",
    "RETENTION_UNITS_MS",
    "SETTINGS",
    "UNITS_MS",
    "ConfigEntry",
    "ConfigSource",
    "ConfigType",
    "Setting",
    "SettingError",
    "Settings",
    "SettingsBehavior",
    "whole_number",
]


class NothingHere(SettingError):
    """A setting that kproto does not have, or does not implement."""


class ConfigSource(enum.IntEnum):
    """The source of a value; the number is the one in DescribeConfigs v1 and later."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


RETENTION_UNITS_MS = {"log.retention.ms": 1, "log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}
"""The settings of the retention time of records -> milliseconds in their unit. The first one that is set decides; a
negative value means forever."""
UNITS_MS = {
    "retention.ms": RETENTION_UNITS_MS,
    "segment.ms": {"log.roll.ms": 1, "log.roll.hours": 3_600_000},
    "segment.jitter.ms": {"log.roll.jitter.ms": 1, "log.roll.jitter.hours": 3_600_000},
    "flush.ms": {"log.flush.interval.ms": 1, "log.flush.scheduler.interval.ms": 1},
}
"""Topic config -> the settings that are its default -> milliseconds in their unit. The first one that is set
decides."""


NODE_IDS = ("broker.id", "node.id")
"""The settings of the first node's id; each node has its own."""

OF_LISTENER = "listener.name."
MECHANISMS_SETTING = "sasl.enabled.mechanisms"
NEED_SECURITY = STORE_SETTINGS | {MECHANISMS_SETTING}
"""The settings of a listener that mean something only if the broker has TLS or SASL."""
LISTENERS_OWN = NEED_SECURITY | {
    "max.connections", "max.connection.creation.rate", "connections.max.reauth.ms", "ssl.client.auth",
    "ssl.enabled.protocols", "ssl.principal.mapping.rules",
}  # fmt: skip
"""The settings that a listener may have for itself, with `OF_LISTENER` and its name in lower case in front."""

Sources = list[tuple[str, str, ConfigSource]]
"""Name, value and source of each value that a config could have; the first one is in effect."""


class ConfigEntry(NamedTuple):
    """A broker setting as DescribeConfigs returns it."""

    name: str
    type: ConfigType | None
    """None: no setting of Kafka has the name. The value of such a one is a secret of a plugin, and not shown."""
    value: str | None
    read_only: bool
    sources: Sources

    def __repr__(self) -> str:
        return f"ConfigEntry({self.name!r})"


class _Values:
    """Typed access to settings by name. Every method raises KeyError for an unknown name.

    The methods have a class of their own because each hides the builtin of its name.
    """

    __slots__ = ("_values",)

    _values: dict[builtins.str, builtins.str | None]

    def str(self, name: builtins.str) -> builtins.str:
        """Return a value as Kafka writes it; empty if it is not set and has no default."""
        return self._values[name] or ""

    def int(self, name: builtins.str) -> builtins.int:
        """Return the value of a numeric setting; 0 if it is not set and has no default."""
        return int(self._values[name] or 0)

    def bool(self, name: builtins.str) -> builtins.bool:
        """Return the value of a boolean setting."""
        return self._values[name] == "true"


@cache
def _defaults(kafka_version: KafkaVersion) -> Mapping[str, str | None]:
    """Return the defaults of a release."""
    return MappingProxyType({name: setting.default_in(kafka_version) for name, setting in SETTINGS.items()})


class Settings(_Values):
    """The configuration of a broker: the settings that were given, and the defaults of the release.

    Immutable: the ``with_`` methods return another object.
    """

    __slots__ = ("_given", "_of_all", "_of_one", "kafka_version", "limits_connection_rates")

    def __init__(
        self,
        kafka_version: KafkaVersion | None = None,
        given: Mapping[str, str] | None = None,
        of_all: Mapping[str, str] | None = None,
        of_one: Mapping[str, str] | None = None,
    ) -> None:
        """Create settings.

        Args:
            kafka_version: the release of the defaults; "latest" by default.
            given: the settings at the start of the broker (static configuration).
            of_all: the dynamic configuration of all brokers (KIP-226).
            of_one: the dynamic configuration of this broker.
        """
        self.kafka_version: KafkaVersion = kafka_version or KafkaVersion.named()
        self._given = dict(given or {})
        self._of_all = self.first_dynamic_configs() if of_all is None else dict(of_all)
        self._of_one = dict(of_one or {})
        set_values = self._given | self._of_all | self._of_one
        of_listeners = {name: value for name, value in set_values.items() if name.startswith(OF_LISTENER)}
        known = {name: value for name, value in set_values.items() if name in SETTINGS}
        self._values = {**_defaults(self.kafka_version), **known, **of_listeners}
        rate = "max.connection.creation.rate"
        self.limits_connection_rates: bool = self.int(rate) != INT_MAX or any(n.endswith(rate) for n in of_listeners)
        """Whether new connections may have to wait."""

    @classmethod
    def from_mapping(cls, values: Mapping[str, str], kafka_version: KafkaVersion | None = None) -> Settings:
        """Return settings with these values and the defaults of a release ("latest" by default).

        Raises:
            SettingError: a name is unknown, a value is invalid, or values contradict each other.
        """
        return cls(kafka_version).with_values(values).checked()

    def with_values(self, values: Mapping[str, str]) -> Settings:
        """Return a copy with these values set.

        Raises:
            SettingError: a name is unknown or a value is invalid.
        """
        accepted = {name: self._accepted(name, text) for name, text in values.items()}
        is_first = self._of_all == self.first_dynamic_configs()
        return Settings(self.kafka_version, self._given | accepted, None if is_first else self._of_all, self._of_one)

    def first_dynamic_configs(self) -> dict[str, str]:
        """Return the dynamic configuration that all brokers start with.

        A cluster with eligible leader replicas has min.insync.replicas in it, with the value that the brokers have at
        the start (measured on 4.0.2, 4.1.2 and 4.4.0).
        """
        if not self.kafka_version.behavior(SettingsBehavior).has_cluster_min_in_sync_replicas:
            return {}
        return {"min.insync.replicas": self._given.get("min.insync.replicas", "1")}

    def with_dynamic(self, of_all: Mapping[str, str], of_one: Mapping[str, str] | None = None) -> Settings:
        """Return a copy with this dynamic configuration of all brokers and of one broker (KIP-226)."""
        return Settings(self.kafka_version, self._given, of_all, of_one)

    def with_config_file(self, values: Mapping[str, str]) -> tuple[Settings, list[str]]:
        """Return a copy with the settings of Kafka's own server.properties, and the names that mean nothing here.

        Raises:
            SettingError: values are invalid; the text has a line for each.
        """
        accepted, ignored, faults = {}, [], []
        for name, text in values.items():
            try:
                accepted[name] = self._accepted(name, text)
            except NothingHere:
                ignored.append(name)
            except SettingError as error:
                faults.append(str(error))
        if faults:
            raise SettingError("\n".join(faults))
        return self.with_values(accepted), ignored

    def with_assignments(self, assignments: Iterable[str]) -> Settings:
        """Return a copy with the settings of these ``NAME=VALUE`` strings; the last one for a name decides.

        Raises:
            SettingError: a name is unknown, a value is invalid, values contradict each other, or "=" is missing.
        """
        values = {}
        for assignment in assignments:
            name, equals, value = assignment.partition("=")
            if not equals:
                raise SettingError(f"{assignment!r} sets nothing: write {assignment or 'name'}=VALUE")
            values[name.strip()] = value
        return self.with_values(values).checked()

    def checked(self) -> Settings:
        """Return these settings.

        Raises:
            SettingError: values contradict each other.
        """
        if self._given.keys() >= set(NODE_IDS) and self.int("node.id") != self.int("broker.id"):
            raise SettingError("node.id and broker.id differ: give one of them")
        if any(name.startswith("group.") for name in self._given):
            from kproto_server.configuration.setting_order import check_order  # not imported by most starts

            check_order(self.int, self.kafka_version)
        if self._given.keys() & {"authorizer.class.name", "super.users"}:
            from kproto_server.configuration.authorizers import check_authorizer  # as above

            check_authorizer(self.str, self.kafka_version)
        return self

    def _accepted(self, name: str, text: str) -> str:
        setting = SETTINGS.get(listener_and_name(name)[1])
        if setting is None:
            from kproto_server.configuration.other_settings import why_not  # only for this error

            raise NothingHere(why_not(name))
        value, default = setting.check(text), setting.default_in(self.kafka_version)
        if not setting.acts and value != default:
            advice = "leave it out" if default is None else f"leave it out, or at {default}"
            raise NothingHere(f"{name} does nothing in kproto yet: {advice}")
        if name == "max.connections.per.ip.overrides":
            connection_overrides(value)
        if name == "offsets.topic.compression.codec":
            _check_codec(int(value))
        return value

    def int_of_listener(self, listener: builtins.str, name: builtins.str) -> builtins.int | None:
        """Return the value of a setting that a listener has for itself; None: it has none."""
        value = self._values.get(f"{OF_LISTENER}{listener.lower()}.{name}")
        return None if value is None else int(value)

    def str_of_listener(self, listener: builtins.str, name: builtins.str) -> builtins.str:
        """Return the value that a setting has for a listener: its own, or that of the broker."""
        value = self._values.get(f"{OF_LISTENER}{listener.lower()}.{name}")
        return self.str(name) if value is None else value

    def of_listener(self, listener: builtins.str) -> Settings:
        """Return the settings as a listener has them."""
        start = f"{OF_LISTENER}{listener.lower()}."
        own = {name.removeprefix(start): value for name, value in self._given.items() if name.startswith(start)}
        return Settings(self.kafka_version, self._given | own, self._of_all, self._of_one | own) if own else self

    def listeners_with(self, names: Collection[builtins.str]) -> dict[builtins.str, builtins.str]:
        """Return the listeners, in lower case, that have some of these settings for themselves, each with one name."""
        split = ((name, *listener_and_name(name)) for name in self._given)
        return {listener: name for name, listener, rest in split if listener and rest in names}

    @property
    def own_stores(self) -> list[builtins.str]:
        """The settings of stores that were given; empty: kproto makes the certificates."""
        return sorted(STORE_SETTINGS & self._given.keys())

    def is_set(self, name: str) -> bool:
        """Return whether a setting was given, even with its default value."""
        return name in self._given

    @property
    def first_node_id(self) -> builtins.int:
        """The id of the first node; the others follow."""
        return self.int("node.id" if self.is_set("node.id") else "broker.id")

    def topic_default_ms(self, topic_config: builtins.str) -> builtins.int:
        """Return the default of a topic config of `UNITS_MS`; a retention time of -1: forever."""
        units_ms = UNITS_MS[topic_config]
        name = next(name for name in units_ms if self._values[name] is not None)
        return max(-1, self.int(name) * units_ms[name])

    def sources(self, name: builtins.str) -> Sources:
        """Return the values that a setting could have in Kafka's order: of one broker, of all, static, default."""
        names = next((tuple(units_ms) for units_ms in UNITS_MS.values() if name in units_ms), (name,))
        settings: Mapping[builtins.str, Setting] = SETTINGS if name in SETTINGS else self._all_settings()
        defaults = {one: settings[one].default_in(self.kafka_version) for one in names}
        layers: tuple[tuple[Mapping[builtins.str, builtins.str | None], ConfigSource], ...] = (
            (self._of_one, ConfigSource.DYNAMIC_BROKER),
            (self._of_all, ConfigSource.DYNAMIC_DEFAULT_BROKER),
            (self._given, ConfigSource.STATIC_BROKER),
            (defaults, ConfigSource.DEFAULT),
        )
        found = ((one, values.get(one), source) for values, source in layers for one in names)
        listed = [(one, value, source) for one, value, source in found if value is not None]
        # Kafka omits the values of other names that precede the first value of this name.
        return list(dropwhile(lambda one: one[0] != name, listed))

    def entries(self) -> Iterator[ConfigEntry]:
        """Yield Kafka's settings as DescribeConfigs returns them for a broker, sorted by name, without its ids."""
        settings = self._all_settings()
        for name, setting in sorted(settings.items()):
            if name in NODE_IDS:
                continue
            sources = self.sources(name)
            value = self._values[name] if name in SETTINGS else _first(sources)
            is_unset = setting.described_if_set and value is None
            if setting.is_described_in(self.kafka_version) and not is_unset:
                read_only = not setting.is_dynamic_in(self.kafka_version)
                yield ConfigEntry(name=name, type=setting.type, value=value, read_only=read_only, sources=sources)
        dynamic = ((self._of_one, ConfigSource.DYNAMIC_BROKER), (self._of_all, ConfigSource.DYNAMIC_DEFAULT_BROKER))
        for name in sorted({*self._of_one, *self._of_all} - settings.keys()):
            sources = [(name, "", source) for values, source in dynamic if name in values]
            yield ConfigEntry(name, type=None, value=None, read_only=True, sources=sources)

    def _all_settings(self) -> Mapping[builtins.str, Setting]:
        from kproto_server.configuration.other_settings import all_settings  # rarely used: not imported at the start

        return all_settings(self.kafka_version)


def _first(sources: Sources) -> str | None:
    return sources[0][1] if sources else None


def connection_overrides(text: str) -> dict[str, int]:
    """Return the hosts and their numbers in ``max.connections.per.ip.overrides``: ``HOST:NUMBER``, with commas between.

    Raises:
        SettingError: the text is something else.
    """
    found = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        host, _, number = part.rpartition(":")
        if not host or not (number.isascii() and number.isdigit()):
            raise SettingError(f"max.connections.per.ip.overrides cannot be {text!r}: give HOST:NUMBER,HOST:NUMBER")
        found[host.strip().strip("[]")] = int(number)
    return found


def listener_and_name(name: str) -> tuple[str, str]:
    """Return listener and name of a setting that a listener has for itself: ``listener.name.LISTENER.NAME``.

    The listener is empty if that is no such setting.
    """
    if name.startswith(OF_LISTENER):
        listener, _, rest = name.removeprefix(OF_LISTENER).partition(".")
        if rest in LISTENERS_OWN:
            return listener, rest
    return "", name


class SettingsBehavior(VersionBehavior):
    """The differences between releases in broker settings."""

    @cached_property
    def has_cluster_min_in_sync_replicas(self) -> bool:
        """Whether min.insync.replicas is one setting of the whole cluster, as eligible leader replicas require it
        (measured on 4.4.0)."""
        return self.is_kraft and self.at_least(4, 1)

    @cached_property
    def repeated_items(self) -> Repeated:
        """What becomes of an item that a list has already (measured on 4.1.2, 4.2.2, 4.3.1 and 4.4.0)."""
        if not self.at_least(4, 2):
            return Repeated.KEPT
        return Repeated.DROPPED if self.at_least(4, 3) and not self.at_least(4, 4) else Repeated.REFUSED


def _check_codec(codec: int) -> None:
    from kproto.errors import MissingPackage
    from kproto.records.compression import Compression, compress  # rarely used: not imported at the start

    try:
        compress(Compression(codec), b"")
    except MissingPackage as missing:
        raise SettingError(f"offsets.topic.compression.codec cannot be {codec}: {missing}") from None
