"""The clients of the conformance table: log, capture and proxy of a real broker give the verdicts of `kproto run`.

Method. `tests/audit/record_copies.py` has recorded what each client sends in front of a real broker, and the rows of
`kproto run` and of `kproto proxy`. The audit of the recorded log and capture is compared with them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kproto_server.commandline import cli
from tests.audit.copies import capture_of, log_of, recorded, rows

CLIENTS = 12
OLD, NEW = RELEASES = "3.9.2", "4.4.0"
BROKEN = "kafka-node"
"""The client that does not work with the newest release."""


def audited(release: str, path: Path, folder: Path) -> list[list[Any]]:
    report = folder / "report.json"
    words = ("audit", str(path), "--quiet", "--kafka-version", release, "--report", str(report))
    assert cli.main(words) == 0
    return rows(json.loads(report.read_text()))


@pytest.mark.parametrize("release", RELEASES)
def test_the_proxy_and_the_audits_give_the_rows_of_a_run(release: str, tmp_path: Path) -> None:
    clients = recorded(release)
    assert len(clients) == CLIENTS
    for name, found in clients.items():
        run = found["run"]
        assert found["proxy"] == run, name
        assert audited(release, capture_of(release, name), tmp_path) == run, name
        logged = audited(release, log_of(release, name), tmp_path)
        if (release, name) == (NEW, BROKEN):  # a broker does not log a request that it does not serve
            assert [row[3:] for row in run if row not in logged] == [
                ["ListOffsets", 0, "breaks"],
                ["breaks", True, None],
            ]
        else:
            assert logged == run, name


def commits(found: dict[str, Any]) -> bool:
    """Return whether a client has committed, as the programs do once they have copied records."""
    return any(row[3] == "OffsetCommit" for row in found["proxy"])


def test_who_breaks_is_known_before() -> None:
    """The clients that break by their rows in front of the old release are those that do not work with the new one."""
    old, new = recorded(OLD), recorded(NEW)
    assert all(commits(found) for found in old.values())
    broken = {name for name, found in old.items() if ["breaks", True, None] in [row[3:] for row in found["run"]]}
    assert broken == {name for name, found in new.items() if not commits(found)} == {BROKEN}
