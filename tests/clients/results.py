"""The recorded results of the last table run, and their tables in RESULTS.md and in the README."""

import json
import textwrap

from tests.clients.scenarios.clients import CLIENTS, NEW, OLD
from tests.clients.scenarios.harness import ROOT
from tests.clients.scenarios.scenarios import SCENARIOS

KPROTO = "kproto"
SECURED_KPROTO = "kproto-sasl-ssl"
TITLES = {KPROTO: "kproto", SECURED_KPROTO: "kproto over SASL_SSL", OLD: f"Kafka {OLD}", NEW: f"Kafka {NEW}"}
RECORDED = ROOT / "fixtures/clients/results.json"
VERSIONS = ROOT / "fixtures/clients/versions.json"
RESULTS = ROOT / "tests/clients/RESULTS.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- clients -->\n", "<!-- /clients -->"

Results = dict[str, dict[str, dict[str, str]]]
"""Status by client, broker and scenario."""
Versions = dict[str, str]
"""The version of each client in its last run."""


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
    """Return the recorded results, updated by new ones, in the order of the clients."""
    return {
        client.name: {
            broker: (before.get(client.name, {}) | seen.get(client.name, {}))[broker]
            for broker in (KPROTO, SECURED_KPROTO, *client.real)
            if broker in before.get(client.name, {}) or broker in seen.get(client.name, {})
        }
        for client in CLIENTS
    }


def worse_than_real(results: Results) -> list[str]:
    """Return the scenarios that pass with a real broker and not with kproto."""
    return [
        f"{client}: {scenario}"
        for client, brokers in results.items()
        for own in (KPROTO, SECURED_KPROTO)
        for scenario, status in brokers[own].items()
        if status != "passed" and any(row[scenario] == "passed" for row in brokers.values())
    ]


def with_summary(readme: str, results: Results, versions: Versions) -> str:
    """Return the README with a new summary between its marks."""
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
        f"Scenarios passed, of {len(SCENARIOS)}; scenarios that a client has no call for are not counted: "
        + "; ".join(f"{', '.join(names)}: {scenarios}" for scenarios, names in _unsupported().items())
        + f". Over SASL_SSL the clients log in by {_security()}."
    )
    wrapped = textwrap.fill(footnote, 120, break_long_words=False, break_on_hyphens=False)
    return f"{_table([['Client', *TITLES.values()], *rows])}\n{wrapped}\n"


def _passed(statuses: dict[str, str] | None) -> str:
    if statuses is None:
        return "does not serve it"
    found = list(statuses.values())
    return f"{found.count('passed')} of {len(found) - found.count('unsupported')}"


def _unsupported() -> dict[str, list[str]]:
    """Return the clients by the scenarios that they have no call for."""
    found: dict[str, list[str]] = {}
    for client in CLIENTS:
        scenarios = [f"`{scenario.name}`" for scenario in SCENARIOS if scenario.name in client.unsupported]
        if scenarios:
            found.setdefault(", ".join(scenarios), []).append(client.name)
    return found


def _security() -> str:
    """Return how the clients log in over SASL_SSL."""
    names: dict[str, list[str]] = {}
    for client in CLIENTS:
        names.setdefault(client.security, []).append(client.name)
    usual, *others = names
    words = [f"{'TLS alone' if one == 'SSL' else one} ({', '.join(names[one])})" for one in others]
    return ", ".join([usual, *words])


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
    brokers_of_clients = [
        f"* {client.name} {versions[client.name]}".rstrip() + f": {', '.join(TITLES[b] for b in results[client.name])}"
        for client in clients
    ]
    return "\n".join(
        (
            "# Clients and scenarios",
            "",
            "Made by `python -m tests.clients.table --write`; [scenarios](scenarios/README.md) describes each one.",
            "`+`: passed with all brokers that serve the client. `-`: no call for it. A name: failed with that broker.",
            "",
            _table([["Scenario", *(client.name for client in clients)], *rows]),
            "Scenarios without a call in the client:",
            "",
            *reasons,
            "",
            "Brokers:",
            "",
            *brokers_of_clients,
            "",
        )
    )


def _cell(brokers: dict[str, dict[str, str]], scenario: str) -> str:
    failed = [TITLES[broker] for broker, statuses in brokers.items() if statuses[scenario] == "failed"]
    if failed:
        return ", ".join(failed)
    return "-" if brokers[KPROTO][scenario] == "unsupported" else "+"


def _table(rows: list[list[str]]) -> str:
    header, *rest = [f"| {' | '.join(row)} |\n" for row in rows]
    return header + "|---" * len(rows[0]) + "|\n" + "".join(rest)
