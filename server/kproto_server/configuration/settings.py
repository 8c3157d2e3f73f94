"""Broker configuration by Kafka's own names: typed, checked, and with the defaults of the profile's release.

    Settings(profile).with_values({"offsets.retention.minutes": "1440"}).with_assignments(["num.partitions=3"])

Nothing is ignored in silence. A name that kproto does not know is refused, and so is a setting that Kafka has but
kproto does not act on yet, unless it is given the value that it has anyway.
"""

from __future__ import annotations

import builtins
import enum
import re
from itertools import dropwhile
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.configuration.properties import PropertiesError, read_properties
from kproto_server.releases.profiles import Profile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = [
    "SETTINGS",
    "ConfigEntry",
    "ConfigSource",
    "ConfigType",
    "Setting",
    "SettingError",
    "Settings",
    "first_dynamic_configs",
    "whole_number",
]

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
LONG_DIGITS = 19
NEW_PARTITIONS_MAX = 10_000
"""Partitions that a topic is made with, or gets at once. KRaft's controller has this limit for a request; without one,
a request of 50 bytes takes all memory there is."""


class SettingError(ValueError):
    """A setting that cannot be; the message is one line that says what is wrong and what to do."""


class ConfigType(enum.IntEnum):
    """The type of a configuration value; the number is the one in DescribeConfigs v3 and later."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


LIMITS = {
    ConfigType.SHORT: (-(2**15), 2**15 - 1),
    ConfigType.INT: (-(2**31), INT_MAX),
    ConfigType.LONG: (-(2**63), LONG_MAX),
}


def whole_number(text: str, type_: ConfigType) -> int | None:
    """The number that a text is, as Java reads it; None if it is none, or too large for the type."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits.lstrip("0")) > LONG_DIGITS:
        return None
    low, high = LIMITS[type_]
    number = int(text)
    return number if low <= number <= high else None


class Setting(NamedTuple):
    """One broker setting."""

    name: str
    type: ConfigType
    default: str | None
    """Of the oldest release. None is Kafka's null: not set."""
    changed: tuple[tuple[tuple[int, ...], str], ...] = ()
    """(release, default from it on), oldest first."""
    low: int | None = None
    high: int | None = None
    """Bounds of a number beside those of its type, ends included."""
    not_zero: bool = False
    choices: tuple[str, ...] = ()
    acts: bool = True
    """Whether this broker behaves by it."""
    dynamic: tuple[int, ...] | None = None
    """The release from which on it can be changed while brokers run; DescribeConfigs calls the others read-only."""
    is_kafkas: bool = True
    """Whether Kafka has it; kproto's own are not shown by DescribeConfigs."""

    def default_in(self, profile: Profile) -> str | None:
        """The default of the profile's release."""
        default = self.default
        for release, since_then in self.changed:
            if profile.at_least(*release):
                default = since_then
        return default

    def is_dynamic_in(self, profile: Profile) -> bool:
        """Whether it can be changed while brokers of the profile's release run."""
        return self.dynamic is not None and profile.at_least(*self.dynamic)

    def check(self, text: str) -> str:
        """Return the value as Kafka writes it.

        Raises:
            SettingError: it is not of the type, or out of bounds.
        """
        value = text.strip()
        if self.choices and value not in self.choices:
            raise self._refusal(text, f"one of {', '.join(self.choices)}")
        match self.type:
            case ConfigType.BOOLEAN:
                if value.lower() not in ("true", "false"):
                    raise self._refusal(text, "true or false")
                return value.lower()
            case ConfigType.DOUBLE:
                if not re.fullmatch(r"0?\.[0-9]+|[01]|1\.0*|0\.", value):
                    raise self._refusal(text, "a number from 0 to 1")
                return value
            case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
                return str(self._checked_number(value))
            case _:
                return value

    def _checked_number(self, value: str) -> int:
        low, high = LIMITS[self.type]
        low = low if self.low is None else self.low
        high = high if self.high is None else self.high
        number = whole_number(value, self.type)
        if number is None or not low <= number <= high or (self.not_zero and not number):
            but = ", but 0" if self.not_zero else ""
            raise self._refusal(value, f"a whole number from {low} to {high}{but}")
        return number

    def _refusal(self, value: str, wanted: str) -> SettingError:
        return SettingError(f"{self.name} cannot be {value!r}: give {wanted}")


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


BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.SHORT,
    ConfigType.LONG,
    ConfigType.DOUBLE,
)

# Types, defaults and bounds are those of the configuration definitions of Kafka. Where
# Kafka has no bound, but a value makes no sense, the bound is ours.
_TABLE = (
    # Connections.
    Setting("socket.request.max.bytes", INT, "104857600", low=1),
    Setting("queued.max.request.bytes", LONG, "-1"),
    Setting("connections.max.idle.ms", LONG, "600000"),
    Setting("max.connections", INT, "2147483647", low=0, dynamic=(1, 1)),
    Setting("max.connections.per.ip", INT, "2147483647", low=0, dynamic=(1, 1)),
    Setting("broker.rack", STRING, None, acts=False),
    # Topics.
    Setting("auto.create.topics.enable", BOOLEAN, "true"),
    Setting("delete.topic.enable", BOOLEAN, "false", changed=(((1, 0), "true"),)),
    Setting("num.partitions", INT, "1", low=1, high=NEW_PARTITIONS_MAX),
    Setting("default.replication.factor", INT, "1", low=1, high=2**15 - 1),
    Setting("max.incremental.fetch.session.cache.slots", INT, "1000", low=0),
    Setting("min.insync.replicas", INT, "1", low=1, dynamic=(1, 1)),
    Setting("message.max.bytes", INT, "1000012", changed=(((2, 5), "1048588"),), low=0, dynamic=(1, 1)),
    Setting("log.cleaner.backoff.ms", LONG, "15000", low=1),
    Setting("log.cleaner.delete.retention.ms", LONG, "86400000", low=0),
    Setting("log.cleaner.enable", BOOLEAN, "false", changed=(((0, 9), "true"),)),
    Setting("log.cleaner.min.cleanable.ratio", DOUBLE, "0.5"),
    Setting("log.retention.bytes", LONG, "-1", dynamic=(1, 1)),
    Setting("log.retention.check.interval.ms", LONG, "300000", low=1),
    Setting("log.retention.hours", INT, "168", not_zero=True),
    Setting("log.retention.minutes", INT, None, not_zero=True),
    Setting("log.retention.ms", LONG, None, not_zero=True, dynamic=(1, 1)),
    Setting("log.segment.bytes", INT, "1073741824", low=14, dynamic=(1, 1)),
    Setting("records.memory.max.bytes", LONG, "268435456", low=1, is_kafkas=False),
    # Offsets.
    Setting("offset.metadata.max.bytes", INT, "1024", changed=(((0, 8, 2), "4096"),), low=0),
    Setting("offsets.commit.timeout.ms", INT, "5000", low=1, acts=False),
    Setting("offsets.load.buffer.size", INT, "5242880", low=1, acts=False),
    Setting("offsets.retention.check.interval.ms", LONG, "600000", low=1),
    Setting("offsets.retention.minutes", INT, "1440", changed=(((2, 0), "10080"),), low=1),
    Setting("offsets.topic.compression.codec", INT, "0", low=0, high=4, acts=False),
    Setting("offsets.topic.num.partitions", INT, "50", low=1, high=NEW_PARTITIONS_MAX),
    Setting("offsets.topic.replication.factor", SHORT, "3", low=1),
    Setting("offsets.topic.segment.bytes", INT, "104857600", low=1),
    Setting("offsets.retention.override", STRING, "ignore", choices=("ignore", "honour"), is_kafkas=False),
    # Groups with members.
    # DEVIATION: Kafka waits 3 s by default; the server.properties that it ships says 0, and so do most tests.
    Setting("group.initial.rebalance.delay.ms", INT, "0", low=0),
    Setting(
        "group.max.session.timeout.ms",
        INT,
        "30000",
        changed=(((0, 10), "300000"), ((2, 3), "1800000")),
        low=1,
    ),
    Setting("group.max.size", INT, "2147483647", low=1),
    Setting("group.min.session.timeout.ms", INT, "6000", low=1),
    # Transactions.
    Setting("transaction.state.log.num.partitions", INT, "50", low=1, high=NEW_PARTITIONS_MAX),
    Setting("transaction.state.log.replication.factor", SHORT, "3", low=1),
)

SETTINGS: Mapping[str, Setting] = MappingProxyType({setting.name: setting for setting in _TABLE})
"""All settings by name."""


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
    """The configuration of a broker: defaults of its profile's release, and what was set. Never changes; `with_x`
    return another one."""

    __slots__ = ("_given", "_of_all", "_of_one", "profile")

    def __init__(
        self,
        profile: Profile | None = None,
        given: Mapping[str, str] | None = None,
        of_all: Mapping[str, str] | None = None,
        of_one: Mapping[str, str] | None = None,
    ) -> None:
        """``given`` at the start; ``of_all`` brokers, or only ``of_one``, while they run."""
        self.profile = profile or Profile.named()
        self._given = dict(given or {})
        self._of_all = first_dynamic_configs(self.profile) if of_all is None else dict(of_all)
        self._of_one = dict(of_one or {})
        said = self._given | self._of_all | self._of_one
        self._values = {name: said.get(name, setting.default_in(self.profile)) for name, setting in SETTINGS.items()}

    @classmethod
    def from_mapping(cls, values: Mapping[str, str], profile: Profile | None = None) -> Settings:
        """Settings by name, on top of the defaults of `profile` (all releases at once if not told).

        Raises:
            SettingError: a name or a value that cannot be.
        """
        return cls(profile).with_values(values)

    def with_values(self, values: Mapping[str, str]) -> Settings:
        """These settings, with those in `values` set.

        Raises:
            SettingError: a name or a value that cannot be.
        """
        accepted = {name: self._accepted(name, text) for name, text in values.items()}
        return Settings(self.profile, self._given | accepted, self._of_all, self._of_one)

    def with_dynamic(self, of_all: Mapping[str, str], of_one: Mapping[str, str] | None = None) -> Settings:
        """These settings, with those changed that were while brokers run, of all of them and of one (KIP-226)."""
        return Settings(self.profile, self._given, of_all, of_one)

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
        value, default = setting.check(text), setting.default_in(self.profile)
        if not setting.acts and value != default:
            advice = "leave it out" if default is None else f"leave it out, or at {default}"
            raise SettingError(f"{name} does nothing in kproto yet: {advice}")
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
        defaults = {one: SETTINGS[one].default_in(self.profile) for one in names}
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
                    read_only=not setting.is_dynamic_in(self.profile),
                    sources=self.sources(name),
                )


def first_dynamic_configs(profile: Profile) -> dict[str, str]:
    """What all brokers have as if it had been changed: a cluster with eligible leader replicas keeps one of its own
    (M[4.0.2, 4.1.2])."""
    return {"min.insync.replicas": "1"} if profile.keeps_min_in_sync_for_all else {}


def _unknown(name: str) -> str:
    from difflib import get_close_matches  # only on the way out

    known = [setting.name for setting in _TABLE if setting.acts]
    close = get_close_matches(name, SETTINGS, n=1)
    advice = f"did you mean {close[0]}?" if close else f"kproto acts on {', '.join(known)}"
    return f"no broker setting {name!r}: {advice}"
