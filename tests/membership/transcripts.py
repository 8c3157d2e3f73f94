"""Transcripts of real brokers, `fixtures/membership/transcripts.jsonl`: a line has a transcript and its releases."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from kproto_server.releases.kafka_version import KafkaVersion
from tests.fixture_files import FIXTURES
from tests.membership.members import Step
from tests.membership.scripts import SCRIPTS

TRANSCRIPTS = FIXTURES / "membership" / "transcripts.jsonl"

SETTINGS = {
    "group.max.size": "3",
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}
"""The settings of the recorded brokers."""

IN_ALL_VERSIONS = "a_member_alone"
VERSIONS = (0, 4)
"""Versions of JoinGroup for the other scripts, besides their first one and the newest of the release."""


class Transcript(NamedTuple):
    """The transcript of a script with a release, in one version of JoinGroup."""

    script: str
    join_version: int
    release: str
    steps: tuple[Step, ...]


def versions_of(script: str, release: str) -> list[int]:
    """Return the versions of JoinGroup in which a script runs against a release."""
    low, newest = KafkaVersion.named(release).api_versions[11]
    first = max(low, SCRIPTS[script].first_version)
    if first > newest:
        return []
    if script == IN_ALL_VERSIONS:
        return list(range(first, newest + 1))
    if SCRIPTS[script].takes_long:
        return [newest]
    return sorted({first, newest, *(version for version in VERSIONS if first <= version <= newest)})


@cache
def transcripts() -> tuple[Transcript, ...]:
    return tuple(_read())


def _read() -> Iterable[Transcript]:
    lines = TRANSCRIPTS.read_text().splitlines() if TRANSCRIPTS.exists() else []
    for transport in lines:
        row = json.loads(transport)
        steps = tuple(Step(action, responses) for action, responses in row["steps"])
        for release in row["releases"]:
            yield Transcript(row["script"], row["join_version"], release, steps)


def write(found: Iterable[Transcript]) -> None:
    """Write all transcripts; equal transcripts share a line."""
    releases: dict[tuple[str, int, str], list[str]] = {}
    for transcript in found:
        key = transcript.script, transcript.join_version, json.dumps(transcript.steps, separators=(",", ":"))
        releases.setdefault(key, []).append(transcript.release)
    TRANSCRIPTS.parent.mkdir(exist_ok=True)
    order = list(SCRIPTS)
    rows = []
    for (script, version, steps), names in releases.items():
        names.sort(key=_by_number)
        rows.append((order.index(script), version, _by_number(names[0]), names, steps))
    TRANSCRIPTS.write_text(
        "".join(
            f'{{"script":"{order[index]}","join_version":{version},"releases":{json.dumps(names)},"steps":{steps}}}\n'
            for index, version, _, names, steps in sorted(rows)
        )
    )


def _by_number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))
