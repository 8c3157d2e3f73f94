"""Transcripts of real brokers, `fixtures/transactions/transcripts.jsonl`: a line has a transcript and its releases."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from tests.fixture_files import FIXTURES
from tests.membership.members import Step
from tests.transactions.scripts import SCRIPTS

TRANSCRIPTS = FIXTURES / "transactions" / "transcripts.jsonl"

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "num.partitions": "2",
}
"""The settings of the recorded brokers."""


class Transcript(NamedTuple):
    """The transcript of a script with a release, in the versions of one tier."""

    script: str
    tier: int
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
            yield Transcript(row["script"], row["tier"], release, steps)


def write(found: Iterable[Transcript]) -> None:
    """Write all transcripts; equal transcripts share a line."""
    releases: dict[tuple[str, int, str], list[str]] = {}
    for transcript in found:
        key = transcript.script, transcript.tier, json.dumps(transcript.steps, separators=(",", ":"))
        releases.setdefault(key, []).append(transcript.release)
    TRANSCRIPTS.parent.mkdir(exist_ok=True)
    order = list(SCRIPTS)
    rows = []
    for (script, tier, steps), names in releases.items():
        names.sort(key=_by_number)
        rows.append((order.index(script), tier, _by_number(names[0]), names, steps))
    TRANSCRIPTS.write_text(
        "".join(
            f'{{"script":"{order[index]}","tier":{tier},"releases":{json.dumps(names)},"steps":{steps}}}\n'
            for index, tier, _, names, steps in sorted(rows)
        )
    )


def _by_number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))
