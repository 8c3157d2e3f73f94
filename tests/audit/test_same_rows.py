"""The audit of a real broker's log has the rows that `kproto run` has for the same program and Kafka version.

Method. The log of `fixtures/request-logs` is compared with a run of its program now: clients, APIs, versions, verdicts
and retention overrides. Counts differ, because the logs are excerpts, and a consumer sends Heartbeats by the clock.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.audit.recorded import CLIENTS, log_of, program
from tests.commandline.commands import kproto

HEARTBEAT = 12
LIBRARIES = {"kafka-python": "3.0.12", "confluent-kafka": "2.16.1"}
"""The releases of the recorded clients: others send other versions."""


def rows(report: dict[str, Any]) -> set[tuple[object, ...]]:
    clients = [client for client in report["clients"] if client["client_id"] in CLIENTS]
    return {
        (client["client_id"], client["software_name"], client["negotiates"], *found)
        for client in clients
        for found in (
            *(
                (request["api"], request["api_version"], request["verdict"])
                for request in client["requests"]
                if request["api_key"] != HEARTBEAT
            ),
            *((row["layout"], row["overrides"]) for row in client["offset_commits"]),
            (client["library"], client["would_break"], client["largest_retention_ms"]),
        )
    }


@pytest.mark.parametrize("release", ["0.10.2.2", "2.0.1", "2.7.2", "3.9.2", "4.4.0"])
def test_a_real_brokers_log_has_the_rows_of_a_run(release: str, tmp_path: Path) -> None:
    installed = {name: version(name) for name in LIBRARIES}
    if installed != LIBRARIES:
        pytest.skip(f"the logs were recorded with other clients, {LIBRARIES}: python -m tests.audit.record")
    common = ("--kafka-version", release, "--report", str(tmp_path / "report.json"))
    done = kproto("run", *common, "--", *program(release))
    assert done.returncode == 0, done.stderr
    run = rows(json.loads((tmp_path / "report.json").read_text()))
    done = kproto("audit", *common, str(log_of(release)))
    assert done.returncode == 0, done.stderr
    assert rows(json.loads((tmp_path / "report.json").read_text())) == run
    assert len(run) > 30
