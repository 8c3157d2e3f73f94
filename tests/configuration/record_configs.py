"""Record the documentation of configs, and the broker settings of each release, from real brokers.

    python -m tests.configuration.record_configs

Runs a broker of each release since 0.11. ``fixtures/broker-configs.json`` gets type and default of all its settings,
and whether they are read-only. Two files in ``server/kproto_server/configuration`` get what kproto returns:
``other_settings.json`` the same of the settings that kproto does not have, and ``documentation.json`` the texts of all
configs, which brokers return from 2.6 on.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto_server.configuration import documentation, other_settings
from kproto_server.configuration.config_type import ConfigType
from kproto_server.configuration.listeners import ADVERTISED
from kproto_server.configuration.settings import SETTINGS, ConfigSource
from tests.fixture_files import FIXTURES
from tests.membership.socket_transport import RESPONSE_LIMIT_S, SocketTransport
from tests.oracle.cluster import real_kafka

if TYPE_CHECKING:
    from collections.abc import Collection

RELEASES = {
    "2.6": "2.6.3",
    "2.7": "2.7.2",
    "2.8": "2.8.2",
    "3.0": "3.0.2",
    "3.1": "3.1.2",
    "3.2": "3.2.3",
    "3.3": "3.3.2",
    "3.4": "3.4.1",
    "3.5": "3.5.2",
    "3.6": "3.6.2",
    "3.7": "3.7.2",
    "3.8": "3.8.1",
    "3.9": "3.9.2",
    "4.0.0": "4.0.0",
    "4.0": "4.0.2",
    "4.1": "4.1.2",
    "4.2": "4.2.2",
    "4.3": "4.3.1",
    "4.4": "4.4.0",
}
"""Release line -> the release that was recorded, of those whose brokers return documentation."""
OLD_RELEASES = {
    "0.11.0": "0.11.0.3",
    "1.0": "1.0.2",
    "1.1": "1.1.1",
    "2.0": "2.0.1",
    "2.1": "2.1.1",
    "2.2": "2.2.2",
    "2.3": "2.3.1",
    "2.4": "2.4.1",
    "2.5": "2.5.1",
}
"""The same of older ones, which have DescribeConfigs."""

BROKER_CONFIGS = FIXTURES / "broker-configs.json"
RESOURCES = {"topic": (2, "t"), "broker": (4, "1"), "client_metrics": (16, "m"), "group": (32, "g")}
SOURCE = "The documentation of configs in Apache Kafka (Apache License 2.0), as running brokers return it"
UNTYPED = ConfigType.STRING.name
"""The type of settings that have gone before 2.6."""
SETTINGS_SOURCE = "Types and defaults of broker settings in Apache Kafka, as running brokers return them"
NEWEST = 3
OLD_VERSIONS = {"0.11.0": 0, "1.0": 0, "1.1": 1, **dict.fromkeys(list(OLD_RELEASES)[3:], 2)}
"""Release line -> version of DescribeConfigs; the others: `NEWEST`."""


Described = tuple[str | None, str | None, bool]
"""Type, default, and whether the setting is read-only. Brokers return only one type before 2.6, PASSWORD."""


class Recorded(NamedTuple):
    """What a broker returns."""

    texts: dict[str, dict[str, str]]
    """Kind of resource -> config -> documentation."""
    settings: dict[str, Described]


def recorded(address: str, version: int) -> Recorded:
    """Return the configs of a topic, of the broker, of a client metrics resource and of a group."""
    transport = SocketTransport(address, RESPONSE_LIMIT_S)
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=(), configs=())
    _response(transport, CreateTopicsRequest(topics=(topic,), timeout_ms=10_000, validate_only=False), 2)
    texts: dict[str, dict[str, str]] = {}
    settings: dict[str, Described] = {}
    for kind, (resource_type, name) in RESOURCES.items():
        if kind not in ("topic", "broker") and version < NEWEST:
            continue
        resource = DescribeConfigsResource(resource_type=resource_type, resource_name=name, configuration_keys=None)
        asked = DescribeConfigsRequest(
            resources=(resource,), include_synonyms=version >= 1, include_documentation=version >= NEWEST
        )
        configs = _response(transport, asked, version).results[0].configs
        texts[kind] = {one.name: one.documentation for one in configs if one.documentation}
        if kind == "broker":
            settings = {one.name: (_type(one), default(one, version), one.read_only) for one in configs}
    transport.close()
    return Recorded(texts, settings)


def _type(config: Any) -> str | None:
    if config.is_sensitive:
        return ConfigType.PASSWORD.name
    return ConfigType(config.config_type).name if config.config_type else None


def default(config: Any, version: int) -> str | None:
    """Return the default of a config in a DescribeConfigs response of a version."""
    if not version:
        return config.value if config.is_default else None
    return next((one.value for one in config.synonyms if one.source == ConfigSource.DEFAULT), None)


def condensed(by_release: dict[str, dict[str, dict[str, str]]]) -> str:
    """Return the text of documentation.json: of each config, the releases in which its documentation changed."""
    lines = [_head(SOURCE, by_release)]
    for kind in RESOURCES:
        of_kind = {release: texts[kind] for release, texts in by_release.items()}
        names = {name for texts in of_kind.values() for name in texts}
        lines.append(_section(kind, {name: _changes(_having(name, of_kind)) for name in names}))
    return ",\n".join(lines) + "}\n"


def condensed_settings(by_release: dict[str, dict[str, Described]], left_out: Collection[str] = ()) -> str:
    """Return the text of a file of settings: of each one, the releases in which it changed; null: it is gone.

    A setting without a type has that of later releases.
    """
    histories = {}
    for name in {name for settings in by_release.values() for name in settings}.difference(left_out):
        having = _having(name, by_release)
        type_ = next((setting[0] for setting in having.values() if setting[0]), UNTYPED)
        typed = {release: (setting[0] or type_, *setting[1:]) for release, setting in having.items()}
        histories[name] = _changes({release: typed.get(release) for release in by_release})
    return f"{_head(SETTINGS_SOURCE, by_release)},\n{_section('broker', histories)}}}\n"


def _having(name: str, by_release: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return what the releases have that have a name."""
    return {release: values[name] for release, values in by_release.items() if name in values}


def _changes(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values that differ from those before them; the first one differs from None."""
    before = [None, *values.values()]
    return {release: value for (release, value), last in zip(values.items(), before, strict=False) if value != last}


def _head(source: str, by_release: dict[str, Any]) -> str:
    return f'{{"source": {json.dumps(source)},\n"releases": {json.dumps(list(by_release))}'


def _section(kind: str, histories: dict[str, Any]) -> str:
    rows = (f"{json.dumps(name)}: {json.dumps(history)}" for name, history in sorted(histories.items()))
    text = ",\n".join(rows)
    return f"{json.dumps(kind)}: {{\n{text}\n}}"


def _response(transport: SocketTransport, request: Any, version: int) -> Any:
    transport.send("recorder", request, version)
    [(_, response)] = transport.responses()
    return response


def main() -> None:
    by_release = {}
    for line, release in (OLD_RELEASES | RELEASES).items():
        print(f"{release} ...", file=sys.stderr, flush=True)
        with real_kafka(release) as cluster:
            by_release[line] = recorded(cluster.bootstrap, OLD_VERSIONS.get(line, NEWEST))
    texts = {line: found.texts for line, found in by_release.items() if line in RELEASES}
    _path(documentation).write_text(condensed(texts), encoding="utf-8")
    settings = {line: found.settings for line, found in by_release.items()}
    BROKER_CONFIGS.write_text(condensed_settings(settings), encoding="utf-8")
    others = condensed_settings(settings, {ADVERTISED, *SETTINGS})
    _path(other_settings).write_text(others, encoding="utf-8")


def _path(module: Any) -> Path:
    return Path(module.__file__).with_name(module.FILE)


if __name__ == "__main__":
    main()
