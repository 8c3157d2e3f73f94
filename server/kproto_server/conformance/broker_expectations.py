"""What real brokers respond to the cases, by release, and how far a broker under test differs.

``broker_expectations.jsonl`` has a line for each case and each different outcome, with the releases that have it;
equal responses of adjacent versions share an entry: ``{"2-5": RESPONSE}``.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kproto_server.conformance.broker_cases import API_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    Responses = Mapping[int, Any]

PATH = Path(__file__).with_name("broker_expectations.jsonl")


@cache
def expectations() -> dict[str, dict[str, dict[int, Any]]]:
    """Return the expected response of each version by release and case."""
    found: dict[str, dict[str, dict[int, Any]]] = {}
    for line in PATH.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        responses = _by_version(row["responses"])
        for release in row["releases"]:
            found.setdefault(release, {})[row["case"]] = responses
    return dict(sorted(found.items(), key=lambda item: _numbers(item[0])))


def lines(recorded: Mapping[str, Mapping[str, Responses]]) -> str:
    """Return the text of the file from the responses by release and case."""
    rows: dict[tuple[str, str], list[str]] = {}
    for release, cases in sorted(recorded.items(), key=lambda item: _numbers(item[0])):
        for case, responses in cases.items():
            text = json.dumps(_ranges(responses), separators=(",", ":"), sort_keys=True)
            rows.setdefault((case, text), []).append(release)
    return "".join(
        f'{{"case":"{case}","releases":{json.dumps(releases)},"responses":{text}}}\n'
        for (case, text), releases in sorted(rows.items())
    )


def nearest_release(api_versions: Responses) -> str:
    """Return the recorded release whose ApiVersions response is most like this one; the newest of equal ones."""

    def distance(release: str) -> int:
        return len(_offered(api_versions) ^ _offered(expectations()[release][API_VERSIONS]))

    return min(reversed(expectations()), key=distance)


def differences(expected: Responses, responses: Responses) -> list[str]:
    """Return a line for each version, of those that both have, whose response is not the expected one."""
    found = []
    for version in sorted(expected.keys() & responses.keys()):
        if responses[version] != expected[version]:
            name = f"v{version}: " if version >= 0 else ""
            found.append(f"{name}{_text(responses[version])}, expected {_text(expected[version])}")
    return found


def _numbers(release: str) -> list[int]:
    return [int(part) for part in release.split(".")]


def _offered(responses: Responses) -> set[str]:
    first = responses.get(0)
    return set(first.get("api_keys", ())) if isinstance(first, dict) else set()


def _text(response: Any) -> str:
    return response if isinstance(response, str) else json.dumps(response, sort_keys=True)


def _ranges(responses: Responses) -> dict[str, Any]:
    found: list[tuple[int, int, Any]] = []
    for version, response in sorted(responses.items()):
        if found and found[-1][1] == version - 1 and found[-1][2] == response:
            found[-1] = (found[-1][0], version, response)
        else:
            found.append((version, version, response))
    return {f"{first}-{last}" if first >= 0 else "": response for first, last, response in found}


def _by_version(ranges: Mapping[str, Any]) -> dict[int, Any]:
    found = {}
    for name, response in ranges.items():
        first, _, last = name.partition("-")
        for version in range(int(first), int(last) + 1) if name else (-1,):
            found[version] = response
    return found
