"""Transcripts of real brokers, `fixtures/share-groups/transcripts.jsonl`: a line has a transcript and its releases."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from tests.fixture_files import FIXTURES
from tests.membership.members import Step
from tests.share_groups import scripts
from tests.share_groups.config_scripts import CONFIG_SCRIPTS
from tests.share_groups.scripts import LOCK_MS, Script
from tests.share_groups.state_scripts import STATE_SCRIPTS
from tests.share_groups.topic_scripts import TOPIC_SCRIPTS

SCRIPTS: dict[str, Script] = scripts.SCRIPTS | TOPIC_SCRIPTS | STATE_SCRIPTS | CONFIG_SCRIPTS
TRANSCRIPTS = FIXTURES / "share-groups" / "transcripts.jsonl"

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.record.lock.duration.ms": str(LOCK_MS),
}
"""The settings of the recorded brokers that kproto has, too."""
REAL_SETTINGS = {"share.coordinator.state.topic.min.isr": "1"}


def settings_with(lock_ms: int) -> dict[str, str]:
    """Return the settings, with records that are locked for ``lock_ms``."""
    return SETTINGS | {"group.share.record.lock.duration.ms": str(lock_ms)}


class Transcript(NamedTuple):
    """The transcript of a script with a release."""

    script: str
    release: str
    steps: tuple[Step, ...]


@cache
def transcripts() -> tuple[Transcript, ...]:
    return tuple(_read())


def _read() -> Iterable[Transcript]:
    for line in TRANSCRIPTS.read_text().splitlines() if TRANSCRIPTS.exists() else ():
        row = json.loads(line)
        steps = tuple(Step(action, responses) for action, responses in row["steps"])
        for release in row["releases"]:
            yield Transcript(row["script"], release, steps)


def write(found: Iterable[Transcript]) -> None:
    """Write all transcripts; equal transcripts share a line."""
    releases: dict[tuple[str, str], list[str]] = {}
    for transcript in found:
        key = transcript.script, json.dumps(transcript.steps, separators=(",", ":"))
        releases.setdefault(key, []).append(transcript.release)
    TRANSCRIPTS.parent.mkdir(exist_ok=True)
    order = list(SCRIPTS)
    rows = sorted((order.index(script), sorted(names), steps) for (script, steps), names in releases.items())
    TRANSCRIPTS.write_text(
        "".join(
            f'{{"script":"{order[index]}","releases":{json.dumps(names)},"steps":{steps}}}\n'
            for index, names, steps in rows
        )
    )
