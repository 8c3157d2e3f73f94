"""The HTML report fits a browser's window at any width, has light and dark colors, sorts, and prints on paper."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kproto_server.observation.observe import Observations
from kproto_server.report import html_page
from kproto_server.requests.context import ConnectionInfo
from tests.html_layout import DARK, SMALL, WIDE, assert_fits, chromium, layout
from tests.report.samples import FINISHED, everything, report_of

LONG = "a-client-id-without-any-break-" * 8


def full_page() -> str:
    return html_page.render(report_of(everything(), target="4.0", run=FINISHED))


def many_clients_page() -> str:
    """Return a page with many rows, long names and large counts."""
    observations = Observations()
    for number in range(12):
        software = ("apache-kafka-java", f"2.{number}.0") if number % 2 else ("", "")
        info = ConnectionInfo("/127.0.0.1", software_name=software[0], software_version=software[1])
        client_id = f"{LONG}{number}" if number == 7 else f"billing-{number}"
        for api_key, api_version, count in ((1, number % 12, 12_345_678), (2, 0, 2), (18, 3, 1), (11, number % 9, 900)):
            observations.repeated(info, client_id, api_key, api_version, None, -1).count = count * (number + 1)
        observations.errors(info, client_id, 11, 1, [25, 27])
        observations.closed(info, client_id, 3, 1, f"{LONG}: a reason")
    return html_page.render(report_of(observations, target="4.0", run=FINISHED))


@pytest.mark.parametrize("width", [SMALL, 1140, 1141, WIDE])
@pytest.mark.parametrize("page", [full_page, many_clients_page])
def test_all_of_the_page_is_visible_at_any_width(tmp_path: Path, page: object, width: int) -> None:
    assert callable(page)
    assert_fits(layout(tmp_path, page(), width))


def test_the_page_has_the_browsers_color_scheme(tmp_path: Path) -> None:
    light = layout(tmp_path, full_page(), WIDE)
    dark = layout(tmp_path, full_page(), WIDE, DARK)
    assert (light["page"], dark["page"]) == ("rgb(246, 247, 249)", "rgb(18, 22, 28)")
    assert light["ink"] != dark["ink"]


def seen(folder: Path, page: str, actions: str, value: str) -> str:
    """Return the value of an expression after actions on the page."""
    file = folder / "page.html"
    file.write_text(f"{page}<script>{actions}; document.title = {value};</script>", encoding="utf-8")
    found = re.search(r"<title>(.*?)</title>", chromium(folder, "--dump-dom", file.as_uri()), re.DOTALL)
    assert found is not None
    return found[1]


def test_a_click_on_a_heading_sorts_and_a_text_filters(tmp_path: Path) -> None:
    table = (
        "const t = [...document.querySelectorAll('table.rows')].find(one => one.textContent.includes('Versions sent'))"
    )
    click = "t.querySelectorAll('th button')[2].click()"
    first = "t.tBodies[0].rows[0].cells[2].textContent"
    page = many_clients_page()
    assert seen(tmp_path, page, f"{table}; {click}", first) == "148,158,973"
    assert seen(tmp_path, page, f"{table}; {click}; {click}", first) == "12,346,582"
    filter_ = "const f = t.previousElementSibling; f.value = 'BILLING-1'; f.dispatchEvent(new Event('input'))"
    count = "[...t.tBodies[0].rows].filter(row => !row.hidden).length"
    assert seen(tmp_path, page, f"{table}; {filter_}", count) == "3"


def test_a_row_that_breaks_links_to_its_client_and_unfolds_its_section() -> None:
    page = full_page()
    (target,) = set(re.findall(r'<a href="#([^"]+)">consumer-1</a>', page))
    assert page.count(f'<tr id="{target}"') == 1
    assert "<details open><summary><h2>Clients</h2></summary>" in page


@pytest.mark.parametrize("page", [full_page, many_clients_page])
def test_every_cell_has_content(page: object) -> None:
    assert callable(page)
    assert re.findall(r"<td[^>]*data-label=\"(?!v\d)[^>]*><div>\s*</div>", page()) == []


def test_a_version_that_no_release_has_is_one_column() -> None:
    """A fuzzer or a port scanner sent it."""
    observations, info = Observations(), ConnectionInfo("/127.0.0.1")
    for version in (0, 32_767):
        observations.request(info, "fuzzer", 3, version)
    page = html_page.render(report_of(observations))
    assert 'data-label="v32767"' in page
    assert len(page) < 100_000


def test_the_report_prints_on_at_most_three_pages(tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    page.write_text(full_page(), encoding="utf-8")
    chromium(tmp_path, f"--print-to-pdf={tmp_path / 'r.pdf'}", "--no-pdf-header-footer", page.as_uri())
    pages = re.findall(rb"/Type\s*/Page\b", (tmp_path / "r.pdf").read_bytes())
    assert 1 <= len(pages) <= 3
