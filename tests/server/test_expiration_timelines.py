"""The timelines of offset expiration on kproto over a socket: the scripts of real brokers, on a manual clock."""

from __future__ import annotations

from typing import Any

import pytest

from kproto_server.broker.broker import Broker
from kproto_server.handlers import HANDLED
from kproto_server.releases.kafka_version import KafkaVersion
from tests.coordinator.expiration_table import COLUMNS, TABLE
from tests.coordinator.timeline import Outcome, Script, differences
from tests.fixture_files import expiry_recordings
from tests.oracle.expiry_timeline import WireTimeline

SETTINGS = {
    "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 1000,
    "offsets.retention.override": "honour",
}
WITH_MEMBERS = {"group.initial.rebalance.delay.ms": 0}
TOLERANCE_S = 1.5
"""A second between two expiration runs, and half a second between two polls."""
JOIN_GROUP, INIT_PRODUCER_ID = 11, 22


class BrokerTime:
    """The manual clock of a broker. It stands between two advances: only those ask the broker's thread for the time."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._zero_ms = self._now_ms = broker.clock.now_ms()

    @property
    def now_s(self) -> float:
        return (self._now_ms - self._zero_ms) / 1000

    def pass_until(self, time_s: float) -> None:
        self._broker.clock.advance(seconds=time_s - self.now_s)
        self._now_ms = self._broker.clock.now_ms()

    def now_ms(self) -> int:
        return self._now_ms


class OurLine(WireTimeline):
    """The group at a broker with a manual clock."""

    STEP_S = 0.5


def cases() -> list[Any]:
    """Return all scripts whose APIs kproto has; T23 is T8b for ten minutes."""
    return [
        pytest.param(script, kafka_version, id=f"{script.name}-{kafka_version}")
        for script in TABLE.values()
        if script.down is None and not script.is_long and all(key in HANDLED for key, _ in script.needs)
        for kafka_version in script.outcomes
    ]


def recorded_cases() -> list[Any]:
    """Return recordings of releases besides those of the table, in the timelines in which they differ."""
    return [
        pytest.param(TABLE[name], release, Outcome.recorded(timelines[name]), id=f"{name}-{release}")
        for release, timelines in expiry_recordings().items()
        for name in ("T8", "T13")
        if name in timelines and KafkaVersion.named(release).name not in COLUMNS
    ]


@pytest.mark.parametrize(("script", "kafka_version"), cases())
def test_broker_matches_the_table(script: Script, kafka_version: str) -> None:
    assert (
        list(differences(script.outcomes[kafka_version], play(script, kafka_version), script.states, TOLERANCE_S)) == []
    )


@pytest.mark.parametrize(("script", "release", "recorded"), recorded_cases())
def test_broker_matches_real_brokers(script: Script, release: str, recorded: Outcome) -> None:
    """T13: EX-33, of the old coordinator too. T8: KAFKA-8730."""
    assert list(differences(recorded, play(script, release), script.states, TOLERANCE_S)) == []


def play(script: Script, kafka_version: str) -> Outcome:
    settings = SETTINGS | (WITH_MEMBERS if script.uses(JOIN_GROUP) else {})
    with Broker.running(kafka_version=kafka_version, clock="manual", settings=settings) as broker:
        timeline = OurLine(broker.bootstrap_servers, "g", BrokerTime(broker))
        timeline.set_up(in_transaction=script.uses(INIT_PRODUCER_ID))
        seen = script.run(timeline)
        timeline.close()
    return seen
