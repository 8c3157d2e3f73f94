"""Runs a driver against a broker and judges what it tells."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import NewTopic

from tests.clients.admin import admin_client, wait_coordinators, wait_topic
from tests.clients.scenarios.clients import Client
from tests.clients.scenarios.scenarios import SCENARIOS, Scenario, Such

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 120.0

Verdict = Literal["passed", "unsupported", "failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    verdict: Verdict
    why: str = ""


@dataclass(slots=True)
class Told:
    """What a driver said of one scenario."""

    facts: dict[str, Any] = field(default_factory=dict)
    end: str = "nothing"
    why: str = ""


def run_client(client: Client, bootstrap: str, prefix: str) -> dict[str, Outcome]:
    """Run all scenarios of the client in one process; return the outcome of each."""
    command = client.command()
    make_topics(bootstrap, prefix)
    told, errors = _drive(command, bootstrap, prefix)
    with admin_client(bootstrap) as admin:
        return {s.name: judge(client, s, _looked_up(admin, s, prefix, told[s.name]), errors) for s in SCENARIOS}


def make_topics(bootstrap: str, prefix: str) -> None:
    topics = {f"{prefix}-{s.name}": s.partitions for s in SCENARIOS if s.partitions is not None}
    with admin_client(bootstrap) as admin:
        admin.create_topics([NewTopic(name, partitions, 1) for name, partitions in topics.items()])
    for name, partitions in topics.items():
        wait_topic(bootstrap, name, partitions)
    # Not every client tries for as long as it takes.
    wait_coordinators(bootstrap, [f"{prefix}-{s.name}" for s in SCENARIOS])


def _drive(command: list[str], bootstrap: str, prefix: str) -> tuple[dict[str, Told], str]:
    """What the driver told of each scenario, and its standard error."""
    words = [*command, bootstrap, prefix, *(s.name for s in SCENARIOS)]
    utf8 = os.environ | {"LC_ALL": "C.UTF-8"}  # Java reads its arguments in the locale's encoding
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=utf8)
    try:
        out, errors = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, errors = process.communicate()
        errors += f"\nnot done after {LIMIT_S} s"
    if process.returncode:
        errors += f"\nended with {process.returncode}"
    told = {s.name: Told() for s in SCENARIOS}
    for line in out.splitlines():
        said = json.loads(line)
        scenario = told[said["scenario"]]
        if "fact" in said:
            scenario.facts[said["fact"]] = said["value"]
        else:
            assert scenario.end == "nothing", f"{said['scenario']} ends twice"
            scenario.end, scenario.why = said["end"], said.get("why", "")
    return told, errors


def _exists(admin: KafkaAdminClient, name: str) -> bool:
    return name in admin.list_topics()


def _producers(admin: KafkaAdminClient, name: str) -> int:
    partition = TopicPartition(name, 0)
    return len(admin.describe_producers([partition])[partition].active_producers)


LOOK_UPS: Mapping[str, Callable[[KafkaAdminClient, str], object]] = {"exists": _exists, "producers": _producers}


def _looked_up(admin: KafkaAdminClient, scenario: Scenario, prefix: str, told: Told) -> Told:
    if told.end == "ok":
        for fact in scenario.looked_up:
            told.facts[fact] = LOOK_UPS[fact](admin, f"{prefix}-{scenario.name}")
    return told


def judge(client: Client, scenario: Scenario, told: Told, errors: str) -> Outcome:
    reason = client.unsupported.get(scenario.name)
    if (told.end == "unsupported") != (reason is not None):
        expected = "supported" if reason is None else "unsupported"
        return Outcome("failed", f"`{told.end}` from the driver, but {expected} in clients.py: {told.why}\n{errors}")
    if reason is not None:
        return Outcome("unsupported", reason)
    if told.end != "ok":
        return Outcome("failed", f"`{told.end}` from the driver: {told.why}\n{told.facts}\n{errors}")
    wrong = _wrong_facts(client, scenario, told.facts)
    return Outcome("failed", f"{'; '.join(wrong)}\n{errors}") if wrong else Outcome("passed")


def _wrong_facts(client: Client, scenario: Scenario, facts: Mapping[str, Any]) -> list[str]:
    wrong = []
    for name, expected in (dict(scenario.facts) | dict(scenario.looked_up)).items():
        expected = client.told.get((scenario.name, name), expected)
        if name not in facts:
            wrong.append(f"`{name}` is not told")
        elif not (expected.holds(facts[name], facts) if isinstance(expected, Such) else facts[name] == expected):
            wrong.append(f"`{name}` is {facts[name]!r}, not {expected!r}")
    return wrong
