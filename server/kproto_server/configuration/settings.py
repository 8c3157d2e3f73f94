"""Broker configuration by Kafka's own names: typed, checked, and with the defaults of the Kafka version's release.

    Settings(Kafka version).with_values({"offsets.retention.minutes": "1440"}).with_assignments(["num.partitions=3"])

Nothing is ignored in silence. A name that kproto does not know is refused, and so is a setting that Kafka has but
kproto does not act on yet, unless it is given the value that it has anyway.
"""

from __future__ import annotations

import builtins
import enum
from functools import cached_property
from itertools import dropwhile
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.configuration.properties import PropertiesError, read_properties
from kproto_server.configuration.setting_table import SETTINGS, ConfigType, Setting, SettingError, whole_number
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = [
    "RETENTION_UNITS_MS",
    "SETTINGS",
    "ConfigEntry",
    "ConfigSource",
    "ConfigType",
    "Setting",
    "SettingError",
    "Settings",
    "SettingsBehavior",
    "first_dynamic_configs",
    "whole_number",
]


class ConfigSource(enum.IntEnum):
    """Where a value comes from, as DescribeConfigs v1 and later number it."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


RETENTION_UNITS_MS = {"log.retention.ms": 1, "log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}
"""How long topics keep records: the first of these that is set says it; a negative one means for ever."""


Sources = list[tuple[str, str, ConfigSource]]
"""Name, value and source of all that could decide a config, the one that does first."""


class ConfigEntry(NamedTuple):
    """A broker setting as DescribeConfigs tells it."""

    name: str
    type: ConfigType
    value: str | None
    read_only: bool
    sources: Sources


class _Values:
    """Typed access to settings by name. Every method raises KeyError where there is no such setting.

    They stand in a class of their own because each hides the builtin that it is named after.
    """

    __slots__ = ("_values",)

    _values: dict[builtins.str, builtins.str | None]

    def str(self, name: builtins.str) -> builtins.str:
        """The value as Kafka writes it; empty where it is not set and has no default."""
        return self._values[name] or ""

    def int(self, name: builtins.str) -> builtins.int:
        """The value of a setting that is a number; 0 where it is not set and has no default."""
        return int(self._values[name] or 0)

    def bool(self, name: builtins.str) -> builtins.bool:
        """The value of a setting that is true or false."""
        return self._values[name] == "true"


class Settings(_Values):
    """The configuration of a broker: defaults of its Kafka version's release, and what was set. Never changes; `with_x`
    return another one."""

    __slots__ = ("_given", "_of_all", "_of_one", "kafka_version")

    def __init__(
        self,
        kafka_version: KafkaVersion | None = None,
        given: Mapping[str, str] | None = None,
        of_all: Mapping[str, str] | None = None,
        of_one: Mapping[str, str] | None = None,
    ) -> None:
        """``given`` at the start; ``of_all`` brokers, or only ``of_one``, while they run."""
        self.kafka_version: KafkaVersion = kafka_version or KafkaVersion.named()
        self._given = dict(given or {})
        self._of_all = first_dynamic_configs(self.kafka_version) if of_all is None else dict(of_all)
        self._of_one = dict(of_one or {})
        said = self._given | self._of_all | self._of_one
        self._values = {
            name: said.get(name, setting.default_in(self.kafka_version)) for name, setting in SETTINGS.items()
        }

    @classmethod
    def from_mapping(cls, values: Mapping[str, str], kafka_version: KafkaVersion | None = None) -> Settings:
        """Settings by name, on top of the defaults of `kafka_version` (all releases at once if not told).

        Raises:
            SettingError: a name or a value that cannot be.
        """
        return cls(kafka_version).with_values(values)

    def with_values(self, values: Mapping[str, str]) -> Settings:
        """These settings, with those in `values` set.

        Raises:
            SettingError: a name or a value that cannot be.
        """
        accepted = {name: self._accepted(name, text) for name, text in values.items()}
        return Settings(self.kafka_version, self._given | accepted, self._of_all, self._of_one)

    def with_dynamic(self, of_all: Mapping[str, str], of_one: Mapping[str, str] | None = None) -> Settings:
        """These settings, with those changed that were while brokers run, of all of them and of one (KIP-226)."""
        return Settings(self.kafka_version, self._given, of_all, of_one)

    def with_properties(self, text: str) -> Settings:
        """These settings, with those of a .properties file's text set (`read_properties` has the format).

        Raises:
            SettingError: a name or a value that cannot be, or a line that is no property.
        """
        try:
            return self.with_values(read_properties(text))
        except PropertiesError as error:
            raise SettingError(str(error)) from None

    def with_assignments(self, assignments: Iterable[str]) -> Settings:
        """These settings, with "name=value" strings set; of two for one name the last.

        Raises:
            SettingError: a name or a value that cannot be, or no "=".
        """
        values = {}
        for assignment in assignments:
            name, equals, value = assignment.partition("=")
            if not equals:
                raise SettingError(f"{assignment!r} sets nothing: write {assignment or 'name'}=VALUE")
            values[name.strip()] = value
        return self.with_values(values)

    def _accepted(self, name: str, text: str) -> str:
        setting = SETTINGS.get(name)
        if setting is None:
            raise SettingError(_unknown(name))
        value, default = setting.check(text), setting.default_in(self.kafka_version)
        if not setting.acts and value != default:
            advice = "leave it out" if default is None else f"leave it out, or at {default}"
            raise SettingError(f"{name} does nothing in kproto yet: {advice}")
        if name == "offsets.topic.compression.codec":
            _check_codec(int(value))
        return value

    def is_set(self, name: str) -> bool:
        """Whether it was given, even if to its default."""
        return name in self._given

    @property
    def retention_ms(self) -> builtins.int:
        """How long topics keep records that do not say it themselves; -1: for ever."""
        said = next(name for name in RETENTION_UNITS_MS if self._values[name] is not None)
        return max(-1, self.int(said) * RETENTION_UNITS_MS[said])

    def sources(self, name: builtins.str) -> Sources:
        """All that could decide a setting, as Kafka tells them: of one broker, of all, given at the start, default."""
        names = tuple(RETENTION_UNITS_MS) if name in RETENTION_UNITS_MS else (name,)
        defaults = {one: SETTINGS[one].default_in(self.kafka_version) for one in names}
        layers: tuple[tuple[Mapping[builtins.str, builtins.str | None], ConfigSource], ...] = (
            (self._of_one, ConfigSource.DYNAMIC_BROKER),
            (self._of_all, ConfigSource.DYNAMIC_DEFAULT_BROKER),
            (self._given, ConfigSource.STATIC_BROKER),
            (defaults, ConfigSource.DEFAULT),
        )
        found = ((one, values.get(one), source) for values, source in layers for one in names)
        told = [(one, value, source) for one, value, source in found if value is not None]
        # Kafka leaves out what comes before the first that has the name itself, not only what another name decides.
        return list(dropwhile(lambda one: one[0] != name, told))

    def entries(self) -> Iterator[ConfigEntry]:
        """Kafka's settings as DescribeConfigs tells them of a broker, by name."""
        for name, setting in sorted(SETTINGS.items()):
            if setting.is_kafkas:
                yield ConfigEntry(
                    name=name,
                    type=setting.type,
                    value=self._values[name],
                    read_only=not setting.is_dynamic_in(self.kafka_version),
                    sources=self.sources(name),
                )


class SettingsBehavior(VersionBehavior):
    """What Kafka releases do differently with broker settings."""

    @cached_property
    def has_cluster_min_in_sync_replicas(self) -> bool:
        """Whether min.insync.replicas is one setting of the whole cluster, as eligible leader replicas require it
        (measured on 4.4.0)."""
        return self.is_kraft and self.at_least(4, 1)


def first_dynamic_configs(kafka_version: KafkaVersion) -> dict[str, str]:
    """What all brokers have as if it had been changed: a cluster with eligible leader replicas keeps one of its own
    (measured on 4.0.2 and 4.1.2)."""
    return (
        {"min.insync.replicas": "1"}
        if kafka_version.behavior(SettingsBehavior).has_cluster_min_in_sync_replicas
        else {}
    )


def _check_codec(codec: int) -> None:
    from kproto.errors import MissingPackage
    from kproto.records.compression import Compression, compress  # few ask for one: not at the start

    try:
        compress(Compression(codec), b"")
    except MissingPackage as missing:
        raise SettingError(f"offsets.topic.compression.codec cannot be {codec}: {missing}") from None


def _unknown(name: str) -> str:
    from difflib import get_close_matches  # only on the way out

    known = [setting.name for setting in SETTINGS.values() if setting.acts]
    close = get_close_matches(name, SETTINGS, n=1)
    advice = f"did you mean {close[0]}?" if close else f"kproto acts on {', '.join(known)}"
    return f"no broker setting {name!r}: {advice}"
