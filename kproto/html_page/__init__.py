"""Self-contained HTML pages for screen and print: the skeleton, the style and the parts of kproto's reports.

A page works without its script, which sorts and filters tables. On a small screen each row of a table becomes a block
whose cells have the column's heading before them.
"""

from __future__ import annotations

import re
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LONGEST_WORD = 20
"""Characters of the longest word that a column has room for; a longer one breaks anywhere."""
NO_VALUE = "\N{EN DASH}"
"""Stands in a cell without a value."""


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


class Column(NamedTuple):
    """A column of a table."""

    heading: str
    is_number: bool = False


class Cell(NamedTuple):
    """A cell that is sorted by another text than the one it shows."""

    text: str
    sort: float | str


class TableRow(NamedTuple):
    """A row that links lead to."""

    row_id: str
    cells: Sequence[str | Cell]


def html_page(title: str, style: str, body: str) -> str:
    """Return a page; ``body`` is HTML, ``style`` is CSS after `html_page.css`."""
    common = _resource("html_page.css")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{common}{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        f"<script>\n{_resource('html_page.js')}</script>\n</body>\n</html>\n"
    )


def banner(text: str, kind: str = "") -> str:
    """Return the result of a report; the kind is good, bad, warn or empty."""
    return f'<div class="banner {kind}" role="status">{_html(text)}</div>'


def cards(figures: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """Yield a card for each (figure, label, kind); the kind is good, bad, warn or empty."""
    yield '<div class="cards">'
    for figure, label, kind in figures:
        shown = f'<b style="--size: {len(figure)}">{_html(figure)}</b><span>{_html(label)}</span>'
        yield f'<div class="card {kind}">{shown}</div>'
    yield "</div>"


def section(title: str, lines: Iterable[str], subtitle: str = "") -> Iterator[str]:
    """Yield a section that folds."""
    more = f' <span class="soft">{_html(subtitle)}</span>' if subtitle else ""
    yield f"<details open><summary><h2>{_html(title)}{more}</h2></summary>"
    yield from lines
    yield "</details>"


def table(columns: Sequence[Column], rows: Iterable[TableRow | Sequence[str | Cell]]) -> Iterator[str]:
    """Yield a table that sorts and filters. No column is narrower than its longest word."""
    shown = [row if isinstance(row, TableRow) else TableRow("", row) for row in rows]
    heads = "".join(
        _head(column, max((_longest_word(row.cells[number]) for row in shown), default=0))
        for number, column in enumerate(columns)
    )
    yield f'<table class="rows">\n<thead><tr>{heads}</tr></thead>\n<tbody>'
    for row in shown:
        row_id = f' id="{escape(row.row_id)}"' if row.row_id else ""
        cells = "".join(_cell(column, cell) for column, cell in zip(columns, row.cells, strict=True))
        yield f"<tr{row_id}>{cells}</tr>"
    yield "</tbody></table>"


def share_bar(share: float, text: str) -> Cell:
    """Return a bar as long as the share of the whole, with its text."""
    width = f"{100 * min(max(share, 0), 1):.1f}"
    return Cell(Markup(f'<span class="bar"><span style="width:{width}%"></span></span> {_html(text)}'), share)


def short_count(count: float) -> str:
    """Return a count rounded down to at most four characters: 999, 1.5k, 20M."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count // size:g}{unit}" if count >= 10 * size else f"{count * 10 // size / 10:g}{unit}"
    return f"{count:g}"


def _head(column: Column, longest_word: int) -> str:
    kind = ' class="n"' if column.is_number else ""
    size = min(max(longest_word, _longest_word(column.heading)), LONGEST_WORD)
    return f'<th scope="col"{kind} style="--word: {size}">{_html(column.heading)}</th>'


def _longest_word(cell: str | Cell) -> int:
    """Return the number of characters of the longest word in a cell, without markup."""
    text = cell.text if isinstance(cell, Cell) else cell
    plain = re.sub(r"<[^>]*>", " ", text) if isinstance(text, Markup) else text
    return max(map(len, plain.split()), default=0)


def _cell(column: Column, cell: str | Cell) -> str:
    text, sort = (cell.text, f' data-sort="{escape(str(cell.sort))}"') if isinstance(cell, Cell) else (cell, "")
    kind = ' class="n"' if column.is_number else ""
    shown = text if isinstance(text, Markup) else breakable(text or NO_VALUE)
    return f'<td{kind} data-label="{_html(column.heading)}"{sort}><div>{shown}</div></td>'


def breakable(text: str) -> Markup:
    """Return text whose lines may break inside Kafka's long names of errors."""
    return Markup(escape(text).replace("_", "_<wbr>"))


def _html(text: str) -> str:
    return text if isinstance(text, Markup) else escape(text)


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
