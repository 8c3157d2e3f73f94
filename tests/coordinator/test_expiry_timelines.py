"""The timelines of `expiry_table`, asked of our coordinator on a virtual clock, and of what real brokers were recorded.

Members come and go by hand here, as JoinGroup does not exist yet; for the same reason T13 (a member that has been given
an id and has not joined), the restarts and the transactions are left to the recordings.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kproto_server.releases.profiles import Profile
from tests.coordinator.expiry_table import FIRST, NEW, OLD, TABLE
from tests.coordinator.line import DEAD, Line, Outcome, Script, differences
from tests.coordinator.timeline import Timeline
from tests.fixture_files import FIXTURES

SWEEP_S = 1.0
"""Between two sweeps: what was measured elsewhere may be so much earlier or later (EX-4)."""
LOOKS_S = 0.5
"""Between two looks, of a recording and of ours."""

TXN_OFFSET_COMMIT = 28


def by_hand() -> list[Script]:
    """The scripts that a coordinator without members' requests, transactions and restarts can play."""
    return [s for s in TABLE.values() if s.name != "T13" and s.down is None and not s.uses(TXN_OFFSET_COMMIT)]


def cases() -> list[Any]:
    return [pytest.param(s, profile, id=f"{s.name}-{profile}") for s in by_hand() for profile in s.outcomes]


@pytest.mark.parametrize(("script", "profile"), cases())
def test_our_coordinator_does_what_the_table_says(script: Script, profile: str) -> None:
    seen = script.run(Timeline(profile))
    assert list(differences(script.outcomes[profile], seen, script.states, SWEEP_S)) == []


RECORDINGS = sorted((FIXTURES / "expiry").glob("*.json"))


@cache
def recorded(path: Path) -> dict[str, Outcome]:
    """What came of the timelines in a real broker."""
    timelines = json.loads(path.read_text())["timelines"]
    return {
        name: Outcome(
            gone=row["gone"],
            states=row["states"],
            answers=tuple(row.get("answers", ())),
            loaded=row.get("loaded"),
        )
        for name, row in timelines.items()
    }


def recorded_cases() -> list[Any]:
    playable = {script.name for script in by_hand()}
    return [
        pytest.param(path, name, id=f"{path.stem}-{name}")
        for path in RECORDINGS
        for name in recorded(path)
        if name in playable
    ]


@pytest.mark.parametrize(("path", "name"), recorded_cases())
def test_our_coordinator_does_what_a_real_broker_did(path: Path, name: str) -> None:
    script = TABLE[name]
    seen = script.run(Timeline(path.stem))
    assert list(differences(recorded(path)[name], seen, script.states, SWEEP_S + LOOKS_S)) == []


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_the_table_is_what_a_real_broker_did(path: Path) -> None:
    """Also in the timelines that ours can't be asked."""
    profile = Profile.named(path.stem).name
    for name, outcome in recorded(path).items():
        script = TABLE[name]
        expected = script.outcomes.get(profile, outcome)
        assert list(differences(expected, outcome, script.states, SWEEP_S + LOOKS_S)) == [], name


def test_recordings_are_whole() -> None:
    """Every timeline that a real broker can be asked is in the recording of every release of the table."""
    by_profile = {Profile.named(path.stem).name: path for path in RECORDINGS}
    for profile in (OLD, FIRST, NEW):
        wanted = {s.name for s in TABLE.values() if s.is_recorded and profile in s.outcomes}
        assert wanted == recorded(by_profile[profile]).keys(), profile


# D2: retention times are ignored unless asked for.


def ignoring(profile: str, play: Script, until_s: float) -> Outcome:
    line: Line = Timeline(profile, offsets_retention_override="ignore")
    play.play(line)
    line.at(until_s)
    return line.outcome()


@pytest.mark.parametrize(("profile", "gone_s"), [(OLD, 61), (FIRST, 60), (NEW, 60)])
@pytest.mark.parametrize("name", ["T2", "T3"])
def test_t30_what_is_committed_for_ten_seconds_or_a_hundred_lasts_as_long_as_all_else(
    profile: str, gone_s: float, name: str
) -> None:
    seen = ignoring(profile, TABLE[name], 104)
    expected = Outcome(gone={"t-0": gone_s}, states={DEAD: gone_s})
    assert list(differences(expected, seen, (DEAD,), SWEEP_S)) == []


def test_t30_retention_time_of_a_member_is_ignored() -> None:
    seen = ignoring(NEW, TABLE["T5"], 84)
    assert list(differences(Outcome(gone={"t-0": 80}, states={DEAD: 80}), seen, (DEAD,), SWEEP_S)) == []
