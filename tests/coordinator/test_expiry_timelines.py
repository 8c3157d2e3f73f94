"""The timelines of `expiry_table`, asked of our coordinator on a virtual clock, and of what real brokers were recorded.

The coordinator is alone here: members come and go by hand. So T13 (a member that has been given an id and has not
joined) and the restarts are not here; `tests/server/test_expiry_timelines.py` asks over a socket.
"""

from __future__ import annotations

from typing import Any

import pytest

from kproto_server.releases.kafka_version import KafkaVersion
from tests.coordinator.expiry_table import COLUMNS, FIRST, NEW, OLD, TABLE
from tests.coordinator.line import DEAD, Line, Outcome, Script, differences
from tests.coordinator.timeline import Timeline
from tests.fixture_files import expiry_recordings

SWEEP_S = 1.0
"""Between two sweeps: what was measured elsewhere may be so much earlier or later (EX-4)."""
LOOKS_S = 0.5
"""Between two looks, of a recording and of ours."""


def by_hand() -> list[Script]:
    """The scripts that a coordinator without members' requests and restarts can play."""
    return [s for s in TABLE.values() if s.name != "T13" and s.down is None]


def cases() -> list[Any]:
    return [
        pytest.param(s, kafka_version, id=f"{s.name}-{kafka_version}")
        for s in by_hand()
        for kafka_version in s.outcomes
    ]


@pytest.mark.parametrize(("script", "kafka_version"), cases())
def test_our_coordinator_does_what_the_table_says(script: Script, kafka_version: str) -> None:
    seen = script.run(Timeline(kafka_version))
    assert list(differences(script.outcomes[kafka_version], seen, script.states, SWEEP_S)) == []


def recorded_cases() -> list[Any]:
    playable = {script.name for script in by_hand()}
    return [
        pytest.param(TABLE[name], release, Outcome.recorded(facts), id=f"{name}-{release}")
        for release, timelines in expiry_recordings().items()
        for name, facts in timelines.items()
        if name in playable
    ]


@pytest.mark.parametrize(("script", "release", "recorded"), recorded_cases())
def test_our_coordinator_does_what_a_real_broker_did(script: Script, release: str, recorded: Outcome) -> None:
    seen = script.run(Timeline(release))
    assert list(differences(recorded, seen, script.states, SWEEP_S + LOOKS_S)) == []


@pytest.mark.parametrize("release", expiry_recordings())
def test_the_table_is_what_a_real_broker_did(release: str) -> None:
    """Also in the timelines that ours can't be asked."""
    kafka_version = KafkaVersion.named(release).name
    for name, facts in expiry_recordings()[release].items():
        script, seen = TABLE[name], Outcome.recorded(facts)
        expected = script.outcomes.get(kafka_version, seen)
        assert list(differences(expected, seen, script.states, SWEEP_S + LOOKS_S)) == [], name


@pytest.mark.parametrize("release", expiry_recordings())
def test_recordings_are_whole(release: str) -> None:
    """Every timeline that a broker of this release can be asked was asked, and no act came too late."""
    kafka_version = KafkaVersion.named(release)
    recorded = expiry_recordings()[release]
    playable = {s.name for s in TABLE.values() if s.can_be_played(kafka_version)}
    assert recorded.keys() | {s.name for s in TABLE.values() if s.is_long} >= playable >= recorded.keys()
    assert all(facts["latest_act_s"] < LOOKS_S for facts in recorded.values())


def test_every_column_of_the_table_is_recorded() -> None:
    assert {KafkaVersion.named(release).name for release in expiry_recordings()} >= set(COLUMNS)


# D2: retention times are ignored unless asked for.


def ignoring(kafka_version: str, play: Script, until_s: float) -> Outcome:
    line: Line = Timeline(kafka_version, offsets_retention_override="ignore")
    play.play(line)
    line.at(until_s)
    return line.outcome()


@pytest.mark.parametrize(("kafka_version", "gone_s"), [(OLD, 61), (FIRST, 60), (NEW, 60)])
@pytest.mark.parametrize("name", ["T2", "T3"])
def test_t30_what_is_committed_for_ten_seconds_or_a_hundred_lasts_as_long_as_all_else(
    kafka_version: str, gone_s: float, name: str
) -> None:
    seen = ignoring(kafka_version, TABLE[name], 104)
    expected = Outcome(gone={"t-0": gone_s}, states={DEAD: gone_s})
    assert list(differences(expected, seen, (DEAD,), SWEEP_S)) == []


def test_t30_retention_time_of_a_member_is_ignored() -> None:
    seen = ignoring(NEW, TABLE["T5"], 84)
    assert list(differences(Outcome(gone={"t-0": 80}, states={DEAD: 80}), seen, (DEAD,), SWEEP_S)) == []
