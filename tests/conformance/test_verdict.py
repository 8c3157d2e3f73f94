"""Verdicts of what was seen, and their reports."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from kproto_server.conformance.cases import CASES, NO_FAULT, chosen
from kproto_server.conformance.reports import (
    ClientReport,
    NoBaseline,
    as_json,
    as_junit,
    as_text,
    graded_in,
    regressions,
)
from kproto_server.conformance.verdict import Grade, Seen, verdict_on


@pytest.mark.parametrize(
    ("seen", "grade", "reason"),
    [
        (Seen(20, seconds=3), Grade.PASS, ""),
        (Seen(20, seconds=11.9), Grade.PASS, ""),
        (Seen(20, seconds=12.1), Grade.DEGRADED, "stalled: 10 s longer than without the fault"),
        (Seen(20, repeated=1), Grade.DEGRADED, "1 record written twice"),
        (Seen(20, fired=0), Grade.NOT_OFFERED, "the client sent no such request"),
        (
            Seen(20, fired=0, missing=3, seconds=30),
            Grade.FAIL,
            "the client hangs: 3 records of 20 not written after 30 s",
        ),
        (Seen(20, missing=2, lost=2), Grade.FAIL, "2 records lost: committed, and not written"),
        (
            Seen(20, is_committed=False, seconds=30),
            Grade.FAIL,
            "the client hangs: its last offsets are not committed after 30 s",
        ),
        (
            Seen(20, missing=20, exit_code=1, last_error_line="KeyError: 0"),
            Grade.FAIL,
            "the client ended with exit code 1: KeyError: 0",
        ),
        (Seen(20, missing=1, lost=1, exit_code=0), Grade.FAIL, "1 record lost: committed, and not written"),
    ],
)
def test_a_verdict_says_what_is_worst(seen: Seen, grade: Grade, reason: str) -> None:
    assert verdict_on(NO_FAULT, seen, 2.0)[1:3] == (grade, reason)


def report() -> ClientReport:
    cases = list(CASES.values())[:4]
    seen = (Seen(20), Seen(20, repeated=2, requests=("  0.000 s  Fetch v4: no error",)), Seen(20, fired=0), Seen(20, 1))
    verdicts = [verdict_on(case, each, 1.0) for case, each in zip(cases, seen, strict=True)]
    return ClientReport("kafka-python 3.0.12", ("./copy",), verdicts)


def test_the_text_shows_why() -> None:
    text = as_text(report())
    assert text.startswith("kafka-python 3.0.12: 1 pass, 1 not offered, 1 degraded, 1 fail of 4\n")
    assert "DEGRADED     api-versions-unsupported    0.0 s  2 records written twice\n" in text
    assert "KIP-511" in text
    assert "  0.000 s  Fetch v4: no error" in text


def test_a_report_is_the_baseline_of_the_next_one() -> None:
    known = graded_in(as_json(report()))
    assert list(known.values()) == [Grade.PASS, Grade.DEGRADED, Grade.NOT_OFFERED, Grade.FAIL]
    names = [verdict.case.name for verdict in report().verdicts]
    assert list(regressions(report(), Grade.DEGRADED, known)) == []
    found = regressions(report(), Grade.DEGRADED, known | {names[1]: Grade.PASS, names[3]: Grade.DEGRADED})
    assert [verdict.case.name for verdict in found] == [names[1], names[3]]
    assert [verdict.grade for verdict in regressions(report(), Grade.FAIL, {})] == [Grade.FAIL]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": 2}', '{"schema": 1, "cases": [{"name": "x", "verdict": "bad"}]}']
)
def test_another_file_is_no_baseline(text: str) -> None:
    with pytest.raises(NoBaseline):
        graded_in(text)


def test_junit_has_failures_from_a_grade_on() -> None:
    suite = ElementTree.fromstring(as_junit(report(), Grade.FAIL))  # noqa: S314 - our own
    assert (suite.get("tests"), suite.get("failures")) == ("4", "1")
    assert [[child.tag for child in case] for case in suite] == [[], [], ["skipped"], ["failure"]]
    suite = ElementTree.fromstring(as_junit(report(), Grade.DEGRADED))  # noqa: S314 - our own
    failure = suite[1].find("failure")
    assert failure is not None
    assert failure.get("message") == "2 records written twice"


def test_the_json_has_the_requests() -> None:
    cases = json.loads(as_json(report()))["cases"]
    assert cases[1]["requests"] == ["  0.000 s  Fetch v4: no error"]
    assert {"name", "text", "reference", "verdict", "reason", "seconds"} <= cases[0].keys()


def test_cases_are_chosen_by_their_beginning() -> None:
    assert len(CASES) == len({case.text for case in CASES.values()})
    assert all(case.name.startswith("offset-commit-") for case in chosen(["offset-commit"], CASES))
    assert [case.name for case in chosen(["rebalance", "no-fault"], CASES)] == ["no-fault", "rebalance"]
    assert chosen([], CASES) == list(CASES.values())
    with pytest.raises(KeyError, match="offse"):
        chosen(["offse"], CASES)
