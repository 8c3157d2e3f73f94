"""The table of clients x accidents: `python -m tests.scenarios.table [--client NAME]... [--write]`.

Lets every accident happen to every client, with each `auto.offset.reset`, and prints where it went. With --write what
was seen is recorded in fixtures/scenarios/results.json, and its table in server/RESETS.md.
"""

import argparse
import json
import sys
from pathlib import Path

from kproto_server.scenarios.accidents import ACCIDENTS
from kproto_server.scenarios.lab import Findings, run_accident
from kproto_server.scenarios.text import went_to
from tests.scenarios.clients import CLIENTS, RESETS

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "fixtures" / "scenarios" / "results.json"
DOCUMENT = ROOT / "server" / "RESETS.md"
BEGIN, END = "<!-- table -->\n", "<!-- /table -->\n"
TIMEOUT_S = 15.0

Results = dict[str, dict[str, dict[str, str]]]
"""Client -> `auto.offset.reset` -> accident -> what it did."""


def told(findings: Findings) -> str:
    """What a client did about the partition that the accident happened to, in a cell of the table."""
    outcome = findings.outcomes[-1]
    if outcome.went_to is None:
        return "stops with an error" if findings.exit_code else "reads nothing, and says nothing"
    lost = [
        f"{count} {what}" for count, what in ((outcome.skipped, "skipped"), (outcome.repeated, "read again")) if count
    ]
    return f"{went_to(outcome)}: {', '.join(lost) or 'nothing lost'}"


def run_all(clients: list[str]) -> Results:
    results: Results = {}
    for client in clients:
        command = CLIENTS[client]()
        results[client] = {reset: {} for reset in RESETS}
        for reset in RESETS:
            for name, accident in ACCIDENTS.items():
                environment = {"AUTO_OFFSET_RESET": reset}
                found = run_accident(accident, command, timeout_s=TIMEOUT_S, environment=environment)
                results[client][reset][name] = told(found)
                print(f"{client}, {reset}, {name}: {told(found)}", flush=True)
    return results


def markdown(results: Results) -> str:
    """Return the tables, one for each accident."""
    lines: list[str] = []
    for name, accident in ACCIDENTS.items():
        lines += [f"### `{name}`", "", f"{accident.what} It should go on at {max_of(accident.resume_at)}.", ""]
        lines += ["| Client | `earliest` | `latest` | `none` |", "|---|---|---|---|"]
        lines += [
            f"| {client} | {' | '.join(by_reset[reset][name] for reset in RESETS)} |"
            for client, by_reset in results.items()
        ]
        lines.append("")
    return "\n".join(lines)


def max_of(resume_at: dict[int, int]) -> str:
    """Where the newest partition should be read from."""
    partition = max(resume_at)
    return f"{resume_at[partition]}" + (f" of partition {partition}" if partition else "")


def document(results: Results, text: str) -> str:
    """Return the document with these results in place of those it has."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + markdown(results) + END + rest.split(END)[1]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.table", description=__doc__)
    parser.add_argument("--client", action="append", choices=CLIENTS)
    parser.add_argument("--write", action="store_true", help="record what is seen")
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
