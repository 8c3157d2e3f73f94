"""The report in a browser: nothing exceeds the page at any width, in the light and dark scheme, and in print."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kproto.spark.report import charts
from kproto.spark.report.model import Lines, Report, Rows
from kproto.spark.report.page import render
from kproto.spark.words import plural
from tests.html_layout import DARK, SMALL, WIDE, assert_fits, chromium, layout
from tests.spark.report_samples import empty_report, full_report
from tests.spark.rows import at

START = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.parametrize("width", [SMALL, 1140, 1141, WIDE])
@pytest.mark.parametrize("report", [full_report, empty_report])
def test_all_of_the_page_is_visible_at_any_width(tmp_path: Path, report: Callable[[], Report], width: int) -> None:
    measures = layout(tmp_path, render(report()), width)
    assert_fits(measures)
    assert len(measures["charts"]) == (3 if report is full_report else 0)
    for chart in measures["charts"]:
        assert chart["shapes"] > 10
        assert chart["height"] > 100


def test_the_dark_scheme_is_followed(tmp_path: Path) -> None:
    light = layout(tmp_path, render(empty_report()), WIDE)
    dark = layout(tmp_path, render(empty_report()), WIDE, DARK)
    assert (light["page"], dark["page"]) == ("rgb(246, 247, 249)", "rgb(18, 22, 28)")
    assert light["ink"] != dark["ink"]


def test_a_bar_is_as_long_as_its_share() -> None:
    cells = re.findall(r'<span style="width:([\d.]+)%"></span></span> ([\d.]+) %', render(full_report()))
    assert cells
    assert all(abs(float(width) - float(share)) <= 0.1 for width, share in cells)


def test_every_cell_has_content() -> None:
    assert re.findall(r"<td[^>]*><div>\s*</div>", render(full_report())) == []


def test_the_report_prints_on_a_few_pages(tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    page.write_text(render(full_report()), encoding="utf-8")
    chromium(tmp_path, f"--print-to-pdf={tmp_path / 'r.pdf'}", "--no-pdf-header-footer", page.as_uri())
    pages = re.findall(rb"/Type\s*/Page\b", (tmp_path / "r.pdf").read_bytes())
    assert 2 <= len(pages) <= 6


def test_the_page_is_self_contained() -> None:
    page = render(full_report())
    assert not re.search(r"(?:src|href)=|@import|url\(|<link", page)
    assert page.count("<script") == 1, "the page's own"


def test_strange_names_are_escaped() -> None:
    page = render(full_report())
    assert "nasty&lt;script&gt;&quot;\N{REPLACEMENT CHARACTER}[31m" in page
    assert "\x1b" not in page


def test_the_recommendation_and_the_caveats_come_first() -> None:
    page = render(full_report())
    positions = [
        page.index(text)
        for text in (
            "3 groups need a longer retention than 10,080 minutes: set offsets.retention.minutes to at least 40,320",
            "5,200,001 records in 523,032 batches of 50 partitions",
            "compacted: 27.8 % of the offsets were removed",
            "3 partitions begin after offset 0",
            "1,237 records skipped, of types that no table has: 7 (3), 16 (1,234)",
            "Commits over time",
        )
    ]
    assert positions == sorted(positions)


def test_the_time_left_names_its_time() -> None:
    """An old copy of a log ends long before the page is read."""
    page = render(full_report())
    assert "as of 2026-11-23 09:30:00, the end of the log; all times UTC" in page
    assert "Time left at 2026-11-23 09:30:00" in page
    assert "offsets lost in the day after the end of the log" in page
    assert "offsets lost in the day after the time of the question" in render(empty_report())


def test_a_table_says_how_many_rows_it_lacks_and_what_prints_them() -> None:
    report = full_report()
    page = render(replace(report, rewinds=Rows(report.rewinds.first, len(report.rewinds.first) + 1234)))
    assert "and 1,234 more: <code>python -m kproto.spark rewinds</code> prints all" in page


def test_more_rows_of_a_table_fold(tmp_path: Path) -> None:
    """All rows of the table are in the page; a click shows those after the first ones."""
    report = full_report()
    row = report.rewinds.first[0]
    more = [row | {"group_id": f"folded-{number}"} for number in range(9)]
    page = render(replace(report, rewinds=Rows(report.rewinds.first, len(report.rewinds.first) + 9, more)))
    assert "<summary>9 more rows</summary>" in page
    assert "prints all" not in page.partition("<h2>Rewinds")[2].partition("<h2>")[0]
    folded = page.partition('<details class="more">')[2].partition("</details>")[0]
    assert folded.count('<span class="name">folded-') == 9
    assert_fits(layout(tmp_path, page.replace('"more">', '"more" open>'), SMALL))


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (1, "batch", "1 batch"),
        (21, "batch", "21 batches"),
        (0, "offset", "0 offsets"),
        (1234, "more row", "1,234 more rows"),
    ],
)
def test_the_plural_of_a_noun(count: int, noun: str, text: str) -> None:
    assert plural(count, noun) == text


def test_an_empty_report_says_so() -> None:
    page = render(empty_report())
    assert "offsets.retention.minutes = 10,080 is enough for every group" in page
    assert "No offset is missing" in page
    assert page.count("None.") == 7


@pytest.mark.parametrize(
    ("highest", "step"), [(0, 1), (1, 1), (5, 1), (6, 2), (11, 5), (26, 10), (999, 200), (10**9, 2 * 10**8)]
)
def test_axes_have_round_steps(highest: int, step: int) -> None:
    assert charts.nice_step(highest) == step


@pytest.mark.parametrize(
    ("seconds", "first", "second"),
    [(8, "09:30:00", "09:30:01"), (3600, "09:30", "09:40"), (86_400, "12:00", "15:00"), (10**6, "23 Nov", "25 Nov")],
)
def test_times_are_round(seconds: float, first: str, second: str) -> None:
    ticks = list(charts.time_ticks(at(0), at(0) + timedelta(seconds=seconds)))
    assert [text for _, text in ticks][:2] == [first, second]
    assert 2 <= len(ticks) <= charts.TICKS_MAX + 1


@pytest.mark.parametrize("width", [SMALL, WIDE])
def test_the_last_time_label_stays_within_the_picture(tmp_path: Path, width: int) -> None:
    """The tick is at the end of the axis, in seconds or days."""
    seconds, days = (Lines([START, START + timedelta(seconds=length)], {"g": [1, 2]}) for length in (4, 7 * 86_400))
    page = render(replace(full_report(), lag=seconds)).replace("</main>", charts.lines(days, "lag") + "</main>")
    measured = layout(tmp_path, page, width)["charts"]
    assert [chart["outside"] for chart in measured[2:]] == [[], []]


def test_a_group_has_one_color_in_all_charts() -> None:
    in_bars = charts.colors(["a", "b", "c"])
    assert in_bars == {"a": 0, "b": 1, "c": 2}
    assert charts.colors(["x", "b", "y", "a"], in_bars) == {"x": 2, "b": 1, "y": 3, "a": 0}
    drawn = charts.lines(Lines([at(0), at(1)], {"x": [1, 2], "b": [3, 4]}), "lag", in_bars)
    assert [re.search("key (s.)", key)[1] for key in re.findall("<li>.*?</li>", drawn)] == ["s0", "s1"]  # type: ignore[index]
    assert re.findall('class="(l.)"', drawn) == ["l0", "l1"] * 2


def test_a_gap_interrupts_a_line() -> None:
    drawn = charts.lines(Lines([at(n) for n in range(5)], {"g": [1, 2, None, 3, 4]}), "lag")
    path = re.search(r' d="(.*?)"', drawn)
    assert path is not None
    assert [step[0] for step in re.findall(r"[ML][^ML]*", path[1])] == ["M", "L", "M", "L"]
