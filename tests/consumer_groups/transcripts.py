"""Transcripts of real brokers, `fixtures/consumer_groups/transcripts.jsonl`: each line has one, and its releases."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from tests.consumer_groups.scripts import SCRIPTS
from tests.fixture_files import FIXTURES
from tests.membership.members import Step

TRANSCRIPTS = FIXTURES / "consumer_groups" / "transcripts.jsonl"
TOPIC_IDS = FIXTURES / "consumer_groups" / "topic_ids.json"
"""The topic ids of each recorded broker: assignments depend on their hash codes."""

SETTINGS = {
    "group.consumer.max.size": "4",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "auto.create.topics.enable": "false",
}
"""The settings of the recorded brokers."""
MIXED_SETTINGS = {"group.consumer.session.timeout.ms": "45000"}
"""With random scripts of all kinds of members, only they decide what happens: nothing depends on time."""
MIXED_SETTINGS_SINCE_4_3 = {"group.consumer.assignment.interval.ms": "0"}

TOPICS = {"t": 3, "u": 1, "w": 7, "x": 6}


class Transcript(NamedTuple):
    """The transcript of a script with a release."""

    script: str
    release: str
    steps: tuple[Step, ...]


NOT_BEFORE_4_2 = "empty_groups_change_their_kind"
"""A script of which the responses of 4.0 and 4.1 depend on time: a deleted group is described until a write is
committed."""


def runs_on(script: str, release: str) -> bool:
    """Return whether a script has the same responses each time that it runs against a release."""
    return script != NOT_BEFORE_4_2 or not release.startswith(("4.0", "4.1"))


def topic_ids_by_release() -> dict[str, dict[str, str]]:
    """Return the ids of the topics by name, for each recorded release."""
    found: dict[str, dict[str, str]] = json.loads(TOPIC_IDS.read_text()) if TOPIC_IDS.exists() else {}
    return found


@cache
def transcripts() -> tuple[Transcript, ...]:
    return tuple(_read())


def _read() -> Iterable[Transcript]:
    for line in TRANSCRIPTS.read_text().splitlines() if TRANSCRIPTS.exists() else []:
        row = json.loads(line)
        steps = tuple(Step(action, responses) for action, responses in row["steps"])
        for release in row["releases"]:
            yield Transcript(row["script"], release, steps)


def write(found: Iterable[Transcript], topic_ids: dict[str, dict[str, str]]) -> None:
    """Write all transcripts, and the topic ids; equal transcripts share a line."""
    releases: dict[tuple[str, str], list[str]] = {}
    for one in found:
        key = one.script, json.dumps(one.steps, separators=(",", ":"))
        releases.setdefault(key, []).append(one.release)
    order = list(SCRIPTS)
    rows = sorted((order.index(name), sorted(of), steps) for (name, steps), of in releases.items() if name in SCRIPTS)
    TRANSCRIPTS.parent.mkdir(exist_ok=True)
    TOPIC_IDS.write_text(json.dumps(topic_ids, indent=1, sort_keys=True) + "\n")
    TRANSCRIPTS.write_text(
        "".join(
            f'{{"script":"{order[index]}","releases":{json.dumps(of)},"steps":{steps}}}\n' for index, of, steps in rows
        )
    )
