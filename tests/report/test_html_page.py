"""The HTML report fits a browser's window at any width, has light and dark colors, and prints on paper.

Method. Headless Chromium lays the page out, and a script that is appended to the page measures the layout.
"""

from __future__ import annotations

import html
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
const overflows = element => element.getBoundingClientRect().right > root.clientWidth + 1;
const wide = [...document.querySelectorAll("main *")].filter(e => !inScroller(e) && overflows(e));
const cell = document.querySelector(".matrix td.sent.breaks");
const colors = getComputedStyle(document.body);
document.title = JSON.stringify({
  scrolls: root.scrollWidth > root.clientWidth, wide: wide.map(e => e.outerHTML.slice(0, 60)),
  ink: colors.color, page: colors.backgroundColor, mark: getComputedStyle(cell).borderTopStyle,
});
</script>
"""


def chromium(folder: Path, *words: str) -> str:
    command = [need_chromium(), *FLAGS, f"--user-data-dir={folder / 'user-data'}", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=folder).stdout


def measured(folder: Path, *words: str) -> dict[str, object]:
    page = folder / "r.html"
    page.write_text(html_page.render(report_of(everything(), target="4.0", run=FINISHED)) + MEASURE, encoding="utf-8")
    found = re.search(r"<title>(.*)</title>", chromium(folder, *words, "--dump-dom", page.as_uri()))
    assert found is not None
    values: dict[str, object] = json.loads(html.unescape(found[1]))
    return values


@pytest.mark.parametrize("width", [500, 1200])
def test_no_element_is_wider_than_the_page(tmp_path: Path, width: int) -> None:
    layout = measured(tmp_path, f"--window-size={width},900")
    assert (layout["scrolls"], layout["wide"]) == (False, [])
    assert layout["mark"] == "solid"


def test_the_page_has_the_browsers_color_scheme(tmp_path: Path) -> None:
    light = measured(tmp_path)
    dark = measured(tmp_path, "--blink-settings=preferredColorScheme=0")
    assert (light["page"], dark["page"]) == ("rgb(246, 247, 249)", "rgb(18, 22, 28)")
    assert light["ink"] != dark["ink"]


def test_the_report_prints_on_at_most_three_pages(tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    page.write_text(html_page.render(report_of(everything(), target="4.0", run=FINISHED)), encoding="utf-8")
    chromium(tmp_path, f"--print-to-pdf={tmp_path / 'r.pdf'}", "--no-pdf-header-footer", page.as_uri())
    pages = re.findall(rb"/Type\s*/Page\b", (tmp_path / "r.pdf").read_bytes())
    assert 1 <= len(pages) <= 3
