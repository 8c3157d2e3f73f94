"""`kproto run` reports on real clients and on the README's example."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.clients.scenarios.built import java
from tests.clients.scenarios.clients import python
from tests.commandline.commands import kproto

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "tests" / "examples" / "commit_with_kafka_python.py"
TWO_PARTITIONS = ("--set", "num.partitions=2")


def driver(client: list[str], *scenarios: str) -> tuple[str, ...]:
    """Return the command that runs a client's driver (tests/clients/scenarios/README.md) in `kproto run`."""
    run = f'cd "$0"; exec "$@" "$KAFKA_BOOTSTRAP_SERVERS" of-driver {" ".join(scenarios)}'
    return ("sh", "-ec", run, str(ROOT), *client)


def test_the_readmes_example_commits_and_the_report_lists_the_commit() -> None:
    done = kproto("run", "--", sys.executable, str(EXAMPLE))
    assert (done.returncode, done.stdout) == (
        0,
        "orders-0: offset 42, metadata 'after invoice 1041'\norders-1: offset 7, metadata 'after invoice 1006'\n",
    ), done.stderr
    assert "(kafka-python " in done.stderr
    assert "OffsetCommit v" in done.stderr
    assert "nothing would break on Kafka " in done.stderr


def test_aiokafka_commits_with_v3_and_overrides_no_retention(tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    command = driver(python("aiokafka_driver")(), "list-group-offsets")
    done = kproto("run", *TWO_PARTITIONS, "--target", "4.0", "--fail-on-removed", f"--report={report}", "--", *command)
    assert done.returncode == 0, done.stderr
    assert '"value": {"0": 3, "1": 7}' in done.stdout
    assert "OffsetCommit v3 with retention_time, 1x, no override\n" in done.stderr
    assert "nothing would break on Kafka 4.0\n" in done.stderr

    clients = json.loads(report.read_text())["clients"]
    commits = [row for client in clients for row in client["offset_commits"]]
    assert commits == [{"api_version": 3, "layout": "v3", "count": 1, "overrides": 0}]


@pytest.mark.oracle
def test_the_report_lists_the_versions_of_java_0_9_that_4_0_does_not_serve(tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    command = driver(java("0.9.0.1")(), "restart-and-continue")
    done = kproto("run", *TWO_PARTITIONS, "--target", "4.0", "--fail-on-removed", f"--report={report}", "--", *command)
    assert done.returncode == 1, done.stderr
    assert "would break on Kafka 4.0\n" in done.stderr
    assert "Java client 0.9.0: use 2.1.0 or newer\n" in done.stderr
    assert "  ListOffsets v0 " in done.stderr

    breaks = {(row["api"], row["api_version"]) for row in json.loads(report.read_text())["breaks"]}
    assert breaks == {("Produce", 1), ("Fetch", 1), ("ListOffsets", 0)}


@pytest.mark.oracle
def test_java_1_1_would_not_break_on_4_0() -> None:
    command = driver(java("1.1.1")(), "restart-and-continue")
    done = kproto("run", *TWO_PARTITIONS, "--target", "4.0", "--fail-on-removed", "--", *command)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["end"] == "ok"
    assert "nothing would break on Kafka 4.0\n" in done.stderr
