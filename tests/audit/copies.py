"""The recordings in `fixtures/copies`: each client of the conformance table copies three records."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tests.audit.copying import DRIVER
from tests.fixture_files import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = FIXTURES / "copies"
OTHERS = (DRIVER, "kproto-proxy", "oracle")
"""The client ids of the driver, of the proxy's first question, and of what waits for a broker."""
HEARTBEAT = 12
"""Whether it is sent depends on time."""


def rows_of(release: str) -> Path:
    return FOLDER / f"{release}.json"


def recorded(release: str) -> dict[str, Any]:
    """Return the version and the rows of each client."""
    path = rows_of(release)
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def _file_of(release: str, client: str, suffix: str) -> Path:
    return FOLDER / release / f"{re.sub(r'[^a-z0-9.-]+', '-', client.lower()).strip('-')}.{suffix}.gz"


def log_of(release: str, client: str) -> Path:
    return _file_of(release, client, "log")


def capture_of(release: str, client: str) -> Path:
    return _file_of(release, client, "pcap")


def rows(report: dict[str, Any]) -> list[list[Any]]:
    """Return what a report says of the clients, but for their client ids, counts, and what depends on time."""
    found = set()
    for client in report["clients"]:
        if client["client_id"].startswith(OTHERS):
            continue
        who = client["software_name"], client["library"], client["negotiates"]
        found |= {
            (*who, request["api"], request["api_version"], request["verdict"])
            for request in client["requests"]
            if request["api_key"] != HEARTBEAT
        }
        found |= {(*who, "commit", row["layout"], row["overrides"] > 0) for row in client["offset_commits"]}
        found.add((*who, "breaks", client["would_break"], client["largest_retention_ms"]))
    return sorted((list(row) for row in found), key=str)
