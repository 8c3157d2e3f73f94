"""What each setting does in each failure scenario: `python -m tests.kproto_client.failure_table [--write]`.

Runs a consumer of each column in each scenario of `kproto scenario`. With --write, the table goes into the page of the
client.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

from kproto_server.scenarios.failure_scenarios import SCENARIOS
from kproto_server.scenarios.runner import run_scenario
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


def cells(scenarios: Iterable[str], columns: Iterable[str]) -> dict[tuple[str, str], str]:
    """Return the measured cells of these rows and columns."""
    wanted = list(product(scenarios, columns))
    with ThreadPoolExecutor(RUNS_AT_ONCE) as threads:
        return dict(zip(wanted, threads.map(_cell, wanted), strict=True))


def _cell(row_and_column: tuple[str, str]) -> str:
    scenario, column = row_and_column
    command = [sys.executable, str(PROGRAMS / "kproto_consumer.py")]
    environment = {"SETTINGS": json.dumps(COLUMNS[column])}
    cell = table_cell(run_scenario(SCENARIOS[scenario], command, timeout_s=LIMIT_S, environment=environment))
    return cell.rpartition(": ")[2]  # without the start position


def markdown(found: dict[tuple[str, str], str]) -> str:
    rows = [["Failure scenario", *COLUMNS]]
    rows += [[_row_name(each), *(found[each, column] for column in COLUMNS)] for each in SCENARIOS]
    lines = [f"| {' | '.join(row)} |\n" for row in rows]
    return "".join([lines[0], "|" + "---|" * len(rows[0]) + "\n", *lines[1:]])


def documented() -> dict[tuple[str, str], str]:
    """Return the cells of the table in the page."""
    lines = PAGE.read_text().split(BEGIN)[1].split(END)[0].splitlines()
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split(" | ")] for line in lines)
    names = {_row_name(each): each for each in SCENARIOS}
    return {(names[row[0]], column): cell for row in rows for column, cell in zip(header[1:], row[1:], strict=True)}


def _row_name(scenario: str) -> str:
    return f"{SCENARIOS[scenario].description} (`{scenario}`)"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kproto_client.failure_table", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    options = parser.parse_args()
    table = markdown(cells(SCENARIOS, COLUMNS))
    sys.stdout.write(table)
    if options.write:
        before, rest = PAGE.read_text().split(BEGIN)
        PAGE.write_text(before + BEGIN + table + END + rest.split(END)[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
