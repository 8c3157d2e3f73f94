"""The table of clients and failure scenarios: `python -m tests.scenarios.table [--client NAME]... [--write]`.

Runs each client in each scenario with each `auto.offset.reset` and prints its start position. With --write, the
results are recorded in fixtures/scenarios/results.json and their tables in server/RESETS.md.
"""

import argparse
import json
import sys
from pathlib import Path

from kproto_server.scenarios.failure_scenarios import SCENARIOS
from kproto_server.scenarios.runner import ScenarioResult, run_scenario
from kproto_server.scenarios.text_report import format_start
from tests.scenarios.clients import CLIENTS, RESETS

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "fixtures" / "scenarios" / "results.json"
DOCUMENT = ROOT / "server" / "RESETS.md"
BEGIN, END = "<!-- table -->\n", "<!-- /table -->\n"
TIMEOUT_S = 15.0

Results = dict[str, dict[str, dict[str, str]]]
"""Client -> `auto.offset.reset` -> scenario -> table cell."""


def table_cell(result: ScenarioResult) -> str:
    """Return the table cell of a result: of the newest partition, which the scenario is about."""
    partition = result.partitions[-1]
    if partition.actual_start is None:
        return "stops with an error" if result.exit_code else "reads nothing, no error"
    counts = ((partition.skipped, "skipped"), (partition.read_again, "read again"))
    return f"{format_start(partition)}: {', '.join(f'{n} {text}' for n, text in counts if n) or 'nothing lost'}"


def run_all(clients: list[str]) -> Results:
    results: Results = {}
    for client in clients:
        command = CLIENTS[client]()
        results[client] = {reset: {} for reset in RESETS}
        for reset in RESETS:
            for name, scenario in SCENARIOS.items():
                environment = {"AUTO_OFFSET_RESET": reset}
                cell = table_cell(run_scenario(scenario, command, timeout_s=TIMEOUT_S, environment=environment))
                results[client][reset][name] = cell
                print(f"{client}, {reset}, {name}: {cell}", flush=True)
    return results


def markdown(results: Results) -> str:
    """Return one table per scenario."""
    lines: list[str] = []
    for name, scenario in SCENARIOS.items():
        expected_start = format_expected_start(scenario.expected_start)
        lines += [f"### `{name}`", "", f"{scenario.description} Expected start: {expected_start}.", ""]
        lines += ["| Client | `earliest` | `latest` | `none` |", "|---|---|---|---|"]
        lines += [
            f"| {client} | {' | '.join(by_reset[reset][name] for reset in RESETS)} |"
            for client, by_reset in results.items()
        ]
        lines.append("")
    return "\n".join(lines)


def format_expected_start(expected_start: dict[int, int]) -> str:
    """Return the expected start in the newest partition."""
    partition = max(expected_start)
    return f"{expected_start[partition]}" + (f" in partition {partition}" if partition else "")


def document(results: Results, text: str) -> str:
    """Return the document with its tables replaced."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + markdown(results) + END + rest.split(END)[1]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.table", description=__doc__)
    parser.add_argument("--client", action="append", choices=CLIENTS)
    parser.add_argument("--write", action="store_true", help="record the results")
    options = parser.parse_args()
    results = run_all(options.client or list(CLIENTS))
    if options.write:
        RECORDED.parent.mkdir(exist_ok=True)
        before: Results = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
        merged = {client: {**before, **results}[client] for client in CLIENTS if client in {**before, **results}}
        RECORDED.write_text(json.dumps(merged, indent=1) + "\n")
        DOCUMENT.write_text(document(merged, DOCUMENT.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
