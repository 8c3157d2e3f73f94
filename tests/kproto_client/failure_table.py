"""What each setting does in each failure scenario: `python -m tests.kproto_client.failure_table [--write]`.

Runs a consumer of each column in each failure scenario of `kproto scenario`, and after a topic was deleted and created
again. With --write, the table goes into the client's page.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from kproto_server.scenarios.failure_scenarios import SCENARIOS, FailureScenario
from kproto_server.scenarios.runner import run_scenario
from kproto_server.scenarios.scenario_topic import TOPIC, ScenarioTopic
from tests.scenarios.clients import PROGRAMS
from tests.scenarios.table import table_cell

PAGE = Path(__file__).parents[2] / "kproto" / "client" / "README.md"
BEGIN, END = "<!-- failures -->\n", "<!-- /failures -->\n"
LIMIT_S = 30.0
RUNS_AT_ONCE = 4
"""The consumers wait most of the time."""

RESET = "auto.offset.reset"
NO_INITIAL = "auto.offset.reset.on.no.initial.offset"
RECOMMENDED = "`safe_latest` and `nearest`"
COLUMNS: dict[str, dict[str, str]] = {
    "confluent-kafka, `latest`": {RESET: "latest"},
    "confluent-kafka, `earliest`": {RESET: "earliest"},
    "`latest_on_start` and `earliest`": {NO_INITIAL: "latest_on_start", RESET: "earliest"},
    RECOMMENDED: {NO_INITIAL: "safe_latest", "auto.offset.reset.on.invalid.offset": "nearest"},
    "parallel catch-up": {"enable.parallel.rebalance": "true"},
}


def _recreate(topic: ScenarioTopic) -> None:
    topic.produce(500)
    topic.commit(500)
    admin = AdminClient({"bootstrap.servers": topic._broker.bootstrap_servers, "log_level": 0})
    admin.delete_topics([TOPIC])[TOPIC].result(LIMIT_S)
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(LIMIT_S)
    topic.produce(200)


RECREATED = FailureScenario(
    name="recreated-topic",
    description="The group read all of a topic; the topic was deleted and created again, and got 200 records.",
    apply=_recreate,
    expected_start={0: 0},
)
FAILURES = {**SCENARIOS, RECREATED.name: RECREATED}


def cells(scenarios: Iterable[str], columns: Iterable[str]) -> dict[tuple[str, str], str]:
    """Return the measured cells of these rows and columns."""
    wanted = list(product(scenarios, columns))
    with ThreadPoolExecutor(RUNS_AT_ONCE) as threads:
        return dict(zip(wanted, threads.map(_cell, wanted), strict=True))


def _cell(row_and_column: tuple[str, str]) -> str:
    scenario, column = row_and_column
    command = [sys.executable, str(PROGRAMS / "kproto_consumer.py")]
    environment = {"SETTINGS": json.dumps(COLUMNS[column])}
    cell = table_cell(run_scenario(FAILURES[scenario], command, timeout_s=LIMIT_S, environment=environment))
    return cell.rpartition(": ")[2]  # without the start position


def markdown(found: dict[tuple[str, str], str]) -> str:
    rows = [["Failure scenario", *COLUMNS]]
    rows += [[_row_name(each), *(found[each, column] for column in COLUMNS)] for each in FAILURES]
    lines = [f"| {' | '.join(row)} |\n" for row in rows]
    return "".join([lines[0], "|" + "---|" * len(rows[0]) + "\n", *lines[1:]])


def documented() -> dict[tuple[str, str], str]:
    """Return the cells of the table in the page."""
    lines = PAGE.read_text().split(BEGIN)[1].split(END)[0].splitlines()
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split(" | ")] for line in lines)
    names = {_row_name(each): each for each in FAILURES}
    return {(names[row[0]], column): cell for row in rows for column, cell in zip(header[1:], row[1:], strict=True)}


def _row_name(scenario: str) -> str:
    description = FAILURES[scenario].description
    return f"{description} (`{scenario}`)" if scenario in SCENARIOS else description


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kproto_client.failure_table", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    options = parser.parse_args()
    table = markdown(cells(FAILURES, COLUMNS))
    sys.stdout.write(table)
    if options.write:
        before, rest = PAGE.read_text().split(BEGIN)
        PAGE.write_text(before + BEGIN + table + END + rest.split(END)[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
