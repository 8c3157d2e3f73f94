"""The HTML report in a browser: nothing sticks out, at any width, light, dark and on paper.

Method: headless Chromium lays the page out, a script appended to it measures, and the measured page is printed.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from kproto_server.report import html_page
from tests.report.samples import FINISHED, everything, report_of
from tests.requirements import need_chromium

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

MEASURE = """
<script>
const root = document.documentElement;
const inScroller = element => element.closest(".wide") !== null;
const sticksOut = element => element.getBoundingClientRect().right > root.clientWidth + 1;
const wide = [...document.querySelectorAll("main *")].filter(e => !inScroller(e) && sticksOut(e));
const cell = document.querySelector(".matrix td.sent.breaks");
const colors = getComputedStyle(document.body);
document.title = JSON.stringify({
  scrolls: root.scrollWidth > root.clientWidth, wide: wide.map(e => e.outerHTML.slice(0, 60)),
  ink: colors.color, page: colors.backgroundColor, mark: getComputedStyle(cell).borderTopStyle,
});
</script>
"""


def chromium(folder: Path, *words: str) -> str:
    command = [need_chromium(), *FLAGS, f"--user-data-dir={folder / 'kafka_version'}", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=folder).stdout


def measured(folder: Path, *words: str) -> dict[str, object]:
    page = folder / "r.html"
    page.write_text(html_page.render(report_of(everything(), target="4.0", run=FINISHED)) + MEASURE, encoding="utf-8")
    found = re.search(r"<title>(.*)</title>", chromium(folder, *words, "--dump-dom", page.as_uri()))
    assert found is not None
    facts: dict[str, object] = json.loads(found[1].replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))
    return facts


@pytest.mark.parametrize("width", [500, 1200])
def test_nothing_sticks_out_of_the_page(tmp_path: Path, width: int) -> None:
    facts = measured(tmp_path, f"--window-size={width},900")
    assert (facts["scrolls"], facts["wide"]) == (False, [])
    assert facts["mark"] == "solid"


def test_it_is_dark_for_who_reads_in_the_dark(tmp_path: Path) -> None:
    light = measured(tmp_path)
    dark = measured(tmp_path, "--blink-settings=preferredColorScheme=0")
    assert (light["page"], dark["page"]) == ("rgb(246, 247, 249)", "rgb(18, 22, 28)")
    assert light["ink"] != dark["ink"]


def test_it_prints_on_a_few_pages(tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    page.write_text(html_page.render(report_of(everything(), target="4.0", run=FINISHED)), encoding="utf-8")
    chromium(tmp_path, f"--print-to-pdf={tmp_path / 'r.pdf'}", "--no-pdf-header-footer", page.as_uri())
    pages = re.findall(rb"/Type\s*/Page\b", (tmp_path / "r.pdf").read_bytes())
    assert 1 <= len(pages) <= 3
