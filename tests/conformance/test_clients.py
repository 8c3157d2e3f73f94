"""Clients that we did not write get their verdicts; a planted defect is found by name."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kproto_server.broker.broker import Broker
from kproto_server.conformance.cases import CASES, NO_FAULT, ClientCase, chosen
from kproto_server.conformance.client_run import run_case
from kproto_server.conformance.reports import ClientReport, as_junit, as_text
from kproto_server.conformance.verdict import Grade, verdict_on
from tests.commandline.commands import kproto
from tests.conformance.copiers import COPIERS, FOLDER
from tests.oracle.cluster import NEWEST

TIMEOUT_S = 30.0

DEFECTS = {
    "ignores NOT_COORDINATOR": (
        "offset-commit-not-coordinator",
        """
from kafka.coordinator.consumer import ConsumerCoordinator
import kafka.errors
real = kafka.errors.for_code
kafka.errors.for_code = lambda code: kafka.errors.NoError if code == 16 else real(code)
""",
        "its last offsets are not committed",
    ),
    "drops records of a Fetch": (
        "no-fault",
        """
from kafka import KafkaConsumer
real = KafkaConsumer.poll
def poll(*given, **named):
    return {at: [one for one in records if one.offset != 3] for at, records in real(*given, **named).items()}
KafkaConsumer.poll = poll
""",
        "2 records lost: committed, and not written",
    ),
    "commits with an old generation": (
        "rebalance",
        """
from kafka.coordinator.base import BaseCoordinator
real = BaseCoordinator.generation_if_stable
first = []
def generation_if_stable(self):
    if not first and (found := real(self)):
        first.append(found)
    return first[0] if first else None
BaseCoordinator.generation_if_stable = generation_if_stable
""",
        "its last offsets are not committed",
    ),
    "drops a record at a rebalance": (
        "rebalance",
        """
from kafka import KafkaConsumer
from kafka.coordinator.consumer import ConsumerCoordinator
completed, real_poll, joins = ConsumerCoordinator._on_join_complete_async, KafkaConsumer.poll, []
async def _on_join_complete_async(self, *given, **named):
    joins.append(1)
    return await completed(self, *given, **named)
def poll(*given, **named):
    batches = real_poll(*given, **named)
    if batches and len(joins) == 2:
        joins.append(1)
        del next(iter(batches.values()))[0]
    return batches
ConsumerCoordinator._on_join_complete_async, KafkaConsumer.poll = _on_join_complete_async, poll
""",
        "1 record lost: committed, and not written",
    ),
}
"""Python source that is run before a copier with kafka-python, the case that finds the defect, and the reason."""


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_rules_of_each_case_are_possible(case: ClientCase) -> None:
    with Broker.running(kafka_version=case.kafka_version, brokers=case.brokers) as broker:
        assert [broker.faults.add(**rule).fired for rule in case.faults] == [0] * len(case.faults)


IN_CI = ("kafka-python", "aiokafka", "confluent-kafka", f"Java {NEWEST}", "franz-go", "kafkajs")
"""The other clients of the table are built by its command only: their libraries are large."""


@pytest.mark.parametrize(
    "client", [pytest.param(name, marks=[pytest.mark.oracle] if COPIERS[name].needs_runtime else []) for name in IN_CI]
)
def test_a_client_recovers(client: str) -> None:
    command = COPIERS[client].command()
    for case in chosen(["join-group-closed", "produce-not-enough-replicas"], CASES):
        verdict = verdict_on(case, run_case(case, command, timeout_s=TIMEOUT_S).seen, TIMEOUT_S)
        assert (verdict.grade, verdict.reason) == (Grade.PASS, "")
        assert verdict.seen.requests[0].endswith(("no response", "NOT_ENOUGH_REPLICAS"))


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found(defect: str, tmp_path: Path) -> None:
    name, planted, reason = DEFECTS[defect]
    program = tmp_path / "defective_copier.py"
    program.write_text(planted + (FOLDER / "copy_with_kafka_python.py").read_text())
    found = run_case(CASES[name], [sys.executable, str(program)], timeout_s=5.0)
    verdict = verdict_on(CASES[name], found.seen, 0.0)
    assert verdict.grade is Grade.FAIL
    assert reason in verdict.reason
    assert found.client.startswith("kafka-python ")


def test_the_report_of_a_client_that_writes_in_color_is_xml() -> None:
    command = [sys.executable, "-c", "raise SystemExit('\\x1b[31mError: no broker\\x1b[0m')"]
    verdict = verdict_on(NO_FAULT, run_case(NO_FAULT, command, timeout_s=5.0).seen, 0.0)
    report = ClientReport("client", ("client",), [verdict])
    suite = ElementTree.fromstring(as_junit(report, Grade.FAIL))  # noqa: S314 - our own
    failure = suite[0].find("failure")
    assert failure is not None
    assert "[31mError: no broker" in str(failure.get("message"))
    assert "\x1b" not in as_text(report)


def test_the_command(tmp_path: Path) -> None:
    report = tmp_path / "verdicts.json"
    words = (
        "conform",
        "client",
        "--only",
        "rebalance",
        "--report",
        str(report),
        "--",
        *COPIERS["kafka-python"].command(),
    )
    done = kproto(*words)
    assert done.returncode == 0, done.stderr
    assert "PASS         rebalance" in done.stdout
    assert [case["verdict"] for case in json.loads(report.read_text())["cases"]] == ["pass"]
    assert done.stderr == "rebalance: pass, 0 left\n"


def test_the_list() -> None:
    done = kproto("conform", "client", "--list", "--only", "leader-moved")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "leader-moved"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "kproto conform: no command given: use client or broker, see kproto conform --help"),
        (["nothing"], "kproto conform: no command 'nothing': use client or broker, see kproto conform --help"),
        (["broker"], "kproto conform broker: give the broker's address: HOST:PORT"),
        (["broker", "b"], "kproto conform broker: the broker can't be 'b': write HOST:PORT"),
        (["broker", "a..b:1"], "kproto conform broker: the broker can't be 'a..b:1': 'a..b' is no host name"),
        (["client"], "kproto conform client: give the client's command: -- COMMAND [ARGUMENT ...]"),
        (
            ["client", "--only", "x", "--", "y"],
            "kproto conform client: --only: no case 'x': kproto conform client --list names them",
        ),
        (
            ["client", "--fail-on", "pass", "--", "y"],
            "kproto conform client: --fail-on can't be 'pass': use fail or degraded",
        ),
        (
            ["client", "--jobs", "0", "--", "y"],
            "kproto conform client: --jobs can't be '0': give a whole number from 1 to 64",
        ),
        (
            ["client", "--report", "a.txt", "--", "y"],
            "kproto conform client: --report can't be 'a.txt': its name has to end with .html, .json, .svg, .xml",
        ),
        (
            ["client", "--baseline", "/nowhere", "--", "y"],
            "kproto conform client: --baseline: can't read '/nowhere': No such file or directory",
        ),
        (["client", "--", "/nowhere"], "kproto conform client: can't start '/nowhere': No such file or directory"),
        (
            ["client", "--timeout", "5", "--", "true"],
            "kproto conform client: without any fault: the client ended with exit code 0. It has",
        ),
    ],
)
def test_a_wrong_command_is_one_line(words: list[str], line: str) -> None:
    done = kproto("conform", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1
