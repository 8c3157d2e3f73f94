"""What brokers of Kafka return of their configs, recorded by release, in JSON files of this package.

Such a file has ``releases``, oldest first, and histories by kind of resource and config: release -> value, which is
that of the following releases, too. null says that the config is gone. A file is read when a client first asks for it.

Source:
    DescribeConfigs responses of running brokers, by ``python -m tests.configuration.record_configs``.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.releases.kafka_version import KafkaVersion


def recorded(file: str, kind: str, kafka_version: KafkaVersion) -> Mapping[str, Any]:
    """Return config -> value in a release, of a kind of resource; nothing for a release that was not recorded."""
    return _recorded(file, kind, ".".join(map(str, kafka_version.release)))


@cache
def _recorded(file: str, kind: str, release: str) -> Mapping[str, Any]:
    return values_in(_contents(file), kind, release)


def values_in(contents: Mapping[str, Any], kind: str, release: str) -> Mapping[str, Any]:
    """Return config -> value in a release, given what such a file has."""
    releases: list[str] = contents["releases"]
    if release not in releases:
        return {}
    known = set(releases[: releases.index(release) + 1])
    histories: dict[str, dict[str, Any]] = contents.get(kind, {})
    values = {name: value for name, history in histories.items() for since, value in history.items() if since in known}
    return {name: value for name, value in values.items() if value is not None}


@cache
def recorded_last(file: str, kind: str) -> Mapping[str, Any]:
    """Return the last value of each config of a kind of resource that any release has."""
    histories: dict[str, dict[str, Any]] = _contents(file)[kind]
    return {name: value for name, history in histories.items() for value in history.values() if value is not None}


@cache
def _contents(file: str) -> Mapping[str, Any]:
    contents: Mapping[str, Any] = json.loads(files("kproto_server.configuration").joinpath(file).read_text("utf-8"))
    return contents
