"""The verdicts of a client as text for a terminal, as JSON and as JUnit's XML."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from kproto.errors import KprotoError
from kproto_server.conformance.verdict import ORDER, Grade

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kproto_server.conformance.verdict import Verdict

SCHEMA = 1
SHOWN_REQUESTS = (Grade.DEGRADED, Grade.FAIL)
"""Grades whose requests are shown in the text."""


class ClientReport(NamedTuple):
    """All verdicts of one client or broker."""

    client: str
    """Its software name and version, or its command."""
    command: Sequence[str]
    verdicts: Sequence[Verdict]
    tested: str = "client"
    """What the report is about, as in the command's name: client or broker."""


class NoBaseline(KprotoError):
    """A file is no JSON report of `kproto conform client`; the text is one line for the user."""


def as_text(report: ClientReport) -> str:
    """Return a line for each case; below those that are not passed, why, what the reference says, and the requests."""
    width = max((len(verdict.case.name) for verdict in report.verdicts), default=0)
    lines = [f"{report.client}: {summary(report)}", ""]
    for verdict in report.verdicts:
        lines.append(
            f"  {verdict.grade.upper():<11}  {verdict.case.name.ljust(width)}  {verdict.seen.seconds:5.1f} s"
            f"{'  ' if verdict.reason else ''}{verdict.reason}"
        )
        if verdict.grade in SHOWN_REQUESTS:
            lines += [f"{'':15}{line}" for line in (verdict.case.text, verdict.case.reference, *verdict.seen.requests)]
    return "\n".join(lines) + "\n"


def summary(report: ClientReport) -> str:
    """Return how many cases have which grade: ``55 pass, 2 fail of 57``."""
    counts = Counter(verdict.grade for verdict in report.verdicts)
    named = ", ".join(f"{counts[grade]} {grade}" for grade in Grade if counts[grade])
    return f"{named} of {len(report.verdicts)}"


def as_json(report: ClientReport) -> str:
    """Return the report as one JSON object; `graded_in` reads it again."""
    cases = [
        {
            "name": verdict.case.name,
            "text": verdict.case.text,
            "reference": verdict.case.reference,
            "verdict": verdict.grade.value,
            "reason": verdict.reason,
            **{
                name: value
                for name, value in verdict.seen._asdict().items()
                if name in ("expected", "missing", "lost", "wrong", "repeated", "seconds", "exit_code", "requests")
            },
        }
        for verdict in report.verdicts
    ]
    found = {"schema": SCHEMA, "client": report.client, "command": list(report.command), "cases": cases}
    return json.dumps(found, indent=2) + "\n"


def as_junit(report: ClientReport, fail_on: Grade) -> str:
    """Return the report as JUnit's XML: a test case for each case, failed from the grade ``fail_on`` on."""
    suite = ElementTree.Element("testsuite", name=f"kproto conform {report.tested}", tests=str(len(report.verdicts)))
    suite.set("failures", str(sum(is_bad(verdict.grade, fail_on) for verdict in report.verdicts)))
    for verdict in report.verdicts:
        case = ElementTree.SubElement(
            suite, "testcase", classname=report.client, name=verdict.case.name, time=f"{verdict.seen.seconds:.3f}"
        )
        if is_bad(verdict.grade, fail_on):
            failure = ElementTree.SubElement(case, "failure", message=verdict.reason, type=verdict.grade.value)
            failure.text = "\n".join((verdict.case.text, verdict.case.reference, *verdict.seen.requests))
        elif verdict.grade is Grade.NOT_OFFERED:
            ElementTree.SubElement(case, "skipped", message=verdict.reason)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def is_bad(grade: Grade, fail_on: Grade) -> bool:
    """Return whether a grade is ``fail_on`` or worse."""
    return ORDER[grade] >= ORDER[fail_on]


def regressions(report: ClientReport, fail_on: Grade, baseline: Mapping[str, Grade]) -> Iterator[Verdict]:
    """Yield the verdicts from ``fail_on`` on, without those that the baseline has, too, or has worse."""
    for verdict in report.verdicts:
        known = baseline.get(verdict.case.name, Grade.PASS)
        if is_bad(verdict.grade, fail_on) and ORDER[verdict.grade] > ORDER[known]:
            yield verdict


def graded_in(text: str) -> dict[str, Grade]:
    """Return the grades in a JSON report, by name of the case.

    Raises:
        NoBaseline: the text is no such report.
    """
    try:
        found: Any = json.loads(text)
        if found["schema"] != SCHEMA:
            raise NoBaseline(f"its schema is {found['schema']!r}, not {SCHEMA}")
        return {case["name"]: Grade(case["verdict"]) for case in found["cases"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise NoBaseline("it is no JSON report of kproto conform client") from None
