"""The report in a browser: nothing exceeds the page at any width, in the light and dark scheme, and in print.

Method: headless Chromium lays out the page, and a script that is appended to it measures the elements.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from json import loads
from pathlib import Path
from typing import Any

import pytest

from kproto.spark.report import charts
from kproto.spark.report.model import Lines, Report
from kproto.spark.report.page import render
from tests.report.test_html_page import chromium
from tests.spark.report_samples import empty_report, full_report
from tests.spark.rows import at

START = datetime(2026, 11, 21, tzinfo=UTC)
MEASURE = """
<script>
const root = document.documentElement;
const inScroller = element => element.closest(".wide") !== null;
const exceeds = element => element.getBoundingClientRect().right > root.clientWidth + 1;
const all = [...document.querySelectorAll("main *")];
const box = e => e.getBBox();
const charts = [...document.querySelectorAll("svg")].map(svg => {
  const view = svg.viewBox.baseVal;
  const inside = e => box(e).x >= 0 && box(e).y >= 0 && box(e).x + box(e).width <= view.width + 1
    && box(e).y + box(e).height <= view.height + 1;
  const shapes = [...svg.querySelectorAll("rect, path, circle, text")];
  const texts = [...svg.querySelectorAll("text")].map(e => e.getBoundingClientRect());
  const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return {
    shapes: shapes.length, outside: shapes.filter(e => !inside(e)).map(e => e.outerHTML.slice(0, 80)),
    overlaps: texts.flatMap((a, n) => texts.slice(n + 1).filter(b => overlap(a, b))).length,
    height: svg.getBoundingClientRect().height,
  };
});
document.title = JSON.stringify({
  scrolls: root.scrollWidth > root.clientWidth, charts,
  wide: all.filter(e => !inScroller(e) && exceeds(e)).map(e => e.outerHTML.slice(0, 60)),
  ink: getComputedStyle(document.body).color, page: getComputedStyle(document.body).backgroundColor,
  scripts: document.querySelectorAll("main script").length,
});
</script>
"""


def measured(folder: Path, report: Report, *words: str) -> dict[str, Any]:
    page = folder / "r.html"
    page.write_text(render(report) + MEASURE, encoding="utf-8")
    found = re.search(r"<title>(.*?)</title>", chromium(folder, *words, "--dump-dom", page.as_uri()), re.DOTALL)
    assert found is not None
    measures: dict[str, Any] = loads(unescape(found[1]))
    return measures


@pytest.mark.parametrize("width", [500, 1200])
def test_nothing_exceeds_the_page(tmp_path: Path, width: int) -> None:
    measures = measured(tmp_path, full_report(), f"--window-size={width},900")
    assert (measures["scrolls"], measures["wide"], measures["scripts"]) == (False, [], 0)
    assert len(measures["charts"]) == 3
    for chart in measures["charts"]:
        assert chart["outside"] == []
        assert chart["overlaps"] == 0
        assert chart["shapes"] > 10
        assert chart["height"] > 100


def test_the_dark_scheme_is_followed(tmp_path: Path) -> None:
    light = measured(tmp_path, empty_report())
    dark = measured(tmp_path, empty_report(), "--blink-settings=preferredColorScheme=0")
    assert (light["page"], dark["page"]) == ("rgb(246, 247, 249)", "rgb(18, 22, 28)")
    assert light["ink"] != dark["ink"]


def test_the_report_prints_on_a_few_pages(tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    page.write_text(render(full_report()), encoding="utf-8")
    chromium(tmp_path, f"--print-to-pdf={tmp_path / 'r.pdf'}", "--no-pdf-header-footer", page.as_uri())
    pages = re.findall(rb"/Type\s*/Page\b", (tmp_path / "r.pdf").read_bytes())
    assert 2 <= len(pages) <= 6


def test_the_page_is_self_contained() -> None:
    page = render(full_report())
    assert not re.search(r"(?:src|href)=|@import|url\(|<script|<link", page.replace("&lt;script", ""))


def test_strange_names_are_escaped() -> None:
    page = render(full_report())
    assert "nasty&lt;script&gt;&quot;\N{REPLACEMENT CHARACTER}[31m" in page
    assert "\x1b" not in page


def test_the_recommendation_and_the_caveats_come_first() -> None:
    page = render(full_report())
    positions = [
        page.index(text)
        for text in (
            "3 groups need a longer retention than 10,080 minutes: set offsets.retention.minutes to 40,320",
            "5,200,001 records in 523,032 batches of 50 partitions",
            "compacted: 27.8 % of the offsets were removed",
            "3 partitions begin after offset 0",
            "1,237 records skipped, of types that no table has: 7 (3), 16 (1,234)",
            "Commits over time",
        )
    ]
    assert positions == sorted(positions)


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


@pytest.mark.parametrize("seconds", [4, 7 * 86_400])
def test_the_last_time_label_stays_within_the_picture(tmp_path: Path, seconds: int) -> None:
    """The tick is at the end of the axis."""
    times = [START + timedelta(seconds=seconds * share) for share in (0, 1)]
    measures = measured(tmp_path, replace(full_report(), lag=Lines(times, {"g": [1, 2]})), "--window-size=1000,900")
    assert measures["charts"][2]["outside"] == []


def test_a_group_has_one_color_in_all_charts() -> None:
    in_bars = charts.colors(["a", "b", "c"])
    assert in_bars == {"a": 0, "b": 1, "c": 2}
    assert charts.colors(["x", "b", "y", "a"], in_bars) == {"x": 2, "b": 1, "y": 3, "a": 0}
    drawn = charts.lines(Lines([at(0), at(1)], {"x": [1, 2], "b": [3, 4]}), "lag", in_bars)
    assert [re.search("key (s.)", key)[1] for key in re.findall("<li>.*?</li>", drawn)] == ["s0", "s1"]  # type: ignore[index]
    assert re.findall('class="(l.)"', drawn) == ["l0", "l1"]


def test_a_gap_interrupts_a_line() -> None:
    drawn = charts.lines(Lines([at(n) for n in range(5)], {"g": [1, 2, None, 3, 4]}), "lag")
    path = re.search(r' d="(.*?)"', drawn)
    assert path is not None
    assert [step[0] for step in re.findall(r"[ML][^ML]*", path[1])] == ["M", "L", "M", "L"]
