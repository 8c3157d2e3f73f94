"""The verdicts of a client as a self-contained HTML page, with a badge for a client's own page."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from kproto.html_page import Cell, Column, Markup, TableRow, banner, cards, html_page, section, table
from kproto_server.conformance.verdict import ORDER, Grade

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.conformance.reports import ClientReport
    from kproto_server.conformance.verdict import Verdict

STYLE = """
.badge { height: 20px; margin-left: .6rem; vertical-align: middle; }
.pass { color: var(--good); }
.fail { color: var(--bad); }
.degraded { color: var(--warn); }
pre { overflow-x: auto; margin: .5rem 0 0; font-size: .87rem; }
"""
COLUMNS = (Column("Case"), Column("Verdict"), Column("Why"), Column("Seconds", is_number=True), Column("Reference"))
BADGE_COLORS = {Grade.PASS: "#2e7d32", Grade.DEGRADED: "#9a6700", Grade.FAIL: "#c62828"}
ABOUT = {
    "client": "What a program with this client did in each case: in each, a broker does one thing wrong, moves, or is "
    "another release.",
    "broker": "How this broker responded to the requests of each case, beside what a release of Kafka responds.",
}
ALL_PASSED = {"client": "It recovers in all cases", "broker": "It responds as the release does in all cases"}
CHARACTER_WIDTH = 6.6
"""Of the badge's font, in its pixels."""


def render(report: ClientReport) -> str:
    """Return the page."""
    bad = [verdict for verdict in report.verdicts if verdict.grade in (Grade.DEGRADED, Grade.FAIL)]
    lines = [*_head(report), *section("All cases", table(COLUMNS, map(_row, report.verdicts)))]
    for verdict in sorted(bad, key=lambda each: -ORDER[each.grade]):
        lines += section(verdict.case.name, _details(verdict), verdict.grade.value)
    return html_page(f"Conformance: {report.client}", STYLE, "\n".join(lines))


def badge(report: ClientReport) -> str:
    """Return a badge as SVG: how many of the cases that the client offers it passes."""
    counts = Counter(verdict.grade for verdict in report.verdicts)
    offered = len(report.verdicts) - counts[Grade.NOT_OFFERED]
    worst = max((verdict.grade for verdict in report.verdicts), key=ORDER.__getitem__, default=Grade.PASS)
    name, result = "kproto conform", f"{counts[Grade.PASS]} of {offered}"
    left, right = (round(CHARACTER_WIDTH * len(text)) + 10 for text in (name, result))
    color = BADGE_COLORS.get(worst, BADGE_COLORS[Grade.PASS])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="badge" viewBox="0 0 {left + right} 20" height="20" role="img" '
        f'aria-label="{name}: {result}"><rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{color}"/>'
        f'<g fill="#fff" font-family="Verdana,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2}" y="14">{name}</text><text x="{left + right / 2}" y="14">{result}</text></g></svg>'
    )


def _head(report: ClientReport) -> Iterator[str]:
    counts = Counter(verdict.grade for verdict in report.verdicts)
    yield f"""<header><h1>Conformance: {escape(report.client)} {badge(report)}</h1>
<p class="soft small">{ABOUT[report.tested]}</p></header>"""
    if counts[Grade.FAIL]:
        yield banner(f"{counts[Grade.FAIL]} of {len(report.verdicts)} cases failed", "bad")
    elif counts[Grade.DEGRADED]:
        yield banner(f"It recovers in all cases, in {counts[Grade.DEGRADED]} with repeated records or a stall", "warn")
    else:
        yield banner(ALL_PASSED[report.tested], "good")
    kinds = {Grade.PASS: "good", Grade.DEGRADED: "warn", Grade.FAIL: "bad"}
    yield from cards(
        (str(counts[grade]), grade.value, kinds.get(grade, "") if counts[grade] else "") for grade in Grade
    )


def _row(verdict: Verdict) -> TableRow:
    grade = Cell(
        Markup(f'<b class="{verdict.grade.name.lower()}">{escape(verdict.grade.value)}</b>'), ORDER[verdict.grade]
    )
    seconds = Cell(f"{verdict.seen.seconds:.1f}", verdict.seen.seconds)
    return TableRow(
        verdict.case.name,
        (verdict.case.name, grade, verdict.reason or verdict.case.text, seconds, verdict.case.reference),
    )


def _details(verdict: Verdict) -> Iterator[str]:
    yield f"<p>{escape(verdict.case.text)}</p><p>{escape(verdict.reason)}</p>"
    yield f'<p class="soft small">{escape(verdict.case.reference)}</p>'
    if verdict.seen.requests:
        yield f"<pre>{escape(chr(10).join(verdict.seen.requests))}</pre>"
