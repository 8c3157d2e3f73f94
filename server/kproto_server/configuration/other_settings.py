"""Kafka's broker settings that kproto does not have: DescribeConfigs returns them, and the dynamic ones can be altered.

``other_settings.json`` has their types and defaults, and whether they are read-only, as `recorded_configs` describes
it.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from kproto_server.configuration.config_type import ConfigType
from kproto_server.configuration.recorded_configs import recorded, recorded_last
from kproto_server.configuration.setting_table import SETTINGS, Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.releases.kafka_version import KafkaVersion

FILE = "other_settings.json"
KIND = "broker"
DYNAMIC_SINCE = (1, 1)
INSTEAD = dict.fromkeys(("log.dir", "log.dirs"), "give a data directory (--data-dir)")
INSTEAD |= dict.fromkeys(("listeners", "advertised.listeners"), "only kproto serve has listeners")


@cache
def all_settings(kafka_version: KafkaVersion) -> Mapping[str, Setting]:
    """Return the settings that kproto has, and the others of a release, by name."""
    recorded_settings = recorded(FILE, KIND, kafka_version).items()
    others = {name: _setting(name, *setting) for name, setting in recorded_settings}
    return MappingProxyType({**others, **SETTINGS})


def _setting(name: str, type_: str, default: str | None, read_only: bool) -> Setting:
    return Setting(name, ConfigType[type_], default, acts=False, dynamic=None if read_only else DYNAMIC_SINCE)


def is_read_only(name: str) -> bool:
    """Return whether a setting of any release is read-only in the last one that has it."""
    last = recorded_last(FILE, KIND).get(name)
    return last is not None and last[2]


def why_not(name: str) -> str:
    """Return why kproto does not accept a setting that it does not have, in one line."""
    from difflib import get_close_matches  # only for this error

    if name in INSTEAD or name in recorded_last(FILE, KIND):
        return f"{name} does nothing here: {INSTEAD.get(name, 'leave it out')}"
    close = get_close_matches(name, SETTINGS, n=1)
    advice = f"did you mean {close[0]}?" if close else "check its spelling in Kafka's documentation of broker configs"
    return f"no broker setting {name!r}: {advice}"
