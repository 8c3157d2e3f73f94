"""Grade the clients of the table, and write tests/clients/CONFORMANCE.md: [--only CLIENT,...] [--write]

Without --write the command shows what has another verdict than the last time. The verdicts are in
``fixtures/conform/clients.json``, why each is not passed, as found by hand, in `reasons`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from typing import TYPE_CHECKING, Any

from kproto_server.conformance import reports
from kproto_server.conformance.all_cases import run_cases
from kproto_server.conformance.cases import CASES, chosen
from kproto_server.conformance.verdict import Grade
from tests.clients.scenarios.harness import ROOT
from tests.conformance.copiers import COPIERS
from tests.conformance.reasons import REASONS

if TYPE_CHECKING:
    from collections.abc import Mapping

RECORDED = ROOT / "fixtures/conform/clients.json"
TABLE = ROOT / "tests/clients/CONFORMANCE.md"
TIMEOUT_S = 30.0
PACKAGE_DIRECTORY = re.compile(r"/\S*/(?=(?:pkg/mod|node_modules)/)")
"""Where a machine keeps the packages that the last line of a client's error names."""
SIGNS = {Grade.PASS: "+", Grade.NOT_OFFERED: "-", Grade.DEGRADED: "d", Grade.FAIL: "**F**"}
COUNTED = (Grade.PASS, Grade.DEGRADED, Grade.FAIL, Grade.NOT_OFFERED)

Recorded = dict[str, dict[str, Any]]
"""By client: its version, and the grade and the reason of each case."""


def read_recorded() -> Recorded:
    found: Recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    return {name: found[name] for name in COPIERS if name in found}


def grades(recorded: Recorded, client: str) -> dict[str, Grade]:
    """Return the grades of a client by case."""
    cases: Mapping[str, list[str]] = recorded[client]["cases"]
    return {name: Grade(cases[name][0]) for name in CASES if name in cases}


def rendered(recorded: Recorded) -> str:
    """Return the text of the file with the tables."""
    clients = list(recorded)
    by_client = {client: grades(recorded, client) for client in clients}
    counts = [
        [_title(recorded, client), *(str(list(by_client[client].values()).count(grade)) for grade in COUNTED)]
        for client in clients
    ]
    cases = [
        [f"`{name}`", *(SIGNS[by_client[client][name]] if name in by_client[client] else "" for client in clients)]
        for name in CASES
    ]
    lines = [
        "# What clients do in the cases of kproto conform client",
        "",
        "Made by `python -m tests.conformance.table --write` with the programs of",
        "[fixtures/examples/conform](../../fixtures/examples/conform): each client has its defaults but for the",
        "heartbeat interval and the isolation level. [CONFORMANCE.md](../../server/CONFORMANCE.md) describes the",
        "verdicts, `kproto conform client --list` the cases.",
        "",
        table_of([["Client", "Passed", "Degraded", "Failed", "Not offered"], *counts]),
        "`+`: passed. `d`: degraded: written twice, or 10 seconds longer. `F`: failed. `-`: not offered by the client.",
        "",
        table_of([["Case", *clients], *cases]),
        "## Why",
        "",
        "Each case that is degraded or failed, as found by hand in the requests and in the source of the client.",
        "",
    ]
    for client in clients:
        bad = [name for name, grade in by_client[client].items() if grade in (Grade.DEGRADED, Grade.FAIL)]
        if bad:
            lines += [f"### {client}", ""]
            reasons: dict[str, list[str]] = {}
            for name in bad:
                reasons.setdefault(REASONS.get((client, name), "?"), []).append(f"`{name}`")
            lines += [f"- {', '.join(names)}: {reason}" for reason, names in reasons.items()]
            lines.append("")
    return "\n".join(lines)


def _title(recorded: Recorded, client: str) -> str:
    return f"{client} {recorded[client]['version']}".strip()


def table_of(rows: list[list[str]]) -> str:
    header, *rest = [f"| {' | '.join(row)} |\n" for row in rows]
    return header + "|---" * len(rows[0]) + "|\n" + "".join(rest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(COPIERS), help="clients of the table")
    parser.add_argument("--cases", default="", help="cases, the others stay as recorded (default: all)")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    for name in given.only.split(","):
        copier = COPIERS[name]
        report = run_cases(
            chosen(given.cases.split(",") if given.cases else [], CASES),
            copier.command(),
            jobs=given.jobs,
            timeout_s=TIMEOUT_S,
        )
        sys.stdout.write(f"{name}: {reports.as_text(report)}\n")
        recorded = read_recorded()
        before = grades(recorded, name) if name in recorded else {}
        for each in report.verdicts:
            if before.get(each.case.name, each.grade) != each.grade:
                sys.stdout.write(f"{name}: {each.case.name}: {each.grade}, was {before[each.case.name]}\n")
        cases = {each.case.name: [each.grade.value, PACKAGE_DIRECTORY.sub("", each.reason)] for each in report.verdicts}
        known = recorded[name]["cases"] if name in recorded else {}
        merged = known | cases
        recorded[name] = {"version": copier.version, "cases": {case: merged[case] for case in CASES if case in merged}}
        if given.write:
            recorded = {each: recorded[each] for each in COPIERS if each in recorded}
            RECORDED.write_text(json.dumps(recorded, indent=1) + "\n")
            TABLE.write_text(rendered(recorded))


if __name__ == "__main__":
    main()
