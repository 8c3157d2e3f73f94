"""Send the cases of `kproto conform broker` to the brokers of the table: [--only BROKER,...] [--write]

With --write the command writes BROKERS.md.
The verdicts are in ``fixtures/conform/brokers.json``, why each is failed, as found by hand, in `reasons`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from kproto_server.conformance import reports
from kproto_server.conformance.broker_cases import BROKER_CASES
from kproto_server.conformance.broker_report import run_on_broker
from kproto_server.conformance.verdict import Grade
from tests.clients.scenarios.harness import ROOT
from tests.conformance.brokers import BROKERS
from tests.conformance.reasons import BROKER_REASONS
from tests.conformance.table import Recorded, table_of

RECORDED = ROOT / "fixtures/conform/brokers.json"
TABLE = Path(__file__).with_name("BROKERS.md")
TIMEOUT_S = 5.0


def read_recorded() -> Recorded:
    found: Recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    return {name: found[name] for name in BROKERS if name in found}


def rendered(recorded: Recorded) -> str:
    """Return the text of the file with the tables."""
    rows = []
    for name, found in recorded.items():
        all_grades = [grade for grade, _ in found["cases"].values()]
        counts = (str(all_grades.count(grade)) for grade in (Grade.PASS, Grade.FAIL, Grade.NOT_OFFERED))
        rows.append([name, found["version"], *counts])
    lines = [
        "# What brokers do in the cases of kproto conform broker",
        "",
        "Made by `python -m tests.conformance.broker_table --write`. Each broker is compared with a release of Kafka:",
        "[CONFORMANCE.md](../../server/CONFORMANCE.md#a-broker-under-test) describes how,",
        "`kproto conform broker --list` the cases.",
        "",
        table_of([["Broker", "Compared with", "Passed", "Failed", "Not offered"], *rows]),
        "## What fails",
        "",
        "As found by hand in the responses. No issue of the projects about one was found, except for a byte after",
        "the end of responses of librdkafka's mock, an empty list of tags that is written twice: reviews of its",
        "pull request [4595](https://github.com/confluentinc/librdkafka/pull/4595) found the same at Produce.",
        "",
    ]
    for name, found in recorded.items():
        bad = [case for case, (grade, _) in found["cases"].items() if grade == Grade.FAIL]
        if bad:
            kind = name.partition(" ")[0]
            lines += [f"### {name}", "", *(f"- `{case}`: {BROKER_REASONS[kind, case]}" for case in bad), ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(BROKERS), help="brokers of the table")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    for name in given.only.split(","):
        _, release, running = BROKERS[name]
        with running() as address:
            host, _, port = address.rpartition(":")
            report = run_on_broker(list(BROKER_CASES.values()), host, int(port), release=release, timeout_s=TIMEOUT_S)
        sys.stdout.write(f"{name}: {reports.as_text(report)}\n")
        if given.write:
            recorded = read_recorded()
            cases = {each.case.name: [each.grade.value, each.reason] for each in report.verdicts}
            recorded[name] = {"version": release, "cases": cases}
            recorded = {each: recorded[each] for each in BROKERS if each in recorded}
            RECORDED.write_text(json.dumps(recorded, indent=1) + "\n")
            TABLE.write_text(rendered(recorded))


if __name__ == "__main__":
    main()
