"""`kproto conform broker`: kproto responds as releases do in all cases; a planted fault is found by name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kproto.messages.k12_heartbeat import HeartbeatResponse
from kproto_server.broker.broker import Broker
from kproto_server.conformance.broker_cases import BROKER_CASES, METADATA_BYTES_MAX
from kproto_server.conformance.broker_expectations import PATH, expectations, lines
from kproto_server.conformance.broker_report import run_on_broker
from kproto_server.conformance.verdict import Grade
from kproto_server.faults.rule import FaultRule
from kproto_server.handlers import k12_heartbeat
from tests.commandline.commands import kproto
from tests.docs.texts import ROOT
from tests.waiting import LIMIT_S


@pytest.mark.parametrize("release", expectations())
def test_kproto_passes_as_each_release(release: str) -> None:
    with Broker.running(kafka_version=release) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        report = run_on_broker(list(BROKER_CASES.values()), host, int(port), release=None, timeout_s=LIMIT_S)
    assert report.client.endswith(f"as Kafka {release}")
    assert [(each.case.name, each.seen.requests) for each in report.verdicts if each.grade is Grade.FAIL] == []


def test_a_planted_fault_is_found_by_name(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    faults: list[FaultRule] = [
        {"api": "Heartbeat", "error": "NOT_COORDINATOR"},
        {"api": "EndTxn", "error": "INVALID_TXN_STATE"},
    ]
    with Broker.running(kafka_version="2.0.1", faults=faults) as broker:
        run = kproto("conform", "broker", broker.bootstrap_servers, "--report", str(path))
        again = kproto("conform", "broker", broker.bootstrap_servers, "--baseline", str(path), "--quiet")
    assert (run.returncode, again.returncode, run.stderr, again.stdout) == (1, 0, "", "")
    failed = [case for case in json.loads(path.read_text())["cases"] if case["verdict"] == "fail"]
    assert [case["name"] for case in failed] == ["heartbeat-unknown-group", "end-txn-unknown-producer"]
    assert failed[0]["requests"][0] == 'v0: {"error_code": 16}, expected {"error_code": 25}'


def test_faults_in_a_patched_broker_are_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k12_heartbeat, "handle", lambda request, context: HeartbeatResponse(error_code=0))
    settings = {"offset.metadata.max.bytes": str(2 * METADATA_BYTES_MAX)}
    with Broker.running(kafka_version="3.9.2", settings=settings) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        report = run_on_broker(list(BROKER_CASES.values()), host, int(port), release="3.9.2", timeout_s=LIMIT_S)
    failed = [each.case.name for each in report.verdicts if each.grade is Grade.FAIL]
    assert failed == ["offset-commit-large-metadata", "heartbeat-unknown-group"]


def test_a_broker_that_is_not_there_and_wrong_options_are_one_line() -> None:
    hostile = ["h:1", "--only", "huge-array", "--harmless"]
    for words in (["127.0.0.1:1"], [], ["localhost"], ["h:1", "--as", "1.2"], ["h:1", "--only", "nothing"], hostile):
        run = kproto("conform", "broker", *words)
        assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)


def test_each_case_has_a_rule_of_the_page() -> None:
    rules = set(re.findall(r"^### (\w+-\d+)$", (ROOT / "server/RULES.md").read_text(), re.M))
    assert {case.rule for case in BROKER_CASES.values()} <= rules
    listed = kproto("conform", "broker", "--list").stdout
    assert "fetch-first-batch\n    Fetch of at most one byte" in listed
    assert "KIP-74: the first batch is whole (rule BA-72)\n" in listed


def test_hostile_frames_are_left_out_of_harmless_cases() -> None:
    listed = kproto("conform", "broker", "--list", "--harmless").stdout
    names = set(re.findall(r"^(\S+)$", listed, re.M))
    hostile = {"unknown-api-key", "unknown-version", "malformed-body", "huge-array", "negative-size", "too-large-size"}
    assert names == set(BROKER_CASES) - hostile


def test_the_file_is_what_the_recording_script_writes() -> None:
    assert sorted(lines(expectations()).splitlines()) == sorted(PATH.read_text().splitlines())


def test_cases_are_chosen_by_whole_words_of_their_names() -> None:
    done = kproto("conform", "broker", "--list", "--only", "huge-arr")
    assert done.stderr == "kproto conform broker: --only: no case 'huge-arr': kproto conform broker --list names them\n"
    done = kproto("conform", "broker", "--list", "--only", "huge-array")
    assert done.stdout.startswith("huge-array\n")
