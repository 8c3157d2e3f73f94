"""Requests with long strings that are hard to read: for every string of every API, and every config.

A regular expression that can match a text in many ways takes quadratic time for some that it does not match; so does
the conversion of many digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from kproto import registry
from kproto.declaration import STRING_SIZE_MAX, Field, Struct, WireType, fields_of
from kproto.message import Request
from kproto.messages import APIS
from kproto_server.client_metrics.configs import TYPES
from kproto_server.configuration.group_configs import GroupConfigs
from kproto_server.configuration.other_settings import all_settings
from kproto_server.configuration.topic_configs import topic_configs
from kproto_server.releases.kafka_version import KafkaVersion
from tests.robustness.long_requests import Builder, Content, LongArray

COUNT = 30
"""So many strings are in a request of a megabyte."""


def _filled(start: str, part: str, end: str = "") -> str:
    return start + part * ((STRING_SIZE_MAX - len(start) - len(end)) // len(part)) + end


HARD_STRINGS: Mapping[str, str] = MappingProxyType({
    "blanks": _filled("a", " ", "b"),
    "digits": _filled("", "1", "x"),
    "zeros": _filled("", "0", "1"),
    "commas": _filled("", ","),
    "colons": _filled("", ":"),
    "dots": _filled("", "a.", "!"),
    "days": _filled("by_duration:P", "1", "D"),
    "groups": _filled("client_id=", "[(?<]"),
    "classes": _filled("client_id=", r"\pL"),
    "classes alone": _filled("", r"\pL"),
    "repetitions": _filled("client_id=", "a{1000}"),
    "repetitions alone": _filled("", "((a{9}){9}){9}"),
    "rules": _filled("RULE:", "(a*)*", "/$1/L"),
})  # fmt: skip
TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
CREATE_TOPICS, ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 19, 33, 44


class HardString(NamedTuple):
    """One string of a request in one version, in all elements of its innermost array."""

    api_key: int
    version: int
    path: str
    """Names of fields, from the outermost array: ``topics.configs.value``."""
    array: str
    """The path of the innermost array that has elements with the string; empty: it is in none."""

    def __str__(self) -> str:
        return f"{APIS[self.api_key]} v{self.version} {self.path}"

    def request(self, text: str, given: Mapping[str, Any] = MappingProxyType({}), count: int = COUNT) -> Request:
        """Return the request; ``given``: values of other fields by path; ``count``: elements of the array."""
        values = {**given, self.path: text}
        array = LongArray(self.api_key, self.version, self.array)
        value: Request = _Builder(array, count, Content.EXISTING, values).struct(
            registry.request_class(self.api_key), "", 0
        )
        return value


class _Builder(Builder):
    def __init__(self, array: LongArray, count: int, content: Content, values: Mapping[str, Any]) -> None:
        super().__init__(array, count, content)
        self.values = values

    def _field(self, field: Field, prefix: str, index: int) -> Any:
        is_given = prefix + field.name in self.values and field.type.element is None
        if is_given and field.versions.covers(self.array.version):
            return self.values[prefix + field.name]
        return super()._field(field, prefix, index)

    def _value(self, kind: WireType, path: str, index: int) -> Any:
        return self.values[path] if path in self.values and kind.struct is None else super()._value(kind, path, index)


def hard_strings(api_key: int, version: int) -> Iterator[HardString]:
    """Yield the strings of a request."""
    for path, array in _strings(registry.request_class(api_key), version, "", ""):
        yield HardString(api_key, version, path, array)


def _strings(cls: type[Struct], version: int, prefix: str, array: str) -> Iterator[tuple[str, str]]:
    for field in fields_of(cls):
        if field.versions.covers(version):
            path = prefix + field.name
            kind, innermost = field.type, array
            if kind.element is not None:
                kind, innermost = kind.element, path
            if kind.kind == "string":
                yield path, innermost
            elif kind.struct is not None:
                yield from _strings(kind.struct, version, f"{path}.", innermost)


def hard_configs() -> Iterator[tuple[str, HardString, Mapping[str, Any]]]:
    """Yield a name, the value of a config, and what else the request has, for each config and API that alters it."""
    latest = KafkaVersion.named()
    names = {
        TOPIC: topic_configs(latest),
        BROKER: [name for name, setting in all_settings(latest).items() if setting.is_dynamic_in(latest)],
        CLIENT_METRICS: TYPES,
        GROUP: latest.behavior(GroupConfigs).by_name,
    }
    for kind, configs in names.items():
        for config in configs:
            for api_key, version in ((CREATE_TOPICS, 4), (ALTER_CONFIGS, 1), (INCREMENTAL_ALTER_CONFIGS, 1)):
                if api_key == CREATE_TOPICS and kind != TOPIC:
                    continue
                array = "topics" if api_key == CREATE_TOPICS else "resources"
                given: dict[str, Any] = {"resources.resource_type": kind, f"{array}.configs.name": config}
                if kind == BROKER:
                    given["resources.resource_name"] = "1"
                name = f"{APIS[api_key]} v{version} {config}"
                yield name, HardString(api_key, version, f"{array}.configs.value", array), given
