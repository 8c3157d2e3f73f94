"""Run a driver against a broker and check its results."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import NewTopic

from tests.clients.admin import admin_client, wait_coordinators, wait_topic
from tests.clients.scenarios.clients import Client
from tests.clients.scenarios.scenarios import SCENARIOS, Matching, Scenario

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 120.0

Status = Literal["passed", "unsupported", "failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one scenario."""

    status: Status
    reason: str = ""


class Secured(NamedTuple):
    """A listener, and the environment variables that give a driver its security (as `kproto run` sets them)."""

    bootstrap: str
    variables: Mapping[str, str]


@dataclass(slots=True)
class DriverReport:
    """The output lines of a driver about one scenario."""

    results: dict[str, Any] = field(default_factory=dict)
    end: str = "nothing"
    reason: str = ""


def run_client(client: Client, bootstrap: str, prefix: str, secured: Secured | None = None) -> dict[str, Outcome]:
    """Run all scenarios of the client in one process; return the outcome of each.

    ``bootstrap``: a listener without security, for the harness; ``secured``: that of the client, if it is another
    one.
    """
    command = client.command()
    create_topics(bootstrap, prefix)
    reports, errors = _run_driver(command, secured or Secured(bootstrap, {}), prefix)
    with admin_client(bootstrap) as admin:
        for scenario in SCENARIOS:
            _add_broker_results(admin, scenario, prefix, reports[scenario.name])
    return {scenario.name: check(client, scenario, reports[scenario.name], errors) for scenario in SCENARIOS}


def create_topics(bootstrap: str, prefix: str) -> None:
    topics = {f"{prefix}-{s.name}": s.partitions for s in SCENARIOS if s.partitions is not None}
    with admin_client(bootstrap) as admin:
        admin.create_topics([NewTopic(name, partitions, 1) for name, partitions in topics.items()])
    for name, partitions in topics.items():
        wait_topic(bootstrap, name, partitions)
    # Some clients do not repeat their requests until a new broker has coordinators.
    wait_coordinators(bootstrap, [f"{prefix}-{s.name}" for s in SCENARIOS])


def _run_driver(command: list[str], listener: Secured, prefix: str) -> tuple[dict[str, DriverReport], str]:
    """Return the driver's report of each scenario, and its standard error."""
    arguments = [*command, listener.bootstrap, prefix, *(s.name for s in SCENARIOS)]
    utf8 = os.environ | {"LC_ALL": "C.UTF-8", **listener.variables}  # Java reads arguments in the locale's encoding
    process = subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=utf8)
    try:
        out, errors = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, errors = process.communicate()
        errors += f"\nkilled after {LIMIT_S} s"
    if process.returncode:
        errors += f"\nexit code {process.returncode}"
    reports = {s.name: DriverReport() for s in SCENARIOS}
    for text in out.splitlines():
        line = json.loads(text)
        report = reports[line["scenario"]]
        if "result" in line:
            report.results[line["result"]] = line["value"]
        else:
            assert report.end == "nothing", f"{line['scenario']} ends twice"
            report.end, report.reason = line["end"], line.get("reason", "")
    return reports, errors


def _exists(admin: KafkaAdminClient, name: str) -> bool:
    return name in admin.list_topics()


def _producers(admin: KafkaAdminClient, name: str) -> int:
    partition = TopicPartition(name, 0)
    return len(admin.describe_producers([partition])[partition].active_producers)


BROKER_QUERIES: Mapping[str, Callable[[KafkaAdminClient, str], object]] = {"exists": _exists, "producers": _producers}


def _add_broker_results(admin: KafkaAdminClient, scenario: Scenario, prefix: str, report: DriverReport) -> None:
    if report.end == "ok":
        for result in scenario.broker_results:
            report.results[result] = BROKER_QUERIES[result](admin, f"{prefix}-{scenario.name}")


def check(client: Client, scenario: Scenario, report: DriverReport, errors: str) -> Outcome:
    """Return the outcome of a scenario; `errors` is the driver's standard error."""
    reason = client.unsupported.get(scenario.name)
    if (report.end == "unsupported") != (reason is not None):
        expected = "supported" if reason is None else "unsupported"
        text = f"`{report.end}` from the driver, but {expected} in clients.py: {report.reason}\n{errors}"
        return Outcome("failed", text)
    if reason is not None:
        return Outcome("unsupported", reason)
    if report.end != "ok":
        return Outcome("failed", f"`{report.end}` from the driver: {report.reason}\n{report.results}\n{errors}")
    wrong = _wrong_results(client, scenario, report.results)
    return Outcome("failed", f"{'; '.join(wrong)}\n{errors}") if wrong else Outcome("passed")


def _wrong_results(client: Client, scenario: Scenario, results: Mapping[str, Any]) -> list[str]:
    wrong = []
    for name, expected in (dict(scenario.results) | dict(scenario.broker_results)).items():
        expected = client.known_results.get((scenario.name, name), expected)
        if name not in results:
            wrong.append(f"`{name}` is missing")
        elif not (
            expected.matches(results[name], results) if isinstance(expected, Matching) else results[name] == expected
        ):
            wrong.append(f"`{name}` is {results[name]!r}, not {expected!r}")
    return wrong
