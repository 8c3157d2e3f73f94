"""A broker starts, serves and advances its clock with each number among its settings at either end of its range.

Method: every numeric setting of the table at its lowest and highest value, alone, or with those that must be in order
with it. The settings that refuse every connection or request at that value are only started.
"""

from __future__ import annotations

import logging
from contextlib import suppress

import pytest

from kproto_server import Broker
from kproto_server.configuration.data_directory import DataDirectory
from kproto_server.configuration.setting_order import ordered_pairs
from kproto_server.configuration.setting_table import LIMITS, SETTINGS
from kproto_server.releases.kafka_version import LATEST, KafkaVersion
from tests.network.raw_client import RawClient
from tests.network.requests import commit_offset, create_topic

REFUSES_CLIENTS = {
    ("socket.request.max.bytes", "low"),
    ("max.connections", "low"),
    ("max.connections.per.ip", "low"),
    ("queued.max.request.bytes", "low"),
}
REFUSES_TOPICS = {("num.partitions", "high"), ("default.replication.factor", "high")}
ENDS = [
    (setting.name, end, str(bound))
    for setting in SETTINGS.values()
    if setting.type in LIMITS and setting.acts
    for end, bound in zip(("low", "high"), LIMITS[setting.type], strict=True)
]
LATEST_VERSION = KafkaVersion.named(LATEST)
TIMES = [name for name, setting in SETTINGS.items() if setting.acts and name.endswith((".ms", ".minutes", ".hours"))]


def value_at(name: str, end: str) -> str:
    """Return the lowest or highest value that a broker starts with: heartbeats have to be shorter than sessions."""
    setting = SETTINGS[name]
    low, high = LIMITS[setting.type]
    if end == "low":
        lowest = low if setting.low is None else setting.low
        return str(lowest + 1 if is_limit(name, "session.timeout.ms", besides="min") else lowest)
    highest = high if setting.high is None else setting.high
    return str(highest - 1 if is_limit(name, "heartbeat.interval.ms", besides="max") else highest)


def is_limit(name: str, suffix: str, *, besides: str) -> bool:
    """Whether this is the setting of a kind of group with this suffix, or its limit that is not ``besides``."""
    words = name.split(".")
    return words[0] == "group" and len(words) > 2 and name.endswith(f".{suffix}") and words[2] != besides


def with_those_in_order(name: str, value: str) -> dict[str, str]:
    """Return a setting, and the values of others that its value asks for."""
    settings = {name: value}
    pairs = list(ordered_pairs())
    for _ in pairs:  # a change may ask for another one
        for lower, higher, is_strict in pairs:
            low, high = (
                int(settings.get(each) or SETTINGS[each].default_in(LATEST_VERSION) or 0) for each in (lower, higher)
            )
            if low + is_strict > high:
                if lower in settings:
                    settings[higher] = str(low + is_strict)
                else:
                    settings[lower] = str(high - is_strict)
    return settings


@pytest.mark.parametrize(("name", "end"), [(name, end) for name, end, _ in ENDS])
def test_a_setting_at_the_end_of_its_range(name: str, end: str, caplog: pytest.LogCaptureFixture) -> None:
    with Broker.running(clock="manual", settings=with_those_in_order(name, value_at(name, end))) as broker:
        with suppress(ConnectionError), RawClient(broker.bootstrap_servers) as client:
            if (name, end) not in REFUSES_CLIENTS:
                create_topic(client)
            if (name, end) not in REFUSES_CLIENTS | REFUSES_TOPICS:
                commit_offset(client)
        broker.clock.advance(days=8)
        broker.snapshot()
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("clock", ["real", "scaled:0.0001", "scaled:1e-9", "scaled:1e9", "auto"])
@pytest.mark.parametrize("end", ["low", "high"])
def test_all_times_at_the_end_of_their_range(
    end: str, clock: str, tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """With a data directory, whose tasks have timers, too."""
    settings = {name: value_at(name, end) for name in TIMES if name != "group.initial.rebalance.delay.ms"}
    data = DataDirectory(str(tmp_path_factory.mktemp("data")), durability="os")
    with Broker.running(clock=clock, settings=settings, data=data) as broker:
        with suppress(ConnectionError), RawClient(broker.bootstrap_servers) as client:
            commit_offset(client)
        if clock != "scaled:1e9":
            broker.clock.advance(days=8)
        broker.snapshot()
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
