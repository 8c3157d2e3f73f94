"""The timelines of `expiration_table` on kproto's coordinator on a virtual clock, compared with recordings of real
brokers.

The coordinator runs without a broker: members are added and removed by hand. T13 (a pending member id) and restarts
need a broker: `tests/server/test_expiration_timelines.py` has them.
"""

from __future__ import annotations

from typing import Any

import pytest

from kproto_server.releases.kafka_version import KafkaVersion
from tests.coordinator.coordinator_timeline import CoordinatorTimeline
from tests.coordinator.expiration_table import COLUMNS, FIRST, NEW, OLD, TABLE
from tests.coordinator.timeline import DEAD, Outcome, Script, Timeline, differences
from tests.fixture_files import expiry_recordings

INTERVAL_S = 1.0
"""The time between two runs of the expiration task: measured times may differ by as much (EX-4)."""
LOOKS_S = 0.5
"""The time between two polls, of the recording and of kproto."""


def by_hand() -> list[Script]:
    """Return the scripts that need neither members' requests nor restarts."""
    return [s for s in TABLE.values() if s.name != "T13" and s.down is None]


def cases() -> list[Any]:
    return [
        pytest.param(s, kafka_version, id=f"{s.name}-{kafka_version}")
        for s in by_hand()
        for kafka_version in s.outcomes
    ]


@pytest.mark.parametrize(("script", "kafka_version"), cases())
def test_coordinator_matches_the_table(script: Script, kafka_version: str) -> None:
    seen = script.run(CoordinatorTimeline(kafka_version))
    assert list(differences(script.outcomes[kafka_version], seen, script.states, INTERVAL_S)) == []


def recorded_cases() -> list[Any]:
    playable = {script.name for script in by_hand()}
    return [
        pytest.param(TABLE[name], release, Outcome.recorded(fields), id=f"{name}-{release}")
        for release, timelines in expiry_recordings().items()
        for name, fields in timelines.items()
        if name in playable
    ]


@pytest.mark.parametrize(("script", "release", "recorded"), recorded_cases())
def test_coordinator_matches_real_brokers(script: Script, release: str, recorded: Outcome) -> None:
    seen = script.run(CoordinatorTimeline(release))
    assert list(differences(recorded, seen, script.states, INTERVAL_S + LOOKS_S)) == []


@pytest.mark.parametrize("release", expiry_recordings())
def test_table_matches_real_brokers(release: str) -> None:
    """Including the timelines that the coordinator alone can't run."""
    kafka_version = KafkaVersion.named(release).name
    for name, fields in expiry_recordings()[release].items():
        script, seen = TABLE[name], Outcome.recorded(fields)
        expected = script.outcomes.get(kafka_version, seen)
        assert list(differences(expected, seen, script.states, INTERVAL_S + LOOKS_S)) == [], name


@pytest.mark.parametrize("release", expiry_recordings())
def test_recordings_are_complete(release: str) -> None:
    """Each timeline that a broker of this release can run was recorded, and no action was late."""
    kafka_version = KafkaVersion.named(release)
    recorded = expiry_recordings()[release]
    playable = {s.name for s in TABLE.values() if s.can_run_on(kafka_version)}
    assert recorded.keys() | {s.name for s in TABLE.values() if s.is_long} >= playable >= recorded.keys()
    assert all(fields["latest_act_s"] < LOOKS_S for fields in recorded.values())


def test_each_column_of_the_table_is_recorded() -> None:
    assert {KafkaVersion.named(release).name for release in expiry_recordings()} >= set(COLUMNS)


# D2: retention times of requests are ignored by default.


def ignoring(kafka_version: str, play: Script, until_s: float) -> Outcome:
    timeline: Timeline = CoordinatorTimeline(kafka_version, offsets_retention_override="ignore")
    play.play(timeline)
    timeline.at(until_s)
    return timeline.outcome()


@pytest.mark.parametrize(("kafka_version", "gone_s"), [(OLD, 61), (FIRST, 60), (NEW, 60)])
@pytest.mark.parametrize("name", ["T2", "T3"])
def test_t30_retention_time_of_ten_or_hundred_seconds_is_ignored(kafka_version: str, gone_s: float, name: str) -> None:
    seen = ignoring(kafka_version, TABLE[name], 104)
    expected = Outcome(gone={"t-0": gone_s}, states={DEAD: gone_s})
    assert list(differences(expected, seen, (DEAD,), INTERVAL_S)) == []


def test_t30_retention_time_of_a_member_is_ignored() -> None:
    seen = ignoring(NEW, TABLE["T5"], 84)
    assert list(differences(Outcome(gone={"t-0": 80}, states={DEAD: 80}), seen, (DEAD,), INTERVAL_S)) == []
