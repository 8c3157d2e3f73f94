"""The page of a client's verdicts fits windows of any width, and names what is wrong first."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from kproto_server.conformance import html_report
from kproto_server.conformance.cases import CASES
from kproto_server.conformance.reports import ClientReport
from kproto_server.conformance.verdict import Grade, Seen, verdict_on
from tests.html_layout import SMALL, WIDE, assert_fits, layout

REQUESTS = ("  0.000 s  OffsetFetch v9: NOT_COORDINATOR", "  1.005 s  Heartbeat v3: no error")


def report(*grades: Grade) -> ClientReport:
    """Return a report whose first cases have these grades; the others are passed."""
    seen = {
        Grade.FAIL: Seen(20, missing=10, seconds=30.0, requests=REQUESTS),
        Grade.DEGRADED: Seen(20, repeated=3, seconds=1.9, requests=REQUESTS),
        Grade.NOT_OFFERED: Seen(20, fired=0, seconds=9.0),
        Grade.PASS: Seen(20, seconds=1.2),
    }
    wanted = [*grades, *[Grade.PASS] * (len(CASES) - len(grades))]
    found = [verdict_on(case, seen[grade], 1.0) for case, grade in zip(CASES.values(), wanted, strict=True)]
    return ClientReport("confluent-kafka-python 2.16.1-rdkafka-2.16.0", ("./copy",), found)


@pytest.mark.parametrize("width", [SMALL, WIDE])
def test_all_of_the_page_is_visible_at_any_width(tmp_path: Path, width: int) -> None:
    assert_fits(layout(tmp_path, html_report.render(report(Grade.FAIL, Grade.DEGRADED, Grade.NOT_OFFERED)), width))


@pytest.mark.parametrize(
    ("grades", "text"),
    [
        ((Grade.DEGRADED, Grade.FAIL), f"1 of {len(CASES)} cases failed"),
        ((Grade.DEGRADED, Grade.NOT_OFFERED), "It recovers in all cases, in 1 with repeated records or a stall"),
        ((Grade.NOT_OFFERED,), "It recovers in all cases"),
    ],
)
def test_the_page_says_the_worst_first(grades: tuple[Grade, ...], text: str) -> None:
    page = html_report.render(report(*grades))
    assert f'role="status">{text}</div>' in page
    assert page.count("<pre>") == len({Grade.DEGRADED, Grade.FAIL} & set(grades))


def test_the_badge_counts_what_the_client_offers() -> None:
    svg = ElementTree.fromstring(html_report.badge(report(Grade.NOT_OFFERED, Grade.FAIL)))  # noqa: S314 - our own
    assert svg.get("aria-label") == f"kproto conform: {len(CASES) - 2} of {len(CASES) - 1}"
