"""Headless Chromium lays out a page of HTML, and a script that is appended to the page measures it."""

from __future__ import annotations

import html
import json
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.requirements import need_chromium

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
DARK = "--blink-settings=preferredColorScheme=0"
SMALL, WIDE = 420, 1400
"""Widths of a phone's and a desktop's window."""

MEASURE = """
<script>
const root = document.documentElement;
const isShown = element => element.getClientRects().length > 0;
const all = [...document.querySelectorAll("main, main *")].filter(isShown);
const exceeds = element => element.getBoundingClientRect().right > root.clientWidth + 0.5;
const shown = element => element.outerHTML.slice(0, 80);
const probe = document.createElement("span");
probe.style.cssText = "position: absolute; visibility: hidden; white-space: nowrap; width: auto";
const wordWidth = (element, word) => {
  const style = getComputedStyle(element);
  for (const one of ["fontFamily", "fontSize", "fontWeight", "fontVariantNumeric"]) probe.style[one] = style[one];
  probe.textContent = word.slice(0, LONGEST_WORD);
  document.body.append(probe);
  const width = probe.getBoundingClientRect().width;
  probe.remove();
  return width;
};
const LONGEST_WORD = 20;
const texts = element => {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) found.push(walker.currentNode);
  return found;
};
const narrow = [];
for (const cell of all.filter(e => e.matches("td, th"))) {
  const content = cell.querySelector(":scope > div") ?? cell;
  const style = getComputedStyle(content);
  const room = content.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) + 1;
  for (const text of texts(content))
    for (const word of text.textContent.split(/[\\s\\u200b]+/))
      if (word && wordWidth(text.parentElement, word) > Math.max(room, 0)) narrow.push(word);
}
const cut = all.filter(e => !e.matches("svg, svg *, input") && e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1);
const charts = [...document.querySelectorAll("svg")].filter(isShown).map(svg => {
  const view = svg.viewBox.baseVal;
  const inside = e => e.getBBox().x >= 0 && e.getBBox().y >= 0 && e.getBBox().x + e.getBBox().width <= view.width + 1
    && e.getBBox().y + e.getBBox().height <= view.height + 1;
  const shapes = [...svg.querySelectorAll("rect, path, circle, text")];
  const labels = [...svg.querySelectorAll("text")].map(e => e.getBoundingClientRect());
  const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return {
    shapes: shapes.length, outside: shapes.filter(e => !inside(e)).map(shown),
    overlaps: labels.flatMap((a, n) => labels.slice(n + 1).filter(b => overlap(a, b))).length,
    height: svg.getBoundingClientRect().height, text: Math.min(...labels.map(label => label.height)),
  };
});
document.title = JSON.stringify({
  scrolls: root.scrollWidth > root.clientWidth, width: root.clientWidth, wide: all.filter(exceeds).map(shown),
  narrow, cut: cut.map(shown), charts,
  ink: getComputedStyle(document.body).color, page: getComputedStyle(document.body).backgroundColor,
});
</script>
"""
# Chromium has no window that is narrower than 500 pixels, so the page is measured in a frame of the wanted width.
FRAME = """<!DOCTYPE html><title></title><style>body { margin: 0 } iframe { border: 0 }</style>
<iframe width="%d" height="2000" srcdoc="%s"></iframe>
<script>
document.querySelector("iframe").addEventListener("load", event => {
  document.title = event.target.contentDocument.title;
});
</script>
"""


def chromium(folder: Path, *words: str) -> str:
    """Run Chromium; return its standard output."""
    command = [need_chromium(), *FLAGS, f"--user-data-dir={folder / 'user-data'}", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=folder).stdout


def layout(folder: Path, page: str, width: int, *words: str, script: str = "") -> dict[str, Any]:
    """Return the measures of a page in a window of this width, after a script has run in it."""
    whole = page + (f"<script>{script}</script>" if script else "") + MEASURE
    file = folder / "measured.html"
    file.write_text(FRAME % (width, html.escape(whole)), encoding="utf-8")
    dom = chromium(folder, *words, f"--window-size={max(width, 500) + 50},2000", "--dump-dom", file.as_uri())
    found = re.search(r"<title>(.*?)</title>", dom, re.DOTALL)
    assert found is not None
    measures: dict[str, Any] = json.loads(html.unescape(found[1]))
    assert measures["width"] == width
    return measures


def assert_fits(measures: dict[str, Any]) -> None:
    """Assert that nothing is wider than the page, no cell narrower than its longest word, and no chart truncated."""
    assert (measures["scrolls"], measures["wide"]) == (False, [])
    assert measures["narrow"] == []
    assert measures["cut"] == []
    for chart in measures["charts"]:
        assert (chart["outside"], chart["overlaps"]) == ([], 0)
        assert chart["text"] >= MIN_TEXT_PX


MIN_TEXT_PX = 9
"""Height of the smallest text in a chart that can be read."""
