"""The report as one self-contained HTML page."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from kproto.html_page import html_page
from kproto_server.report import matrix, phrases
from kproto_server.report.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kproto_server.report.matrix import Cell
    from kproto_server.report.model import Client, Report, Sent

WORDS = {
    Verdict.SERVED: "served",
    Verdict.BREAKS: "would break",
    Verdict.NEWER: "newer, steps down",
    Verdict.UNDECIDED: "not decided",
}
CELLS = {Verdict.SERVED: "ok", Verdict.BREAKS: "breaks", Verdict.NEWER: "other", Verdict.UNDECIDED: "other"}


def render(report: Report) -> str:
    title = f"Kafka clients and Kafka {report.target.name}"
    style = files(__package__).joinpath("report.css").read_text(encoding="utf-8")
    parts = (_head(report, title), _banner(report), _cards(report), _sections(report), _foot())
    body = "\n".join(line for part in parts for line in part)
    return html_page(title, style, body)


def _head(report: Report, title: str) -> Iterator[str]:
    yield f"<header>\n<h1>{escape(title)}</h1>"
    if report.run is not None:
        command, ended = escape(phrases.command(report.run)), escape(phrases.ended(report.run))
        yield f'<p class="soft small"><code>{command}</code><br>{ended}</p>'
    yield f'<p class="soft small">broker: {escape(phrases.broker(report))}</p>'
    yield "</header>"


def _banner(report: Report) -> Iterator[str]:
    if report.would_break:
        kind = "bad"
    elif any(report.with_verdict(Verdict.UNDECIDED)):
        kind = "warn"
    else:
        kind = "" if not report.requesting or report.protocol_errors else "good"
    yield f'<div class="banner {kind}" role="status">{escape(phrases.headline(report))}</div>'
    if report.protocol_errors:
        yield f'<div class="banner bad" role="status">{escape(phrases.protocol_errors(report))}</div>'


def _cards(report: Report) -> Iterator[str]:
    breaking = {client for client, _ in report.with_verdict(Verdict.BREAKS)}
    errors = sum(count for _, _, count in phrases.errors(report))
    closed = sum(row.count for client in report.clients for row in client.closed)
    target = report.target.name
    yield '<div class="cards">'
    yield _card(f"{len(report.clients):,}", _noun("client", len(report.clients)))
    yield _card(f"{report.request_count:,}", _noun("request", report.request_count))
    yield _card(
        f"{len(breaking):,}", f"{_noun('client', len(breaking))} would break on {target}", "bad" if breaking else "good"
    )
    yield _card(f"{errors:,}", f"{_noun('error', errors)} returned", "warn" if errors else "")
    yield _card(f"{closed:,}", f"{_noun('connection', closed)} closed by the broker", "bad" if closed else "")
    if report.retention is not None:
        asked = phrases.duration(report.retention.largest_override_ms)
        yield _card(asked, "longest retention requested", "" if report.retention.is_covered else "warn")
    yield "</div>"


def _noun(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _card(figure: str, label: str, kind: str = "") -> str:
    return f'<div class="card {kind}"><b>{escape(figure)}</b><span>{escape(label)}</span></div>'


def _sections(report: Report) -> Iterator[str]:
    yield from _breaks(report)
    if report.clients:
        yield from _matrix(report)
        yield from _clients(report)
    yield from _commits(report)
    yield from _rows(
        "Errors returned",
        ("Client", "Request", "Count", "Error"),
        [
            (c, row.api_key, row.api_version, row.count, phrases.error(row.error_code))
            for c in report.clients
            for row in c.errors
        ],
    )
    yield from _rows(
        "Connections that the broker closed",
        ("Client", "Request", "Count", "Reason"),
        [
            (c, row.api_key, row.api_version, row.count, phrases.plain(row.reason))
            for c in report.clients
            for row in c.closed
        ],
    )


def _breaks(report: Report) -> Iterator[str]:
    target = report.target.name
    rows = [
        (_name(sent), phrases.who(client), f"{sent.count:,}", phrases.why(sent, client, target))
        for client, sent in report.with_verdict(Verdict.BREAKS)
    ]
    if rows:
        yield from _section(
            f"Would break on Kafka {target}", _table(("Request", "Client", "Count", "Why"), rows, right=2)
        )


def _matrix(report: Report) -> Iterator[str]:
    rows = matrix.rows(report)
    last = max(cell.api_version for row in rows for cell in row.cells)
    lines = ['<div class="wide"><table class="matrix">', "<thead><tr><td></td>"]
    lines += [f'<th scope="col">{version}</th>' for version in range(last + 1)]
    lines.append("</tr></thead><tbody>")
    for row in rows:
        by_version = {cell.api_version: cell for cell in row.cells}
        cells = (_cell(row.api, by_version[v]) if v in by_version else "<td></td>" for v in range(last + 1))
        lines.append(f'<tr><th scope="row">{escape(row.api)}</th>{"".join(cells)}</tr>')
    lines += ["</tbody></table></div>", _keys(report)]
    yield from _section("APIs by version, requests counted", lines)


def _cell(api: str, cell: Cell) -> str:
    since, until = cell.releases
    title = f"{api} v{cell.api_version}: {phrases.plural(cell.count, 'request')}"
    if cell.state is matrix.State.REMOVED:
        title += f"; last served by {until}"
    elif cell.state is matrix.State.FUTURE:
        title += f"; first served by {since}" if since else "; served by no release"
    kind = cell.state.value if cell.verdict is None else f"sent {CELLS[cell.verdict]}"
    mark = {Verdict.BREAKS: "\N{MULTIPLICATION SIGN}", Verdict.UNDECIDED: "?"}.get(cell.verdict or Verdict.SERVED, "")
    return f'<td class="{kind}" title="{escape(title)}">{mark}{_short(cell.count) if cell.count else ""}</td>'


def _short(count: int) -> str:
    """Return a count rounded down to four characters, for a narrow cell."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count // size}{unit}" if count >= 10 * size else f"{count * 10 // size / 10}{unit}"
    return str(count)


def _keys(report: Report) -> str:
    target = escape(report.target.name)
    keys = [
        ("sent ok", "12", f"sent, served by {target}"),
        ("sent breaks", "\N{MULTIPLICATION SIGN}12", f"sent, would break on {target}"),
        ("sent other", "12", f"sent, newer than {target} or (?) not decided"),
        ("served", "", f"served by {target}, not sent"),
        ("removed", "", f"no longer served by {target}"),
        ("future", "", f"not yet served by {target}"),
    ]
    items = (f'<li><span class="key {kind}">{text}</span>{label}</li>' for kind, text, label in keys)
    return f'<ul class="keys">{"".join(items)}</ul>'


def _clients(report: Report) -> Iterator[str]:
    rows = [(_client(client), f"{client.request_count:,}", _chips(client)) for client in report.clients]
    yield from _section("Clients", _table(("Client", "Requests", "Versions sent"), rows, right=1))


def _client(client: Client) -> _Markup:
    name = phrases.plain(client.client_id) or "(no client id)"
    software = phrases.plain(client.software) or "software unknown"
    asks = "negotiates versions (ApiVersions)" if client.negotiates else "does not negotiate versions"
    return _Markup(
        f'<div class="who"><b>{escape(name)}</b><br><span class="soft small">{escape(software)}<br>{asks}</span></div>'
    )


def _chips(client: Client) -> _Markup:
    chips = (
        f'<li class="chip {CELLS[sent.verdict]}" title="{escape(_description(sent))}">{escape(sent.name)}'
        f" <span>{phrases.times(sent.count)}</span></li>"
        for sent in client.sent
    )
    return _Markup(f'<ul class="chips">{"".join(chips)}</ul>')


def _description(sent: Sent) -> str:
    return f"{WORDS[sent.verdict]}; {sent.why}" if sent.why else WORDS[sent.verdict]


def _commits(report: Report) -> Iterator[str]:
    rows = [
        (
            _Markup(f'<span class="name">v{version}</span>'),
            phrases.layout(name),
            f"{count:,}",
            phrases.overrides(overriding, count),
        )
        for (version, name), (count, overriding) in report.commits().items()
    ]
    if not rows:
        return
    lines = list(_table(("Version", "Layout", "Count", "Overrides"), rows, right=2))
    retention = report.retention
    if retention is not None:
        asked = phrases.duration(retention.largest_override_ms)
        lines.append(
            f"<p>Longest retention requested: <b>{escape(asked)}</b>. KIP-211: {escape(phrases.advice(retention))}"
        )
        lines.append(f"(here: {escape(phrases.compared(retention))}).</p>")
    yield from _section("OffsetCommit with a retention_time", lines)


def _rows(title: str, heads: Sequence[str], rows: Iterable[tuple[Client, int, int, int, str]]) -> Iterator[str]:
    cells = [
        (
            phrases.who(client),
            _Markup(f'<span class="name">{escape(phrases.request_name(key, version))}</span>'),
            f"{count:,}",
            text,
        )
        for client, key, version, count, text in rows
    ]
    if cells:
        yield from _section(title, _table(heads, cells, right=2))


class _Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def _name(sent: Sent) -> _Markup:
    return _Markup(f'<span class="name">{escape(sent.name)}</span>')


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"<section>\n<h2>{escape(title)}</h2>"
    yield from lines
    yield "</section>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, right: int) -> Iterator[str]:
    def cell(tag: str, column: int, text: str) -> str:
        kind = ' class="n"' if column == right else ""
        return f"<{tag}{kind}>{text if isinstance(text, _Markup) else escape(text)}</{tag}>"

    yield '<div class="wide"><table>'
    yield f"<thead><tr>{''.join(cell('th', column, head) for column, head in enumerate(heads))}</tr></thead><tbody>"
    for row in rows:
        yield f"<tr>{''.join(cell('td', column, text) for column, text in enumerate(row))}</tr>"
    yield "</tbody></table></div>"


def _foot() -> Iterator[str]:
    yield f"<footer><p>{escape(phrases.MEANING)}</p></footer>"
