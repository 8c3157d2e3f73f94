"""What was seen when the table was run last, and its forms: RESULTS.md beside this file, the README's summary."""

import json
import textwrap

from tests.clients.scenarios.clients import CLIENTS, NEW, OLD
from tests.clients.scenarios.harness import ROOT
from tests.clients.scenarios.scenarios import SCENARIOS

KPROTO = "kproto"
TITLES = {KPROTO: "kproto", OLD: f"Kafka {OLD}", NEW: f"Kafka {NEW}"}
RECORDED = ROOT / "fixtures/clients/results.json"
VERSIONS = ROOT / "fixtures/clients/versions.json"
RESULTS = ROOT / "tests/clients/RESULTS.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- clients -->\n", "<!-- /clients -->"

Results = dict[str, dict[str, dict[str, str]]]
"""Verdicts by client, broker and scenario."""
Versions = dict[str, str]
"""Of each client, when it ran last."""


def read_results() -> Results:
    results: Results = json.loads(RECORDED.read_text())
    return results


def read_versions() -> Versions:
    versions: Versions = json.loads(VERSIONS.read_text())
    return versions


def write_all(results: Results, versions: Versions) -> None:
    RECORDED.write_text(json.dumps(results, indent=1) + "\n")
    VERSIONS.write_text(json.dumps(versions, indent=1) + "\n")
    RESULTS.write_text(whole_table(results, versions))
    README.write_text(with_summary(README.read_text(), results, versions))


def merged(before: Results, seen: Results) -> Results:
    """What was recorded before, with what is seen now in its place, in the order of the lists."""
    return {
        client.name: {
            broker: (before.get(client.name, {}) | seen.get(client.name, {}))[broker]
            for broker in (KPROTO, *client.real)
            if broker in before.get(client.name, {}) or broker in seen.get(client.name, {})
        }
        for client in CLIENTS
    }


def worse_than_real(results: Results) -> list[str]:
    """What a real broker passes and kproto does not."""
    return [
        f"{client}: {scenario}"
        for client, brokers in results.items()
        for scenario, verdict in brokers[KPROTO].items()
        if verdict != "passed" and any(row[scenario] == "passed" for row in brokers.values())
    ]


def with_summary(readme: str, results: Results, versions: Versions) -> str:
    """The README with the summary between its marks."""
    before, _, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, f"the README has no {BEGIN.strip()} ... {END}"
    return f"{before}{BEGIN}{summary(results, versions)}{end}{after}"


def summary(results: Results, versions: Versions) -> str:
    rows = [
        [
            f"{client.name} {versions[client.name]}".strip(),
            *(_passed(results[client.name].get(broker)) for broker in TITLES),
        ]
        for client in CLIENTS
        if client.name in results
    ]
    footnote = (
        f"Scenarios passed, of {len(SCENARIOS)}; those that a client has no call for are not counted: "
        + "; ".join(f"{', '.join(names)}: {scenarios}" for scenarios, names in _left_out().items())
        + "."
    )
    wrapped = textwrap.fill(footnote, 120, break_long_words=False, break_on_hyphens=False)
    return f"{_table([['Client', *TITLES.values()], *rows])}\n{wrapped}\n"


def _passed(verdicts: dict[str, str] | None) -> str:
    if verdicts is None:
        return "does not serve it"
    found = list(verdicts.values())
    return f"{found.count('passed')} of {len(found) - found.count('unsupported')}"


def _left_out() -> dict[str, list[str]]:
    """The names of the clients by the scenarios that they have no call for."""
    found: dict[str, list[str]] = {}
    for client in CLIENTS:
        scenarios = [f"`{scenario.name}`" for scenario in SCENARIOS if scenario.name in client.unsupported]
        if scenarios:
            found.setdefault(", ".join(scenarios), []).append(client.name)
    return found


def whole_table(results: Results, versions: Versions) -> str:
    clients = [client for client in CLIENTS if client.name in results]
    rows = [
        [f"`{scenario.name}`", *(_cell(results[client.name], scenario.name) for client in clients)]
        for scenario in SCENARIOS
    ]
    reasons = [
        f"* {client.name}: "
        + "; ".join(f"`{s.name}`: {client.unsupported[s.name]}" for s in SCENARIOS if s.name in client.unsupported)
        for client in clients
        if client.unsupported
    ]
    ran = [
        f"* {client.name} {versions[client.name]}".rstrip() + f": {', '.join(TITLES[b] for b in results[client.name])}"
        for client in clients
    ]
    return "\n".join(
        (
            "# Clients and scenarios",
            "",
            "Made by `python -m tests.clients.table --write`; [scenarios](scenarios/README.md) tells what each one is.",
            "`+`: passed with every broker that serves the client. `-`: no call for it. A name: failed with it.",
            "",
            _table([["Scenario", *(client.name for client in clients)], *rows]),
            "What a client has no call for:",
            "",
            *reasons,
            "",
            "What it ran with:",
            "",
            *ran,
            "",
        )
    )


def _cell(brokers: dict[str, dict[str, str]], scenario: str) -> str:
    failed = [TITLES[broker] for broker, verdicts in brokers.items() if verdicts[scenario] == "failed"]
    if failed:
        return ", ".join(failed)
    return "-" if brokers[KPROTO][scenario] == "unsupported" else "+"


def _table(rows: list[list[str]]) -> str:
    head, *rest = [f"| {' | '.join(row)} |\n" for row in rows]
    return head + "|---" * len(rows[0]) + "|\n" + "".join(rest)
