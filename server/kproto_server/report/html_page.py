"""The report as one self-contained HTML page."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from kproto.html_page import Cell, Column, Markup, TableRow, banner, cards, html_page, section, short_count, table
from kproto_server.report import matrix, phrases
from kproto_server.report.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kproto_server.report.matrix import Cell as VersionCell
    from kproto_server.report.model import Client, Report, Sent

COUNT = Column("Count", is_number=True)
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
    for source in phrases.sources(report):
        names = ", ".join(f"<code>{escape(phrases.plain(name))}</code>" for name in source.files)
        yield f'<p class="soft small">{source.name}: {names}<br>{source.text}</p>'
    yield f'<p class="soft small">broker: {escape(phrases.broker(report))}</p>'
    yield "</header>"


def _banner(report: Report) -> Iterator[str]:
    if report.would_break:
        kind = "bad"
    elif any(report.with_verdict(Verdict.UNDECIDED)):
        kind = "warn"
    else:
        kind = "" if not report.requesting or report.protocol_errors else "good"
    yield banner(phrases.headline(report), kind)
    if report.protocol_errors:
        yield banner(phrases.protocol_errors(report), "bad")


def _cards(report: Report) -> Iterator[str]:
    errors = sum(count for _, _, count in phrases.errors(report))
    closed, breaking = report.protocol_errors, len(report.breaking)
    figures = [
        (f"{len(report.requesting):,}", _noun("client", len(report.requesting)), ""),
        (f"{report.request_count:,}", _noun("request", report.request_count), ""),
        (
            f"{breaking:,}",
            f"{_noun('client', breaking)} would break on {report.target.name}",
            "bad" if breaking else "good",
        ),
        (f"{errors:,}", f"{_noun('error', errors)} returned", "warn" if errors else ""),
        (f"{closed:,}", f"{_noun('connection', closed)} broke", "bad" if closed else ""),
    ]
    if report.retention is not None:
        asked = phrases.duration(report.retention.largest_override_ms)
        figures.append((asked, "longest retention requested", "" if report.retention.is_covered else "warn"))
    yield from cards(figures)


def _noun(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _sections(report: Report) -> Iterator[str]:
    ids = {client: f"client-{number}" for number, client in enumerate(report.clients, 1)}
    closed = [
        (client, row.api_key, row.api_version, row.count, phrases.plain(row.reason))
        for client in report.clients
        for row in client.closed
    ]
    errors = [
        (client, row.api_key, row.api_version, row.count, phrases.error(row.error_code))
        for client in report.clients
        for row in client.errors
    ]
    yield from _breaks(report, ids)
    yield from _by_request("Connections that broke", "Reason", closed, ids)
    yield from _failed_authentications(report, ids)
    yield from _logins(report, ids)
    if report.requesting:
        yield from _matrix(report)
        yield from _clients(report, ids)
    yield from _commits(report)
    yield from _by_request("Errors returned", "Error", errors, ids)


def _breaks(report: Report, ids: Mapping[Client, str]) -> Iterator[str]:
    target = report.target
    rows = [
        (
            _link(client, ids),
            _name(sent.name),
            f"{sent.count:,}",
            phrases.why(sent, client, target.name),
            phrases.library(client, target) or "unknown",
        )
        for client, sent in report.with_verdict(Verdict.BREAKS)
    ]
    note = phrases.patch_releases(report)
    lines = [*_rows(("Client", "Request", COUNT, "Why", "Library"), rows)] if rows else []
    if note:
        lines.append(f'<p class="note">{escape(note)}.</p>')
    if lines:
        yield from section(f"Would break on Kafka {target.name}", lines if rows else ["<p>Nothing.</p>", *lines])


def _link(client: Client, ids: Mapping[Client, str]) -> Cell:
    """Return a client's name as a link to its row in the table of clients."""
    name = phrases.who(client)
    text = escape(name)
    return Cell(Markup(f'<a href="#{ids[client]}">{text}</a>' if client.sent else text), name)


def _matrix(report: Report) -> Iterator[str]:
    rows = matrix.rows(report)
    columns = sorted({cell.api_version for row in rows for cell in row.cells})
    lines = ['<table class="matrix">', "<thead><tr><td></td>"]
    lines += [f'<th scope="col">{version}</th>' for version in columns]
    lines.append("</tr></thead><tbody>")
    for row in rows:
        by_version = {cell.api_version: cell for cell in row.cells}
        cells = (_cell(row.api, by_version[v]) if v in by_version else "<td></td>" for v in columns)
        lines.append(f'<tr><th scope="row">{escape(row.api)}</th>{"".join(cells)}</tr>')
    lines += ["</tbody></table>", _keys(report)]
    yield from section("APIs by version, requests counted", lines)


def _cell(api: str, cell: VersionCell) -> str:
    since, until = cell.releases
    title = f"{api} v{cell.api_version}: {phrases.plural(cell.count, 'request')}"
    if cell.state is matrix.State.REMOVED:
        title += f"; last served by {until}"
    elif cell.state is matrix.State.FUTURE:
        title += f"; first served by {since}" if since else "; served by no release"
    kind = cell.state.value if cell.verdict is None else f"sent {CELLS[cell.verdict]}"
    mark = {Verdict.BREAKS: "\N{MULTIPLICATION SIGN}", Verdict.UNDECIDED: "?"}.get(cell.verdict or Verdict.SERVED, "")
    text = f"{mark}{short_count(cell.count)}" if cell.count else ""
    return f'<td class="{kind}" data-label="v{cell.api_version}" title="{escape(title)}">{text}</td>'


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


def _clients(report: Report, ids: Mapping[Client, str]) -> Iterator[str]:
    columns = ("Client", "Software", Column("Requests", is_number=True), "Versions sent")
    rows = [
        TableRow(ids[client], (_client(client), _software(client), f"{client.request_count:,}", _chips(client)))
        for client in report.requesting
    ]
    yield from section("Clients", _rows(columns, rows))


def _client(client: Client) -> Cell:
    name = phrases.plain(client.client_id) or "(no client id)"
    origin = phrases.origin(client)
    where = f'<br><span class="soft small">{escape(origin)}</span>' if origin else ""
    return Cell(Markup(f"<b>{escape(name)}</b>{where}"), name)


def _software(client: Client) -> Cell:
    found = client.library
    name = phrases.plain(client.software) or (phrases.plain(found.name) if found is not None else "unknown")
    asks = "negotiates versions (ApiVersions)" if client.negotiates else "does not negotiate versions"
    return Cell(Markup(f'{escape(name)}<br><span class="soft small">{asks}</span>'), name)


def _chips(client: Client) -> Cell:
    chips = (
        f'<li class="chip {CELLS[sent.verdict]}" title="{escape(_description(sent))}">{escape(sent.name)}'
        f" <span>{sent.count:,}</span></li>"
        for sent in client.sent
    )
    return Cell(Markup(f'<ul class="chips">{"".join(chips)}</ul>'), len(client.sent))


def _description(sent: Sent) -> str:
    return f"{WORDS[sent.verdict]}; {sent.why}" if sent.why else WORDS[sent.verdict]


def _commits(report: Report) -> Iterator[str]:
    rows = [
        (_name(f"v{version}"), phrases.layout(name), f"{count:,}", phrases.overrides(overriding, count))
        for (version, name), (count, overriding) in report.commits().items()
    ]
    if not rows:
        return
    lines = list(_rows(("Version", "Layout", COUNT, "Overrides"), rows))
    retention = report.retention
    if retention is not None:
        asked = phrases.duration(retention.largest_override_ms)
        lines.append(
            f'<p class="note">Longest retention requested: <b>{escape(asked)}</b>. '
            f"KIP-211: {escape(phrases.advice(retention))} (here: {escape(phrases.compared(retention))}).</p>"
        )
    yield from section("OffsetCommit with a retention_time", lines)


def _by_request(
    title: str, last: str, rows: Iterable[tuple[Client, int, int, int, str]], ids: Mapping[Client, str]
) -> Iterator[str]:
    """Yield a section with a row for each client and request; nothing if there is no row."""
    cells = [
        (_link(client, ids), _name(phrases.request_name(key, version)), f"{count:,}", text)
        for client, key, version, count, text in rows
    ]
    if cells:
        yield from section(title, _rows(("Client", "Request", COUNT, last), cells))


def _failed_authentications(report: Report, ids: Mapping[Client, str]) -> Iterator[str]:
    rows = [
        (_link(client, ids), mechanism, user, f"{count:,}")
        for client, mechanism, user, count in phrases.failed_authentications(report)
    ]
    if rows:
        yield from section("Failed authentications", _rows(("Client", "Mechanism", "User", COUNT), rows))


def _logins(report: Report, ids: Mapping[Client, str]) -> Iterator[str]:
    rows = [
        (_link(one.client, ids), one.mechanism, one.user, one.tls, f"{one.connection_count:,}")
        for one in phrases.logins(report)
    ]
    if rows:
        yield from section("Logins", _rows(("Client", "Mechanism", "User", "TLS", COUNT), rows))
    refused = [(_link(client, ids), reason, f"{count:,}") for client, reason, count in phrases.refusals(report)]
    if refused:
        yield from section("What newer software would refuse", _rows(("Client", "Refused", COUNT), refused))


def _rows(columns: Sequence[str | Column], rows: Iterable[TableRow | Sequence[str | Cell]]) -> Iterator[str]:
    yield from table([column if isinstance(column, Column) else Column(column) for column in columns], rows)


def _name(name: str) -> Markup:
    return Markup(f'<span class="name">{escape(name)}</span>')


def _foot() -> Iterator[str]:
    yield f"<footer><p>{escape(phrases.MEANING)}</p></footer>"
